//! Signed landings, and what `premath audit` reports about a repository in
//! which one contradiction was planted.

mod batched;
mod night;

use crate::landing::{OWN, TARGET, first_parents};
use night::{Copied, Forged, LAST, key, night};
use premath_kernel::record::audit::{ContradictionCode as Code, digest_of};
use premath_kernel::record::trajectory::Chain;
use premath_tests::{Scratch, issue, skipped};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A planted contradiction: its name, the code that the audit must report, and what
/// plants it.
type Planted = (&'static str, Code, fn(&Copied<'_>));

const ISSUES: &str = ".premath/issues.jsonl";

/// Changes the row of an issue in issue memory.
fn by_hand(copied: &Copied<'_>, id: &str, change: impl FnOnce(&mut Value)) {
    copied.lines(ISSUES, |lines| {
        let of = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let mut found = lines.iter_mut().rev();
        let line = found.find(|line| of(line)["id"] == id).unwrap();
        let mut row = of(line);
        change(&mut row);
        *line = row.to_string();
    });
}

/// Removes what says that issue memory was changed by no transaction.
fn without_seal(copied: &Copied<'_>) {
    for name in ["seal", "base"] {
        fs::remove_file(copied.path(&format!("{ISSUES}.{name}"))).unwrap();
    }
}

const OF_THE_TRAJECTORY: &[Planted] = &[
    ("a row is changed", Code::RowAltered, |copied| {
        copied.rows_as_they_are(|lines| lines[1] = lines[1].replace("passed", "other"));
    }),
    ("a row is removed", Code::RowAltered, |copied| {
        copied.rows_as_they_are(|lines| drop(lines.remove(2)));
    }),
    ("rows are in another order", Code::RowMoved, |copied| {
        copied.rows_as_they_are(|lines| lines.swap(1, 2));
    }),
    ("a row is there twice", Code::RowRepeated, |copied| {
        copied.rows_as_they_are(|lines| lines.push(lines[1].clone()));
    }),
    ("a row is put in", Code::RowInserted, |copied| {
        copied.rows_as_they_are(|lines| lines.insert(2, "{}".to_owned()));
    }),
    ("a row is rewritten", Code::RowRewritten, |copied| {
        copied.rows_as_they_are(|lines| lines[1] = lines[1].replacen(',', ", ", 1));
    }),
    (
        "a second chain is added",
        Code::ChainBeginsAgain,
        |copied| {
            let (line, _) = Chain::default().line(r#"{"other":1}"#);
            copied.rows_as_they_are(|lines| lines.push(line));
        },
    ),
    ("a step is completed twice", Code::RowDuplicate, |copied| {
        copied.rows(|rows| {
            let last = rows.iter().find(|row| row["stepId"] == LAST).unwrap();
            let mut second = last.clone();
            second["finishedAt"] = json!("2026-01-01T00:00:00Z");
            rows.push(second);
        });
    }),
    ("the last rows are cut off", Code::RowMissing, |copied| {
        copied.rows_as_they_are(|lines| lines.truncate(3));
    }),
    (
        "a row is changed and the chain computed again",
        Code::AnchorUnknown,
        |copied| {
            copied.row("worker.1.a.1", |row| {
                row["startedAt"] = json!("2026-01-01T00:00:00Z");
            });
        },
    ),
    (
        "a row names another issue",
        Code::RowOfAnotherIssue,
        |copied| {
            copied.row(LAST, |row| row["issueId"] = json!("e"));
        },
    ),
    ("a row did not complete", Code::RowNotCompleted, |copied| {
        copied.row(LAST, |row| row["resultClass"] = json!("check_failed"));
    }),
    (
        "the verification of a row is another",
        Code::VerificationDisagrees,
        |copied| {
            copied.row(LAST, |row| {
                let other = row["witnessRefs"][0].clone();
                row["verification"]["witnessRef"] = json!(format!("{other}x"));
            });
        },
    ),
    (
        "a row names a commit that is not there",
        Code::CommitMissing,
        |copied| copied.name_commit(&"1".repeat(40)),
    ),
    (
        "the row and the witness of a close name no landing",
        Code::ClaimOfAnother,
        |copied| {
            copied.row(LAST, |row| row["landing"] = Value::Null);
            copied.forge_witness(LAST, "mutation", |document| {
                document["landing"] = Value::Null;
                document["commit"] = json!("1".repeat(40));
            });
        },
    ),
];

const OF_WITNESSES: &[Planted] = &[
    ("a turn is not witnessed", Code::WitnessLacking, |copied| {
        copied.reference(LAST, &format!("ciwitness://{LAST}/turn/"), None);
    }),
    ("a close is not witnessed", Code::WitnessLacking, |copied| {
        copied.reference(LAST, &format!("ciwitness://{LAST}/mutation/"), None);
    }),
    (
        "a verification is not witnessed",
        Code::VerificationDisagrees,
        |copied| copied.reference(LAST, &format!("ciwitness://{LAST}/verify/"), None),
    ),
    ("a witness is edited", Code::WitnessAltered, |copied| {
        copied.witness("worker.1.a.1", "verify", |document| {
            document["durationMs"] = json!(987_654);
        });
    }),
    ("a witness is removed", Code::WitnessMissing, |copied| {
        fs::remove_file(copied.witness_path("worker.1.b.1", "work")).unwrap();
    }),
    (
        "a row names the witness of another step",
        Code::WitnessOfAnotherStep,
        |copied| {
            let other = format!("ciwitness://worker.1.a.1/work/{}", digest_of(&json!(1)));
            copied.reference(LAST, &format!("ciwitness://{LAST}/work/"), Some(&other));
        },
    ),
    ("a witness is not JSON", Code::WitnessUnreadable, |copied| {
        fs::write(copied.witness_path("worker.1.b.1", "turn"), "{").unwrap();
    }),
    (
        "a failed verification is called a passed one",
        Code::VerificationFailed,
        |copied| {
            copied.forge_witness(LAST, "verify", |document| {
                document["exit"]["code"] = json!(1);
            });
        },
    ),
    (
        "a row calls the verification that passed a flaky one",
        Code::FlakyDisagrees,
        |copied| {
            copied.row(LAST, |row| {
                row["flakyRefs"] = json!([row["verification"]["witnessRef"]]);
            });
        },
    ),
    (
        "the digest of a stream is another in the witness",
        Code::StreamAltered,
        |copied| {
            copied.forge_witness(LAST, "work", |document| {
                document["stdout"]["sha256"] = json!(digest_of(&json!("other")));
            });
        },
    ),
    ("a stream is edited", Code::StreamAltered, |copied| {
        let stream = copied.path("artifacts/streams/worker.1.a.1.verify.stdout");
        assert_eq!(fs::read(&stream).unwrap(), b"verified\n");
        fs::write(&stream, "verified?").unwrap();
    }),
    (
        "a digest of the turn is computed wrongly",
        Code::TurnDigest,
        |copied| {
            copied.forge_witness(LAST, "turn", |document| {
                let digests = document["joinCheck"]["witness"]["digests"].as_object_mut();
                let digest = digests.unwrap().values_mut().next().unwrap();
                *digest = json!(format!("sha256:{}", digest_of(&json!("other"))));
            });
        },
    ),
    (
        "the evidence of a turn is edited",
        Code::TurnDigest,
        |copied| {
            copied.forge_witness(LAST, "turn", |document| {
                let policy = &mut document["input"]["evidence"]["callSpec"]["modelRef"];
                *policy = json!("shell.other");
            });
        },
    ),
    (
        "something speaks against a close",
        Code::TurnVerdict,
        |copied| {
            copied.forge_witness(LAST, "turn", |document| {
                document["closeFailureClasses"] = json!(["lease_stale"]);
            });
        },
    ),
    (
        "a queue of a turn is rewritten",
        Code::TurnContext,
        |copied| {
            copied.forge_witness(LAST, "turn", |document| {
                document["context"]["queues"]["queue/step"] = json!(["tool_error"]);
            });
        },
    ),
    (
        "the right to close is another",
        Code::MutationDigest,
        |copied| {
            let right = format!("mutation-ready://c/close/{}", digest_of(&json!("other")));
            copied.reference(LAST, "mutation-ready://", Some(&right));
        },
    ),
    (
        "a turn that changes nothing closes its issue",
        Code::TurnVerdict,
        |copied| {
            copied.forge_witness(LAST, "turn", |document| {
                document["joinCheck"]["mutationReady"] = json!(false);
            });
        },
    ),
    (
        "the right to close rests on another join",
        Code::MutationDisagrees,
        |copied| copied.forge_right("joinSetDigest", &json!("sha256:other")),
    ),
    (
        "the right to close rests on another verification",
        Code::MutationDisagrees,
        |copied| copied.forge_right("verificationCallId", &json!("worker.1.a.1/verify")),
    ),
    (
        "the right to close is under another lease",
        Code::MutationDisagrees,
        |copied| copied.forge_right("leaseOwner", &json!("worker.9")),
    ),
    (
        "a journal of hooks is edited",
        Code::StreamAltered,
        |copied| {
            let journal = copied.path(&format!("artifacts/streams/{LAST}.work.hooks.jsonl"));
            fs::write(journal, "edited\n").unwrap();
            copied.forge_witness(LAST, "work", |document| {
                document["hooks"] = json!({ "journalSha256": digest_of(&json!("other")) });
            });
        },
    ),
    ("a close did not hold", Code::CloseNotHeld, |copied| {
        copied.forge_witness(LAST, "mutation", |document| {
            document["found"]["status"] = json!("open");
        });
    }),
    (
        "a close names another landing than its row",
        Code::CloseDisagrees,
        |copied| {
            copied.forge_witness(LAST, "mutation", |document| {
                document["landing"]["target"] = json!("main");
            });
        },
    ),
];

const OF_COMMITS: &[Planted] = &[
    (
        "a landing is not signed",
        Code::SignatureMissing,
        |copied| {
            let message = copied.message();
            let forged = Forged {
                key: None,
                ..Forged::saying(&message)
            };
            let id = copied.commit(forged, false);
            copied.name_commit(&id.to_string());
        },
    ),
    (
        "a landing is signed by another key",
        Code::SignerRefused,
        |copied| {
            let message = copied.message();
            let forged = Forged {
                key: Some(2),
                ..Forged::saying(&message)
            };
            let id = copied.commit(forged, false);
            copied.name_commit(&id.to_string());
        },
    ),
    (
        "a landing has the signature of another commit",
        Code::SignatureBad,
        |copied| {
            let git = copied.git();
            let (signature, text) = git.extract_signature(&copied.tip(), None).unwrap();
            let text = String::from_utf8(text.to_vec()).unwrap();
            let text = text.replacen("c: issue c", "c: other", 1);
            let signature = std::str::from_utf8(&signature).unwrap();
            let id = git.commit_signed(&text, signature, None).unwrap();
            copied.move_target(id);
            copied.name_commit(&id.to_string());
        },
    ),
    ("a landing is amended", Code::CommitUnreachable, |copied| {
        let message = copied.message();
        let forged = Forged {
            tree: Some(copied.other_tree()),
            ..Forged::saying(&message)
        };
        copied.commit(forged, false);
    }),
    (
        "a landing is amended, and all else names it",
        Code::TrailerDisagrees,
        |copied| {
            let message = copied.message();
            let forged = Forged {
                tree: Some(copied.other_tree()),
                ..Forged::saying(&message)
            };
            let id = copied.commit(forged, false);
            copied.name_commit(&id.to_string());
        },
    ),
    (
        "a landing is amended, its trailers too, and all else names it",
        Code::TreeUnverified,
        |copied| {
            let tree = copied.other_tree();
            let message = copied.message();
            let (message, _) = message.split_once("Verified-Tree: ").unwrap();
            let message = format!("{message}Verified-Tree: {tree}\n");
            let forged = Forged {
                tree: Some(tree),
                ..Forged::saying(&message)
            };
            let id = copied.commit(forged, false);
            copied.name_commit(&id.to_string());
        },
    ),
    (
        "the target is moved back",
        Code::CommitUnreachable,
        |copied| {
            let git = copied.git();
            let tip = git.find_commit(copied.tip()).unwrap();
            copied.move_target(tip.parent_id(0).unwrap());
        },
    ),
    ("the target is gone", Code::TargetMissing, |copied| {
        let git = copied.git();
        let name = format!("refs/heads/{TARGET}");
        git.find_reference(&name).unwrap().delete().unwrap();
    }),
    (
        "the chain value is another one",
        Code::AnchorUnknown,
        |copied| {
            copied.forge_trailers(|trailers| {
                let other = format!("sha256:{}", digest_of(&json!("other")));
                trailers.trajectory = Some(other.parse().unwrap());
            });
        },
    ),
    (
        "the chain value is an earlier one",
        Code::AnchorOutOfOrder,
        |copied| {
            let git = copied.git();
            let tip = git.find_commit(copied.tip()).unwrap();
            let first = tip.parent(0).unwrap().parent(0).unwrap();
            let message = first.message().unwrap();
            let first = premath_kernel::record::trailers::LandingTrailers::parse(message);
            let first = first.unwrap().unwrap();
            copied.forge_trailers(|trailers| trailers.trajectory = first.trajectory);
        },
    ),
    (
        "the trailers name another issue",
        Code::TrailerDisagrees,
        |copied| {
            copied.forge_trailers(|trailers| trailers.issue = "a".into());
        },
    ),
    (
        "the trailers name another step",
        Code::TrailerDisagrees,
        |copied| {
            copied.forge_trailers(|trailers| trailers.step = "worker.1.a.1".into());
        },
    ),
    (
        "the trailers name another witness",
        Code::TrailerDisagrees,
        |copied| {
            copied.forge_trailers(|trailers| {
                let other = digest_of(&json!("other"));
                trailers.witness = Some(format!("ciwitness://{LAST}/verify/{other}"));
            });
        },
    ),
    (
        "the trailers name another lease",
        Code::TrailerDisagrees,
        |copied| {
            copied.forge_trailers(|trailers| trailers.lease = "lease1_c_other#1".to_owned());
        },
    ),
    (
        "the trailers name another base",
        Code::TrailerDisagrees,
        |copied| {
            copied.forge_trailers(|trailers| trailers.base = Some("1".repeat(40)));
        },
    ),
    ("a trailer is taken out", Code::TrailerDisagrees, |copied| {
        copied.forge_trailers(|trailers| trailers.verified_tree = None);
    }),
    ("there are no trailers", Code::TrailersMissing, |copied| {
        copied.forge_message("c: issue c\n");
    }),
    ("a trailer is there twice", Code::TrailersForged, |copied| {
        let message = copied.message();
        copied.forge_message(&format!("{message}Issue: c\n"));
    }),
    (
        "a commit claims a step without a row",
        Code::ClaimWithoutRow,
        |copied| {
            let message = copied.message().replace(LAST, "worker.1.e.1");
            copied.commit(Forged::saying(&message), true);
        },
    ),
    (
        "a second commit claims a step",
        Code::ClaimOfAnother,
        |copied| {
            let message = copied.message();
            copied.commit(Forged::saying(&message), true);
        },
    ),
];

const OF_ISSUES: &[Planted] = &[
    (
        "an issue is closed by hand",
        Code::IssueChangedOutside,
        |copied| {
            by_hand(copied, "e", |row| row["status"] = json!("closed"));
        },
    ),
    (
        "the title of a closed issue is changed by hand",
        Code::IssueChangedOutside,
        |copied| by_hand(copied, "c", |row| row["title"] = json!("another")),
    ),
    (
        "an issue is closed by a step that there was not",
        Code::RowMissing,
        |copied| {
            without_seal(copied);
            by_hand(copied, "e", |row| {
                row["status"] = json!("closed");
                row["closed_by_step"] = json!("worker.1.e.1");
            });
        },
    ),
    (
        "an issue is closed by the step of another",
        Code::RowOfAnotherIssue,
        |copied| {
            without_seal(copied);
            by_hand(copied, "e", |row| {
                row["status"] = json!("closed");
                row["closed_by_step"] = json!(LAST);
            });
        },
    ),
    ("a closed issue is removed", Code::IssueMissing, |copied| {
        copied.lines(ISSUES, |lines| {
            lines.retain(|line| !line.contains("\"id\":\"c\""));
        });
    }),
];

/// Plants each contradiction in a copy of its own; the audit must report it first.
fn each_is_found(scratch: &Scratch, planted: &[Planted]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, code, plant) in planted {
        let copied = Copied::of(scratch);
        plant(&copied);
        let ended = copied.audit(&["--json"]);
        let found: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
        let first = &found["lies"][0];
        if ended.code != Some(1) || first["code"] != json!(code) {
            wrong.push(format!(
                "{name}: exit {:?}, {first}\n{}",
                ended.code, ended.stderr
            ));
        }
    }
    wrong
}

#[test]
fn a_planted_contradiction_is_found_and_named_first() {
    let scratch = night();
    let untouched = Copied::of(&scratch);
    let ended = untouched.audit(&[]).exits(0);
    assert!(
        ended
            .stdout
            .starts_with("consistent: 4 issue(s) closed by steps, 3 landing commit(s)"),
        "{}",
        ended.stdout
    );
    let tables = [OF_THE_TRAJECTORY, OF_WITNESSES, OF_COMMITS, OF_ISSUES];
    let mut wrong = Vec::new();
    for planted in tables {
        wrong.extend(each_is_found(&scratch, planted));
    }
    let seven = crate::batched::seven("");
    crate::batched::batch(&seven, "").end().exits(0);
    wrong.extend(each_is_found(&seven, batched::OF_BATCHES));
    assert_eq!(wrong, Vec::<String>::new());
    // In words, with the place.
    let copied = Copied::of(&scratch);
    let stream = copied.path("artifacts/streams/worker.1.a.1.work.stdout");
    fs::write(stream, "other\n").unwrap();
    let said = copied.audit(&[]).exits(1).stdout;
    assert!(
        said.starts_with("false: a: ")
            && said.contains("worker.1.a.1.work.stdout: the digest of a stream differs"),
        "{said}"
    );
    // Each code is planted.
    let planted: BTreeSet<Code> = tables
        .into_iter()
        .chain([batched::OF_BATCHES])
        .flatten()
        .map(|planted| planted.1)
        .collect();
    let mut missing = Code::ALL.to_vec();
    missing.retain(|code| !planted.contains(code));
    assert_eq!(missing, []);
}

/// Returns whether git verifies a commit; `None` where there is no
/// `ssh-keygen`, which git calls for it.
fn git_accepts(scratch: &Scratch, commit: &str, key: &Path) -> Option<bool> {
    if premath_tests::command("ssh-keygen")
        .arg("-?")
        .output()
        .is_err()
    {
        skipped("git verify-commit", "ssh-keygen is not installed");
        return None;
    }
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    let allowed = scratch.folder().join("allowed");
    fs::write(&allowed, format!("harness {public}")).unwrap();
    let setting = format!("gpg.ssh.allowedSignersFile={}", allowed.display());
    let git = scratch.git_command(["-c", &setting, "verify-commit", commit]);
    Some(git.end().code == Some(0))
}

#[test]
fn git_accepts_every_commit_that_a_landing_writes() {
    let scratch = night();
    let commits = first_parents(&scratch);
    assert_eq!(commits.len(), 3);
    for commit in commits {
        let commit = commit.to_string();
        let accepts = |number| git_accepts(&scratch, &commit, &key(&scratch, number));
        assert_ne!(accepts(1), Some(false), "{commit}");
        assert_ne!(accepts(2), Some(true), "{commit}");
    }
    // A landing that is reverted: both of its commits.
    let check = scratch.folder().join("check.sh");
    let root = scratch.root.display();
    let theirs = format!(
        r#"git -C '{root}' worktree add -q --detach "$HOME/other" {TARGET} && cd "$HOME/other" &&
echo theirs > src/theirs.txt && git add -A && git commit -qm theirs &&
git update-ref refs/heads/{TARGET} HEAD; exit 1"#
    );
    fs::write(&check, theirs).unwrap();
    let settings = format!(
        "[signing]\nkey = \"~/key-1\"\n[landing]\ncheck_cmd = \"sh {}\"\n",
        check.display()
    );
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    scratch.write_issues(format!("{}\n", issue("f")).as_bytes());
    let run = scratch.landing_batch("echo x > src/f.txt", "true");
    run.args(["--sandbox", "none"]).end().exits(1);
    let git = scratch.git();
    let written: Vec<_> = first_parents(&scratch)
        .into_iter()
        .filter(|id| {
            let commit = git.find_commit(*id).unwrap();
            let subject = commit.summary().unwrap().unwrap().to_owned();
            subject.starts_with("f: ") || subject.starts_with("Revert \"f: ")
        })
        .collect();
    assert!(written.len() >= 2, "{written:?}");
    for commit in written {
        let accepted = git_accepts(&scratch, &commit.to_string(), &key(&scratch, 1));
        assert_ne!(accepted, Some(false), "{commit}");
    }
}

#[test]
fn a_key_that_cannot_sign_refuses_the_batch_before_any_lane() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let path = key(&scratch, 1);
    let settings = "\n[signing]\nkey = \"~/key-1\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    fs::write(&path, "no key\n").unwrap();
    let before = scratch.issue_bytes();
    for run in [
        scratch.landing_batch("true", "true"),
        scratch.landing_worker(0, "w", "true", "true"),
    ] {
        run.end()
            .exits(3)
            .says("harness.toml:3: `key` of [signing]")
            .says(path.to_str().unwrap())
            .says("ssh-keygen -t ed25519")
            .says("refused before dispatch: signing_key_unusable");
    }
    assert_eq!(scratch.issue_bytes(), before);
    assert_eq!(scratch.steps(), Vec::<Value>::new());
    let branches = scratch.branches();
    assert!(!branches.iter().any(|name| name == TARGET), "{branches:?}");
}

#[test]
fn what_a_person_merged_and_the_target_follows_is_consistent() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let audit = || scratch.premath(["audit"]).end().exits(0);
    let night = || scratch.landing_batch(OWN, "true").end().exits(0);
    night();
    let git = |arguments: &[&str]| {
        scratch
            .git_command(arguments.iter().copied())
            .end()
            .exits(0)
    };
    git(&["commit", "-q", "--allow-empty", "-m", "by a person"]);
    git(&["merge", "-q", "--no-edit", TARGET]);
    audit();
    scratch.premath(["issue", "add", "b"]).end().exits(0);
    night();
    audit();
    // What HEAD has stays when the target goes.
    git(&["merge", "-q", "--no-edit", TARGET]);
    git(&["branch", "-q", "-D", TARGET]);
    audit();
}

#[test]
fn an_issue_that_was_deleted_lacks_no_proof() {
    let scratch = Scratch::with_issues(1, &["a", "b"].map(issue));
    scratch
        .premath(["issue", "delete", "a", "--reason", "twice"])
        .end()
        .exits(0);
    scratch
        .premath(["issue", "close", "b", "--reason", "by hand"])
        .end()
        .exits(0);
    let audit = scratch.premath(["audit"]).end();
    let said = "1 issue(s) were not closed by a step";
    assert!(audit.stdout.contains(said), "{}", audit.stdout);
}

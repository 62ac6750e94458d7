//! Batches under an instruction, and what each fault of it refuses.

use premath_kernel::json::canonical;
use premath_memory::roots::LaneState;
use premath_tests::{Ended, NO_CHANGE, NO_STARTUP, PATIENCE, Run, Scratch, binaries, issue, until};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// A repository with two lanes that was created by `premath init`, and the
/// instruction that this wrote.
struct Laid {
    scratch: Scratch,
    instruction: PathBuf,
}

impl Laid {
    fn out(rows: &[Value]) -> Self {
        let scratch = Scratch::with_issues(2, rows);
        scratch.premath(["init"]).end().exits(0);
        let folder = scratch.root.join("instructions");
        let mut entries = fs::read_dir(folder).unwrap();
        let instruction = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none());
        Self {
            scratch,
            instruction,
        }
    }

    /// A batch without an authorisation.
    fn batch(&self, work: &str) -> Run {
        let mut run = self.scratch.run(&binaries().coordinator).arg("--json");
        for lane in &self.scratch.lanes {
            run = run.arg("--worktree").arg(lane);
        }
        run.args(["--work-cmd", work, "--verify-cmd", "true"])
            .args(NO_CHANGE)
            .args(NO_STARTUP)
    }

    fn worker(&self) -> Run {
        self.scratch
            .run(&binaries().worker)
            .args(["--json", "--work-cmd", "true", "--verify-cmd", "true"])
            .args(NO_CHANGE)
            .args(NO_STARTUP)
            .arg("--worktree-root")
            .arg(&self.scratch.lanes[0])
    }

    fn edit(&self, edit: impl FnOnce(&mut Value)) {
        let mut document = read(&self.instruction);
        edit(&mut document);
        fs::write(&self.instruction, document.to_string()).unwrap();
    }

    fn configure(&self, text: &str) {
        fs::write(self.scratch.root.join("harness.toml"), text).unwrap();
    }

    fn shown(&self) -> Value {
        let path = self.instruction.to_str().unwrap();
        let args = ["instruction", "show", path, "--json"];
        self.scratch.premath(args).end().exits(0).json()
    }

    fn session(&self, lane: usize) -> Value {
        read(&self.scratch.lanes[lane].join(".premath/harness_session.json"))
    }

    /// Runs what must be refused with these classes: issue memory is as it
    /// was, and the refusal is on record.
    #[track_caller]
    fn refused(&self, run: Run, code: i32, classes: &[&str]) -> Ended {
        let before = self.scratch.issue_bytes();
        let rows = self.scratch.trajectory().len();
        let ended = run.end().exits(code);
        assert_eq!(
            before,
            self.scratch.issue_bytes(),
            "issue memory was touched"
        );
        let new = &self.scratch.trajectory()[rows..];
        assert_eq!(new.len(), 1, "{new:#?}\n{}", ended.stderr);
        assert_eq!(new[0]["action"], "coordinator.dispatch_refused");
        assert_eq!(new[0]["resultClass"], "refused");
        assert_eq!(new[0]["failureClasses"], json!(classes));
        let session = self.session(0);
        assert_eq!(session["state"], "stopped");
        let summary = session["summary"].as_str().unwrap();
        for class in classes {
            assert!(summary.contains(class), "{summary}");
            assert!(ended.stderr.contains(class), "{}", ended.stderr);
        }
        let is_refusal = ended.stderr.contains("refused before dispatch");
        assert_eq!(is_refusal, code == 3, "{}", ended.stderr);
        assert_eq!(session["instructionRefs"], new[0]["instructionRefs"]);
        assert_eq!(session["witnessRefs"], new[0]["witnessRefs"]);
        let id = new[0]["stepId"].as_str().unwrap();
        let folder = self.scratch.root.join("artifacts/ciwitness");
        let witness = read(&folder.join(format!("{id}.refusal.json")));
        assert_eq!(witness["failureClasses"], json!(classes));
        let reference = new[0]["witnessRefs"][0].as_str().unwrap();
        assert!(reference.starts_with(&format!("ciwitness://{id}/refusal/")));
        ended
    }
}

fn read(path: &std::path::Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_repository_that_init_set_up_runs_under_its_instruction_at_once() {
    let laid = Laid::out(&[issue("a"), issue("b")]);
    let shown = laid.shown();
    let reference = &shown["instructionRef"];
    let ended = laid
        .batch("echo x > \"src/$PREMATH_ISSUE_ID.txt\"")
        .end()
        .exits(0);
    let events = ended.events();
    assert_eq!(events[0]["mutationMode"], "instruction-linked");
    assert_eq!(&events[0]["instructionRef"], reference);
    let scratch = &laid.scratch;
    for row in scratch.trajectory() {
        assert_eq!(row["instructionRefs"], json!([reference]), "{row:#}");
    }
    // So does a row that a killed worker could not write any more.
    let kept = scratch.trajectory().into_iter();
    let kept = kept.filter(|row| row["action"] != "worker.loop");
    let kept: String = kept.map(|row| format!("{row}\n")).collect();
    let whole = fs::read(scratch.trajectory_path()).unwrap();
    fs::write(scratch.trajectory_path(), kept).unwrap();
    // What landed is known by the rows that are gone.
    laid.batch("true").end().exits(1);
    for step in scratch.steps() {
        assert_eq!(step["recovered"], true);
        assert_eq!(step["instructionRefs"], json!([reference]), "{step:#}");
    }
    fs::write(scratch.trajectory_path(), whole).unwrap();
    let steps = scratch.steps();
    assert_eq!(steps.len(), 2);
    for step in &steps {
        let id = step["stepId"].as_str().unwrap();
        let folder = scratch.root.join("artifacts/ciwitness");
        let mutation = read(&folder.join(format!("{id}.mutation.json")));
        assert_eq!(&mutation["mutation"]["instructionRef"], reference);
        let digest = &shown["instruction"]["policyDigest"];
        assert_eq!(&mutation["mutation"]["mutationPolicyDigest"], digest);
        let turn = read(&folder.join(format!("{id}.turn.json")));
        let spec = &turn["input"]["evidence"]["callSpec"];
        assert_eq!(&spec["mutationPolicyDigest"], digest);
        assert_eq!(spec["normalizerId"], shown["instruction"]["normalizerId"]);
        let refs = step["witnessRefs"].to_string();
        assert!(
            refs.contains("policy://worker-lane/instruction-linked/"),
            "{refs}"
        );
        assert_eq!(
            scratch.issue(step["issueId"].as_str().unwrap())["status"],
            "closed"
        );
    }
    for lane in 0..2 {
        assert_eq!(laid.session(lane)["instructionRefs"], json!([reference]));
    }
}

#[test]
fn a_single_worker_runs_under_the_instruction_that_a_flag_or_a_variable_names() {
    for by_flag in [true, false] {
        let laid = Laid::out(&[issue("a")]);
        laid.configure("[batch]\noverride_reason = \"the file's own\"\n");
        let run = if by_flag {
            laid.worker().arg("--instruction").arg(&laid.instruction)
        } else {
            laid.worker().env("PREMATH_INSTRUCTION", &laid.instruction)
        };
        run.end().exits(0).says("mode instruction-linked: ");
        let step = &laid.scratch.steps()[0];
        assert_eq!(
            step["instructionRefs"],
            json!([laid.shown()["instructionRef"]])
        );
    }
}

#[test]
fn one_digit_of_the_policy_digest_refuses_the_batch() {
    let laid = Laid::out(&[issue("a")]);
    laid.edit(|d| {
        let mut digest = d["policyDigest"].as_str().unwrap().to_owned();
        let last = if digest.pop() == Some('0') { '1' } else { '0' };
        digest.push(last);
        d["policyDigest"] = digest.into();
    });
    let classes = ["mutation.policy_digest_mismatch"];
    laid.refused(laid.batch("true"), 3, &classes)
        .says("the active instruction policy's is `pol1_");
    laid.refused(laid.worker(), 3, &classes);
    assert_eq!(
        laid.session(0)["instructionRefs"],
        json!([laid.shown()["instructionRef"]])
    );
}

#[test]
fn a_missing_claim_refuses_the_batch() {
    let laid = Laid::out(&[issue("a")]);
    laid.edit(|d| {
        let claims = d["capabilityClaims"].as_array_mut().unwrap();
        claims.retain(|claim| claim != "capabilities.change_morphisms.issue_update");
    });
    laid.refused(
        laid.batch("true"),
        3,
        &["mutation.capability_claim_missing"],
    )
    .says("do not cover `capabilities.change_morphisms.issue_update`");
}

#[test]
fn an_unknown_type_refuses_the_batch_unless_the_envelope_allows_it() {
    let laid = Laid::out(&[issue("a")]);
    laid.edit(|d| d["instructionType"] = "harness.revolution".into());
    laid.refused(laid.batch("true"), 3, &["instruction_unknown_unroutable"])
        .says("unknown(type_not_recognized)");
    let rows = laid.scratch.trajectory();
    let id = rows[0]["stepId"].as_str().unwrap();
    let folder = laid.scratch.root.join("artifacts/ciwitness");
    let witness = read(&folder.join(format!("{id}.refusal.json")));
    assert_eq!(
        witness["classification"],
        json!({"state": "unknown", "reason": "type_not_recognized"})
    );
    laid.edit(|d| d["typingPolicy"]["allowUnknown"] = true.into());
    let events = laid.batch("true").end().exits(0).events();
    for event in [&events[0], &events[events.len() - 1]] {
        assert_eq!(event["instructionClass"], "unknown(type_not_recognized)");
    }
    assert_eq!(laid.scratch.issue("a")["status"], "closed");
}

#[test]
fn a_normaliser_or_a_check_that_is_not_admitted_refuses_the_batch() {
    let laid = Laid::out(&[issue("a")]);
    laid.edit(|d| d["normalizerId"] = "nf.other".into());
    laid.refused(
        laid.batch("true"),
        3,
        &["instruction_normalizer_not_allowed"],
    );
    laid.edit(|d| {
        d["normalizerId"] = "premath.harness.shell.v1".into();
        d["requestedChecks"] = json!(["verify", "startup"]);
    });
    laid.refused(laid.batch("true"), 3, &["instruction_check_unbound"])
        .says("startup_cmd");
    let run = laid.batch("true").env("PREMATH_STARTUP_CMD", "true");
    run.end().exits(0);
}

#[test]
fn a_broken_envelope_or_policy_refuses_the_batch() {
    let laid = Laid::out(&[issue("a")]);
    laid.edit(|d| d["scope"] = json!({"kind": "repo"}));
    laid.refused(laid.batch("true"), 2, &["instruction_scope_invalid"])
        .says("`scope.target` is missing");
    laid.edit(|d| d["scope"] = json!({"kind": "repo", "target": "x"}));
    let policy = "policies/control/harness-instruction-policy-v1.json";
    let path = laid.scratch.root.join(policy);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"startup\"", "\"anything\"")).unwrap();
    laid.refused(
        laid.batch("true"),
        3,
        &["instruction_policy_digest_mismatch"],
    )
    .says(policy);
    fs::write(&path, text).unwrap();
    fs::remove_file(&laid.instruction).unwrap();
    laid.refused(laid.batch("true"), 2, &["instruction_envelope_unreadable"]);
}

#[test]
fn without_an_instruction_and_without_a_reason_nothing_is_dispatched() {
    let laid = Laid::out(&[issue("a")]);
    laid.configure("[batch]\n");
    for run in [laid.batch("true"), laid.worker()] {
        laid.refused(run, 3, &["instruction_mode_unavailable"])
            .says("--instruction")
            .says("--override-reason");
    }
    let run = laid
        .batch("true")
        .args(["--instruction", "x", "--override-reason", "y"]);
    run.end().exits(2).says("--mutation-mode");
    let run = laid.batch("true").args(["--override-reason", "by hand"]);
    let events = run.end().exits(0).events();
    assert_eq!(events[0]["mutationMode"], "human-override");
    for event in [&events[0], &events[events.len() - 1]] {
        assert_eq!(event["reason"], "by hand");
        assert_eq!(event["mutationMode"], "human-override");
    }
    assert_eq!(events[0]["instructionRef"], Value::Null);
    assert_eq!(laid.session(0)["instructionRefs"], Value::Null);
}

#[test]
fn an_expired_override_refuses_the_batch() {
    let laid = Laid::out(&[issue("a")]);
    let run = laid.batch("true");
    let run = run.args(["--override-reason", "by hand", "--support-until", "2020-01"]);
    laid.refused(run, 3, &["mutation_mode_invalid"])
        .says("expired after 2020-01");
}

#[test]
fn what_a_step_discovered_needs_its_own_claim() {
    let laid = Laid::out(&[issue("a")]);
    laid.edit(|d| {
        let claims = d["capabilityClaims"].as_array_mut().unwrap();
        claims.retain(|claim| claim != "capabilities.change_morphisms.issue_discover");
    });
    let work = "\"$E2E_PREMATH\" issue discover a found > /dev/null";
    laid.batch(work).end();
    assert_eq!(laid.scratch.issues().len(), 1, "a follow-up was filed");
    let step = &laid.scratch.steps()[0];
    let classes = step["failureClasses"].to_string();
    assert!(
        classes.contains("mutation.capability_claim_missing"),
        "{step:#}"
    );
}

#[test]
fn a_session_of_a_step_that_was_cut_survives_a_refusal() {
    let laid = Laid::out(&[issue("a")]);
    let state = LaneState::at(&laid.scratch.root, &laid.scratch.lanes[0]);
    fs::create_dir_all(&state.folder).unwrap();
    let path = state.session;
    let session = json!({
        "schema": 1, "sessionKind": "premath.harness.session.v1", "sessionId": "s",
        "state": "active", "startedAt": "2026-03-05T10:00:00Z",
        "updatedAt": "2026-03-05T10:00:00Z",
        "step": {"stepId": "w.a.1", "issueId": "a", "generation": 1, "leaseId": "l",
                 "leaseOwner": "w", "baseCommit": "0".repeat(40)},
    });
    fs::write(&path, session.to_string()).unwrap();
    laid.edit(|d| d["capabilityClaims"] = json!([]));
    laid.batch("true").end().exits(3);
    assert_eq!(read(&path), session);
    assert_eq!(laid.session(1)["state"], "stopped");
}

/// Takes the authority of a batch away while its first issue is worked on: the
/// batch drains, and from then on nothing is changed.
#[track_caller]
fn revoked(class: &str, prepare: impl FnOnce(&Laid), revoke: impl FnOnce(&Laid)) {
    let laid = Laid::out(&[issue("a"), issue("b")]);
    prepare(&laid);
    let work = r#"touch "$HOME/started"; until [ -e "$HOME/go" ]; do sleep 0.05; done
echo x > src/"$PREMATH_ISSUE_ID".txt"#;
    let run = laid.scratch.run(&binaries().coordinator).arg("--json");
    let run = run.arg("--worktree").arg(&laid.scratch.lanes[0]);
    let run = run.args(["--work-cmd", work, "--verify-cmd", "true"]);
    let run = run.args(["--landing", "merge"]).start();
    let started = laid.scratch.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the work starts");
    revoke(&laid);
    fs::write(laid.scratch.home().join("go"), "").unwrap();
    let ended = run.wait().exits(1);
    for id in ["a", "b"] {
        assert_eq!(laid.scratch.issue(id)["status"], "open", "{}", ended.stderr);
        let landed = laid.scratch.file_on("main", &format!("src/{id}.txt"));
        assert_eq!(landed, None, "{}", ended.stderr);
    }
    let steps = laid.scratch.steps();
    assert_eq!(steps.len(), 1, "{steps:#?}");
    assert_eq!(
        steps[0]["failureClasses"],
        json!([class]),
        "{}",
        ended.stderr
    );
    let rows = laid.scratch.trajectory().into_iter();
    let mut rows = rows.filter(|row| row["action"] == "coordinator.authority_revoked");
    assert_eq!(rows.next().unwrap()["failureClasses"], json!([class]));
    assert_eq!(rows.next(), None);
    let events = ended.events();
    let last = events.last().unwrap();
    assert_eq!(last["endedBy"], "revoked", "{last:#}");
}

#[test]
fn an_instruction_that_is_removed_ends_the_batch() {
    let remove = |laid: &Laid| fs::remove_file(&laid.instruction).unwrap();
    revoked("instruction_envelope_unreadable", |_| (), remove);
}

#[test]
fn an_instruction_that_says_another_thing_ends_the_batch() {
    let other = |laid: &Laid| laid.edit(|envelope| envelope["intent"] = json!("another night"));
    revoked("mutation.policy_digest_mismatch", |_| (), other);
    let fewer = |laid: &Laid| laid.edit(|envelope| envelope["capabilityClaims"] = json!([]));
    revoked("mutation.capability_claim_missing", |_| (), fewer);
}

#[test]
fn another_instruction_policy_ends_the_batch() {
    let policy = |laid: &Laid| {
        let path = laid
            .scratch
            .root
            .join("policies/control/harness-instruction-policy-v1.json");
        let mut policy = read(&path);
        policy["policyId"] = json!("policy.of.another.night");
        policy.as_object_mut().unwrap().remove("policyDigest");
        let digest = canonical::digest(&policy).replace("sha256:", "pol1_");
        policy["policyDigest"] = json!(digest);
        fs::write(&path, policy.to_string()).unwrap();
    };
    revoked("mutation.policy_digest_mismatch", |_| (), policy);
}

#[test]
fn another_retry_policy_or_governance_package_ends_the_batch() {
    let retry = |laid: &Laid| {
        let path = laid
            .scratch
            .root
            .join("policies/control/harness-retry-policy-v1.json");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{}").unwrap();
    };
    revoked("retry_policy_invalid", |_| (), retry);
    let write = |laid: &Laid, name: &str, text: &str| {
        let path = laid.scratch.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let claim = |laid: &Laid| {
        let claimed = r#"{"profileOverlayClaims": ["profile.doctrine_inf_governance.v0"]}"#;
        write(laid, "draft/CAPABILITY-REGISTRY.json", claimed);
        write(laid, "policies/governance.json", "{}");
        let digest = canonical::sha256_hex(b"{}");
        let path = laid.scratch.root.join("harness.toml");
        let text = fs::read_to_string(&path).unwrap();
        let table = format!(
            "[governance]\npackage = \"policies/governance.json\"\n\
             expected_digest = \"sha256:{digest}\"\n"
        );
        let table = match text.contains("\n[governance]\n") {
            true => text.replace("\n[governance]\n", &format!("\n{table}")),
            false => format!("{text}\n{table}"),
        };
        fs::write(&path, table).unwrap();
    };
    let package = |laid: &Laid| write(laid, "policies/governance.json", "{ }");
    revoked("governance.policy_package_mismatch", claim, package);
}

/// Runs a batch under an instruction with a scope.
fn scoped(rows: &[Value], scope: Value, work: &str) -> (Laid, Ended) {
    let laid = Laid::out(rows);
    laid.edit(|envelope| {
        for (name, words) in scope.as_object().unwrap() {
            envelope["scope"][name] = words.clone();
        }
    });
    let run = laid.scratch.run(&binaries().coordinator).arg("--json");
    let run = run.arg("--worktree").arg(&laid.scratch.lanes[0]);
    let run = run.args([
        "--work-cmd",
        work,
        "--verify-cmd",
        "true",
        "--landing",
        "merge",
    ]);
    let run = run.args(NO_CHANGE).args(NO_STARTUP);
    let ended = run.end();
    (laid, ended)
}

#[test]
fn a_batch_takes_only_issues_that_the_scope_covers() {
    let with = |id: &str, field: &str, value: Value| {
        let mut row = issue(id);
        row[field] = value;
        row
    };
    let rows = [
        issue("a"),
        issue("b"),
        with("c", "labels", json!(["night"])),
        with("d", "issue_type", json!("bug")),
    ];
    for (scope, covered) in [
        (json!({"issues": ["b"]}), "b"),
        (json!({"labels": ["night", "other"]}), "c"),
        (json!({"types": ["bug"]}), "d"),
    ] {
        let (laid, ended) = scoped(&rows, scope, "true");
        ended.exits(0);
        for id in ["a", "b", "c", "d"] {
            let expected = if id == covered { "closed" } else { "open" };
            assert_eq!(
                laid.scratch.issue(id)["status"],
                expected,
                "{id} of {covered}"
            );
        }
    }
}

#[test]
fn work_lands_only_where_the_scope_covers_its_files() {
    let work =
        r#"echo x > src/"$PREMATH_ISSUE_ID".txt; [ "$PREMATH_ISSUE_ID" = a ] || echo x > b.txt"#;
    let rows = [issue("a"), issue("b")];
    let (laid, ended) = scoped(&rows, json!({"paths": ["src/**"]}), work);
    let ended = ended.exits(1);
    assert_eq!(
        laid.scratch.issue("a")["status"],
        "closed",
        "{}",
        ended.stderr
    );
    assert_ne!(laid.scratch.issue("b")["status"], "closed");
    let step = &laid.scratch.steps_of("b")[0];
    assert_eq!(step["failureClasses"], json!(["instruction_out_of_scope"]));
    assert_eq!(laid.scratch.file_on("harness/integration", "b.txt"), None);
}

#[test]
fn a_scope_that_may_restrict_something_else_is_refused() {
    for scope in [
        json!({"isues": ["a"]}),
        json!({"issues": []}),
        json!({"paths": ["a[b"]}),
    ] {
        let (laid, ended) = scoped(&[issue("a")], scope, "true");
        ended.says("instruction_scope_invalid");
        assert_eq!(laid.scratch.issue("a")["status"], "open");
    }
}

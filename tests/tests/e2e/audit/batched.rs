//! Contradictions in a batch whose work was verified as one: `e` and `f` rest on
//! the verification of `g`, which landed last.

use super::Planted;
use super::night::Copied;
use git2::Signature;
use premath_kernel::record::audit::{ContradictionCode as Code, digest_of};
use premath_kernel::record::trailers::LandingTrailers;
use premath_tests::parse_rows;
use serde_json::{Value, json};
use std::fs;

pub(super) const OF_BATCHES: &[Planted] = &[
    (
        "what the work rests on never landed",
        Code::SharedUnverified,
        |copied| {
            let git = copied.git();
            let tip = git.find_commit(copied.tip()).unwrap();
            copied.move_target(tip.parent_id(0).unwrap());
        },
    ),
    (
        "a commit that was not verified is in between",
        Code::SharedUnverified,
        |copied| {
            rewrite(copied, |issue, trailers| {
                if issue == "f" {
                    trailers.verified_in = None;
                }
            })
        },
    ),
    (
        "the commit names another tree",
        Code::SharedUnverified,
        |copied| {
            rewrite(copied, |issue, trailers| {
                if issue == "e" {
                    trailers.verified_in = Some("1".repeat(40));
                }
            })
        },
    ),
    (
        "the verification that the work rests on failed",
        Code::SharedUnverified,
        |copied| {
            forge_leader(copied, |document| document["exit"]["code"] = json!(1));
        },
    ),
    (
        "the verification that the work rests on judged another tree",
        Code::SharedUnverified,
        |copied| {
            forge_leader(copied, |document| {
                document["before"]["tree"] = json!("1".repeat(40));
            });
        },
    ),
    (
        "the verification that the work rests on is not there",
        Code::SharedUnverified,
        |copied| {
            let path = copied.witness_path(&step_of(copied, "g"), "verify");
            fs::remove_file(path).unwrap();
        },
    ),
    (
        "the witness names another verification",
        Code::SharedDisagrees,
        |copied| {
            let forged = forge(copied, "e", "shared", |document| {
                let other = digest_of(&json!("other"));
                document["verifiedWitnessRef"] = json!(format!("ciwitness://g/verify/{other}"));
            });
            rewrite(copied, |issue, trailers| {
                if issue == "e" {
                    trailers.witness = Some(forged.clone());
                }
            });
        },
    ),
    (
        "the row does not say that other work was verified",
        Code::SharedDisagrees,
        |copied| {
            copied.row(&step_of(copied, "e"), |row| {
                row.as_object_mut().unwrap().remove("sharedVerification");
            });
        },
    ),
    (
        "work that was verified by itself claims to rest on other work",
        Code::SharedDisagrees,
        |copied| {
            let rider = row_of(copied, "e");
            copied.row(&step_of(copied, "a"), |row| {
                row["sharedVerification"] = rider["sharedVerification"].clone();
            });
        },
    ),
];

fn row_of(copied: &Copied<'_>, id: &str) -> Value {
    let path = copied.path(".premath/harness_trajectory.jsonl");
    let rows = parse_rows(&fs::read(path).unwrap()).into_iter();
    let mut of_issue = rows.filter(|row| row["issueId"] == id && row["landing"].is_object());
    of_issue.next().unwrap()
}

fn step_of(copied: &Copied<'_>, id: &str) -> String {
    row_of(copied, id)["stepId"].as_str().unwrap().to_owned()
}

/// Changes a witness of an issue's step, and the reference that its row has to it.
fn forge(copied: &Copied<'_>, id: &str, phase: &str, change: impl FnOnce(&mut Value)) -> String {
    let step = step_of(copied, id);
    let document = copied.witness(&step, phase, change);
    let start = format!("ciwitness://{step}/{phase}/");
    let reference = format!("{start}{}", digest_of(&document));
    copied.reference(&step, &start, Some(&reference));
    copied.row(&step, |row| {
        let named = &mut row["verification"]["witnessRef"];
        let is_it = named.as_str().unwrap().starts_with(&start);
        if is_it {
            *named = json!(reference);
        } else {
            row["waitedMs"] = json!(987_654);
        }
    });
    reference
}

/// Changes the witness of the last verification, and the commit that names it.
fn forge_leader(copied: &Copied<'_>, change: impl FnOnce(&mut Value)) {
    let forged = forge(copied, "g", "verify", change);
    rewrite(copied, |issue, trailers| {
        if issue == "g" {
            trailers.witness = Some(forged.clone());
        }
    });
}

/// Writes the last three commits again, with other trailers, and has rows and
/// witnesses name them.
fn rewrite(copied: &Copied<'_>, change: impl Fn(&str, &mut LandingTrailers)) {
    let git = copied.git();
    let author = Signature::now("Scratch", "scratch@localhost").unwrap();
    let mut commits = Vec::new();
    let mut at = git.find_commit(copied.tip()).unwrap();
    for _ in 0..3 {
        let before = at.parent(0).unwrap();
        commits.push(std::mem::replace(&mut at, before));
    }
    for commit in commits.into_iter().rev() {
        let mut trailers = LandingTrailers::parse(commit.message().unwrap())
            .unwrap()
            .unwrap();
        let id = trailers.issue.to_string();
        change(&id, &mut trailers);
        let message = trailers.message(&format!("issue {id}"), None);
        let tree = commit.tree().unwrap();
        let written = git
            .commit(None, &author, &author, &message, &tree, &[&at])
            .unwrap();
        at = git.find_commit(written).unwrap();
        let name = written.to_string();
        copied.row(&step_of(copied, &id), |row| {
            row["landing"]["commit"] = json!(name)
        });
        forge(copied, &id, "mutation", |document| {
            document["landing"]["commit"] = json!(name);
            document["commit"] = json!(name);
        });
    }
    copied.move_target(at.id());
}

//! `premath instruction`, and what `premath init` creates for it, run as their
//! callers run them.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue ends, and says where"
)]

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder that was created.
struct Project {
    _guard: tempfile::TempDir,
    root: PathBuf,
}

impl Project {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap();
        let project = Self {
            _guard: guard,
            root,
        };
        project.answer(&["init"], 0);
        project
    }

    fn run(&self, args: &[&str]) -> Output {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test plays the shell that runs premath"
        )]
        let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
        command.args(args).current_dir(&self.root);
        command.env_remove("PREMATH_STEP_ID").output().unwrap()
    }

    #[track_caller]
    fn answer(&self, args: &[&str], code: i32) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The envelope that `init` wrote, below the root.
    fn first(&self) -> String {
        let entries = fs::read_dir(self.root.join("instructions")).unwrap();
        let names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names.len(), 1);
        format!("instructions/{}", names[0].to_str().unwrap())
    }

    fn edit(&self, name: &str, edit: impl FnOnce(&mut Value)) {
        let path = self.root.join(name);
        let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        edit(&mut document);
        fs::write(&path, document.to_string()).unwrap();
    }
}

#[test]
fn what_init_writes_covers_a_batch_and_is_named_in_the_configuration() {
    let project = Project::new();
    let first = project.first();
    let config = fs::read_to_string(project.root.join("harness.toml")).unwrap();
    assert!(config.contains(&format!("\ninstruction = \"{first}\"\n")));
    let answer = project.answer(&["instruction", "check", &first], 0);
    assert_eq!(answer["result"], "accepted");
    assert_eq!(answer["path"], first);
    assert_eq!(
        answer["covers"],
        json!([
            "issue_claim",
            "issue_lease_renew",
            "issue_lease_release",
            "issue_update",
            "issue_discover"
        ])
    );
    assert!(answer["policyPath"].as_str().unwrap().ends_with("v1.json"));
}

#[test]
fn each_fault_is_reported_with_its_class_and_exit_1() {
    let project = Project::new();
    let first = project.first();
    let check = ["instruction", "check", &first];
    project.edit(&first, |d| {
        d["policyDigest"] = "pol1_0".into();
        d["instructionType"] = "harness.revolution".into();
        d["capabilityClaims"] = json!(["capabilities.change_morphisms.isue_claim"]);
    });
    let answer = project.answer(&check, 1);
    assert_eq!(
        answer["failureClasses"],
        json!([
            "mutation.policy_digest_mismatch",
            "instruction_unknown_unroutable"
        ])
    );
    assert_eq!(answer["classification"]["reason"], "type_not_recognized");
    assert_eq!(
        answer["coversNothing"],
        json!(["capabilities.change_morphisms.isue_claim"])
    );
    // One of a batch is held to what a batch does.
    project.edit(&first, |d| {
        d["policyDigest"] =
            project.answer(&["instruction", "show", &first], 0)["instruction"]["policyDigest"]
                .take();
        d["instructionType"] = "harness.batch".into();
    });
    let answer = project.answer(&check, 1);
    let classes = answer["failureClasses"].as_array().unwrap();
    assert!(classes.contains(&json!("mutation.capability_claim_missing")));
    project.edit(&first, |d| d["requestedChecks"] = json!(["verify", 3]));
    let answer = project.answer(&check, 2);
    assert_eq!(
        answer["failureClasses"],
        json!(["instruction_requested_checks_invalid"])
    );
    let said = answer["error"].as_str().unwrap();
    assert!(said.contains(&*first), "{said}");
    assert!(said.contains("`requestedChecks[1]` must be text"), "{said}");
    let answer = project.answer(&["instruction", "check", "instructions/none.json"], 2);
    assert_eq!(
        answer["failureClasses"],
        json!(["instruction_envelope_unreadable"])
    );
}

#[test]
fn a_policy_that_was_changed_is_never_used() {
    let project = Project::new();
    let first = project.first();
    let policy = "policies/control/harness-instruction-policy-v1.json";
    project.edit(policy, |d| d["allowedChecks"] = json!(["anything"]));
    for command in ["check", "show"] {
        let answer = project.answer(&["instruction", command, &first], 2);
        assert_eq!(
            answer["failureClasses"],
            json!(["instruction_policy_digest_mismatch"])
        );
    }
}

#[test]
fn a_new_envelope_says_what_was_asked() {
    let project = Project::new();
    let new = |id: &str, more: &[&str]| {
        let args = [
            "instruction",
            "new",
            "--intent",
            "Mend what broke",
            "--id",
            id,
        ];
        project.answer(&[&args[..], more].concat(), 0)
    };
    let answer = new(
        "mend",
        &[
            "--claim",
            "issue_update",
            "--claim",
            "all",
            "--scope-target",
            "core",
        ],
    );
    let path = answer["path"].as_str().unwrap();
    assert!(path.ends_with("Z-mend.json"), "{path}");
    let shown = project.answer(&["instruction", "show", path], 0);
    assert_eq!(shown["instructionRef"], answer["instructionRef"]);
    assert_eq!(shown["policyIsActive"], true);
    assert_eq!(
        shown["classification"],
        json!({"state": "typed", "kind": "harness.batch"})
    );
    assert_eq!(shown["instruction"]["intent"], "Mend what broke");
    assert_eq!(
        shown["instruction"]["scope"],
        json!({"kind": "repo", "target": "core"})
    );
    assert_eq!(
        shown["instruction"]["capabilityClaims"],
        json!([
            "capabilities.change_morphisms.all",
            "capabilities.change_morphisms.issue_update"
        ])
    );
    let text = project.run(&["instruction", "show", path]);
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["typed(harness.batch)", "repo core", "instr1_", "(active)"] {
        assert!(text.contains(part), "{text}");
    }
    let blank = project.answer(&["instruction", "new", "--intent", " "], 2);
    assert_eq!(
        blank["failureClasses"],
        json!(["instruction_invalid_intent"])
    );
    let odd = new("odd", &["--type", "odd"]);
    let output = project.run(&["instruction", "check", odd["path"].as_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(Path::new(path).exists());
}

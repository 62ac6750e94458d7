//! The policy commands.

use crate::scratch::Scratch;
use premath_kernel::policy::retry::RetryPolicy;
use premath_kernel::policy::turn::TurnPolicy;
use serde_json::{Value, json};
use std::fs;

const PLACE: &str = "policies/control/harness-turn-policy-v1.json";
const EDITED: &str = "\"maxCalls\": 7";

/// Puts an edited copy of the embedded policy, with its old digest, into a file.
fn write(scratch: &Scratch, name: &str, edit: impl Fn(&str) -> String) -> String {
    let text = edit(TurnPolicy::embedded_text());
    let path = scratch.folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, &text).unwrap();
    text
}

fn with_limit(text: &str) -> String {
    let edited = text.replace("\"maxCalls\": 2000", EDITED);
    assert_ne!(edited, text);
    edited
}

fn digest(text: &str) -> String {
    TurnPolicy::digest(text.as_bytes()).unwrap()
}

#[test]
fn the_embedded_policy_is_shown_and_explained() {
    let scratch = Scratch::with("");
    let shown = scratch.json(&["policy", "show"]);
    assert_eq!(shown["action"], "policy.show");
    assert_eq!(shown["kind"], "turn");
    assert_eq!(shown["policyPath"], Value::Null);
    let embedded: Value = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    assert_eq!(shown["policy"], embedded);
    assert_eq!(shown["policyDigest"], embedded["policyDigest"]);
    let table = scratch.run(&["policy", "show"]).stdout;
    let explained = scratch.run(&["policy", "explain"]).stdout;
    for rule in embedded["tools"].as_array().unwrap() {
        let id = rule["ruleId"].as_str().unwrap();
        assert!(table.contains(id), "{id}");
        assert!(explained.contains(id), "{id}");
    }
    for line in table.lines().chain(explained.lines()) {
        assert!(line.chars().count() <= 150, "{line}");
    }
    assert!(
        explained.contains("The agent reads: Do not push."),
        "{explained}"
    );

    let retry = scratch.json(&["policy", "show", "--kind", "retry"]);
    assert_eq!(retry["policyId"], "policy.harness.retry.default.v1");
    let shown = scratch.run(&["policy", "show", "--kind", "retry"]).stdout;
    assert!(shown.contains("semantic_no_retry"), "{shown}");
    let explained = scratch
        .run(&["policy", "explain", "--kind", "retry"])
        .stdout;
    assert!(explained.contains("check_failed"), "{explained}");
}

#[test]
fn the_decision_about_a_call_is_explained() {
    let scratch = Scratch::with("");
    for (args, decision, rule) in [
        (&["--", "git", "push"][..], "deny", "no_push"),
        (&["--", "cd a && git push"], "deny", "no_push"),
        (&["--", "git", "commit", "-m", "git push"], "allow", "shell"),
        (&["--", "git 'push"], "deny", "default"),
        (
            &["--tool", "edit", "--path", "src/a.rs"],
            "allow",
            "edit_in_the_worktree",
        ),
        (
            &["--tool", "edit", "--path", "../a"],
            "deny",
            "no_edits_elsewhere",
        ),
        (&["--tool", "edit"], "deny", "no_edits_elsewhere"),
        (
            &["--tool", "read", "--path", "/root/.netrc"],
            "deny",
            "no_credentials",
        ),
        (&["--tool", "mcp", "--name", "a/b"], "allow", "mcp"),
        (
            &["--tool", "web_fetch", "--host", "A.example"],
            "allow",
            "web_fetch",
        ),
    ] {
        let answer = scratch.run(&[&["policy", "explain", "--json"], args].concat());
        let answer = answer.json();
        let call = &answer["call"];
        assert_eq!(call["decision"], decision, "{args:?}: {answer}");
        assert_eq!(call["ruleId"], rule, "{args:?}");
        assert_eq!(call["reason"] != "", decision == "deny", "{args:?}");
    }
    let shown = scratch.run(&["policy", "explain", "--", "ls; bash -c 'git push'"]);
    assert_eq!(
        shown.stdout,
        "deny  rule no_push (embedded)\n  Do not push. The harness lands and pushes work that \
         passes its verification.\ncommands found:\n  ls\n  bash -c git push\n  git push\n"
    );
    for args in [
        &["--path", "a"][..],
        &["--tool", "read", "--", "ls"],
        &["--tool", "none"],
        &["--kind", "retry", "--", "ls"],
    ] {
        let answer = scratch.run(&[&["policy", "explain"], args].concat());
        assert_eq!(answer.code, 2, "{args:?}: {}", answer.stderr);
    }
}

#[test]
fn the_policy_in_force_is_the_one_that_the_loops_take() {
    let scratch = Scratch::with("");
    write(&scratch, PLACE, with_limit);
    let broken = scratch.run(&["policy", "show", "--json"]);
    assert_eq!(broken.code, 2);
    assert_eq!(
        broken.json()["failureClasses"],
        json!(["turn_policy_digest_mismatch"])
    );
    assert!(
        broken.stderr.contains("hint: restore the artifact"),
        "{}",
        broken.stderr
    );
    scratch.json(&["policy", "seal", PLACE]);
    let shown = scratch.json(&["policy", "show"]);
    let place = scratch.folder.join(PLACE);
    assert_eq!(shown["policyPath"], place.to_str().unwrap());
    assert_eq!(shown["policy"]["calls"]["maxCalls"], 7);

    write(&scratch, "own.json", str::to_owned);
    fs::write(
        scratch.folder.join("harness.toml"),
        "[batch]\nturn_policy = \"own.json\"\n",
    )
    .unwrap();
    let named = scratch.json(&["policy", "show"]);
    assert_eq!(named["policy"]["calls"]["maxCalls"], 2000);
    let given = scratch.json(&["policy", "show", "--policy", PLACE]);
    assert_eq!(given["policy"]["calls"]["maxCalls"], 7);

    fs::remove_file(scratch.folder.join("own.json")).unwrap();
    let missing = scratch.run(&["policy", "show", "--json"]);
    assert_eq!(missing.code, 2);
    assert_eq!(
        missing.json()["failureClasses"],
        json!(["turn_policy_invalid"])
    );
}

#[test]
fn a_seal_changes_the_digest_and_nothing_else() {
    let scratch = Scratch::with("");
    let edited = write(&scratch, "own.json", with_limit);
    let old = serde_json::from_str::<Value>(&edited).unwrap()["policyDigest"].clone();
    let answer = scratch.json(&["policy", "seal", "own.json"]);
    assert_eq!(answer["action"], "policy.seal");
    assert_eq!(answer["previousDigest"], old);
    assert_eq!(answer["policyDigest"], digest(&edited));
    assert_eq!(answer["changed"], true);
    let sealed = fs::read_to_string(scratch.folder.join("own.json")).unwrap();
    assert_eq!(
        sealed,
        edited.replace(old.as_str().unwrap(), &digest(&edited))
    );
    let again = scratch.json(&["policy", "seal", "own.json"]);
    assert_eq!(again["changed"], false);
    assert_eq!(
        scratch.json(&["policy", "check", "own.json"])["result"],
        "accepted"
    );

    // The other kind is recognised by what it states.
    let retry =
        RetryPolicy::embedded_text().replacen("\"maxAttempts\": 3", "\"maxAttempts\": 4", 1);
    fs::write(scratch.folder.join("retry.json"), &retry).unwrap();
    let answer = scratch.json(&["policy", "seal", "retry.json"]);
    assert_eq!(answer["kind"], "retry");
    assert_eq!(
        scratch.json(&["policy", "check", "retry.json"])["kind"],
        "retry"
    );
}

#[test]
fn a_link_to_a_policy_is_sealed_where_it_leads() {
    let scratch = Scratch::with("");
    write(&scratch, "policies/own.json", with_limit);
    let link = scratch.folder.join("link.json");
    std::os::unix::fs::symlink("policies/own.json", &link).unwrap();
    scratch.json(&["policy", "seal", "link.json"]);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(
        scratch.json(&["policy", "check", "policies/own.json"])["result"],
        "accepted"
    );
}

#[test]
fn a_seal_is_refused_in_a_step_and_for_a_policy_with_a_fault() {
    let scratch = Scratch::with("");
    let edited = write(&scratch, "own.json", with_limit);
    let refused = scratch.run_in_step(&["policy", "seal", "own.json"], None);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("inside a step"),
        "{}",
        refused.stderr
    );
    let unread = |scratch: &Scratch| fs::read_to_string(scratch.folder.join("own.json")).unwrap();
    assert_eq!(unread(&scratch), edited);

    for (from, to, said) in [
        (EDITED, "\"maxCalls\": -1", "`calls.maxCalls`"),
        (
            "\"decision\": \"allow\"",
            "\"decision\": \"ask\"",
            "decision`",
        ),
        ("\"arguments\"", "\"argument\"", "argument`"),
        ("\"repairRounds\": 2", "\"repairRounds\": 8", "from 0 to 7"),
        ("turn_policy.v1", "turn_policy.v2", "`policyKind` must be"),
        ("\"policyDigest\"", "\"digest\"", "`policyDigest` must be"),
        ("\"stop\": {", "\"stop\": [", "invalid JSON"),
    ] {
        let faulty = write(&scratch, "own.json", |text| {
            with_limit(text).replacen(from, to, 1)
        });
        let refused = scratch.run(&["policy", "seal", "own.json"]);
        assert_eq!(refused.code, 2, "{to}: {}", refused.stderr);
        assert!(refused.stderr.contains("own.json"), "{}", refused.stderr);
        assert!(refused.stderr.contains(said), "{to}: {}", refused.stderr);
        assert_eq!(unread(&scratch), faulty);
    }
}

#[test]
fn a_check_names_file_field_and_what_would_be_right() {
    let scratch = Scratch::with("");
    let edited = write(&scratch, "own.json", with_limit);
    let rejected = scratch.run(&["policy", "check", "own.json", "--json"]);
    assert_eq!(rejected.code, 1);
    let document = rejected.json();
    assert_eq!(document["result"], "rejected");
    assert_eq!(
        document["failureClasses"],
        json!(["turn_policy_digest_mismatch"])
    );
    assert!(
        document["fault"]
            .as_str()
            .unwrap()
            .contains(&digest(&edited))
    );
    assert!(
        rejected.stderr.contains("hint: ")
            && rejected.stderr.contains("premath policy seal own.json"),
        "{}",
        rejected.stderr
    );
    write(&scratch, "own.json", |text| {
        text.replacen("\"deny\"", "\"ask\"", 1)
    });
    let rejected = scratch.run(&["policy", "check", "own.json"]);
    assert_eq!(rejected.code, 1);
    assert!(
        rejected.stderr.contains("own.json") && rejected.stderr.contains("`tools[0].decision`"),
        "{}",
        rejected.stderr
    );
    for args in [&["policy", "check", "none.json"][..], &["policy", "check"]] {
        assert_eq!(scratch.run(args).code, 2, "{args:?}");
    }
}

#[test]
fn a_diff_shows_rules_and_limits() {
    let scratch = Scratch::with("");
    write(&scratch, "own.json", |text| {
        let mut policy: Value = serde_json::from_str(text).unwrap();
        policy["calls"]["maxCalls"] = 7.into();
        let rules = policy["tools"].as_array_mut().unwrap();
        let first = rules.remove(0);
        rules.push(first);
        rules[0]["reason"] = "No.".into();
        rules.insert(
            0,
            json!({"ruleId": "new", "tool": "mcp", "decision": "deny", "reason": "r"}),
        );
        rules.retain(|rule| rule["ruleId"] != "plan");
        policy.to_string()
    });
    let unsealed = scratch.json(&["policy", "diff", "own.json"]);
    assert_eq!(unsealed["to"]["sealed"], false);
    let shown = scratch.run(&["policy", "diff", "own.json"]).stdout;
    assert!(shown.contains("to    own.json (not sealed)\n"), "{shown}");
    scratch.json(&["policy", "seal", "own.json"]);
    let diff = scratch.json(&["policy", "diff", "own.json"]);
    assert_eq!(diff["from"]["policyPath"], Value::Null);
    assert_eq!(diff["to"]["policyPath"], "own.json");
    assert_eq!(diff["same"], false);
    assert_eq!(diff["rules"], unsealed["rules"]);
    let rules: Vec<_> = diff["rules"].as_array().unwrap().iter().collect();
    let found: Vec<_> = rules
        .iter()
        .map(|rule| (&rule["ruleId"], &rule["changes"]))
        .collect();
    let expected = [
        (&json!("new"), &json!(["added"])),
        (&json!("no_push"), &json!(["changed"])),
        (&json!("no_credentials"), &json!(["moved"])),
        (&json!("plan"), &json!(["removed"])),
    ];
    assert_eq!(found, expected);
    assert_eq!(
        diff["fields"],
        json!([{"field": "calls.maxCalls", "from": 2000, "to": 7}])
    );
    let shown = scratch.run(&["policy", "diff", "own.json"]).stdout;
    assert!(shown.contains("calls.maxCalls: 2000 -> 7\n"), "{shown}");
    assert!(
        shown.contains("moved no_credentials (rule 1 before, "),
        "{shown}"
    );

    write(&scratch, "embedded.json", str::to_owned);
    let back = scratch.json(&["policy", "diff", "own.json", "embedded.json"]);
    assert_eq!(back["fields"][0]["from"], 7);
    let none = scratch.json(&["policy", "diff", "embedded.json"]);
    assert_eq!(none["same"], true);
    fs::write(
        scratch.folder.join("retry.json"),
        RetryPolicy::embedded_text(),
    )
    .unwrap();
    let kinds = scratch.run(&["policy", "diff", "own.json", "retry.json"]);
    assert_eq!(kinds.code, 2);
    assert!(kinds.stderr.contains("cannot compare"), "{}", kinds.stderr);
}

#[test]
fn init_writes_the_policy_to_start_from() {
    let scratch = Scratch::with("");
    let wrote = scratch.json(&["init"]);
    assert!(wrote["wrote"].as_array().unwrap().contains(&json!(PLACE)));
    let written = fs::read_to_string(scratch.folder.join(PLACE)).unwrap();
    assert_eq!(written, TurnPolicy::embedded_text());
    let shown = scratch.json(&["policy", "show"]);
    assert_eq!(shown["policyId"], "policy.harness.turn.default.v1");
}

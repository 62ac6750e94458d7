//! The failure classes and the policy that rules them.

use crate::scratch::Scratch;
use premath_kernel::failure::{FailureClass, Family};
use serde_json::{Value, json};
use std::fs;

/// Gives the repository a policy of its own: the embedded one, changed.
fn own_policy(scratch: &Scratch, path: &str, edit: impl Fn(&mut Value)) {
    let mut document: Value =
        serde_json::from_str(premath_kernel::policy::retry::RetryPolicy::embedded_text()).unwrap();
    edit(&mut document);
    let digest =
        premath_kernel::policy::retry::RetryPolicy::digest(document.to_string().as_bytes());
    document["policyDigest"] = digest.unwrap().into();
    let path = scratch.folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, document.to_string()).unwrap();
}

#[test]
fn every_class_is_listed_with_its_place_in_the_embedded_policy() {
    let scratch = Scratch::with("");
    let all = scratch.json(&["classes"]);
    assert_eq!(all["action"], "classes");
    assert_eq!(all["policy"]["source"], "embedded");
    assert_eq!(all["policy"]["path"], Value::Null);
    let digest = all["policy"]["policyDigest"].as_str().unwrap();
    assert!(digest.starts_with("pol1_"));
    let items = all["items"].as_array().unwrap();
    assert_eq!(all["count"], items.len());
    // The policy names classes of wrappers too, which have no family.
    let own = items.iter().filter(|item| !item["family"].is_null());
    assert_eq!(own.count(), FailureClass::ALL.len());
    let of_family = scratch.json(&["classes", "--family", "typestate"]);
    assert_eq!(of_family["count"], Family::Typestate.classes().count());
    let one = scratch.json(&["classes", "check_failed"]);
    assert_eq!(
        one["items"],
        json!([{
            "failureClass": "check_failed",
            "family": "execution",
            "meaning": "The verification did not pass.",
            "source": "contracts 7",
            "retry": {"ruleId": "semantic_no_retry", "maxAttempts": 1, "backoffClass": "none",
                      "escalationAction": "mark_blocked"},
        }])
    );
    let listed = scratch.run(&["classes"]).stdout;
    assert!(listed.contains(digest));
    for item in all["items"].as_array().unwrap() {
        let class = item["failureClass"].as_str().unwrap();
        let heads = listed
            .lines()
            .filter(|l| l.split_whitespace().next() == Some(class));
        assert_eq!(heads.count(), 1, "{class}");
    }
}

#[test]
fn a_repository_s_own_policy_gives_the_classes_their_place() {
    let scratch = Scratch::with("");
    let path = "policies/control/harness-retry-policy-v1.json";
    own_policy(&scratch, path, |document| {
        document["policyId"] = json!("own\u{1b}[31m");
        document["defaultRule"]["maxAttempts"] = json!(7);
        document["rules"][0]["failureClasses"] = json!(["word_of_my_own"]);
    });
    let usual = scratch.run(&["classes", "work_failed", "--json"]);
    assert_eq!((usual.code, usual.stderr.as_str()), (0, ""));
    assert_eq!(usual.json()["policy"]["source"], "file");

    let config = format!("[batch]\nretry_policy = \"{path}\"\n");
    fs::write(scratch.folder.join("harness.toml"), &config).unwrap();
    let named = scratch.run(&["classes", "work_failed", "word_of_my_own", "--json"]);
    assert_eq!((named.code, named.stderr.as_str()), (0, ""));
    let named = named.json();
    assert_eq!(named["policy"]["source"], "file");
    let place = scratch.folder.join(path);
    assert_eq!(named["policy"]["path"], place.to_str().unwrap());
    assert_eq!(named["items"][0]["retry"]["ruleId"], "default");
    assert_eq!(named["items"][0]["retry"]["maxAttempts"], 7);
    assert_eq!(named["items"][1]["meaning"], Value::Null);
    assert_eq!(named["items"][1]["retry"]["ruleId"], "transient_retry");
    for args in [&["classes"][..], &["classes", "word_of_my_own"]] {
        let shown = scratch.run(args).stdout;
        assert!(shown.contains("own\\u{1b}[31m"), "{shown}");
        assert!(shown.contains("word_of_my_own"), "{shown}");
    }

    fs::rename(
        scratch.folder.join("harness.toml"),
        scratch.folder.join("other.toml"),
    )
    .unwrap();
    let asked = scratch.json(&["classes", "--config", "other.toml"]);
    assert_eq!(asked["policy"]["source"], "file");
}

#[test]
fn a_policy_that_stops_the_loops_leaves_the_meanings() {
    let scratch = Scratch::with("");
    fs::write(
        scratch.folder.join("harness.toml"),
        "[batch]\nretry_policy = \"policy.json\"\n",
    )
    .unwrap();
    let embedded = premath_kernel::policy::retry::RetryPolicy::embedded_text();
    let changed = embedded.replace("\"maxAttempts\": 3", "\"maxAttempts\": 4");
    for (policy, class) in [
        (None, "retry_policy_invalid"),
        (Some("{}"), "retry_policy_invalid"),
        (Some(changed.as_str()), "retry_policy_digest_mismatch"),
    ] {
        if let Some(policy) = policy {
            fs::write(scratch.folder.join("policy.json"), policy).unwrap();
        }
        let answer = scratch.run(&["classes", "retry_policy_digest_mismatch", "--json"]);
        assert_eq!(answer.code, 1, "{class}: {}", answer.stderr);
        assert!(answer.stderr.starts_with("error: "), "{}", answer.stderr);
        let document = answer.json();
        assert_eq!(document["policy"]["failureClasses"], json!([class]));
        assert_eq!(document["items"][0]["retry"], Value::Null);
        assert_eq!(document["items"][0]["family"], "loop");
    }
}

#[test]
fn an_unknown_class_is_a_usage_error_that_names_the_nearest() {
    let scratch = Scratch::with("");
    let answer = scratch.run(&["classes", "tool.use_mising\u{1b}", "--json"]);
    assert_eq!(answer.code, 2);
    assert_eq!(
        answer.stderr.lines().next(),
        Some(
            "error: unknown failure class `tool.use_mising\\u{1b}`; did you mean \
            `tool.use_missing`?"
        )
    );
    assert_eq!(answer.json()["action"], "classes");
    for args in [
        &["classes", "check_failed", "--family", "lease"][..],
        &["classes", "--markdown", "--family", "lease"],
        &["classes", "--family", "none"],
    ] {
        assert_eq!(scratch.run(args).code, 2, "{args:?}");
    }
}

#[test]
fn the_page_of_classes_describes_the_embedded_policy_in_every_folder() {
    let scratch = Scratch::with("");
    own_policy(&scratch, "policy.json", |document| {
        document["policyId"] = json!("own");
    });
    fs::write(
        scratch.folder.join("harness.toml"),
        "[batch]\nretry_policy = \"policy.json\"\n",
    )
    .unwrap();
    let page = scratch.run(&["classes", "--markdown"]);
    assert_eq!((page.code, page.stderr.as_str()), (0, ""));
    assert!(page.stdout.starts_with("# Failure classes\n"));
    assert!(page.stdout.contains("policy.harness.retry.default.v1"));
    assert_eq!(
        scratch.json(&["classes", "--markdown"])["page"],
        page.stdout
    );
}

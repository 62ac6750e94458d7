//! A repository that claims the governance profile: every turn is bound to the
//! pinned policy package, and nothing is changed under another one.

use premath_kernel::json::canonical;
use premath_tests::{Scratch, issue};
use serde_json::{Value, json};
use std::fs;

const PACKAGE: &str = "{\"policy\": 1}\n";

fn scratch(claims: &str, settings: &str) -> Scratch {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let write = |name: &str, text: &str| {
        let path = scratch.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("draft/CAPABILITY-REGISTRY.json", claims);
    write("policies/governance.json", PACKAGE);
    write("harness.toml", settings);
    scratch
}

const CLAIMED: &str = r#"{"profileOverlayClaims": ["profile.doctrine_inf_governance.v0"]}"#;

/// What `sha256sum` reports about the package.
const DIGEST: &str = "sha256:acafce7725bc3ebb71fbd339229b9d299e34d8727da62e67101106d27a5ddf02";

fn pinned(digest: &str) -> String {
    format!(
        "[governance]\npackage = \"policies/governance.json\"\nexpected_digest = \"{digest}\"\n"
    )
}

#[test]
fn a_pinned_package_is_in_the_evidence_of_every_turn() {
    let scratch = scratch(CLAIMED, &pinned(DIGEST));
    scratch.batch("true", "true").end().exits(0);
    let witness = scratch
        .root
        .join("artifacts/ciwitness/worker.1.a.1.turn.json");
    let witness: Value = serde_json::from_slice(&fs::read(witness).unwrap()).unwrap();
    let bound = &witness["input"]["evidence"]["callSpec"]["governancePolicyDigest"];
    assert_eq!(bound, DIGEST);
    assert_eq!(
        witness["input"]["governanceProfile"],
        json!({
            "claimId": "profile.doctrine_inf_governance.v0",
            "claimed": true,
            "policyProvenance": {
                "pinned": true,
                "packageRef": "policies/governance.json",
                "expectedDigest": DIGEST,
                "boundDigest": DIGEST,
            },
        })
    );
}

#[test]
fn what_is_unpinned_or_another_package_is_refused_before_any_change() {
    let other = DIGEST.replace(&DIGEST[7..8], "x");
    for (settings, class) in [
        (String::new(), "governance.policy_package_unpinned"),
        (
            "[governance]\npackage = \"policies/governance.json\"\n".to_owned(),
            "governance.policy_package_unpinned",
        ),
        (
            pinned(DIGEST).replace("governance.json", "gone.json"),
            "governance.policy_package_unpinned",
        ),
        (pinned(&other), "governance.policy_package_mismatch"),
    ] {
        let scratch = scratch(CLAIMED, &settings);
        scratch
            .batch("true", "true")
            .end()
            .exits(3)
            .says(&format!("refused before dispatch: {class}"));
        assert_eq!(scratch.issue("a"), issue("a"), "{settings}");
        let rows = scratch.trajectory();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        assert_eq!(rows[0]["action"], "coordinator.dispatch_refused");
        assert_eq!(rows[0]["failureClasses"], json!([class]));
    }
}

#[test]
fn a_registry_that_claims_nothing_asks_for_nothing_and_a_broken_one_is_named() {
    let plain = scratch("{\"profileOverlayClaims\": []}", "");
    plain.batch("true", "true").end().exits(0);
    // No package: neither the retry policy nor anything else is in its place.
    let witness = plain
        .root
        .join("artifacts/ciwitness/worker.1.a.1.turn.json");
    let witness: Value = serde_json::from_slice(&fs::read(witness).unwrap()).unwrap();
    let bound = &witness["input"]["evidence"]["callSpec"]["governancePolicyDigest"];
    let nothing = canonical::digest(&json!({"governancePackage": null}));
    assert_eq!(*bound, json!(nothing));
    let broken = scratch("{\"profileOverlayClaims\": 1}", "");
    broken
        .batch("true", "true")
        .end()
        .exits(2)
        .says("CAPABILITY-REGISTRY.json claims: `profileOverlayClaims` must be a list of texts");
    assert_eq!(broken.issue("a"), issue("a"));
}

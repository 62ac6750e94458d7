//! What a vector expects and is not so.

use super::small::{ADVERSARIAL, GOLDEN, INVARIANCE, REFUSAL, Small};
use serde_json::{Value, json};

fn patched(suite: &mut Small, id: &str, document: &str, operation: &Value) {
    suite.edit_vector(id, |vector| {
        vector[document]["patch"] = json!([operation]);
    });
}

#[test]
fn a_golden_turn_has_no_class() {
    let mut suite = Small::new();
    let operation = json!({"op": "remove", "path": "/evidence/sessionRefs"});
    patched(&mut suite, GOLDEN, "document", &operation);
    assert_eq!(
        suite.differences(GOLDEN),
        [[
            "mutationFailureClasses",
            "none",
            "mutation.use_evidence_missing"
        ]]
    );
}

#[test]
fn a_golden_turn_has_the_digests_that_are_expected() {
    let mut suite = Small::new();
    suite.edit_vector(GOLDEN, |vector| {
        vector["expect"]["digests"] = json!({"callSpecDigest": "sha256:0"});
    });
    let differences = suite.differences(GOLDEN);
    assert_eq!(differences[0][0], "digests.callSpecDigest");
    assert_eq!(differences[0][1], "\"sha256:0\"");
    assert_eq!(differences[1][0], "digests.joinSetDigest");
    assert_eq!(differences[1][1], "nothing");
}

#[test]
fn an_adversarial_turn_has_the_classes_and_the_one_root_that_are_expected() {
    let mut suite = Small::new();
    let operation = json!({"op": "remove", "path": "/evidence/toolUse/1"});
    patched(&mut suite, ADVERSARIAL, "document", &operation);
    assert_eq!(
        suite.differences(ADVERSARIAL),
        [
            [
                "failureClasses",
                "none",
                "tool.join_incomplete, tool.use_missing"
            ],
            [
                "mutationFailureClasses",
                "mutation.use_evidence_missing",
                "none"
            ],
            [
                "root classes",
                "mutation.use_evidence_missing",
                "tool.use_missing"
            ],
        ]
    );
}

#[test]
fn a_derived_class_is_not_a_root() {
    let mut suite = Small::new();
    let operation = json!({"op": "remove", "path": "/evidence/toolUse/1"});
    patched(&mut suite, ADVERSARIAL, "document", &operation);
    suite.edit_vector(ADVERSARIAL, |vector| {
        vector["root"] = json!("tool.use_missing");
        vector["expect"] = json!({
            "failureClasses": ["tool.join_incomplete", "tool.use_missing"],
            "mutationFailureClasses": []
        });
    });
    let outcomes = suite.run().outcomes;
    assert!(outcomes[0].passed(), "{:?}", outcomes[0]);
    assert!(outcomes[0].rules.contains("tool::join_incomplete"));
    assert_eq!(outcomes[0].roots.len(), 1);
}

#[test]
fn an_accepted_turn_is_not_adversarial() {
    let mut suite = Small::new();
    suite.edit_vector(ADVERSARIAL, |vector| {
        vector["document"] = json!({"base": "closed"});
    });
    assert_eq!(suite.differences(ADVERSARIAL).len(), 2);
}

#[test]
fn a_pair_that_differs_says_where() {
    let mut suite = Small::new();
    let operation = json!({"op": "replace", "path": "/evidence/toolUse/1/useReason", "value": "x"});
    patched(&mut suite, INVARIANCE, "right", &operation);
    let differences = suite.differences(INVARIANCE);
    let places: Vec<&str> = differences.iter().map(|d| d[0].as_str()).collect();
    assert_eq!(
        places,
        [
            "normalized.digests.joinSetDigest",
            "normalized.digests.useSetDigest",
            "normalized.toolUse[1].useReason",
        ]
    );
    assert_eq!(differences[2][1..], ["\"timed out\"", "\"x\""]);
}

#[test]
fn a_pair_that_differs_in_its_verdict_alone_fails() {
    let mut suite = Small::new();
    let operation = json!({"op": "add", "path": "/truncationConstraints", "value": {"required": true, "valid": false}});
    patched(&mut suite, INVARIANCE, "right", &operation);
    assert_eq!(
        suite.differences(INVARIANCE),
        [[
            "failureClasses",
            "none",
            "tool.response_truncation_policy_violation"
        ]]
    );
}

#[test]
fn a_pair_is_two_documents() {
    let mut suite = Small::new();
    suite.edit_vector(INVARIANCE, |vector| {
        vector["right"] = vector["left"].clone();
    });
    let differences = suite.differences(INVARIANCE);
    assert_eq!(differences[0][2], "the same document twice");
}

#[test]
fn a_text_is_read_unchanged() {
    let mut suite = Small::new();
    let spaced = String::from_utf8(suite.files["bases/closed.json"].clone()).unwrap();
    suite.edit_vector(INVARIANCE, |vector| {
        vector["right"] = json!({"text": format!(" {spaced}\n\t")});
    });
    assert!(suite.run().outcomes.iter().all(|o| o.passed()));
    suite.edit_vector(REFUSAL, |vector| {
        vector["document"] = json!({"text": "{\"evidence\": {}, \"evidence\": {}}"});
        vector["expect"]["error"] = json!("the field \"evidence\" appears twice");
    });
    assert!(suite.run().outcomes.iter().all(|o| o.passed()));
}

#[test]
fn a_refusal_is_for_the_reason_that_is_expected() {
    let mut suite = Small::new();
    suite.edit_vector(REFUSAL, |vector| {
        vector["expect"]["error"] = json!("evidence.toolResults[1]");
    });
    let differences = suite.differences(REFUSAL);
    assert_eq!(differences[0][..2], ["error", "evidence.toolResults[1]"]);
    assert!(differences[0][2].starts_with("evidence.toolResults[0]"));

    let mut suite = Small::new();
    suite.edit_vector(REFUSAL, |vector| {
        vector["document"] = json!({"base": "closed"});
    });
    let differences = suite.differences(REFUSAL);
    assert!(differences[0][2].starts_with("a verdict"));
}

#[test]
fn a_document_that_cannot_be_made_or_read_fails_its_vector() {
    for (id, field, what) in [
        (GOLDEN, "document", "document"),
        (ADVERSARIAL, "document", "document"),
        (INVARIANCE, "left", "left"),
        (REFUSAL, "document", "document"),
    ] {
        let mut suite = Small::new();
        suite.edit_vector(id, |vector| {
            vector[field] = json!({"base": "nobody"});
        });
        let differences = suite.differences(id);
        assert_eq!(differences[0][0], what);
        assert_eq!(differences[0][2], "there is no bases/nobody.json");
        let mut suite = Small::new();
        let operation = json!({"op": "remove", "path": "/evidence/nothing"});
        patched(&mut suite, id, field, &operation);
        let differences = suite.differences(id);
        assert!(differences[0][2].contains("/evidence/nothing"));
    }
    let mut suite = Small::new();
    suite.edit_vector(GOLDEN, |vector| {
        vector["document"] = json!({"text": "{}"});
    });
    assert_eq!(suite.differences(GOLDEN)[0][1], "a turn that can be read");
}

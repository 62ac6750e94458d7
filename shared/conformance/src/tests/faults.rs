//! Every kind of fault, planted.

use super::small::{ADVERSARIAL, GOLDEN, INVARIANCE, REFUSAL, Small};
use crate::{FaultKind, Suite};
use premath_kernel::failure::{FailureClass, Family};
use premath_kernel::turn::{Stage, notes};
use serde_json::json;
use std::collections::BTreeSet;

#[test]
fn the_small_suite_has_nothing_wrong_but_its_size() {
    let report = Small::new().run();
    assert!(report.outcomes.iter().all(|outcome| outcome.passed()));
    assert_eq!(Small::new().faults(), []);
    let ids: Vec<&str> = report.outcomes.iter().map(|o| o.id.as_str()).collect();
    assert_eq!(ids, [ADVERSARIAL, GOLDEN, INVARIANCE, REFUSAL]);
    assert!(!report.passed());
    for suite in Suite::ALL {
        let part = Small::new().run().only(*suite);
        assert_eq!(part.outcomes.len(), 1);
        assert!(part.passed(), "{suite:?}");
    }
}

#[test]
fn a_suite_without_a_readable_manifest_is_not_a_suite() {
    let mut suite = Small::new();
    suite.files.remove("manifest.json");
    let detail = suite.fault(FaultKind::Unreadable, "manifest.json");
    assert_eq!(detail, "there is no manifest");
    let mut suite = Small::new();
    suite.edit("manifest.json", |m| m["manifestKind"] = json!("other"));
    let detail = suite.fault(FaultKind::Unreadable, "manifest.json");
    assert!(detail.starts_with("manifestKind must be"), "{detail}");
    assert_eq!(suite.run().outcomes, []);
}

#[test]
fn a_field_that_is_unknown_is_named_with_its_file() {
    for (id, place, field) in [
        (GOLDEN, "", "root"),
        (GOLDEN, "/expect", "failureClasses"),
        (GOLDEN, "/document", "bases"),
        (ADVERSARIAL, "", "nearMissOf"),
        (ADVERSARIAL, "/expect", "classes"),
        (ADVERSARIAL, "/document/patch/0", "vlaue"),
        (INVARIANCE, "", "document"),
        (INVARIANCE, "/right", "from"),
        (REFUSAL, "", "slices"),
        (REFUSAL, "/expect", "exit"),
    ] {
        let mut suite = Small::new();
        suite.edit_vector(id, |vector| {
            vector.pointer_mut(place).unwrap()[field] = json!("x");
        });
        let detail = suite.fault(FaultKind::Unreadable, &format!("{id}.json"));
        let expected = format!("unknown field `{field}`");
        assert!(detail.contains(&expected), "{detail}");
    }
    let mut suite = Small::new();
    suite.edit("manifest.json", |m| m["vectors"][0]["root"] = json!("x"));
    let detail = suite.fault(FaultKind::Unreadable, "manifest.json");
    assert!(detail.contains("unknown field `root`"), "{detail}");
}

#[test]
fn a_vector_that_does_not_have_its_form_cannot_be_read() {
    for (id, place, value, says) in [
        (GOLDEN, "/schema", json!(2), "schema must be 1, not 2"),
        (GOLDEN, "/says", json!(" "), "must be a text of one line"),
        (GOLDEN, "/slices", json!([19]), "slices are 1 to 18, not 19"),
        (
            GOLDEN,
            "/document",
            json!({}),
            "base and patch, or text alone",
        ),
        (
            GOLDEN,
            "/document",
            json!({"text": "{}", "patch": []}),
            "base and patch, or text alone",
        ),
        (
            ADVERSARIAL,
            "/document/patch/0/op",
            json!("drop"),
            "patch[0]: unknown variant `drop`",
        ),
        (ADVERSARIAL, "/slices", json!([]), "slices names none"),
        (
            ADVERSARIAL,
            "/expect/failureClasses",
            json!(["tool.use_missing", "tool.join_incomplete"]),
            "sorted",
        ),
        (REFUSAL, "/expect/error", json!(""), "a text of one line"),
    ] {
        let mut suite = Small::new();
        suite.edit_vector(id, |vector| *vector.pointer_mut(place).unwrap() = value);
        let detail = suite.fault(FaultKind::Unreadable, &format!("{id}.json"));
        assert!(detail.contains(says), "{place}: {detail}");
    }
}

#[test]
fn a_file_that_the_manifest_does_not_name_is_stray() {
    for path in ["golden/other.json", "golden/other.txt", "bases/a.txt", "x"] {
        let mut suite = Small::new();
        suite.files.insert(path.to_owned(), Vec::new());
        suite.fault(FaultKind::Stray, path);
    }
    let mut suite = Small::new();
    suite.files.insert("README.md".to_owned(), Vec::new());
    assert_eq!(suite.faults(), []);
}

#[test]
fn a_vector_of_the_manifest_has_a_file() {
    let mut suite = Small::new();
    suite.files.remove(&format!("{REFUSAL}.json"));
    suite.fault(FaultKind::Absent, &format!("{REFUSAL}.json"));
}

#[test]
fn the_manifest_is_sorted_and_says_what_its_vectors_say() {
    let mut suite = Small::new();
    suite.edit("manifest.json", |m| {
        m["vectors"].as_array_mut().unwrap().swap(0, 1);
    });
    suite.fault(FaultKind::Manifest, ADVERSARIAL);

    let mut suite = Small::new();
    suite.edit("manifest.json", |m| {
        let entry = m["vectors"][3].clone();
        m["vectors"].as_array_mut().unwrap().push(entry);
    });
    suite.fault(FaultKind::Manifest, REFUSAL);
    assert_eq!(suite.run().outcomes.len(), 4);

    let mut suite = Small::new();
    suite.edit("manifest.json", |m| m["vectors"][3]["says"] = json!("No."));
    suite.fault(FaultKind::Manifest, REFUSAL);

    let mut suite = Small::new();
    suite.edit("manifest.json", |m| {
        let entry = json!({"id": "zebra/x", "says": "No."});
        m["vectors"].as_array_mut().unwrap().push(entry);
    });
    suite.fault(FaultKind::Manifest, "zebra/x");
}

#[test]
fn a_base_is_ready_for_a_change() {
    let mut suite = Small::new();
    suite
        .files
        .insert("bases/x.json".to_owned(), b"{}".to_vec());
    suite.fault(FaultKind::BaseRefused, "bases/x.json");

    let mut suite = Small::new();
    let mut open: serde_json::Value =
        serde_json::from_slice(&suite.files["bases/closed.json"]).unwrap();
    open["evidence"]["sessionRefs"] = json!([]);
    suite.put("bases/x.json", &open);
    let detail = suite.fault(FaultKind::BaseRefused, "bases/x.json");
    assert!(detail.contains("mutation.use_evidence_missing"), "{detail}");
}

#[test]
fn a_base_is_used() {
    let mut suite = Small::new();
    let closed = suite.files["bases/closed.json"].clone();
    suite.files.insert("bases/x.json".to_owned(), closed);
    assert_eq!(suite.faults(), []);
    assert_eq!(suite.at(FaultKind::BaseUnused), ["bases/x.json"]);
    assert!(Small::new().at(FaultKind::BaseUnused).is_empty());
}

#[test]
fn an_adversarial_vector_names_its_class() {
    let path = format!("{ADVERSARIAL}.json");
    for root in [json!(null), json!("")] {
        let mut suite = Small::new();
        suite.edit_vector(ADVERSARIAL, |vector| vector["root"] = root);
        suite.fault(FaultKind::NoClass, &path);
    }
    let mut suite = Small::new();
    suite.edit_vector(ADVERSARIAL, |vector| {
        vector["expect"]["mutationFailureClasses"] = json!([]);
    });
    suite.fault(FaultKind::NoClass, &path);
}

#[test]
fn a_class_that_is_named_is_one_of_the_typestate() {
    let path = format!("{ADVERSARIAL}.json");
    for class in ["tool.use_mising", "check_failed"] {
        let mut suite = Small::new();
        suite.edit_vector(ADVERSARIAL, |vector| vector["root"] = json!(class));
        let detail = suite.fault(FaultKind::UnknownClass, &path);
        assert!(detail.starts_with("root names"), "{detail}");
        let mut suite = Small::new();
        suite.edit_vector(ADVERSARIAL, |vector| {
            vector["expect"]["failureClasses"] = json!([class]);
        });
        let detail = suite.fault(FaultKind::UnknownClass, &path);
        assert!(detail.starts_with("expect names"), "{detail}");
    }
}

#[test]
fn a_near_miss_points_to_an_adversarial_vector() {
    for target in ["adversarial/nobody", INVARIANCE, "", GOLDEN] {
        let mut suite = Small::new();
        suite.edit_vector(GOLDEN, |vector| vector["nearMissOf"] = json!(target));
        suite.fault(FaultKind::NearMissOfNothing, &format!("{GOLDEN}.json"));
    }
}

#[test]
fn every_class_is_the_only_root_of_some_vector() {
    let report = Small::new().run();
    let only = FailureClass::MutationUseEvidenceMissing;
    assert_eq!(report.covered, [only].into());
    let mut others: Vec<_> = Family::Typestate.classes().collect();
    others.retain(|class| *class != only);
    assert_eq!(report.uncovered, others.iter().copied().collect());
    let words: Vec<&str> = others.iter().map(|class| class.as_str()).collect();
    assert_eq!(Small::new().at(FaultKind::Uncovered), words);
}

#[test]
fn a_class_beside_another_root_class_is_not_covered() {
    let mut suite = Small::new();
    suite.edit_vector(ADVERSARIAL, |vector| {
        let patch = vector["document"]["patch"].as_array_mut().unwrap();
        patch.push(
            json!({"op": "replace", "path": "/evidence/toolUse/0/resultDigest", "value": "x"}),
        );
    });
    assert!(suite.run().covered.is_empty());
    let uncovered = suite.at(FaultKind::Uncovered);
    assert_eq!(uncovered.len(), Family::Typestate.classes().count());
}

#[test]
fn every_class_has_a_near_miss() {
    let missing = Small::new().at(FaultKind::WithoutNearMiss);
    assert_eq!(missing.len(), Family::Typestate.classes().count() - 1);
    let mut suite = Small::new();
    suite.edit_vector(GOLDEN, |vector| {
        vector.as_object_mut().unwrap().remove("nearMissOf");
    });
    assert_eq!(suite.faults(), []);
    let missing = suite.at(FaultKind::WithoutNearMiss);
    assert!(missing.contains(&"mutation.use_evidence_missing".to_owned()));
}

#[test]
fn every_rule_but_those_of_one_step_is_broken_by_some_vector() {
    let unbroken: BTreeSet<String> = Small::new()
        .at(FaultKind::RuleUnbroken)
        .into_iter()
        .collect();
    let mut expected: BTreeSet<String> = notes()
        .into_iter()
        .filter(|note| note.stage != Stage::ThisStep)
        .map(|note| note.rule)
        .collect();
    assert!(expected.remove("mutation::discarded_without_reason"));
    assert_eq!(unbroken, expected);
}

#[test]
fn every_slice_has_a_vector() {
    let empty = Small::new().at(FaultKind::SliceEmpty);
    let expected: Vec<String> = (2..=18).map(|n| format!("slice {n}")).collect();
    assert_eq!(empty, expected);
}

//! A glance at a line against the whole row.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const PLAIN: &str = concat!(
    r#"{"action":"worker.loop","batchId":"hb","failureClasses":["check_failed"],"#,
    r#""finishedAt":"2026-03-05T10:00:00.123456Z","issueId":"bd-1","#,
    r#""landing":{"commit":"c","target":"t"},"lineageRefs":[],"resultClass":"failed","#,
    r#""schema":1,"startedAt":"2026-03-05T10:00:00Z","stepId":"s","#,
    r#""stepKind":"premath.harness.step.v1","witnessRefs":["b","a"],"zone":{"n":-1.5e3}}"#
);

/// Holds that a line which is read by a glance is a row that says the same; returns
/// whether it is read so.
fn agrees(line: &[u8]) -> bool {
    let Some(glance) = RowGlance::read(line) else {
        return false;
    };
    let row = StepRow::parse(line).expect("a line that was glanced at is a row");
    assert_eq!(glance, RowGlance::from(&row));
    true
}

#[test]
fn a_row_as_the_harness_writes_it_is_read_by_a_glance() {
    assert!(agrees(PLAIN.as_bytes()));
    let row = StepRow::parse(PLAIN.as_bytes()).unwrap();
    assert!(agrees(row.line().unwrap().as_bytes()));
    let spaced = PLAIN.replace(',', " ,\t");
    assert!(agrees(format!(" {spaced}\r").as_bytes()));
    let glance = RowGlance::read(PLAIN.as_bytes()).unwrap();
    assert_eq!(glance.landed_on, Some("t"));
    assert!(glance.is_attempt);
}

#[test]
fn what_is_not_written_plainly_is_parsed_as_a_whole() {
    for (from, to) in [
        ("bd-1", "bd-\\u0031"),
        ("bd-1", " bd-1"),
        ("bd-1", "bd-1\u{a0}"),
        ("\"bd-1\"", "null"),
        ("\"bd-1\"", "7"),
        ("\"schema\":1", "\"schema\":1.0"),
        ("\"schema\":1", "\"schema\":2"),
        ("\"schema\":1", "\"schema\":1,\"schema\":1"),
        ("\"schema\":1,", ""),
        ("-1.5e3", "1e999"),
        ("-1.5e3", "01"),
        (
            "{\"n\":-1.5e3}",
            "{\"$serde_json::private::RawValue\":\"x\"}",
        ),
        ("check_failed", "usage_limit"),
        ("worker.loop", action::REVIEWED),
        ("2026-03-05T10:00:00Z", "2026-03-05T10:00:00"),
        ("[\"b\",\"a\"]", "[\"b\",1]"),
        ("[\"b\",\"a\"]", "null"),
        ("\"target\":\"t\"", "\"target\":\"t\",\"target\":\"u\""),
        ("\"commit\":\"c\",", ""),
        ("}}", "}"),
        ("}}", "}}}"),
        ("}}", "}} x"),
    ] {
        let line = PLAIN.replacen(from, to, 1);
        assert_ne!(line, PLAIN, "{from}");
        assert!(!agrees(line.as_bytes()), "{line}");
    }
    assert!(!agrees(b""));
    let mut line = PLAIN.as_bytes().to_vec();
    line.splice(2..2, [0xff]);
    assert!(!agrees(&line));
}

#[test]
fn what_nests_too_deep_fails_in_both_readings() {
    for depth in 100..140 {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let line = PLAIN.replace("-1.5e3", &nested);
        let is_row = StepRow::parse(line.as_bytes()).is_ok();
        assert_eq!(agrees(line.as_bytes()), is_row, "{depth}");
    }
}

#[test]
fn each_field_that_decides_has_a_bit_of_its_own() {
    let bits = KNOWN.iter().filter_map(|name| bit(name));
    assert_eq!(bits.fold(0, |all, bit| all | bit), (1 << KNOWN.len()) - 1);
    let required = KNOWN[..6].iter().filter_map(|name| bit(name));
    assert_eq!(required.fold(0, |all, bit| all | bit), REQUIRED);
}

#[test]
fn attempts_count_as_whole_rows_say() {
    let cut = ["harness_died", "step_interrupted", "usage_limit", "x"];
    for class in cut {
        for (result, action) in [
            ("failed", "worker.loop"),
            ("OK", "worker.loop"),
            ("ok", "x"),
        ] {
            let mut row: Value = serde_json::from_str(PLAIN).unwrap();
            row["failureClasses"] = json!([class]);
            row["resultClass"] = json!(result);
            row["action"] = json!(action);
            assert_eq!(agrees(row.to_string().as_bytes()), class != "usage_limit");
        }
    }
}

/// The fields that decide whether a line is a row.
const KNOWN: [&str; 15] = [
    "schema",
    "stepKind",
    "stepId",
    "action",
    "resultClass",
    "finishedAt",
    "issueId",
    "startedAt",
    "batchId",
    "landing",
    "failureClasses",
    "instructionRefs",
    "witnessRefs",
    "lineageRefs",
    "retry",
];

/// Texts that are likely in a row.
const TEXTS: [&str; 13] = [
    "",
    " ",
    "ok",
    " ok",
    "worker.loop",
    "harness_died",
    "step_interrupted",
    "usage_limit",
    "2026-03-05T10:00:00+01:00",
    "2026-03-05",
    "\u{e9}",
    "a\"b",
    "\n",
];

/// A value that is likely at the place of a field.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => prop::sample::select(&TEXTS[..]).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(|number| json!(number)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let name = prop::sample::select(&["target", "commit", "x"][..]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name.prop_map(str::to_owned), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_glance_and_the_whole_row_agree(
        changes in prop::collection::vec(
            (prop::sample::select(&KNOWN[..]), prop::option::weighted(0.9, value())),
            0..4,
        ),
        noise in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut row: Value = serde_json::from_str(PLAIN).unwrap();
        let fields = row.as_object_mut().unwrap();
        for (name, value) in changes {
            match value {
                Some(value) => drop(fields.insert(name.to_owned(), value)),
                None => drop(fields.remove(name)),
            }
        }
        let mut line = row.to_string().into_bytes();
        if let Some((place, byte)) = noise {
            let place = place.index(line.len());
            line[place] = byte;
        }
        agrees(&line);
    }
}

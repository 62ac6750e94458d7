//! What the next session begins with: the observation of the last batch.

use premath_tests::{Scratch, issue};
use serde_json::{Value, json};
use std::fs;

#[test]
fn what_a_batch_left_is_observed_by_the_next_session() {
    let scratch = Scratch::with_issues(1, &[issue("bad"), issue("good")]);
    let observe = |query: &[&str]| {
        let run = scratch.premath(["observe", "--json"]);
        run.args(query).end().exits(0).json()
    };
    assert_eq!(observe(&["latest"])["observation"], Value::Null);
    assert_eq!(observe(&["needs_attention"])["count"], 0);

    let work = "[ $PREMATH_ISSUE_ID = good ] || exit 1; echo x > src-good.txt";
    scratch.landing_batch(work, "true").end().exits(1);
    let found = &observe(&["latest"])["observation"];
    assert_eq!(found["exitCode"], 1);
    let issues = found["issues"].as_array().unwrap();
    let ends: Vec<_> = issues
        .iter()
        .map(|row| (&row["issueId"], &row["closed"]))
        .collect();
    assert_eq!(
        ends,
        [
            (&json!("bad"), &json!(false)),
            (&json!("good"), &json!(true))
        ]
    );
    let attention = observe(&["needs_attention"]);
    assert_eq!(attention["count"], 1);
    assert_eq!(attention["items"][0]["issueId"], "bad");
    assert_eq!(
        attention["items"][0]["nextCommand"],
        "premath issue show bad"
    );
    let of = |reference: &str| observe(&["instruction", reference])["observation"].clone();
    assert_eq!(of("instruction://other/1"), Value::Null);

    // The next batch reports it, and its own observation takes the place of this one.
    let ended = scratch.landing_batch("true", "true").end();
    let said = ended.events().iter().any(|event| {
        event["event"] == "batch.warning"
            && event["detail"]
                .as_str()
                .unwrap()
                .contains("premath observe")
    });
    assert!(said, "{}", ended.stdout);
    let log = scratch.root.join("artifacts/observation/events.jsonl");
    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["needsAttention"], 1);
    assert_eq!(lines[0]["batchId"], found["batchId"]);
}

#[test]
fn an_observation_that_cannot_be_read_is_an_error_with_its_file() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let file = scratch.root.join("artifacts/observation/latest.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "{\"observationKind\": 1}").unwrap();
    let run = scratch.premath(["observe", "latest"]);
    run.end().exits(2).says("artifacts/observation/latest.json");
    scratch.landing_batch("true", "true").end().exits(0);
}

/// Returns documents of an observation, by kind, for their schemas.
pub(super) fn documents() -> Vec<(&'static str, Value)> {
    let scratch = Scratch::with_issues(1, &[issue("bad"), issue("good")]);
    let work = "[ $PREMATH_ISSUE_ID = good ]";
    scratch.landing_batch(work, "true").end().exits(1);
    let file = scratch.root.join("artifacts/observation/latest.json");
    let observation = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let asked = [
        ("answer-observe", &["observe", "latest", "--json"]),
        (
            "answer-observe-attention",
            &["observe", "needs_attention", "--json"],
        ),
    ];
    let answers = asked.map(|(kind, arguments)| {
        let run = scratch.premath(arguments.iter().copied());
        (kind, run.end().exits(0).json())
    });
    let mut documents = vec![("observation", observation)];
    documents.extend(answers);
    documents
}

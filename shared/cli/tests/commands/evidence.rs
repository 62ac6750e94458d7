//! The join check.

use crate::scratch::Scratch;
use serde_json::{Value, json};
use std::fs;

fn known_answer() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../kernel/src/turn/tests/known_answer.json"
    );
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_join_check_gives_the_known_answer() {
    let scratch = Scratch::with("");
    let known = known_answer();
    let input = scratch.folder.join("input.json");
    fs::write(&input, known["input"].to_string()).unwrap();
    let args = ["harness-join-check", "--input", "input.json"];
    let answer = scratch.json(&args);
    assert_eq!(answer["action"], "harness-join-check");
    assert_eq!(answer["result"], "accepted");
    assert_eq!(answer["joinClosed"], true);
    assert_eq!(answer["witness"]["digests"], known["digests"]);

    let run = |require: &str| scratch.run(&[&args[..], &["--require", require]].concat());
    assert_eq!(run("accepted").code, 0);
    assert_eq!(run("mutation-ready").code, 1);

    let mut open = known["input"].clone();
    open["evidence"]["toolResults"] = json!([]);
    open["evidence"]["colour"] = json!("red");
    fs::write(&input, open.to_string()).unwrap();
    let rejected = scratch.json(&[&args[..], &["--explain"]].concat());
    assert_eq!(rejected["result"], "rejected");
    assert_eq!(
        rejected["explain"]["ignoredFields"],
        json!(["evidence.colour"])
    );
    assert_eq!(run("accepted").code, 1);
}

#[test]
fn evidence_that_cannot_be_read_is_an_input_error() {
    let scratch = Scratch::with("");
    let input = scratch.folder.join("input.json");
    for text in ["", "{", "{}", "{\"evidence\":{}}", "[]"] {
        fs::write(&input, text).unwrap();
        let answer = scratch.run(&["harness-join-check", "--input", "input.json"]);
        assert_eq!(answer.code, 2, "{text}");
        assert!(
            answer.stderr.starts_with("harness_join_check_invalid: "),
            "{}",
            answer.stderr
        );
    }
    let missing = scratch.run(&["harness-join-check", "--input", "nowhere.json"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.starts_with("harness_join_check_invalid: "));
}

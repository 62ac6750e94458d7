//! What changes of issues rest on: the rights of turns, named in rows, and the
//! witnesses of those turns.

use premath_kernel::record::audit::digest_of;
use premath_tests::{Scratch, binaries, issue};
use serde_json::{Value, json};

/// Blocking and discovering rest on turns of their own: the rows name the
/// rights, and the escalation's turn has a witness that can be judged again.
#[test]
fn what_blocks_and_what_files_an_issue_names_its_right_and_its_turn() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let premath = binaries().premath.display().to_string();
    let work =
        format!(r#"[ "$PREMATH_ISSUE_ID" = a ] || '{premath}' issue discover b "more to do""#);
    let verify = r#"[ "$PREMATH_ISSUE_ID" != a ]"#;
    scratch.batch(&work, verify).end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    let rights = |row: &Value, list: &str, prefix: &str| -> Vec<String> {
        let refs = row[list].as_array().unwrap().iter();
        let texts = refs.filter_map(Value::as_str).map(str::to_owned);
        texts.filter(|text| text.starts_with(prefix)).collect()
    };
    let step = &scratch.steps_of("a")[0];
    let blocked = rights(step, "witnessRefs", "mutation-ready://a/block/");
    assert_eq!(blocked.len(), 1, "{step:#}");
    assert_eq!(scratch.issue("a")["mutation_refs"], json!(blocked));
    let turn = rights(step, "witnessRefs", "ciwitness://worker.1.a.1/escalation/");
    assert_eq!(turn.len(), 1, "{step:#}");
    let file = scratch
        .root
        .join("artifacts/ciwitness/worker.1.a.1.escalation.json");
    let text = std::fs::read(&file).unwrap();
    let witness: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(witness["witnessKind"], "premath.harness.turn_witness.v1");
    assert_eq!(witness["admitted"], json!(["block", "discover"]));
    assert_eq!(witness["closeFailureClasses"], json!(["check_failed"]));
    let digest = digest_of(&witness);
    assert!(turn[0].ends_with(&digest), "{turn:?} {digest}");
    let check = ["harness-join-check", "--input", &file.display().to_string()];
    scratch
        .premath(check)
        .end()
        .exits(0)
        .says("join      closed");

    let step = &scratch.steps_of("b")[0];
    let filed = rights(step, "witnessRefs", "mutation-ready://b/discover/");
    assert_eq!(filed.len(), 1, "{step:#}");
    let found = scratch.issue("b-1");
    assert_eq!(
        found["discovered_by"]["mutation_ref"], filed[0],
        "{found:#}"
    );
}

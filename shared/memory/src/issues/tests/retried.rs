//! Issues that an operator opens for another attempt.

use super::*;
use premath_kernel::authority::OperatorOverride;

fn retry(memory: &IssueMemory, id: &str, note: Option<&str>) -> Result<IssueRow, ChangeError> {
    #[expect(clippy::disallowed_methods, reason = "a test acts for an operator")]
    let operator = OperatorOverride::new("ann", Some("because".into()));
    let note = note.map(str::to_owned);
    let id = id.to_owned();
    memory.operate(operator, IssueChange::Retry { id, note })
}

#[test]
fn an_issue_is_opened_at_once_with_a_note_below_its_notes() {
    let scratch = Scratch::new(concat!(
        r#"{"id":"b","title":"t","status":"blocked","notes":"before","blocked_by":{"step":"s"}}"#,
        "\n",
        r#"{"id":"w","title":"t","retry_at":"2099-01-01T00:00:00Z"}"#,
        "\n",
        r#"{"id":"c","title":"t","status":"closed","closed_at":"2026-01-01T00:00:00Z","closed_by_step":"s"}"#,
        "\n",
    ));
    let memory = scratch.open();
    for (id, note, notes) in [
        ("b", Some(" a hint \n"), "before\n\na hint"),
        ("b", Some("a hint"), "before\n\na hint"),
        ("w", None, ""),
        ("c", Some(""), ""),
    ] {
        let row = retry(&memory, id, note).unwrap();
        assert_eq!(
            row.issue.status,
            premath_kernel::issue::Status::Open,
            "{id}"
        );
        assert_eq!(row.text_of("notes"), notes, "{id}");
        let value = row.value();
        for gone in ["retry_at", "closed_at", "closed_by_step", "blocked_by"] {
            assert!(value.get(gone).is_none(), "{id}: {gone}");
        }
        assert_eq!(value["operator_override"]["reason"], "because");
    }
}

#[test]
fn an_issue_that_is_worked_on_or_deleted_is_not_opened() {
    let scratch = Scratch::new(concat!(
        r#"{"id":"a","title":"t"}"#,
        "\n",
        r#"{"id":"d","title":"t","status":"tombstone"}"#,
        "\n",
    ));
    let memory = scratch.open();
    let claimed = claim_one(&memory, "w").unwrap();
    assert_eq!(claimed.claim.issue_id.as_str(), "a");
    let before = scratch.text();
    let running = retry(&memory, "a", Some("x")).unwrap_err();
    assert_eq!(running.class(), FailureClass::LeaseContentionActive);
    for id in ["d", "nope"] {
        assert!(retry(&memory, id, None).is_err(), "{id}");
    }
    assert_eq!(scratch.text(), before);
}

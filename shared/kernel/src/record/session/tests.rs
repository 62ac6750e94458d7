use super::*;
use crate::json::canonical::value_of;
use proptest::prelude::*;
use serde_json::json;

fn at(second: u32) -> Timestamp {
    format!("2026-03-05T10:00:{second:02}Z").parse().unwrap()
}

fn reread(session: &Session) -> Session {
    Session::parse(value_of(session).to_string().as_bytes()).unwrap()
}

fn minimal() -> Value {
    json!({
        "schema": 1, "sessionKind": SESSION_KIND, "sessionId": "s", "state": "stopped",
        "startedAt": "2026-03-05T10:00:00Z", "updatedAt": "2026-03-05T11:00:00+01:00",
    })
}

#[test]
fn ids_name_the_second_and_the_issue() {
    assert_eq!(session_id(None, at(1)), "hs1_20260305T100001Z");
    assert_eq!(
        session_id(Some(&"BD-1.2".into()), at(1)),
        "hs1_20260305T100001Z_bd-1_2"
    );
    assert_eq!(
        session_id(Some(&"\u{e9}".into()), at(1)),
        "hs1_20260305T100001Z_session"
    );
}

#[test]
fn an_update_keeps_identity_and_start_and_what_it_does_not_name() {
    let first = write(
        None,
        SessionWrite {
            state: SessionState::Active,
            issue_id: Some("bd-1".into()),
            summary: Some(" s ".into()),
            next_step: Some("n".into()),
            witness_refs: Some(["b", "a"].into_iter().collect()),
            ..SessionWrite::default()
        },
        at(1),
    );
    assert_eq!(first.stopped_at, None);
    let second = write(
        Some(first.clone()),
        SessionWrite {
            next_step: Some(" ".into()),
            witness_refs: Some(["c"].into_iter().collect()),
            ..SessionWrite::default()
        },
        at(2),
    );
    assert_eq!(
        value_of(&second),
        json!({
            "schema": 1, "sessionKind": SESSION_KIND,
            "sessionId": "hs1_20260305T100001Z_bd-1", "state": "stopped",
            "issueId": "bd-1", "summary": "s", "witnessRefs": ["c"],
            "startedAt": "2026-03-05T10:00:01.000000Z",
            "updatedAt": "2026-03-05T10:00:02.000000Z",
            "stoppedAt": "2026-03-05T10:00:02.000000Z",
        })
    );
    let third = write(Some(second.clone()), SessionWrite::default(), at(3));
    assert_eq!(third.stopped_at, second.stopped_at);
    let fourth = write(
        Some(third),
        SessionWrite {
            state: SessionState::Active,
            session_id: Some("other".into()),
            ..SessionWrite::default()
        },
        at(4),
    );
    assert_eq!(
        (fourth.session_id.as_str(), &fourth.stopped_at),
        ("other", &None)
    );
    assert_eq!(fourth.started_at, first.started_at);
}

#[test]
fn what_is_unknown_is_kept_value_for_value() {
    let mut document = minimal();
    document["x"] = json!({"deep": [1, 2.5, null]});
    document["summary"] = Value::Null;
    let session = Session::parse(document.to_string().as_bytes()).unwrap();
    let written = value_of(&write(Some(session), SessionWrite::default(), at(1)));
    assert_eq!(written["x"], document["x"]);
    assert_eq!(written["startedAt"], document["startedAt"]);
    assert_eq!(written.get("summary"), None);
}

#[test]
fn a_wrong_field_is_named_with_what_would_be_right() {
    for (field, value, expected) in [
        ("schema", json!(2), "`schema` must be 1, found 2"),
        (
            "sessionKind",
            json!("x"),
            "`sessionKind` must be \"premath.harness.session.v1\", found \"x\"",
        ),
        (
            "sessionId",
            json!(" "),
            "`sessionId` is missing: it must be text that is not blank",
        ),
        (
            "state",
            json!("paused"),
            "`state` must be one of active, stopped, found \"paused\"",
        ),
        (
            "startedAt",
            json!("noon"),
            "`startedAt` must be an RFC 3339 time such as 2026-03-05T10:00:00Z, found \"noon\"",
        ),
        (
            "updatedAt",
            Value::Null,
            "`updatedAt` is missing: it must be an RFC 3339 time such as 2026-03-05T10:00:00Z",
        ),
        (
            "stoppedAt",
            json!(5),
            "`stoppedAt` must be a string, found 5",
        ),
        (
            "witnessRefs",
            json!("x"),
            "`witnessRefs` must be a list, found \"x\"",
        ),
        (
            "step",
            json!({"stepId": "s"}),
            "`step.issueId` is missing: it must be text that is not blank",
        ),
    ] {
        let mut document = minimal();
        document[field] = value;
        let SessionError::Shape(error) =
            Session::parse(document.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert!(Session::parse(b"[").is_err());
    assert!(Session::parse(b"[]").is_err());
}

#[test]
fn a_step_survives_the_file_and_is_cleared_on_demand() {
    let step = SessionStep {
        step_id: "w.bd-1.3".into(),
        issue_id: "bd-1".into(),
        generation: 3,
        lease_id: "l".into(),
        lease_owner: "w".into(),
        base_commit: "abc".into(),
        base_branch: None,
        world: Some(StepWorld {
            name: "docs".into(),
            worktree: "../docs-lanes/w".into(),
        }),
    };
    let set = SessionWrite {
        step: StepWrite::Set(step.clone()),
        ..SessionWrite::default()
    };
    let session = reread(&write(None, set, at(1)));
    assert_eq!(session.step, Some(step));
    let kept = write(Some(session), SessionWrite::default(), at(2));
    assert!(kept.step.is_some());
    let clear = SessionWrite {
        step: StepWrite::Clear,
        ..SessionWrite::default()
    };
    assert_eq!(write(Some(kept), clear, at(3)).step, None);
}

fn writes() -> impl Strategy<Value = SessionWrite> {
    let text = || proptest::option::of("[ a-z]{0,4}");
    let refs = || proptest::option::of(proptest::collection::vec("[ a-c]{0,3}", 0..4));
    (
        any::<bool>(),
        text(),
        text(),
        text(),
        text(),
        refs(),
        refs(),
    )
        .prop_map(
            |(active, session_id, issue_id, summary, issues_path, witness, lineage)| SessionWrite {
                session_id: session_id.map(SessionId::from),
                state: if active {
                    SessionState::Active
                } else {
                    SessionState::Stopped
                },
                issue_id: issue_id.map(Into::into),
                summary,
                issues_path,
                witness_refs: witness.map(|r| r.into_iter().collect()),
                lineage_refs: lineage.map(|r| r.into_iter().collect()),
                ..SessionWrite::default()
            },
        )
}

proptest! {
    #[test]
    fn a_write_is_idempotent_and_survives_the_file(one in writes(), two in writes()) {
        let first = write(None, one, at(1));
        prop_assert_eq!(&reread(&first), &first);
        let second = write(Some(first), two.clone(), at(2));
        prop_assert_eq!(&reread(&second), &second);
        prop_assert_eq!(second.stopped_at.is_some(), second.state == SessionState::Stopped);
        prop_assert_eq!(&write(Some(second.clone()), two, at(2)), &second);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = Session::parse(&bytes);
    }
}

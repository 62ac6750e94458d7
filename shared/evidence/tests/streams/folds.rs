//! Views and reductions: the same on every run, and other ones where anything
//! that they refer to is another.

use crate::judge::{evidence, fold, good};
use premath_evidence::{Agent, StreamEvent, StreamFold, StreamReader};
use premath_kernel::turn::{ParsedInput, normalize};

#[test]
fn a_fold_is_the_same_on_every_run_and_wherever_it_was_looked_at() {
    for &agent in Agent::ALL {
        let mut looked_at = StreamFold::new(agent);
        let mut look = |event: StreamEvent<'_>| {
            looked_at.apply(event);
            let _ = (
                looked_at.spent(),
                looked_at.is_in_call(),
                looked_at.is_over(),
            );
        };
        let mut reader = StreamReader::new(agent);
        reader.feed(good(agent).as_bytes(), &mut look);
        let log = reader.finish(&mut look);
        let one = looked_at.close(log);
        let other = fold(agent, good(agent));
        assert_eq!(one.state_view(), other.state_view());
        assert_eq!(one.state_view_digest(), other.state_view_digest());
        assert_eq!(one.queue_digest(), other.queue_digest());
        let digests = |stream| normalize(evidence(stream).evidence).unwrap().digests;
        assert_eq!(digests(&one), digests(&other));
    }
}

#[test]
fn what_is_open_and_what_is_over_can_be_asked_at_any_time() {
    let (begin, rest) = good(Agent::Gemini)
        .split_once("{\"type\":\"tool_result\"")
        .unwrap();
    let mut fold = StreamFold::new(Agent::Gemini);
    let mut reader = StreamReader::new(Agent::Gemini);
    reader.feed(begin.as_bytes(), &mut |event| fold.apply(event));
    assert!(fold.is_in_call() && !fold.is_over());
    reader.feed(b"{\"type\":\"tool_result\"", &mut |event| fold.apply(event));
    reader.feed(rest.as_bytes(), &mut |event| fold.apply(event));
    assert!(!fold.is_in_call() && fold.is_over());
}

#[test]
fn views_and_reductions_are_in_the_evidence_by_their_digests() {
    for &agent in Agent::ALL {
        let stream = fold(agent, good(agent));
        let evidence = evidence(&stream).evidence;
        let view = evidence
            .state_views
            .iter()
            .find(|row| row.view_id == "state/agent");
        assert_eq!(view.unwrap().view_digest, stream.state_view_digest());
        let queue = evidence
            .reminder_queue
            .iter()
            .find(|row| row.queue_id == "queue/agent");
        assert_eq!(queue.unwrap().reduced_digest, stream.queue_digest());
    }
}

#[test]
fn the_evidence_reads_back_from_its_own_document() {
    for &agent in Agent::ALL {
        let input = evidence(&fold(agent, good(agent)));
        let document = serde_json::to_vec(&input).unwrap();
        let again = ParsedInput::from_slice(&document).unwrap();
        assert_eq!(again.input, input);
        assert!(again.unknown_fields.is_empty());
    }
}

#[test]
fn every_byte_of_a_line_enters_the_digest_over_all_lines() {
    for &agent in Agent::ALL {
        let whole = fold(agent, good(agent));
        let spaced = fold(agent, good(agent).replace("Done.", "Done!"));
        assert_ne!(whole.log().digest, spaced.log().digest);
        assert_ne!(whole.state_view_digest(), spaced.state_view_digest());
        assert_eq!(whole.queue_digest(), spaced.queue_digest());
    }
}

#[test]
fn a_view_says_how_every_call_ended() {
    let stream = fold(Agent::Codex, good(Agent::Codex));
    let view = stream.state_view();
    assert_eq!(view["calls"]["item_6"], "command_failed");
    assert_eq!(view["session"], "t-1");
    assert_eq!(view["terminal"]["stopReason"], "end_turn");
    assert_eq!(
        stream.queue_reduction()["failures"],
        serde_json::json!(["command_failed"])
    );
}

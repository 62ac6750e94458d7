//! How a stream is cut into pieces changes nothing, no bytes do harm, and what
//! is held does not grow with payloads.

use crate::judge::{evidence, fold, gate, good};
use premath_evidence::{
    Agent, AgentStream, EventKind, Flaw, MAX_CALL_BYTES, MAX_LINE_BYTES, StreamEvent, StreamLog,
    StreamReader,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::normalize;
use proptest::prelude::*;

/// An event as text, and the line and flaw that it is.
type ReadEvents = (String, Option<(u64, Flaw)>);

fn read<'a>(
    agent: Agent,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<ReadEvents>, StreamLog) {
    let mut events = Vec::new();
    let mut each = |event: StreamEvent<'_>| {
        let text = format!("{event:?}");
        let flaw = match event.kind {
            EventKind::Invalid(flaw) => Some((event.source.line, flaw)),
            _ => None,
        };
        events.push((text, flaw));
    };
    let mut reader = StreamReader::new(agent);
    for piece in pieces {
        reader.feed(piece, &mut each);
    }
    let log = reader.finish(&mut each);
    (events, log)
}

fn agent() -> impl Strategy<Value = Agent> {
    prop::sample::select(Agent::ALL)
}

/// A whole stream in which a few bytes were replaced, lost or doubled.
fn broken() -> impl Strategy<Value = (Agent, Vec<u8>)> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..3_u8);
    (agent(), prop::collection::vec(change, 0..6)).prop_map(|(agent, changes)| {
        let mut bytes = good(agent).as_bytes().to_vec();
        for (place, byte, how) in changes {
            let place = place.index(bytes.len());
            match how {
                0 => bytes[place] = byte,
                1 => drop(bytes.remove(place)),
                _ => bytes.insert(place, byte),
            }
        }
        (agent, bytes)
    })
}

/// Lines of whole streams of any agent, in any order.
fn shuffled() -> impl Strategy<Value = (Agent, Vec<u8>)> {
    let line = (agent(), any::<prop::sample::Index>()).prop_map(|(agent, place)| {
        let lines: Vec<&str> = good(agent).lines().collect();
        format!("{}\n", lines[place.index(lines.len())])
    });
    (agent(), prop::collection::vec(line, 0..30))
        .prop_map(|(agent, lines)| (agent, lines.concat().into_bytes()))
}

proptest! {
    #[test]
    fn pieces_of_any_size_are_the_same_stream(
        (agent, bytes) in prop_oneof![broken(), shuffled()],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(read(agent, pieces), read(agent, [bytes.as_slice()]));
    }

    #[test]
    fn no_bytes_do_harm(
        (agent, bytes) in prop_oneof![
            broken(),
            shuffled(),
            (agent(), prop::collection::vec(any::<u8>(), 0..200)),
            (agent(), "[{}\\[\\]\":,a-z0-9\\\\\n]{0,200}").prop_map(|(agent, text)| (agent, text.into_bytes())),
        ],
    ) {
        let stream = fold(agent, &bytes);
        let input = evidence(&stream);
        // What is made of a stream can always be judged.
        prop_assert!(normalize(input.evidence.clone()).is_ok());
        if !stream.classes().is_empty() {
            prop_assert!(!gate(&input).is_empty());
        }
    }
}

#[test]
fn single_bytes_are_the_same_stream() {
    for &agent in Agent::ALL {
        let bytes = good(agent).as_bytes();
        assert_eq!(read(agent, bytes.chunks(1)), read(agent, [bytes]));
    }
}

#[test]
fn a_line_over_the_bound_is_skipped_and_refused() {
    let agent = Agent::Gemini;
    let begin = r#"{"type":"message","role":"assistant","content":""#;
    let line = |length: usize| format!("{begin}{}\"}}\n", "x".repeat(length - begin.len() - 2));
    let (init, rest) = good(agent).split_once('\n').unwrap();
    for (length, admitted) in [(MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false)] {
        let bytes = format!("{init}\n{}{rest}", line(length)).into_bytes();
        let whole = read(agent, [bytes.as_slice()]);
        let flaws: Vec<_> = whole
            .0
            .iter()
            .filter_map(|(_, flaw)| flaw.clone())
            .collect();
        assert_eq!(flaws.is_empty(), admitted);
        assert!(flaws.iter().all(|flaw| *flaw == (2, Flaw::TooLong)));
        // The bound is met in the same place, wherever the pieces end.
        for size in [1 << 16, MAX_LINE_BYTES / 2 + 7, MAX_LINE_BYTES + 1] {
            assert_eq!(read(agent, bytes.chunks(size)), whole);
        }
    }
    let endless = vec![b'x'; MAX_LINE_BYTES * 2];
    let mut stream = AgentStream::new(agent);
    for piece in endless.chunks(1 << 20) {
        stream.feed(piece);
    }
    assert!(
        stream.retained_bytes() < 1 << 20,
        "{}",
        stream.retained_bytes()
    );
}

#[test]
fn what_is_held_grows_with_calls_and_not_with_what_they_gave() {
    let held = |calls: usize, payload: usize| {
        let mut stream = AgentStream::new(Agent::Claude);
        stream.feed(b"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}\n");
        let payload = "0123456789abcdef".repeat(payload / 16);
        for number in 0..calls {
            let call = format!(
                "{{\"type\":\"assistant\",\"message\":{{\"id\":\"m{number}\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"toolu_{number}\",\"name\":\"Write\",\"input\":{{\"content\":\"{payload}\"}}}}]}}}}\n\
                 {{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_{number}\",\"content\":\"{payload}\",\"is_error\":true}}]}}}}\n"
            );
            for piece in call.as_bytes().chunks(64 << 10) {
                stream.feed(piece);
            }
        }
        stream.retained_bytes()
    };
    // 64 MiB in 64 calls, and as many calls of nothing.
    let (large, small) = (held(64, 512 << 10), held(64, 16));
    assert!(
        large < small + (128 << 10),
        "{large} bytes, {small} without payloads"
    );
    let more = held(640, 16);
    assert!(
        more < small * 11,
        "{more} bytes for ten times the calls of {small}"
    );
}

/// An agent that calls and calls: what is kept of it has a bound, whatever it
/// tells most of, and a stream of which not everything is kept is not evidence.
#[test]
fn what_is_held_has_a_bound_however_many_calls_there_are() {
    fn name(number: u32) -> String {
        format!("{number}-{}", "x".repeat(500))
    }
    fn request(id: &str, tool: &str, message: &str, caller: &str) -> String {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{{message}\"content\":[{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"{tool}\",\"input\":{{}}}}]}},\"parent_tool_use_id\":{caller}}}\n"
        )
    }
    fn result(id: &str, said: &str, caller: &str) -> String {
        format!(
            "{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"{id}\",\"content\":\"{said}\",\"is_error\":true}}]}},\"parent_tool_use_id\":{caller}}}\n"
        )
    }
    let long = |number| {
        let name = name(number);
        let (message, caller) = (format!("\"id\":\"{name}\","), format!("\"{name}\""));
        request(&name, &name, &message, &caller) + &result(&name, &name, &caller)
    };
    let short = |number: u32| {
        let id = number.to_string();
        request(&id, "x", "", "null") + &result(&id, "", "null")
    };
    let again = |_| request("a", "x", "", "null");
    let callers = |number: u32| {
        let caller = format!("\"{number}\"");
        let speaks = format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{}\",\"content\":[{{\"type\":\"text\"}}]}},\"parent_tool_use_id\":{caller}}}\n",
            name(number)
        );
        result(&number.to_string(), "", &caller) + &speaks
    };
    let (begin, _) = good(Agent::Claude).split_once('\n').unwrap();
    for (what, line) in [
        ("long names", &long as &dyn Fn(u32) -> String),
        ("short names", &short),
        ("the same again", &again),
        ("callers", &callers),
    ] {
        let mut stream = AgentStream::new(Agent::Claude);
        stream.feed(format!("{begin}\n").as_bytes());
        for number in 0..70_000 {
            stream.feed(line(number).as_bytes());
            if stream.so_far().is_full() {
                break;
            }
        }
        assert!(stream.so_far().is_full(), "{what}");
        let held = stream.retained_bytes();
        assert!(held < MAX_CALL_BYTES + (1 << 20), "{what}: {held}");
        let whole = stream.finish();
        let classes = whole.classes();
        assert!(
            classes.contains(&FailureClass::AgentStreamInvalid),
            "{what}"
        );
    }
}

#[test]
fn calls_that_are_open_at_once_have_a_bound() {
    let codex = |id: usize| {
        format!(
            "{{\"type\":\"item.started\",\"item\":{{\"id\":\"{id}\",\"type\":\"command_execution\",\"command\":\"\",\"status\":\"in_progress\"}}}}\n"
        )
    };
    let gemini = |id: usize| {
        format!(
            "{{\"type\":\"tool_use\",\"tool_name\":\"run_shell_command\",\"tool_id\":\"{id}\",\"parameters\":{{}}}}\n"
        )
    };
    for (agent, line) in [
        (Agent::Codex, &codex as &dyn Fn(usize) -> String),
        (Agent::Gemini, &gemini),
    ] {
        for (calls, expected) in [(4096, 0), (4097, 1)] {
            let lines: String = (0..calls).map(line).collect();
            let stream = fold(agent, lines);
            let flaws = stream.faults().iter().map(|fault| &fault.flaw);
            let found = flaws.filter(|flaw| **flaw == Flaw::TooManyOpen).count();
            assert_eq!(found, expected, "{agent:?} {calls}");
        }
    }
}

#[test]
fn a_usual_call_is_kept_in_a_few_hundred_bytes() {
    let held = |calls: u32| {
        let mut stream = AgentStream::new(Agent::Gemini);
        for number in 0..calls {
            let call = format!(
                "{{\"type\":\"tool_use\",\"tool_name\":\"read_file\",\"tool_id\":\"call_{number:024}\",\"parameters\":{{}}}}\n\
                 {{\"type\":\"tool_result\",\"tool_id\":\"call_{number:024}\",\"status\":\"success\",\"output\":\"\"}}\n"
            );
            stream.feed(call.as_bytes());
        }
        stream.retained_bytes()
    };
    let each = (held(2_000) - held(1_000)) / 1_000;
    assert!(each < 600, "{each} bytes");
}

#[test]
fn a_line_of_very_many_parts_is_refused() {
    let (begin, rest) = good(Agent::Claude).split_once('\n').unwrap();
    for (parts, refused) in [(10_000, false), (20_000, true)] {
        for many in [
            format!(
                "{{{}\"type\":\"user\",\"message\":{{\"content\":[]}}}}",
                "\"a\":0,".repeat(parts)
            ),
            format!(
                "{{\"type\":\"user\",\"message\":{{\"content\":[{}{{\"type\":\"text\"}}]}}}}",
                "{\"type\":\"text\"},".repeat(parts / 2)
            ),
        ] {
            let stream = fold(Agent::Claude, format!("{begin}\n{many}\n{rest}"));
            let faults: Vec<_> = stream
                .faults()
                .iter()
                .map(|fault| fault.flaw.clone())
                .collect();
            let expected = if refused {
                vec![Flaw::TooManyParts]
            } else {
                vec![]
            };
            assert_eq!(faults, expected, "{parts}");
        }
    }
}

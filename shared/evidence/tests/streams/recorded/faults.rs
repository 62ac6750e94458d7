//! Faults planted in the recordings, at every place where there can be one:
//! each is refused.

use super::{Recording, recordings};
use crate::judge::{fold, refusal};
use premath_evidence::Agent;
use std::collections::BTreeMap;

/// Scripts whose streams have no line that those of others do not have.
const ALIKE: [&str; 4] = ["cut-call", "hiccup", "limited", "loop"];

/// A recording's lines, and what each of them is.
struct Lines<'a> {
    agent: Agent,
    lines: Vec<&'a str>,
}

/// A planted stream, or several, by what was done.
type Planted = Vec<(&'static str, Vec<u8>)>;

impl<'a> Lines<'a> {
    fn of(recording: &'a Recording) -> Self {
        Self {
            agent: recording.agent,
            lines: recording.stream.lines().collect(),
        }
    }

    fn has(line: &str, kind: &str) -> bool {
        line.contains(&format!("\"type\":\"{kind}\""))
    }

    /// The first line of a session.
    fn opens(&self, line: &str) -> bool {
        match self.agent {
            Agent::Claude => line.contains("\"subtype\":\"init\""),
            Agent::Codex => Self::has(line, "thread.started"),
            Agent::Gemini => Self::has(line, "init"),
            _ => false,
        }
    }

    /// The first line of a turn or a step.
    fn opens_turn(&self, line: &str) -> bool {
        match self.agent {
            Agent::Codex => Self::has(line, "turn.started"),
            Agent::OpenCode => Self::has(line, "step_start"),
            _ => false,
        }
    }

    /// A call that begins. Older versions of Codex reported only the end of
    /// file changes, so a missing start is reconstructed.
    fn begins(&self, line: &str) -> bool {
        match self.agent {
            Agent::Codex => Self::has(line, "item.started") && !Self::has(line, "file_change"),
            Agent::Claude | Agent::Gemini => Self::has(line, "tool_use"),
            _ => false,
        }
    }

    /// A call that ends.
    fn ends(&self, line: &str) -> bool {
        match self.agent {
            Agent::Codex => {
                let calls = ["command_execution", "file_change"];
                Self::has(line, "item.completed") && calls.iter().any(|kind| Self::has(line, kind))
            }
            Agent::Claude | Agent::Gemini => Self::has(line, "tool_result"),
            _ => Self::has(line, "tool_use"),
        }
    }

    fn is_terminal(&self, line: &str) -> bool {
        match self.agent {
            Agent::Codex => Self::has(line, "turn.completed"),
            Agent::Claude | Agent::Gemini => Self::has(line, "result"),
            _ => line.contains("\"reason\":\"stop\""),
        }
    }

    fn id_member(&self, line: &str) -> &'static str {
        match self.agent {
            Agent::Claude if Self::has(line, "tool_result") => "\"tool_use_id\":",
            Agent::Claude | Agent::Codex => "\"id\":",
            Agent::Gemini => "\"tool_id\":",
            _ => "\"callID\":",
        }
    }

    fn id(&self, line: &'a str) -> &'a str {
        let (_, rest) = line.split_once(self.id_member(line)).unwrap();
        rest.split('"').nth(1).unwrap()
    }

    fn places(&self, is: impl Fn(&str) -> bool) -> Vec<usize> {
        let lines = self.lines.iter().enumerate();
        lines
            .filter(|(_, line)| is(line))
            .map(|(at, _)| at)
            .collect()
    }

    /// How many lines there are up to the first terminal event after all work.
    /// Claude ends a turn for each task that was over, and may do nothing in it.
    fn lines_of_work(&self) -> usize {
        let works = |line: &str| {
            let is_told = line.contains("\"subtype\":\"task_notification\"");
            is_told || self.begins(line) || self.ends(line)
        };
        let last = self.places(works).last().copied().unwrap_or_default();
        let after = self.places(|line| self.is_terminal(line));
        let end = after.into_iter().find(|at| *at > last);
        end.map_or(self.lines.len(), |end| end + 1)
    }

    fn without(&self, at: usize) -> Vec<u8> {
        let mut lines = self.lines.clone();
        lines.remove(at);
        text(&lines)
    }

    fn with(&self, at: usize, line: &str) -> Vec<u8> {
        let mut lines = self.lines.clone();
        lines.insert(at, line);
        text(&lines)
    }

    fn changed(&self, at: usize, from: &str, to: &str) -> Option<Vec<u8>> {
        let line = self.lines[at].replacen(from, to, 1);
        let mut lines = self.lines.clone();
        lines[at] = &line;
        (line != self.lines[at]).then(|| text(&lines))
    }

    /// How many calls the step has that a line is in.
    fn calls_of_step(&self, at: usize) -> usize {
        let edge = |line: &&&str| Self::has(line, "step_start") || Self::has(line, "step_finish");
        let before = self.lines[..at].iter().rev().take_while(|line| !edge(line));
        let after = self.lines[at..].iter().take_while(|line| !edge(line));
        before.chain(after).filter(|line| self.ends(line)).count()
    }
}

fn text(lines: &[&str]) -> Vec<u8> {
    let mut text = lines.join("\n");
    text.push('\n');
    text.into_bytes()
}

fn losses(of: &Lines<'_>) -> Planted {
    let mut planted = Planted::new();
    let mut lose = |name, places: Vec<usize>| {
        planted.extend(places.into_iter().map(|at| (name, of.without(at))));
    };
    lose(
        "the begin of the session is lost",
        of.places(|line| of.opens(line))
            .into_iter()
            .take(1)
            .collect(),
    );
    lose(
        "the begin of a turn is lost",
        of.places(|line| of.opens_turn(line)),
    );
    lose(
        "the begin of a call is lost",
        of.places(|line| of.begins(line)),
    );
    // The number of calls in one step is not reported.
    let ends = of.places(|line| of.ends(line));
    let has_end = |at: &usize| of.agent != Agent::OpenCode || of.calls_of_step(*at) == 1;
    lose(
        "the end of a call is lost",
        ends.into_iter().filter(has_end).collect(),
    );
    lose(
        "the terminal event is lost",
        of.places(|line| of.is_terminal(line))
            .pop()
            .into_iter()
            .collect(),
    );
    for end in 0..of.lines_of_work().min(of.lines.len()) {
        planted.push(("the stream ends early", text(&of.lines[..end])));
    }
    let whole = text(&of.lines);
    for bytes in [2, 10, 40] {
        let cut = whole[..whole.len() - bytes].to_vec();
        planted.push(("the last line is cut", cut));
    }
    planted
}

fn additions(of: &Lines<'_>) -> Planted {
    let mut planted = Planted::new();
    for at in of.places(|line| of.begins(line)) {
        planted.push(("the begin of a call comes twice", of.with(at, of.lines[at])));
    }
    for at in of.places(|line| of.ends(line)) {
        planted.push(("the end of a call comes twice", of.with(at, of.lines[at])));
        let last = of.lines.len() - 1;
        planted.push(("a call ends again at the end", of.with(last, of.lines[at])));
    }
    let (invented, unknown) = match of.agent {
        Agent::Claude => (
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_9","content":"passed","is_error":false}]},"parent_tool_use_id":null}"#,
            r#"{"type":"tool_batch","calls":[{"tool_use_id":"call_9"}]}"#,
        ),
        Agent::Codex => (
            r#"{"type":"item.completed","item":{"id":"item_90","type":"command_execution","command":"true","aggregated_output":"","exit_code":0,"status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_90","type":"shell_snapshot","status":"completed"}}"#,
        ),
        Agent::Gemini => (
            r#"{"type":"tool_result","tool_id":"run_shell_command__9","status":"success","output":"passed"}"#,
            r#"{"type":"tool_batch","calls":[{"tool_id":"run_shell_command__9"}]}"#,
        ),
        // A call that was made up can be seen where no step is open.
        _ => (
            r#"{"type":"tool_use","sessionID":"ses_1","part":{"type":"tool","tool":"bash","callID":"call_9","state":{"status":"completed","input":{},"output":"","metadata":{"exit":0}}}}"#,
            r#"{"type":"patch","sessionID":"ses_1","part":{"callID":"call_9"}}"#,
        ),
    };
    for at in 1..of.lines.len() {
        let outside = Lines::has(of.lines[at], "step_start");
        if of.agent != Agent::OpenCode || outside {
            planted.push(("an end is invented", of.with(at, invented)));
        }
    }
    for at in 0..=of.lines.len() {
        planted.push(("an unknown event bears an id", of.with(at, unknown)));
        planted.push(("a line is garbage", of.with(at, "npm warn deprecated")));
        planted.push(("a line is half a line", of.with(at, "{\"type\":\"")));
    }
    planted
}

fn changes(of: &Lines<'_>) -> Planted {
    let mut planted = Planted::new();
    let mut change = |name, at: usize, from: &str, to: &str| {
        planted.extend(of.changed(at, from, to).map(|stream| (name, stream)));
    };
    for at in of.places(|line| of.ends(line)) {
        let member = of.id_member(of.lines[at]);
        let id = format!("{member}\"{}\"", of.id(of.lines[at]));
        change("an end has no id", at, &id, "\"was\":\"x\"");
        change("an end has an empty id", at, &id, &format!("{member}\"\""));
        let other = format!("{member}\"item_70\"");
        if of.agent == Agent::OpenCode {
            change(
                "a call is another session's",
                at,
                "\"sessionID\":\"ses_1\"",
                "\"sessionID\":\"ses_2\"",
            );
        } else if !Lines::has(of.lines[at], "file_change") {
            change("an end has another id", at, &id, &other);
        }
        change(
            "an end is another agent's",
            at,
            "\"parent_tool_use_id\":null",
            "\"parent_tool_use_id\":\"call_70\"",
        );
    }
    planted.extend(changes_of_words(of));
    let whole = text(&of.lines);
    for at in [1, whole.len() / 2, whole.len() - 4] {
        let mut broken = whole.clone();
        broken[at] = 0xff;
        planted.push(("a byte is not text", broken));
    }
    planted
}

/// Exit codes, states and reasons.
fn changes_of_words(of: &Lines<'_>) -> Planted {
    let mut planted = Planted::new();
    let mut change = |name, at: usize, from: &str, to: &str| {
        planted.extend(of.changed(at, from, to).map(|stream| (name, stream)));
    };
    // No end of Claude's has an exit code or a status.
    let has_words = of.agent != Agent::Claude;
    for at in of.places(|line| has_words && of.ends(line)) {
        for code in ["0", "1", "2", "3"] {
            for exit in ["exit_code", "exit"] {
                let (from, null) = (format!("\"{exit}\":{code}"), format!("\"{exit}\":null"));
                change("an exit code is null", at, &from, &null);
            }
        }
        for status in ["completed", "failed", "success", "error"] {
            let from = format!("\"status\":\"{status}\"");
            change(
                "a call is still running",
                at,
                &from,
                "\"status\":\"running\"",
            );
            change("a status is not a word", at, &from, "\"status\":7");
            change("a call has no status", at, &from, "\"was\":\"there\"");
        }
    }
    if let Some(at) = of.places(|line| of.is_terminal(line)).pop() {
        for (from, to) in [
            ("\"subtype\":\"success\"", "\"subtype\":\"error_max_turns\""),
            ("\"is_error\":false", "\"is_error\":true"),
            ("turn.completed", "turn.failed\",\"error\":{},\"was\":\""),
            ("\"status\":\"success\"", "\"status\":\"error\""),
            ("\"reason\":\"stop\"", "\"reason\":\"content-filter\""),
        ] {
            change("the agent failed at its end", at, from, to);
        }
    }
    planted
}

fn disorders(of: &Lines<'_>) -> Planted {
    let mut planted = Planted::new();
    let ends = of.places(|line| of.ends(line));
    for &at in &ends {
        if let Some(terminal) = of.places(|line| of.is_terminal(line)).last() {
            let mut lines = of.lines.clone();
            let line = lines.remove(at);
            lines.insert(*terminal, line);
            planted.push(("a call ends after the end", text(&lines)));
        }
    }
    for at in of.places(|line| of.begins(line)) {
        let id = of.id(of.lines[at]);
        let end = ends.iter().find(|end| of.id(of.lines[**end]) == id);
        if let Some(end) = end {
            let mut lines = of.lines.clone();
            let line = lines.remove(*end);
            lines.insert(at, line);
            planted.push(("a call ends before it begins", text(&lines)));
        }
    }
    // What is reported once, and what was asked for at once, has no other
    // order.
    for pair in ends.windows(2) {
        let (one, other) = (of.lines[pair[0]], of.lines[pair[1]]);
        let apart = of.lines[pair[0]..pair[1]]
            .iter()
            .any(|line| of.begins(line));
        let file = Lines::has(one, "file_change") || Lines::has(other, "file_change");
        if !apart || file {
            continue;
        }
        let (id, other_id) = (of.id(one), of.id(other));
        let (one, other) = (
            one.replacen(id, other_id, 1),
            other.replacen(other_id, id, 1),
        );
        let mut lines = of.lines.clone();
        (lines[pair[0]], lines[pair[1]]) = (&one, &other);
        planted.push(("the ids of two ends are swapped", text(&lines)));
    }
    planted
}

/// Plants every fault at every place of every recording that is good as it is;
/// returns how many of each name there were.
fn refused(agent: Agent) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for recording in recordings(agent) {
        let again = ALIKE.contains(&recording.script.as_str());
        if again || !refusal(agent, &recording.stream).is_empty() {
            continue;
        }
        let lines = Lines::of(&recording);
        let plants = [losses, additions, changes, disorders];
        for (name, stream) in plants.iter().flat_map(|plant| plant(&lines)) {
            let classes = refusal(agent, &stream);
            assert!(
                !classes.is_empty(),
                "{}: {name}: {:?}\n{}",
                recording.script,
                fold(agent, &stream).faults(),
                String::from_utf8_lossy(&stream)
            );
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}

#[test]
fn of_claude() {
    let counts = refused(Agent::Claude);
    assert!(counts.len() >= 20, "{counts:?}");
}

#[test]
fn of_codex() {
    let counts = refused(Agent::Codex);
    assert!(counts.len() >= 20, "{counts:?}");
}

#[test]
fn of_gemini() {
    let counts = refused(Agent::Gemini);
    assert!(counts.len() >= 20, "{counts:?}");
}

#[test]
fn of_opencode() {
    let counts = refused(Agent::OpenCode);
    assert!(counts.len() >= 18, "{counts:?}");
}

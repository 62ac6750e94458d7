//! What of a recording differs from one to the next, made the same.
//!
//! Only texts and numbers are replaced, in the line as it is: the order of
//! fields, their spelling and what appears twice stay as the agent printed
//! them.

use std::collections::{BTreeMap, BTreeSet};

/// Members whose numbers and texts are times.
const TIMES: [&str; 12] = [
    "timestamp",
    "start",
    "end",
    "end_time",
    "duration_ms",
    "duration_api_ms",
    "first_content_frame_ms",
    "retry_delay_ms",
    "time_to_request_ms",
    "totalDurationMs",
    "ttft_ms",
    "ttft_stream_ms",
];

/// Members whose numbers are those of processes.
const PROCESSES: [&str; 2] = ["pid", "session_id"];

/// Members whose texts are made-up ids that other texts name too, and the
/// words that replace them: Claude's tasks, and what it calls their runs.
const NAMED: [(&str, &str); 3] = [
    ("task_id", "task"),
    ("run_id", "run"),
    ("harnessSectionHash", "section"),
];

/// Members whose texts are paths with times and ids in them.
const PATHS: [&str; 2] = ["transcript_path", "agent_transcript_path"];

/// What ids of OpenCode begin with.
const IDS: [&str; 4] = ["ses_", "msg_", "prt_", "tool_"];

/// Returns a stream without what is of the run: times, ids that were made up,
/// the folder, the server's address.
pub fn normalised(stream: &str, folder: &str, url: &str) -> String {
    let mut text = stream.replace(folder, "/scratch");
    // Claude names folders by whole paths.
    let flat = |path: &str| path.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    text = text.replace(&flat(folder), &flat("/scratch"));
    let address = url.trim_start_matches("http://");
    text = text.replace(address, "127.0.0.1:1");
    // Codex names its agents by paths that are not of the machine.
    text = text.replace(r#"task_name\":\"/root/"#, r#"task_name\":\"/agent/"#);
    for name in PATHS {
        text = without_text(&text, name, "/scratch/transcript");
    }
    for (member, word) in NAMED {
        text = without_named(&text, member, word);
    }
    for (before, after) in NUMBERED {
        text = without_number(&text, before, after);
    }
    for name in TIMES {
        text = without_values(&text, &format!("\"{name}\":"));
    }
    without_ids(&without_numbers(&text))
}

/// Numbers of processes and users within texts: what comes before them, and
/// after them.
const NUMBERED: [(&str, &str); 4] = [
    ("/cc-socks/", ".sock"),
    ("/tmp/claude-", "/"),
    ("Process Group PGID: ", "\\n"),
    ("Wall time: ", " seconds"),
];

/// Counts the values of a member, wherever else they are named.
fn without_named(text: &str, member: &str, word: &str) -> String {
    let begin = format!("\"{member}\":\"");
    let mut out = text.to_owned();
    let mut known = BTreeSet::new();
    for (at, _) in text.match_indices(&begin) {
        let value = text[at + begin.len()..].split('"').next();
        let value = value.unwrap_or_default();
        if !value.is_empty() && known.insert(value) {
            out = out.replace(value, &format!("{word}{}", known.len()));
        }
    }
    out
}

/// Puts a text in place of that of every such member.
fn without_text(text: &str, member: &str, instead: &str) -> String {
    let begin = format!("\"{member}\":\"");
    let mut parts = text.split(&begin);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.find('"').map_or("", |end| &part[end..]);
        out.extend([&begin, instead, rest]);
    }
    out
}

/// Puts a 1 in place of every number between two texts.
fn without_number(text: &str, before: &str, after: &str) -> String {
    let mut parts = text.split(before);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = |text: &'_ str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut rest = &part[digits(part)..];
        if let Some(fraction) = rest.strip_prefix('.') {
            rest = match digits(fraction) {
                0 => rest,
                count => &fraction[count..],
            };
        }
        let is_number = rest.len() < part.len() && rest.starts_with(after);
        out.push_str(before);
        out.push_str(if is_number { "1" } else { "" });
        out.push_str(if is_number { rest } else { part });
    }
    out
}

/// Returns a text without the numbers of processes.
pub(super) fn without_numbers(text: &str) -> String {
    let mut text = without_values(text, "(PID: ");
    for name in PROCESSES {
        let member = format!("\"{name}\":");
        if !text.contains(&format!("{member}\"")) {
            text = without_values(&text, &member);
        }
    }
    text
}

/// Puts a fixed number or time in place of every value of a member.
fn without_values(text: &str, member: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(member) {
        let (before, value) = rest.split_at(at + member.len());
        out.push_str(before);
        let within = rest[..at].ends_with('\\');
        let digits = value.bytes().take_while(u8::is_ascii_digit).count();
        if within {
            rest = value;
        } else if digits > 0 {
            out.push('1');
            rest = &value[digits..];
        } else if let Some(end) = value.strip_prefix('"').and_then(|text| text.find('"')) {
            out.push_str("\"2026-01-01T00:00:00.000Z\"");
            rest = &value[end + 2..];
        } else {
            rest = value;
        }
    }
    out.push_str(rest);
    out
}

/// Counts made-up ids in the order in which they come.
fn without_ids(text: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(part).unwrap_or(rest.len());
        out.push_str(&rest[..end]);
        rest = &rest[end..];
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let Some(kind) = kind(word) else {
            out.push_str(word);
            continue;
        };
        let plain = known.entry(word).or_insert_with(|| {
            let count = counts.entry(kind).or_default();
            *count += 1;
            match kind {
                "uuid" => format!("00000000-0000-0000-0000-{count:012}"),
                "commit" => format!("{count:040}"),
                kind => format!("{kind}{count}"),
            }
        });
        out.push_str(plain);
    }
    out
}

/// Reports what kind of made-up id a word is.
fn kind(word: &str) -> Option<&'static str> {
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let groups: Vec<&str> = word.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| hex(group)) {
        return Some("uuid");
    }
    if word.len() == 40 && hex(word) {
        return Some("commit");
    }
    let long = |prefix: &&&str| {
        word.strip_prefix(**prefix)
            .is_some_and(|rest| rest.len() >= 20)
    };
    IDS.iter().find(long).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_within_texts_paths_and_tasks_are_replaced() {
        let line = concat!(
            r#"{"socket":"/there/run/tmp/cc-socks/77.sock","said":"Wall time: 0.25 seconds","#,
            r#""of":"/tmp/claude-0/-there-run-w/x","transcript_path":"/a/b-2026.jsonl","#,
            r#""task_id":"ab12","run_id":"r-9","out":"see ab12 of r-9","n":"Wall time: long"}"#
        );
        assert_eq!(
            normalised(line, "/there/run", "http://127.0.0.1:99"),
            concat!(
                r#"{"socket":"/scratch/tmp/cc-socks/1.sock","said":"Wall time: 1 seconds","#,
                r#""of":"/tmp/claude-1/-scratch-w/x","transcript_path":"/scratch/transcript","#,
                r#""task_id":"task1","run_id":"run1","out":"see task1 of run1","n":"Wall time: long"}"#
            )
        );
    }

    #[test]
    fn times_ids_and_folders_are_replaced_and_nothing_else() {
        let line = concat!(
            r#"{"type":"x","timestamp":17,"id":"prt_2021efb1e001LVgn4XQXF2lhPf","#,
            r#""again":"prt_2021efb1e001LVgn4XQXF2lhPf","of":"e3ed2dfc-04ca-43b8-bf06-17ca884e9a71","#,
            r#""said":"{\"timestamp\":17}","path":"/there/run/w/a","time":{"start":1,"end":22},"b":1,"a":2}"#
        );
        assert_eq!(
            normalised(line, "/there/run", "http://127.0.0.1:99"),
            concat!(
                r#"{"type":"x","timestamp":1,"id":"prt_1","#,
                r#""again":"prt_1","of":"00000000-0000-0000-0000-000000000001","#,
                r#""said":"{\"timestamp\":17}","path":"/scratch/w/a","time":{"start":1,"end":1},"b":1,"a":2}"#
            )
        );
    }
}

//! Output compared in form: ids, times, durations and sizes may differ.

/// The text that matches any other.
const ANY: &str = "…";

/// What a line begins with whose rest depends on the machine.
const MACHINE: &str = "commands are confined by ";

/// Brings a text into the form that is compared.
pub fn normal(text: &str) -> Vec<String> {
    text.lines().map(normal_line).collect()
}

/// Returns whether output has the form that a page shows.
pub fn matches(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (normal(shown), normal(printed));
    let lines: Vec<&str> = shown.iter().map(String::as_str).collect();
    let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
    sequence(&lines, &printed)
}

/// Returns what a page shows now in place of what it showed: the printed lines,
/// with a line `…` where it had one.
pub fn renewed(shown: &str, printed: &str) -> String {
    let printed: Vec<&str> = printed.lines().collect();
    let mut lines: Vec<&str> = Vec::new();
    let mut at = 0;
    for line in shown.lines() {
        if line == ANY {
            lines.push(ANY);
            continue;
        }
        // The next printed line that has most words of the one that was shown.
        let after_any = lines.last() == Some(&ANY);
        let rest = printed.get(at..).unwrap_or_default();
        let nearest = match after_any {
            true => (0..rest.len()).min_by_key(|index| usize::MAX - alike(line, rest[*index])),
            false => (!rest.is_empty()).then_some(0),
        };
        if let Some(index) = nearest {
            lines.push(rest[index]);
            at += index + 1;
        }
    }
    if lines.last() != Some(&ANY) {
        lines.extend(printed.get(at..).unwrap_or_default());
    }
    lines.join("\n")
}

/// Counts the words that two lines share.
fn alike(one: &str, other: &str) -> usize {
    let one = normal_line(one);
    let other = normal_line(other);
    let words: Vec<&str> = other.split_whitespace().collect();
    one.split_whitespace()
        .filter(|word| words.contains(word))
        .count()
}

/// Matches lines, where a line `…` matches any number of them.
fn sequence(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&ANY, rest)) => (0..=printed.len()).any(|at| sequence(rest, &printed[at..])),
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, others)| one_line(line, first) && sequence(rest, others)),
    }
}

/// Matches a line, where `…` matches any text.
fn one_line(shown: &str, printed: &str) -> bool {
    match shown.split_once(ANY) {
        None => shown == printed,
        Some((head, tail)) => printed.strip_prefix(head).is_some_and(|rest| {
            let mut at = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            at.any(|at| one_line(tail, &rest[at..]))
        }),
    }
}

fn normal_line(line: &str) -> String {
    if let Some((head, _)) = line.split_once(MACHINE) {
        return format!("{} {MACHINE}MODE", normal_line(head));
    }
    let mut out = String::new();
    let mut rest = line.trim_end();
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let (word, used) = match before.is_ascii_alphanumeric() {
            true => (None, 0),
            false => read(rest),
        };
        if let Some(word) = word {
            out.push_str(word);
            before = 'x';
            rest = &rest[used..];
            continue;
        }
        if !(c == ' ' && before == ' ' && !out.is_empty()) {
            out.push(c);
        }
        before = c;
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Reads something that differs between runs, with its length.
fn read(text: &str) -> (Option<&'static str>, usize) {
    for (reader, word) in [
        (time as fn(&str) -> Option<usize>, "TIME"),
        (hex, "HEX"),
        (duration, "DURATION"),
        (size, "SIZE"),
    ] {
        if let Some(used) = reader(text) {
            return (Some(word), used);
        }
    }
    (None, 0)
}

/// `2026-11-22`, with a time of day and a zone where they follow,
/// `20261122T213956Z`, `21:39:56`, or `21:39`.
fn time(text: &str) -> Option<usize> {
    let shape = |shape: &str| {
        let mut given = text.chars();
        let fits = |wanted: char| match (wanted, given.next()) {
            ('0', Some(c)) => c.is_ascii_digit(),
            (wanted, given) => given == Some(wanted),
        };
        shape.chars().all(fits).then_some(shape.len())
    };
    if let Some(used) = shape("00000000T000000Z") {
        return Some(used);
    }
    if let Some(used) = shape("00:00:00") {
        return Some(used);
    }
    let is_more = |c: char| c.is_ascii_digit() || c == ':';
    if let Some(used) = shape("00:00").filter(|used| !text[*used..].starts_with(is_more)) {
        return Some(used);
    }
    let day = shape("0000-00-00")?;
    let clock = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | 'T' | 'Z' | '+');
    let rest = &text[day..];
    let end = rest.find(|c| !clock(c)).unwrap_or(rest.len());
    Some(day + end)
}

/// Seven or more digits of a hash.
fn hex(text: &str) -> Option<usize> {
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(text.len());
    let word = &text[..end];
    let digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    (end >= 7 && word.chars().all(digit)).then_some(end)
}

fn number(text: &str) -> Option<usize> {
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let whole = digits(text);
    let fraction = text[whole..].strip_prefix('.').map_or(0, digits);
    match (whole, fraction) {
        (0, _) => None,
        (whole, 0) => Some(whole),
        (whole, fraction) => Some(whole + 1 + fraction),
    }
}

fn unit(text: &str, units: &[&str]) -> Option<usize> {
    units.iter().find_map(|unit| {
        let rest = text.strip_prefix(unit)?;
        let ends = !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
        ends.then_some(unit.len())
    })
}

fn duration(text: &str) -> Option<usize> {
    let used = number(text)?;
    Some(used + unit(&text[used..], &["ms", "s", "m", "h"])?)
}

fn size(text: &str) -> Option<usize> {
    let used = number(text)?;
    Some(used + unit(&text[used..], &[" B", " KiB", " MiB", " GiB"])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_runs_is_ignored() {
        for (one, other) in [
            ("took 1.2s", "took 318ms"),
            ("at 6be7b807be.", "at 0123456789."),
            (
                "2026-11-22T21:40:06.045770Z  x",
                "2027-01-02T01:02:03Z         x",
            ),
            (
                "hb1_20261122T213956Z_ce3eca007ca4",
                "hb1_20270101T000000Z_0123456789ab",
            ),
            ("09:08:07 worker.1 landed a", "21:39:56 worker.1 landed a"),
            ("began 2026-11-22 21:39 UTC", "began 2027-01-02 01:02 UTC"),
            ("kept 8.6 KiB", "kept 12 MiB"),
            (
                "commands are confined by landlock: x",
                "commands are confined by namespaces",
            ),
            (
                "09:08:07 commands are confined by landlock: x",
                "21:39:56 commands are confined by namespaces",
            ),
        ] {
            assert_eq!(normal(one), normal(other));
        }
        assert_ne!(normal("bd-1 closed"), normal("bd-2 closed"));
        assert_ne!(normal("2 of 3"), normal("3 of 3"));
        assert_ne!(normal("  x"), normal("x"));
    }

    #[test]
    fn an_ellipsis_matches_lines_and_text() {
        assert!(matches("a\n…\nd", "a\nb\nc\nd"));
        assert!(matches("a\n…\nd", "a\nd"));
        assert!(!matches("a\n…\nd", "a\nb"));
        assert!(matches("a … d\nx", "a b c d\nx"));
        assert!(!matches("a … d", "a b c"));
        assert!(!matches("a", "a\nb"));
    }

    #[test]
    fn what_is_written_again_keeps_its_ellipses() {
        let printed = "one x\ntwo\nthree\nlast takes\nend";
        assert_eq!(
            renewed("one\n…\nlast begins\nend", printed),
            "one x\n…\nlast takes\nend"
        );
        assert_eq!(renewed("one\n…", printed), "one x\n…");
        assert_eq!(renewed("", "a\nb"), "a\nb");
    }
}

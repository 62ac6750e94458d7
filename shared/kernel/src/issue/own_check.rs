//! The verification of an issue's own: a command in its metadata, or in the
//! `Verification:` section of its description.
//!
//! Only the text is read here. Whether it may be run depends on who wrote it,
//! and no row shows that (`contracts.md` 11).

use crate::issue::contract::is_command;
use crate::json::canonical::sha256_hex;
use serde_json::Value;

/// The field of the metadata that has the command.
pub const METADATA_FIELD: &str = "verification";
/// The most bytes of a command; a longer one is none.
const COMMAND_MAX: usize = 16 << 10;
/// What begins and ends a block of code.
const FENCES: [&str; 2] = ["```", "~~~"];

/// Returns the command that verifies an issue: that of its metadata, or of its
/// description.
pub fn own_check(description: &str, metadata: Option<&Value>) -> Option<String> {
    let of_metadata = metadata.and_then(|metadata| metadata.get(METADATA_FIELD)?.as_str());
    let command = match of_metadata.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => text.to_owned(),
        None => of_section(description)?,
    };
    (command.len() <= COMMAND_MAX && !command.contains('\0')).then_some(command)
}

/// A person's change of the texts that an issue's verification is in.
#[derive(Clone, Copy, Debug)]
pub struct CheckEdit<'a> {
    /// The command that it sets in the metadata; an empty one clears it.
    pub verification: Option<&'a str>,
    /// Whether it sets the description.
    pub describes: bool,
    /// The description that the person began with, where it is known.
    pub earlier: Option<&'a str>,
}

/// Who wrote the verification that an issue has after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckWriter {
    /// The person, by this change; none is left where they took theirs out.
    Now(Option<String>),
    /// It was there before: what is recorded of it stays.
    Before,
}

/// Decides who wrote the verification `command` of a changed issue. What was in the
/// text before is not the person's because they changed another part of it.
pub fn writer(edit: &CheckEdit<'_>, command: Option<String>) -> CheckWriter {
    let is_cleared = edit.verification.is_some_and(|text| text.trim().is_empty());
    let earlier = edit.earlier.and_then(|text| own_check(text, None));
    if is_cleared && (!edit.describes || command == earlier) {
        return CheckWriter::Now(None);
    }
    if edit.verification.is_none() && edit.earlier.is_some() && command == earlier {
        return CheckWriter::Before;
    }
    CheckWriter::Now(command)
}

/// Returns the digest of a command.
pub fn digest_of(command: &str) -> String {
    format!("sha256:{}", sha256_hex(command.as_bytes()))
}

/// Returns the command that runs a verification and then an issue's own; it
/// passes where both pass. Each has a shell of its own, so that neither changes
/// how the other is read.
pub fn both(verify: &str, own: &str) -> String {
    let [verify, own] = [verify, own].map(quoted);
    format!(
        "sh -c {verify} || exit
sh -c {own} || {{ code=$?; echo \"the issue's own verification failed with exit code $code\" >&2; exit $code; }}"
    )
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns the commands of a `Verification:` section: blocks of code, and lines
/// that are one command. A line of prose is none.
fn of_section(description: &str) -> Option<String> {
    let mut lines = description
        .lines()
        .skip_while(|line| heading_rest(line).is_none());
    let first = heading_rest(lines.next()?)?;
    let mut commands: Vec<&str> = of_line(first).into_iter().collect();
    let mut fence = None;
    for line in lines {
        let trimmed = line.trim();
        match fence {
            Some(mark) if trimmed.starts_with(mark) => fence = None,
            Some(_) => commands.push(line),
            None if is_heading(trimmed) => break,
            None => match FENCES.into_iter().find(|mark| trimmed.starts_with(mark)) {
                Some(mark) => fence = Some(mark),
                None => commands.extend(of_line(trimmed)),
            },
        }
    }
    match commands.as_slice() {
        [] => None,
        [one] => Some((*one).to_owned()),
        all => Some(format!("set -e\n{}", all.join("\n"))),
    }
}

/// Returns what follows `Verification:` on its line; `None` where a line does not
/// begin the section. A heading of Markdown counts too.
fn heading_rest(line: &str) -> Option<&str> {
    const WORD: &str = "verification";
    let line = line.trim();
    let is_markdown = line.starts_with('#');
    let line = line.trim_start_matches(['#', '*', ' ']);
    let word = line.get(..WORD.len())?;
    let rest = line.get(WORD.len()..)?.trim_start_matches(['*', ' ']);
    if !word.eq_ignore_ascii_case(WORD) {
        return None;
    }
    match rest.strip_prefix(':') {
        Some(rest) => Some(rest.trim_matches(['*', ' '])),
        None => (is_markdown && rest.is_empty()).then_some(""),
    }
}

/// Returns whether a line begins another section: a heading of Markdown,
/// `Acceptance criteria:`, or one word with a colon and nothing after it.
fn is_heading(line: &str) -> bool {
    let name = line.trim_matches(['*', ' ']).strip_suffix(':');
    let is_word = |name: &str| !name.is_empty() && name.chars().all(char::is_alphabetic);
    let is_name = |name: &str| is_word(name) || name.eq_ignore_ascii_case("acceptance criteria");
    line.starts_with('#') || name.is_some_and(is_name)
}

/// Returns the command that a line is, perhaps in a list or between backticks.
fn of_line(line: &str) -> Option<&str> {
    let item = line.strip_prefix(['-', '*']).unwrap_or(line).trim();
    let code = item
        .strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'));
    match code.map(str::trim) {
        Some(code) if code.contains('`') || code.is_empty() => None,
        Some(code) => Some(code),
        None => is_command(item).then_some(item),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_section_or_the_metadata_has_the_command() {
        for (description, expected) in [
            ("Do it.\n\nVerification: cargo test", Some("cargo test")),
            (
                "verification:\n  - `./check.sh --all`\nAcceptance:\nsh x.sh",
                Some("./check.sh --all"),
            ),
            (
                "## Verification\n\nRun this:\n```sh\ncd a && test -s b\n```\n## Notes\n`make`",
                Some("cd a && test -s b"),
            ),
            ("**Verification:** `npm test`", Some("npm test")),
            (
                "Verification:\ncargo test\n\n* npm test",
                Some("set -e\ncargo test\nnpm test"),
            ),
            ("Verification:\nIt is done when `npm test` passes.", None),
            ("The verification: cargo test", None),
            ("Verifications: cargo test", None),
            ("cargo test", None),
            ("Verification:", None),
        ] {
            let found = own_check(description, None);
            assert_eq!(found.as_deref(), expected, "{description}");
        }
        let metadata = json!({"verification": " make check\n"});
        let found = own_check("Verification: cargo test", Some(&metadata));
        assert_eq!(found.as_deref(), Some("make check"));
        let blank = json!({"verification": ""});
        assert_eq!(own_check("", Some(&blank)), None);
        let long = format!("Verification: sh {}", "x".repeat(COMMAND_MAX));
        assert_eq!(own_check(&long, None), None);
    }

    #[test]
    fn a_command_keeps_its_quotes() {
        let text = both("test 'a b' = \"$A\"", "exit 3");
        assert!(
            text.starts_with(r#"sh -c 'test '\''a b'\'' = "$A"' || exit"#),
            "{text}"
        );
        assert!(text.contains("sh -c 'exit 3' || {"), "{text}");
    }

    #[test]
    fn a_command_is_that_of_a_person_only_where_their_change_brings_it() {
        let text = "Do it.\nVerification: `true`";
        let edit = |verification, describes, earlier| CheckEdit {
            verification,
            describes,
            earlier,
        };
        let now = |command: &str| CheckWriter::Now(Some(command.to_owned()));
        let command = |text: &str| Some(text.to_owned());
        for (edit, command, expected) in [
            (
                edit(None, true, Some(text)),
                command("true"),
                CheckWriter::Before,
            ),
            (edit(None, true, Some(text)), command("sh x"), now("sh x")),
            (edit(None, true, Some("")), command("true"), now("true")),
            // Without the earlier text the whole description is the person's.
            (edit(None, true, None), command("true"), now("true")),
            (
                edit(Some("sh x"), false, None),
                command("sh x"),
                now("sh x"),
            ),
            // The command that is cleared may hide another.
            (
                edit(Some(""), false, None),
                command("true"),
                CheckWriter::Now(None),
            ),
            (
                edit(Some(""), true, Some(text)),
                command("true"),
                CheckWriter::Now(None),
            ),
            (
                edit(Some(""), true, Some(text)),
                command("sh x"),
                now("sh x"),
            ),
        ] {
            assert_eq!(
                writer(&edit, command.clone()),
                expected,
                "{edit:?} {command:?}"
            );
        }
    }
}

//! `docs-coherence-check`: what the pages name is there, and what is there is
//! named by them.

use super::help::{Entry, Surface};
use super::task::tasks;
use super::{Fault, text_of};
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::retry::is_class_word;
use std::collections::BTreeSet;
use std::path::Path;

/// The page that is written from the binaries' help.
pub const COMMANDS: &str = "docs/reference/commands.md";
/// The template of the configuration.
pub(crate) const TEMPLATE: &str = "shared/cli/src/init/harness.toml";

/// Folders of the checkout by which a path is known as one of ours.
const OURS: [&str; 8] = [
    "docs/",
    "shared/",
    "worker/",
    "coordinator/",
    "tests/",
    "tools/",
    "worktrees.example/",
    ".ci/",
];

/// The endings of words that are the names of failure classes and nothing else.
const CLASS_ENDS: [&str; 8] = [
    "_failed",
    "_mismatch",
    "_missing",
    "_invalid",
    "_violation",
    "_timeout",
    "_unavailable",
    "_ambiguous",
];

/// A piece of code in a page.
struct Code<'a> {
    page: &'a str,
    line: usize,
    text: &'a str,
    /// Whether it is a line of a block, and not between backticks.
    block: Option<&'a str>,
}

/// Checks the pages of a checkout against what the binaries can do.
pub fn faults(root: &Path, surface: &Surface) -> Vec<Fault> {
    let pages: Vec<(String, String)> = super::files(root)
        .into_iter()
        .filter(|name| {
            let page = name.starts_with("docs/") && name.ends_with(".md");
            page || ["README.md", "ARCHITECTURE.md"].contains(&name.as_str())
        })
        .map(|name| (name.clone(), text_of(root, &name)))
        .collect();
    let template = text_of(root, TEMPLATE);
    let keys = keys(&template);
    let mut task_names: BTreeSet<String> = tasks(&text_of(root, "mise.toml"))
        .into_iter()
        .map(|task| task.name)
        .collect();
    task_names.insert("NAME".to_owned());
    let mut faults = Vec::new();
    for (page, text) in &pages {
        for code in code_of(page, text) {
            let mut fault = |detail: String| faults.push(Fault::at(page, code.line, detail));
            check_commands(&code, surface, &task_names, &mut fault);
            check_path(root, &code, &mut fault);
            check_class(&code, &mut fault);
            check_key(&code, &keys, &mut fault);
        }
    }
    if text_of(root, COMMANDS) != surface.page() {
        let detail =
            "it is not what the binaries' help gives; write it again with `mise run generate`";
        faults.push(Fault::at(COMMANDS, 0, detail));
    }
    let named = |word: &str| pages.iter().any(|(_, text)| text.contains(word));
    for table in keys.iter().filter(|key| key.starts_with('[')) {
        if !named(table) {
            let detail = format!("no page names the table {table}");
            faults.push(Fault::at(TEMPLATE, 0, detail));
        }
    }
    for class in FailureClass::ALL {
        if !named(&format!("`{class}`")) {
            let detail = format!("no page names the failure class {class}");
            faults.push(Fault::at("docs/reference/classes.md", 0, detail));
        }
    }
    faults.extend(super::idioms::faults(root));
    faults.sort();
    faults.dedup();
    faults
}

/// Takes the code out of a page: lines of blocks, and what is between
/// backticks.
fn code_of<'a>(page: &'a str, text: &'a str) -> Vec<Code<'a>> {
    let mut found = Vec::new();
    let mut block: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            block = match block {
                None => Some(kind),
                Some(_) => None,
            };
        } else if block.is_some() {
            found.push(Code {
                page,
                line: line_number,
                text: line,
                block,
            });
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.map(|text| Code {
                page,
                line: line_number,
                text,
                block: None,
            }));
        }
    }
    found
}

/// Checks that commands, their flags and tasks are there.
fn check_commands(
    code: &Code<'_>,
    surface: &Surface,
    tasks: &BTreeSet<String>,
    fault: &mut impl FnMut(String),
) {
    // What a console prints is not checked.
    if code.block.is_some_and(|kind| kind.starts_with("console")) && !code.text.starts_with("$ ") {
        return;
    }
    let text = command_of(code.text);
    if let Some(rest) = text.strip_prefix("mise run ") {
        let name = rest.split_whitespace().next().unwrap_or_default();
        if !tasks.contains(name) {
            fault(format!("there is no task `{name}`"));
        }
        return;
    }
    if code.block.is_none() && text.starts_with("--") {
        let flag = text.split([' ', '=']).next().unwrap_or_default();
        let of_another = ["--first-parent", "--test", "--bin", "--locked"];
        if flag.len() > 2 && !surface.has_flag(flag) && !of_another.contains(&flag) {
            fault(format!("no command takes `{flag}`"));
        }
        return;
    }
    check_words(&text, surface, fault);
}

/// Returns a command without prompt, comment and cargo.
fn command_of(text: &str) -> String {
    let text = text.trim().trim_start_matches("$ ");
    let text = text.split(" #").next().unwrap_or_default();
    let cargo = text.strip_prefix("cargo run ");
    match cargo.and_then(|rest| rest.split_once("--bin ")) {
        Some((_, rest)) => rest.replacen(" -- ", " ", 1),
        None => text.to_owned(),
    }
}

/// Checks the subcommands and flags of a command of ours.
fn check_words(text: &str, surface: &Surface, fault: &mut impl FnMut(String)) {
    let mut words = text.split_whitespace();
    let is_ours = |word: &&str| surface.commands.contains_key(*word);
    let Some(first) = words.next().filter(is_ours) else {
        return;
    };
    // One word may name several subcommands: `issue list|ready`.
    let mut names = vec![first.to_owned()];
    let mut deeper = true;
    for word in words {
        if ["|", "&&", ";", "--", ">", "<"].contains(&word) {
            break;
        }
        let flag = word
            .trim_start_matches('[')
            .split([']', '=', ',', '|'])
            .next();
        if let Some(flag) = flag.filter(|flag| flag.starts_with("--")) {
            for name in &names {
                let entry = surface.commands.get(name);
                if !entry.is_some_and(|entry| entry.flags.contains(flag)) {
                    fault(format!("`{name}` takes no `{flag}`"));
                }
            }
            deeper = false;
        } else if deeper {
            let entries = names.iter().filter_map(|name| surface.commands.get(name));
            if entries.clone().all(|entry| is_argument(entry, word)) {
                deeper = false;
                continue;
            }
            if word == "…" || word.starts_with('<') {
                break;
            }
            names = subcommands(&names, word, surface, fault);
        }
    }
}

/// Returns whether a word is an argument of a command, and no subcommand.
fn is_argument(entry: &Entry, word: &str) -> bool {
    let takes_words = entry.options.iter().any(|(name, _)| name.starts_with('['));
    entry.subcommands.is_empty() || takes_words && !entry.subcommands.contains(word)
}

/// Returns the subcommands that a word names.
fn subcommands(
    names: &[String],
    word: &str,
    surface: &Surface,
    fault: &mut impl FnMut(String),
) -> Vec<String> {
    let mut below = Vec::new();
    for part in word.split([',', '|']).filter(|part| !part.is_empty()) {
        let found = names.iter().map(|name| format!("{name} {part}"));
        let found: Vec<String> = found
            .filter(|name| surface.commands.contains_key(name))
            .collect();
        if found.is_empty() {
            fault(format!("`{}` has no command `{part}`", names.join("`, `")));
        }
        below.extend(found);
    }
    below
}

/// Checks that a file of ours is there.
fn check_path(root: &Path, code: &Code<'_>, fault: &mut impl FnMut(String)) {
    let path = code.text;
    let is_path = code.block.is_none()
        && OURS.iter().any(|folder| path.starts_with(folder))
        && !path.contains(['*', '<', '…', ' ', '{'])
        // The name of any vector.
        && !path.ends_with("/x.json");
    if is_path && !root.join(path).exists() {
        fault(format!("there is no `{path}`"));
    }
}

/// Checks that a word that can only be a failure class is one.
fn check_class(code: &Code<'_>, fault: &mut impl FnMut(String)) {
    let word = code.text;
    if code.block.is_none()
        && is_class_word(word)
        && CLASS_ENDS.iter().any(|end| word.ends_with(end))
        && word.parse::<FailureClass>().is_err()
        && !is_tail_of_a_class(word)
    {
        fault(format!("unknown failure class `{word}`"));
    }
}

/// Returns whether a word is the name of a class without its family.
fn is_tail_of_a_class(word: &str) -> bool {
    let tail = |class: &FailureClass| class.as_str().rsplit('.').next() == Some(word);
    FailureClass::ALL.iter().any(tail)
}

/// Checks that a table or key of a TOML block is one of the template.
fn check_key(code: &Code<'_>, keys: &BTreeSet<String>, fault: &mut impl FnMut(String)) {
    if code.block != Some("toml") {
        return;
    }
    if let Some(key) = key_of(code.text)
        && !keys.contains(&key)
    {
        fault(format!("harness.toml has no `{key}` ({})", code.page));
    }
}

/// Returns the tables, as `[name]`, and keys of a configuration, those that
/// are commented out too.
fn keys(template: &str) -> BTreeSet<String> {
    template
        .lines()
        .filter_map(|line| key_of(line.strip_prefix('#').unwrap_or(line)))
        .collect()
}

fn key_of(line: &str) -> Option<String> {
    if line.starts_with('[') {
        let end = line.find(']')?;
        return line.get(..=end).map(str::to_owned);
    }
    let (key, _) = line.split_once(" = ")?;
    let is_key = |c: char| c.is_ascii_lowercase() || c == '_';
    (!key.is_empty() && key.chars().all(is_key)).then(|| key.to_owned())
}

//! What the binaries can do, as their `-h` says it.

use super::cell;
use crate::{binaries, command};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// One command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// What it does, in a line.
    pub about: String,
    /// Its subcommands.
    pub subcommands: BTreeSet<String>,
    /// Its flags, as in `--json`.
    pub flags: BTreeSet<String>,
    /// Its arguments and options as the help shows them, with their text.
    pub options: Vec<(String, String)>,
}

/// Every command by its words, as in `premath issue add`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surface {
    /// The commands.
    pub commands: BTreeMap<String, Entry>,
}

impl Surface {
    /// Asks the binaries.
    ///
    /// # Panics
    ///
    /// Where one cannot be run.
    pub fn of_the_binaries() -> Self {
        Self::asked_with(|program| command(program))
    }

    /// Asks the binaries by commands that `start` makes of their paths.
    fn asked_with(start: fn(&Path) -> Command) -> Self {
        let mut surface = Self::default();
        let binaries = binaries();
        for (name, program) in [
            ("harness-coordinator", &binaries.coordinator),
            ("harness-worker", &binaries.worker),
            ("premath", &binaries.premath),
        ] {
            surface.ask(start, program, name, &[]);
        }
        surface
    }

    fn ask(&mut self, start: fn(&Path) -> Command, program: &Path, name: &str, words: &[String]) {
        let mut run = start(program);
        // Help shows the values of variables, which are the caller's own.
        let output = run.args(words).arg("-h").env_clear().output();
        let output = output.expect("a binary can be asked for help");
        let entry = read(&String::from_utf8_lossy(&output.stdout));
        let subcommands = entry.subcommands.clone();
        self.commands.insert(name.to_owned(), entry);
        for word in subcommands {
            let words: Vec<String> = words.iter().cloned().chain([word.clone()]).collect();
            self.ask(start, program, &format!("{name} {word}"), &words);
        }
    }

    /// Returns whether any command takes a flag.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.commands
            .values()
            .any(|entry| entry.flags.contains(flag))
    }

    /// Returns the page that lists every command with its flags.
    pub fn page(&self) -> String {
        let mut page = String::from(
            "# Commands\n\nWritten from the help of the binaries by `mise run generate`. \
             `<command> --help` explains more. Every `premath` command takes `--json`; it is \
             listed for the other two programs only.\n",
        );
        let mut binary = "";
        for (name, entry) in &self.commands {
            let first = name.split(' ').next().unwrap_or_default();
            if first != binary {
                binary = first;
                let _ = write!(page, "\n## {binary}\n");
            } else {
                let _ = write!(page, "\n### {name}\n");
            }
            let _ = write!(page, "\n{}.\n", cell(entry.about.trim_end_matches('.')));
            let is_common = |option: &str| {
                COMMON.iter().any(|flag| option.contains(flag))
                    || (binary == "premath" && option.contains("--json"))
            };
            let options = entry
                .options
                .iter()
                .filter(|(option, _)| !is_common(option));
            let mut options = options.peekable();
            if options.peek().is_some() {
                page.push_str("\n| option | meaning |\n|---|---|\n");
            }
            for (option, text) in options {
                let _ = writeln!(
                    page,
                    "| `{}` | {} |",
                    option.replace('|', "\\|"),
                    cell(text)
                );
            }
        }
        page
    }
}

/// Options of every command, which the page leaves out.
const COMMON: [&str; 2] = ["--help", "--version"];

/// Takes a line of the arguments or options into an entry: the option with its
/// text, or more of the text of the one above.
fn take_option(line: &str, options: &mut Vec<(String, String)>) {
    let words = line.trim();
    let indent = line.len() - line.trim_start().len();
    let starts = indent <= 6 && words.starts_with(['-', '<', '[']);
    if starts {
        let (option, text) = words.split_once("  ").unwrap_or((words, ""));
        options.push((option.to_owned(), text.trim().to_owned()));
    } else if let Some((_, text)) = options.last_mut().filter(|_| !words.is_empty()) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(words);
    }
}

/// Reads what a command reports about itself.
fn read(help: &str) -> Entry {
    let mut entry = Entry {
        about: help.lines().next().unwrap_or_default().trim().to_owned(),
        ..Entry::default()
    };
    let mut part = "";
    for line in help.lines() {
        if !line.starts_with(' ') && line.ends_with(':') {
            part = line.trim_end_matches(':');
            continue;
        }
        let words = line.trim_start();
        let indent = line.len() - words.len();
        if part == "Commands" && indent == 2 {
            let name = words.split_whitespace().next().unwrap_or_default();
            if name != "help" {
                entry.subcommands.insert(name.to_owned());
            }
        }
        if ["Arguments", "Options"].contains(&part) {
            take_option(line, &mut entry.options);
        }
        if part == "Options"
            && let Some((_, names)) = words.split_once("[alias")
        {
            let names = names.split([' ', ',', ']']);
            let names = names.filter(|word| word.starts_with("--"));
            entry.flags.extend(names.map(str::to_owned));
        }
        if part == "Options" && words.starts_with('-') && indent <= 6 {
            let flags = words.split([' ', ',', '=']);
            let flags = flags.take_while(|word| word.is_empty() || word.starts_with('-'));
            entry.flags.extend(
                flags
                    .filter(|word| word.starts_with("--"))
                    .map(|flag| flag.trim_end_matches("...").to_owned()),
            );
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::{Surface, command, read};

    #[test]
    fn the_page_does_not_depend_on_the_environment() {
        let with_values = Surface::asked_with(|program| {
            let mut run = command(program);
            run.env("PREMATH_WORKER_ID", "value-of-the-caller");
            run.env("PREMATH_LANE_INDEX", "7");
            run
        });
        assert_eq!(with_values.page(), Surface::of_the_binaries().page());
    }

    #[test]
    fn help_is_read_with_its_commands_and_flags() {
        let entry = read(
            "Does it\n\nUsage: x [OPTIONS] <COMMAND>\n\nCommands:\n  one  First -- of all\n  help  h\n\n\
             Options:\n      --path <FILE>  The --other thing\n          [aliases: --file, --in]\n  -h, --help         Print help\n",
        );
        assert_eq!(entry.about, "Does it");
        assert_eq!(Vec::from_iter(entry.subcommands), ["one"]);
        assert_eq!(
            Vec::from_iter(entry.flags),
            ["--file", "--help", "--in", "--path"]
        );
        let option = |option: &str, text: &str| (option.to_owned(), text.to_owned());
        assert_eq!(
            entry.options,
            [
                option("--path <FILE>", "The --other thing [aliases: --file, --in]"),
                option("-h, --help", "Print help"),
            ]
        );
    }
}

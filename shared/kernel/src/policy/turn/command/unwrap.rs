//! Commands that are arguments of other commands.

use super::scan;
use super::{DEPTH_MAX, ShellCommand, ShellWord};

/// Programs that run their arguments as a command.
const WRAPPERS: [&str; 23] = [
    "builtin", "busybox", "chronic", "chroot", "command", "coproc", "doas", "env", "exec", "flock",
    "ionice", "nice", "nohup", "npx", "parallel", "setsid", "stdbuf", "sudo", "time", "timeout",
    "unshare", "watch", "xargs",
];

/// Shells, whose `-c` is a text of commands.
const SHELLS: [&str; 6] = ["ash", "bash", "dash", "ksh", "sh", "zsh"];

/// The actions of `find` that run a command.
const FIND: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// How many words of a wrapper may be options and their values.
const OPTIONS_MAX: usize = 8;

/// The most words of a command that is an argument: each is copied.
const WORDS_MAX: usize = 256;

/// Returns the commands that the arguments of a command are, with their depth;
/// none where there is one that is not understood.
pub(super) fn inner(command: &ShellCommand, depth: usize) -> Option<Vec<(ShellCommand, usize)>> {
    let Some(program) = command.program() else {
        return Some(Vec::new());
    };
    let below = depth + 1;
    if below > DEPTH_MAX {
        return None;
    }
    let arguments = command.arguments();
    if SHELLS.contains(&program) {
        return match text_of_shell(arguments) {
            Some(text) => text_commands(text, below),
            None => Some(Vec::new()),
        };
    }
    if program == "eval" {
        let text: Vec<&str> = arguments.iter().map(|word| &*word.text).collect();
        let is_dynamic = arguments.iter().any(|word| word.is_dynamic);
        let text = text.join(" ");
        return text_commands(&ShellWord { text, is_dynamic }, below);
    }
    if program == "find" {
        let after = |at: usize| command_at(arguments, at + 1, below);
        let actions = arguments.iter().enumerate();
        let actions = actions.filter(|(_, word)| FIND.contains(&&*word.text));
        return Some(actions.filter_map(|(at, _)| after(at)).collect());
    }
    if !WRAPPERS.contains(&program) {
        return Some(Vec::new());
    }
    if arguments.len() > WORDS_MAX {
        return None;
    }
    // Options of some wrappers have values, so that each of the first words may
    // be the program.
    let places = arguments.iter().enumerate().take(OPTIONS_MAX);
    let places = places.filter(|(_, word)| !word.is_option() && !word.is_assignment());
    Some(
        places
            .filter_map(|(at, _)| command_at(arguments, at, below))
            .collect(),
    )
}

fn command_at(words: &[ShellWord], at: usize, depth: usize) -> Option<(ShellCommand, usize)> {
    let words = words.get(at..).filter(|words| !words.is_empty())?;
    let command = ShellCommand {
        words: words.to_vec(),
        written: Vec::new(),
    };
    Some((command, depth))
}

/// Returns the word after `-c`, which may be one of several letters of an option.
fn text_of_shell(arguments: &[ShellWord]) -> Option<&ShellWord> {
    let is_text = |word: &ShellWord| {
        let letters = word.text.strip_prefix('-').unwrap_or_default();
        !letters.starts_with('-') && letters.contains('c')
    };
    let at = arguments.iter().position(is_text)?;
    let mut after = arguments[at + 1..].iter();
    after.find(|word| !word.is_option())
}

/// Returns the commands of a text that is an argument. A text that is known
/// only when it runs is a command whose program is unknown.
fn text_commands(text: &ShellWord, depth: usize) -> Option<Vec<(ShellCommand, usize)>> {
    if !text.is_dynamic {
        return scan::commands(&text.text, depth);
    }
    let command = ShellCommand {
        words: vec![text.clone()],
        written: Vec::new(),
    };
    Some(vec![(command, depth)])
}

//! Commands that are arguments of other commands.

use super::options::ValueOptions;
use super::scan;
use super::{DEPTH_MAX, ShellCommand, ShellWord};

/// A program that runs its operands as a command.
struct Wrapper {
    program: &'static str,
    /// How many operands are before the command.
    before: usize,
    options: ValueOptions,
}

const fn wrapper(program: &'static str, before: usize, letters: &'static str) -> Wrapper {
    wrapper_with(program, before, letters, &[])
}

const fn wrapper_with(
    program: &'static str,
    before: usize,
    letters: &'static str,
    long: &'static [&'static str],
) -> Wrapper {
    Wrapper {
        program,
        before,
        options: ValueOptions { letters, long },
    }
}

const WRAPPERS: [Wrapper; 29] = [
    wrapper("builtin", 0, ""),
    wrapper("busybox", 0, ""),
    wrapper("chronic", 0, ""),
    wrapper("chroot", 1, ""),
    wrapper("command", 0, ""),
    wrapper("coproc", 0, ""),
    wrapper("doas", 0, "uC"),
    wrapper_with("env", 0, "uCS", &["--chdir", "--split-string", "--unset"]),
    wrapper("exec", 0, "a"),
    wrapper("fakeroot", 0, "lsi"),
    wrapper_with(
        "flock",
        1,
        "cwE",
        &["--command", "--conflict-exit-code", "--timeout"],
    ),
    wrapper_with("ionice", 0, "cnpPu", &["--class", "--classdata"]),
    wrapper("ltrace", 0, "aeloDpsunw"),
    wrapper_with("nice", 0, "n", &["--adjustment"]),
    wrapper("noglob", 0, ""),
    wrapper("nohup", 0, ""),
    wrapper_with("npx", 0, "cpw", &["--call", "--package", "--workspace"]),
    wrapper_with(
        "parallel",
        0,
        "aIjNns",
        &["--arg-file", "--colsep", "--delay", "--jobs"],
    ),
    wrapper("setsid", 0, ""),
    wrapper_with("stdbuf", 0, "eio", &["--error", "--input", "--output"]),
    wrapper("strace", 0, "abeEIoOpPsSuUX"),
    wrapper_with(
        "sudo",
        0,
        "CDghpRrTtUu",
        &["--chdir", "--group", "--host", "--user"],
    ),
    wrapper_with("time", 0, "fo", &["--format", "--output"]),
    wrapper_with("timeout", 1, "ks", &["--kill-after", "--signal"]),
    wrapper("tini", 0, "ep"),
    wrapper("uvx", 0, "p"),
    wrapper_with("watch", 0, "n", &["--interval"]),
    wrapper_with(
        "xargs",
        0,
        "adEILnPs",
        &["--arg-file", "--delimiter", "--max-args", "--max-procs"],
    ),
    wrapper("xvfb-run", 0, "efnpsw"),
];

/// Programs that run a command after a word of theirs.
const RUNNERS: [(&str, &[&str]); 16] = [
    ("asdf", &["exec"]),
    ("bundle", &["exec"]),
    ("hatch", &["run"]),
    ("mise", &["exec", "x"]),
    ("npm", &["exec", "x"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pipx", &["run"]),
    ("pixi", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("poetry", &["run"]),
    ("rtx", &["exec", "x"]),
    ("rye", &["run"]),
    ("tox", &["exec"]),
    ("uv", &["run"]),
    ("yarn", &["dlx", "exec"]),
];

/// Options whose value is a text of commands.
const TEXT_OPTIONS: [(&str, &[&str]); 6] = [
    ("env", &["-S", "--split-string"]),
    ("flock", &["-c", "--command"]),
    ("npx", &["-c", "--call"]),
    ("runuser", &["-c", "--command"]),
    ("script", &["-c", "--command"]),
    ("su", &["-c", "--command"]),
];

/// Programs whose operands together are a text of commands.
const TEXTS: [&str; 3] = ["eval", "parallel", "watch"];

/// Shells, whose `-c` is a text of commands.
const SHELLS: [&str; 6] = ["ash", "bash", "dash", "ksh", "sh", "zsh"];

/// The options of shells with a value.
const SHELL_OPTIONS: ValueOptions = ValueOptions {
    letters: "oO",
    long: &["--init-file", "--rcfile"],
};

/// The actions of `find` that run a command.
const FIND: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// The most words of a command that is an argument: each is copied.
const WORDS_MAX: usize = 256;

/// Commands with their depth.
type Found = Vec<(ShellCommand, usize)>;

/// Returns the commands that the arguments of a command are, with their depth;
/// none where there is one that is not understood.
pub(super) fn inner(command: &ShellCommand, depth: usize) -> Option<Found> {
    let Some(program) = command.program() else {
        return Some(Vec::new());
    };
    let below = depth + 1;
    if below > DEPTH_MAX {
        return None;
    }
    let arguments = command.arguments();
    if SHELLS.contains(&program) {
        return of_shell(command, below);
    }
    if program == "find" {
        let actions = arguments.iter().enumerate();
        let actions = actions.filter(|(_, word)| FIND.contains(&&*word.text));
        let after = actions.filter_map(|(at, _)| command_at(command, at + 1, below));
        return Some(after.collect());
    }
    let mut found = texts(program, arguments, below)?;
    found.extend(git_program(program, command, below));
    let at = match WRAPPERS.iter().find(|one| one.program == program) {
        // `command -v NAME` looks for the program, and runs nothing.
        Some(_) if program == "command" && is_lookup(arguments) => None,
        Some(wrapper) => {
            let operands = wrapper.options.operands(arguments);
            let mut operands = operands.filter(|at| !arguments[*at].is_assignment());
            operands.nth(wrapper.before)
        }
        None => run_at(program, arguments),
    };
    if let Some(at) = at {
        if arguments.len() > WORDS_MAX {
            return None;
        }
        found.extend(command_at(command, at, below));
    }
    Some(found)
}

/// Returns whether the arguments of `command` only look for a program.
fn is_lookup(arguments: &[ShellWord]) -> bool {
    let first = arguments.first();
    first.is_some_and(|word| word.is_option() && word.text.contains(['v', 'V']))
}

/// Returns where the command of a runner begins: the first operand after its
/// word.
fn run_at(program: &str, arguments: &[ShellWord]) -> Option<usize> {
    let (_, words) = RUNNERS.iter().find(|(name, _)| *name == program)?;
    let mut operands = ValueOptions::default().operands(arguments);
    operands.find(|at| words.contains(&&*arguments[*at].text))?;
    operands.next()
}

/// Returns `git push` of `git-push`, which git keeps beside its own programs.
fn git_program(
    program: &str,
    command: &ShellCommand,
    depth: usize,
) -> Option<(ShellCommand, usize)> {
    let subcommand = program.strip_prefix("git-")?;
    let word = |text: &str| ShellWord {
        text: text.to_owned(),
        is_dynamic: false,
    };
    let mut words = vec![word("git"), word(subcommand)];
    words.extend(command.arguments().iter().take(WORDS_MAX).cloned());
    let command = ShellCommand {
        words,
        ..ShellCommand::default()
    };
    Some((command, depth))
}

/// Returns the command that begins at an argument; it reads the input of the
/// one that runs it.
fn command_at(command: &ShellCommand, at: usize, depth: usize) -> Option<(ShellCommand, usize)> {
    let words = command.arguments().get(at..)?;
    let command = ShellCommand {
        words: words.to_vec(),
        input: command.input.clone(),
        ..ShellCommand::default()
    };
    (!words.is_empty()).then_some((command, depth))
}

/// Returns the commands of the texts that a program runs.
fn texts(program: &str, arguments: &[ShellWord], depth: usize) -> Option<Found> {
    let mut found = Vec::new();
    if TEXTS.contains(&program) {
        let operands = ValueOptions::default().operands(arguments);
        let operands: Vec<&ShellWord> = operands.map(|at| &arguments[at]).collect();
        let text: Vec<&str> = operands.iter().map(|word| &*word.text).collect();
        let is_dynamic = operands.iter().any(|word| word.is_dynamic);
        let text = text.join(" ");
        return text_commands(&ShellWord { text, is_dynamic }, depth);
    }
    let Some((_, options)) = TEXT_OPTIONS.iter().find(|(name, _)| *name == program) else {
        return Some(found);
    };
    for (at, word) in arguments.iter().enumerate() {
        for option in *options {
            let Some(rest) = word.text.strip_prefix(option) else {
                continue;
            };
            let text = match (rest, option.len()) {
                ("", _) => arguments.get(at + 1).cloned(),
                (rest, 2) => Some(rest.to_owned()).map(|text| ShellWord {
                    text,
                    ..word.clone()
                }),
                (rest, _) => rest.strip_prefix('=').map(|rest| ShellWord {
                    text: rest.to_owned(),
                    ..word.clone()
                }),
            };
            if let Some(text) = text {
                found.extend(text_commands(&text, depth)?);
            }
        }
    }
    Some(found)
}

/// Returns the commands of a shell: of its `-c`, or of the text that it reads
/// where it is given no script.
fn of_shell(command: &ShellCommand, depth: usize) -> Option<Found> {
    let arguments = command.arguments();
    let first = SHELL_OPTIONS.operands(arguments).next();
    let options = &arguments[..first.unwrap_or(arguments.len())];
    let has_text = options.iter().any(|word| {
        let letters = word.text.strip_prefix('-').unwrap_or_default();
        !letters.starts_with('-') && letters.contains('c')
    });
    let has_script = !has_text && first.is_some();
    let mut found = Vec::new();
    if let Some(at) = first.filter(|_| has_text) {
        found.extend(text_commands(&arguments[at], depth)?);
    }
    let is_read = !has_text && (!has_script || options.iter().any(|word| word.text == "-s"));
    for text in command.input.iter().filter(|_| is_read) {
        found.extend(text_commands(text, depth)?);
    }
    Some(found)
}

/// Returns the commands of a text that is an argument. A text that is known
/// only when it runs is a command whose program is unknown, beside what can be
/// read of it.
fn text_commands(text: &ShellWord, depth: usize) -> Option<Found> {
    if !text.is_dynamic {
        return scan::commands(&text.text, depth);
    }
    let command = ShellCommand {
        words: vec![text.clone()],
        ..ShellCommand::default()
    };
    let mut found = scan::commands(&text.text, depth).unwrap_or_default();
    found.push((command, depth));
    Some(found)
}

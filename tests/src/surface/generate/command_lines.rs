//! Shell completions and man pages, from the command lines of the binaries.

use super::Files;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

/// The folder of completions, with a folder for each shell.
const COMPLETIONS: &str = "docs/completions";
/// The folder of man pages.
const MAN: &str = "docs/man";

/// The folders that have generated files alone.
pub(super) const FOLDERS: [&str; 2] = [COMPLETIONS, MAN];

/// The shells, each with what its file is called where the shell looks for it.
const SHELLS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "bash", "NAME"),
    (Shell::Zsh, "zsh", "_NAME"),
    (Shell::Fish, "fish", "NAME.fish"),
];

/// Returns the files of every binary.
pub(super) fn files() -> Files {
    let commands = [
        premath_cli::command_line(),
        harness_coordinator::arguments::Arguments::command(),
        harness_worker::arguments::Arguments::command(),
    ];
    let mut files = Files::new();
    for command in commands {
        let name = command.get_name().to_owned();
        for (shell, folder, file) in SHELLS {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command.clone(), &name, &mut text);
            let file = file.replace("NAME", &name);
            files.insert(format!("{COMPLETIONS}/{folder}/{file}"), plain(&text));
        }
        // Every command gets `help`, which has pages of its own otherwise.
        let mut command = command.disable_help_subcommand(true);
        command.build();
        pages(&command, &mut files);
    }
    files
}

/// Adds the page of a command and those of its subcommands.
fn pages(command: &Command, files: &mut Files) {
    let version = env!("CARGO_PKG_VERSION");
    let page = Man::new(command.clone());
    let page = page.source(format!("premath-harness {version}"));
    let page = page.manual("Premath Harness");
    let file = format!("{MAN}/{}", page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text).expect("a page is written to memory");
    files.insert(file, plain(&text));
    let shown = |command: &&Command| !command.is_hide_set();
    for command in command.get_subcommands().filter(shown) {
        pages(command, files);
    }
}

/// Returns a text without white space at the ends of its lines, with one line
/// end at its end.
fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    format!("{}\n", lines.join("\n").trim_end())
}

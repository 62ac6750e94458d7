//! Shows a commit by git, in its pager.
//!
//! Nothing that a step can write is run: no external diff, no text conversion, no
//! signature program. The pager is `less` without the right to start anything, which
//! shows control characters as text.

use crate::agents::find;
use crate::error::CliError;
use crate::terminal::plain;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Returns git, with what keeps a commit from acting.
#[expect(
    clippy::disallowed_methods,
    reason = "`premath review` shows commits by git; it starts nothing else"
)]
fn git(repository: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository);
    // The pager of a command (`pager.show`) would take the place of this one.
    git.arg("--paginate").env("GIT_PAGER", "less");
    // No lazy fetch, no hook, no monitor of files.
    git.args(["-c", "core.pager=less", "-c", "core.fsmonitor=false"]);
    git.args([
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "log.showSignature=false",
    ]);
    git.env("LESS", "FX")
        .env("LESSSECURE", "1")
        .env("LESSCHARSET", "utf-8");
    git.env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_REPLACE_OBJECTS", "1");
    for name in ["GIT_EXTERNAL_DIFF", "LESSOPEN", "LESSCLOSE"] {
        git.env_remove(name);
    }
    git
}

/// What is shown.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shown<'a> {
    /// A commit.
    Commit(&'a str),
    /// What a branch has beside another.
    Branch { from: &'a str, branch: &'a str },
}

/// The most of a change that is shown where there is no pager.
const SHOWN_MAX: u64 = 1 << 20;

/// Shows a change in the pager, and waits until it is closed. Where there is none, it is
/// written to `output`, with nothing in it that acts on a terminal.
///
/// # Errors
///
/// Git cannot be started, or it fails.
pub(super) fn show(
    repository: &Path,
    shown: Shown<'_>,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let mut git = git(repository);
    let flags = [
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--stat",
        "--patch",
    ];
    match shown {
        Shown::Commit(commit) => git
            .arg("show")
            .args(flags)
            .arg("--end-of-options")
            .arg(commit),
        Shown::Branch { from, branch } => {
            let from = match from {
                "HEAD" => from.to_owned(),
                target => format!("refs/heads/{target}"),
            };
            let range = format!("{from}...refs/heads/{branch}");
            git.arg("diff")
                .args(flags)
                .arg("--end-of-options")
                .arg(range)
        }
    };
    let ended = match find("less") {
        Some(_) => git.status(),
        None => written(git, output),
    };
    match ended.map_err(CliError::Terminal)? {
        status if status.success() => Ok(()),
        status => Err(CliError::Review(format!("git ended with {status}"))),
    }
}

fn written(mut git: Command, output: &mut dyn Write) -> io::Result<ExitStatus> {
    let mut child = git.stdout(Stdio::piped()).spawn()?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(SHOWN_MAX).read_to_end(&mut bytes)?;
    }
    for line in String::from_utf8_lossy(&bytes).lines() {
        writeln!(output, "{}", plain(&line.replace('\t', "    ")))?;
    }
    if bytes.len() as u64 == SHOWN_MAX {
        writeln!(output, "(cut: install less to see all of it)")?;
        let _ = child.kill();
        child.wait()?;
        return Ok(ExitStatus::default());
    }
    child.wait()
}

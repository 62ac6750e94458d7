//! Git, asked for its version and for a branch of a remote.

use crate::environment::{self, EnvironmentRules};
use crate::settings::{Settings, trusted_path};
use crate::supervisor::confine::scratch::Scratch;
use crate::supervisor::{CommandSpec, Exit, ExitCause, Supervisor, SupervisorError, shell};
use premath_kernel::json::plain::plain;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Builder;

/// How long git may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// How long a remote may take to answer.
const REMOTE_LIMIT: Duration = Duration::from_secs(10);

/// From TERM to KILL.
const GRACE: Duration = Duration::from_secs(1);

/// How much of an answer is kept.
const OUTPUT_MAX: u64 = 64 << 10;

/// How many lines and characters of an error are reported.
const LINES_MAX: usize = 4;
const SAID_MAX: usize = 500;

/// How lines of advice begin.
const ADVICE: [&str; 3] = [
    "hint:",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
];

/// Asks the remote where pushes go to for one branch. Ssh asks for nothing, unless the
/// operator set another command for it.
const ASK: &str = r#"cd "$PREMATH_PUSH_FROM" || exit 1
url=$(git remote get-url --push -- "$PREMATH_PUSH_REMOTE") || exit 1
ssh=$(git config core.sshCommand) || ssh=${GIT_SSH_COMMAND-}${GIT_SSH-}
if [ -z "$ssh" ]; then
  GIT_SSH_COMMAND='ssh -o BatchMode=yes'
  export GIT_SSH_COMMAND
fi
exec git -c protocol.ext.allow=never ls-remote -- "$url" "$PREMATH_PUSH_REF""#;

/// A program of this machine that could not be asked.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// How a program answered.
struct Answered {
    exit: Exit,
    stdout: String,
    stderr: String,
}

impl Answered {
    fn passed(&self) -> bool {
        self.exit.code == Some(0)
    }

    /// Returns why it did not pass.
    fn why(&self, limit: Duration) -> String {
        match &self.exit.cause {
            ExitCause::Limit => format!("no answer came within {} seconds", limit.as_secs()),
            ExitCause::SpawnFailed { message, .. } => message.clone(),
            _ => said(&self.stderr),
        }
    }
}

/// Returns the first lines that git and what it started printed, without advice.
fn said(stderr: &str) -> String {
    let lines = stderr.lines().map(str::trim);
    let is_said = |line: &&str| !line.is_empty() && !ADVICE.iter().any(|a| line.starts_with(a));
    let lines: Vec<&str> = lines.filter(is_said).take(LINES_MAX).collect();
    match lines.is_empty() {
        true => "git printed nothing".to_owned(),
        false => plain(&lines.join("; ")).chars().take(SAID_MAX).collect(),
    }
}

/// Returns what `git --version` prints, or why it prints nothing.
pub fn git_version(repository: &Path) -> String {
    let path = [("PATH", trusted_path(repository))];
    let rules = EnvironmentRules::default();
    let mut spec = CommandSpec::new("git");
    spec.args = vec!["--version".into()];
    spec.env = environment::of_command(std::env::vars_os(), &rules, false, &path);
    spec.limit = VERSION_LIMIT;
    match ask(spec) {
        Ok(answered) if answered.passed() => plain(answered.stdout.trim()).into_owned(),
        Ok(answered) => answered.why(VERSION_LIMIT),
        Err(error) => error.to_string(),
    }
}

/// Returns the commit of a branch of the remote that is pushed to; `None` where it has
/// no such branch. The first address that pushes go to is asked, with git's settings and
/// ssh command, and without a prompt of git.
///
/// # Errors
///
/// Why there is no answer.
pub fn remote_commit(
    settings: &Settings,
    remote: &str,
    branch: &str,
) -> Result<Option<String>, String> {
    let repository = &settings.roots.repository;
    let reference = format!("refs/heads/{branch}");
    let variables: [(&str, OsString); 6] = [
        ("PREMATH_PUSH_FROM", repository.clone().into()),
        ("PREMATH_PUSH_REMOTE", remote.into()),
        ("PREMATH_PUSH_REF", reference.clone().into()),
        ("PATH", trusted_path(repository)),
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("GIT_ASKPASS", OsString::new()),
    ];
    let mut spec = shell(ASK);
    let inherited = settings.inherited();
    spec.env = environment::of_command(inherited, &settings.environment, false, &variables);
    spec.limit = REMOTE_LIMIT;
    let answered = ask(spec).map_err(|error| error.to_string())?;
    if !answered.passed() {
        return Err(answered.why(REMOTE_LIMIT));
    }
    let is_commit = |word: &str| word.len() >= 40 && word.bytes().all(|b| b.is_ascii_hexdigit());
    // Git answers with every reference that ends like the one that it was asked for.
    let mut lines = answered
        .stdout
        .lines()
        .filter_map(|line| line.split_once('\t'));
    let commit = lines.find(|(commit, name)| *name == reference && is_commit(commit));
    Ok(commit.map(|(commit, _)| commit.to_owned()))
}

/// Has a supervisor run a command to its end.
fn ask(mut spec: CommandSpec) -> Result<Answered, AskError> {
    spec.grace = GRACE;
    spec.output_cap = OUTPUT_MAX;
    let scratch = Scratch::make()?;
    let at = |name: &str| scratch.path().join(name);
    let made = |name: &str| {
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .create_new(true)
            .open(at(name))
    };
    let files = (made("stdout")?, made("stderr")?);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let no_lock = File::open("/dev/null")?;
    let program = premath_platform::program::itself();
    let mut supervisor = Supervisor::start(program, no_lock.into())?;
    let exit = runtime.block_on(async {
        let mut running = supervisor.begin(spec, files.0, files.1).await?;
        running.wait().await
    })?;
    let text = |name: &str| -> io::Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(at(name))?).into_owned())
    };
    Ok(Answered {
        exit,
        stdout: text("stdout")?,
        stderr: text("stderr")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_what_ssh_and_git_say_without_advice() {
        let text = "git@h: Permission denied (publickey).\nfatal: Could not read from remote \
                    repository.\n\nPlease make sure you have the correct access rights\nand the \
                    repository exists.\n";
        assert_eq!(
            said(text),
            "git@h: Permission denied (publickey).; fatal: Could not read from remote repository."
        );
        assert_eq!(said("\nhint: x\n"), "git printed nothing");
    }
}

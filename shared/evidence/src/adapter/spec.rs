//! What agents differ in.

use super::Out;
use super::hook::{self, HookSpec};
use crate::flaw::Flaw;
use crate::json::{Object, Shape};
use premath_kernel::json::plain::shell_word;
use std::fmt;

/// Everything in which an agent differs from others.
#[derive(Debug)]
pub struct AgentSpec {
    /// Its name in configuration and in evidence; its provider's name too.
    pub name: &'static str,
    /// The agent's name in text for people.
    pub title: &'static str,
    /// The program, as it is looked for on `PATH`.
    pub program: &'static str,
    /// The npm package that has the program.
    pub package: &'static str,
    /// The command line by which it works unattended, as a shell reads it.
    ///
    /// It reads its prompt from a file on its standard input, for an argument is
    /// bounded by the system; does not ask for permission, because no user is
    /// present; and prints the event stream that its adapter reads. What it may
    /// write is confined by the harness.
    pub command_line: &'static str,
    /// Arguments for its command line that a person may want, such as those
    /// that choose a model; examples in documentation have them.
    pub options: &'static str,
    /// What the names of variables begin with that it signs in with or is
    /// configured by; they pass to the work command alone.
    pub variables: &'static [&'static str],
    /// Variables that say to it, by the value `1`, that it is confined.
    pub confined_variables: &'static [&'static str],
    /// Files and folders of a repository that it takes instructions, hooks or
    /// servers from, in every folder; a folder ends with a slash.
    pub governing_files: &'static [&'static str],
    /// Its files in the user's home.
    pub files: AgentFiles,
    /// Its hooks.
    pub hooks: &'static HookSpec,
    /// Why it stopped, for exit codes that alone report it.
    pub(crate) stop_reasons_by_exit: &'static [(i32, &'static str)],
    /// The arguments before the prompt by which it continues a session; the
    /// session's id follows.
    pub(crate) resume: &'static [&'static str],
    /// Whether the totals that it reports are those of its session: of one that
    /// is resumed, what it used before is in them.
    pub(crate) totals_are_of_session: bool,
    /// Whether it says that it is up before it does anything.
    pub(crate) says_begin: bool,
    /// Reads a line for a person.
    pub(crate) transcript: fn(&serde_json::Value, &mut super::transcript::Parts),
    /// What lies within its lines that its reader asks for.
    pub(crate) shape: &'static Shape,
    /// Makes the reader of a stream.
    pub(crate) reader: fn() -> Box<dyn LineReader>,
}

/// An agent's files in the user's home: what it signs in with and is configured
/// by.
#[derive(Debug)]
pub struct AgentFiles {
    /// The variable that moves the folder.
    pub folder_variable: Option<&'static str>,
    /// The folder, from the home.
    pub folder: &'static str,
    /// What a private home gets of the folder.
    pub copied: &'static [&'static str],
    /// What a private home gets of the home beside the folder.
    pub beside: &'static [&'static str],
    /// Which of the copied files hold tokens that the agent renews.
    pub renewed: &'static [&'static str],
    /// The fields of such a file that a renewal changes.
    pub token_fields: &'static [&'static str],
    /// Claims of a JSON web token, as JSON pointers, that say whose account it
    /// is, beside the standard ones.
    pub account_claims: &'static [&'static str],
}

/// The longest id of a session.
const SESSION_MAX: usize = 128;

/// What the command of an agent ends with.
const PROMPT: &str = "< \"$PREMATH_PROMPT_FILE\"";

impl AgentSpec {
    /// Returns whether hooks can be wired into a command: it begins with the
    /// agent's program, and ends with its prompt.
    pub fn is_wireable(&self, command: &str) -> bool {
        let first = command.split_whitespace().next();
        first == Some(self.program) && command.trim_end().ends_with(PROMPT)
    }

    /// Adds arguments before the prompt of a command.
    pub fn with_arguments(&self, command: &str, arguments: &[String]) -> String {
        let Some(start) = command.trim_end().strip_suffix(PROMPT) else {
            return command.to_owned();
        };
        let quoted = arguments
            .iter()
            .map(|argument| hook::quoted(argument) + " ");
        format!("{start}{}{PROMPT}", quoted.collect::<String>())
    }

    /// Returns whether a command can be run again in the session of an earlier run.
    pub fn is_resumable(&self, command: &str) -> bool {
        self.resumed(command, "0").is_some()
    }

    /// Returns a command that continues a session of the agent; `None` where the
    /// command is not one that the harness can change so, or the id is none that
    /// agents use. The id is what the agent reported: it is from outside.
    pub fn resumed(&self, command: &str, session: &str) -> Option<String> {
        if !is_session(session) || !self.is_wireable(command) {
            return None;
        }
        let start = command.trim_end().strip_suffix(PROMPT)?.trim_end();
        // What reads its prompt where an argument asks for it has that argument last.
        let (start, stdin) = match start.strip_suffix(" -") {
            Some(start) => (start.trim_end(), "- "),
            None => (start, ""),
        };
        let resume = self.resume.join(" ");
        Some(format!("{start} {resume} {session} {stdin}{PROMPT}"))
    }

    /// Returns the command by which a person continues a session of the agent in its
    /// worktree; `None` where the id is none that agents use.
    pub fn resumed_by_hand(&self, worktree: &str, session: &str) -> Option<String> {
        let (program, resume) = (self.program, self.resume.join(" "));
        let worktree = shell_word(worktree);
        is_session(session).then(|| format!("cd {worktree} && {program} {resume} {session}"))
    }

    /// Returns the command that installs the agent.
    pub fn install_command(&self) -> String {
        format!("npm install -g {}", self.package)
    }
}

/// Returns whether an id of a session is one that agents use: a word, and no option.
fn is_session(id: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !id.is_empty() && id.len() <= SESSION_MAX && !id.starts_with('-') && id.chars().all(is_word)
}

impl AgentFiles {
    /// Returns the folders of the home that its files are in.
    pub fn folders(&self) -> impl Iterator<Item = &'static str> {
        let beside = self.beside.iter().filter_map(|file| file.rsplit_once('/'));
        std::iter::once(self.folder).chain(beside.map(|(folder, _)| folder))
    }
}

/// Reads the lines of one stream.
pub(crate) trait LineReader: fmt::Debug + Send {
    /// Reads a line; what was reported before the flaw counts.
    fn read(&mut self, line: &Object<'_>, out: Out<'_>) -> Result<(), Flaw>;

    /// Returns whether a call may run that is reported only when it is over.
    fn may_be_in_call(&self) -> bool {
        false
    }

    /// Returns how many bytes the reader holds.
    fn retained_bytes(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use crate::Agent;

    #[test]
    fn arguments_are_added_before_the_prompt() {
        let spec = Agent::Codex.spec();
        let command = "codex exec - < \"$PREMATH_PROMPT_FILE\"";
        assert!(spec.is_wireable(command));
        assert!(!Agent::Claude.spec().is_wireable(command));
        assert!(!spec.is_wireable("codex exec \"$(cat x)\""));
        assert_eq!(
            spec.with_arguments(command, &["-c".to_owned(), "a='b'".to_owned()]),
            "codex exec - '-c' 'a='\\''b'\\''' < \"$PREMATH_PROMPT_FILE\""
        );
    }

    #[test]
    fn a_command_continues_a_session() {
        let resumed = |agent: Agent| {
            let spec = agent.spec();
            spec.resumed(spec.command_line, "ses_1-a").unwrap()
        };
        assert_eq!(
            [Agent::Claude, Agent::Codex, Agent::Gemini, Agent::OpenCode].map(resumed),
            [
                "claude -p --output-format stream-json --verbose --dangerously-skip-permissions \
                 --resume ses_1-a < \"$PREMATH_PROMPT_FILE\"",
                "codex exec --json --skip-git-repo-check --sandbox danger-full-access resume \
                 ses_1-a - < \"$PREMATH_PROMPT_FILE\"",
                "gemini --output-format stream-json --yolo --resume ses_1-a < \
                 \"$PREMATH_PROMPT_FILE\"",
                "opencode run --format json --session ses_1-a < \"$PREMATH_PROMPT_FILE\"",
            ]
        );
        let by_hand = |agent: Agent| agent.spec().resumed_by_hand("/it's", "s").unwrap();
        assert_eq!(
            [Agent::Claude, Agent::Codex, Agent::Gemini, Agent::OpenCode].map(by_hand),
            [
                "claude --resume",
                "codex resume",
                "gemini --resume",
                "opencode --session"
            ]
            .map(|command| format!("cd '/it'\\''s' && {command} s"))
        );
        let spec = Agent::Codex.spec();
        let long = "x".repeat(129);
        for id in ["", "-x", "a b", "$(rm)", "a'b", "a\nb", "../x", &long] {
            assert_eq!(spec.resumed(spec.command_line, id), None, "{id}");
            assert_eq!(spec.resumed_by_hand("/w", id), None, "{id}");
        }
        assert!(!spec.is_resumable("./my-codex < \"$PREMATH_PROMPT_FILE\""));
    }

    #[test]
    fn the_ready_command_lines_are_wireable() {
        for agent in Agent::ALL {
            assert!(agent.spec().is_wireable(agent.spec().command_line));
        }
    }
}

//! Command lines by which agents work unattended.
//!
//! Each reads its prompt from a file on its standard input, for an argument is
//! bounded by the system; does not ask for permission, because no user is
//! present; and prints the event stream that its adapter reads. What an agent
//! may write is confined by the harness.

use crate::adapter::Agent;

impl Agent {
    /// Returns the program.
    pub const fn program(self) -> &'static str {
        self.as_str()
    }

    /// Returns the npm package that holds it.
    pub const fn package(self) -> &'static str {
        match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
            Self::OpenCode => "opencode-ai",
        }
    }

    /// Returns the command line, as a shell reads it.
    pub const fn command_line(self) -> &'static str {
        match self {
            Self::Claude => {
                "claude -p --output-format stream-json --verbose --dangerously-skip-permissions \
                 < \"$PREMATH_PROMPT_FILE\""
            }
            Self::Codex => {
                "codex exec --json --skip-git-repo-check --sandbox danger-full-access - \
                 < \"$PREMATH_PROMPT_FILE\""
            }
            Self::Gemini => "gemini --output-format stream-json --yolo < \"$PREMATH_PROMPT_FILE\"",
            Self::OpenCode => "opencode run --format json < \"$PREMATH_PROMPT_FILE\"",
        }
    }
}

//! A command that the harness ran, and how a call ended: what every adapter
//! makes rows of.

use premath_kernel::turn::ResultRow;

/// The tool's name in the requests of the harness's own commands.
pub(crate) const SHELL_TOOL: &str = "shell.exec";

/// One command that the harness ran, as far as the gate needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCall {
    /// Which command of the step: `work` or `verify`.
    pub phase: &'static str,
    /// The digest of the command line.
    pub command_digest: String,
    /// The digest of the prompt that it was given, where it was given one.
    pub prompt_digest: Option<String>,
    /// The working directory, absolute.
    pub workdir: String,
    /// The sandbox profile that it ran under; `None` where it was not confined.
    pub sandbox_ref: Option<String>,
    /// The exit code, where it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The digest of all that it wrote to stdout.
    pub stdout_sha256: String,
    /// The digest of all that it wrote to stderr.
    pub stderr_sha256: String,
    /// Whether the kept output was cut in the middle, with the marker.
    pub truncated: bool,
    /// How it ended; `None` where no end was seen.
    pub end: Option<CallEnd>,
    /// The reference of its witness file: what its use rests on.
    pub witness_ref: String,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// Exit code 0.
    Ok,
    /// The call failed.
    Error {
        /// The failure class.
        class: String,
        /// Whether another try may help.
        retryable: bool,
        /// The last message of the call.
        message: String,
    },
}

impl CallEnd {
    /// Makes the end of a call that failed; always fills the envelope, because
    /// one without a code or a message is invalid.
    pub(crate) fn failed(class: &str, message: String) -> Self {
        let class = Some(class.trim()).filter(|class| !class.is_empty());
        Self::Error {
            class: class.unwrap_or("tool_error").to_owned(),
            retryable: false,
            message: if message.trim().is_empty() {
                "(no message)".to_owned()
            } else {
                message
            },
        }
    }

    /// Returns the result row of a call that ended so.
    pub(crate) fn row(&self, id: &str, digest: &str) -> ResultRow {
        match self {
            Self::Ok => ResultRow::ok(id, digest),
            Self::Error {
                class,
                retryable,
                message,
            } => ResultRow {
                result_digest: Some(digest.to_owned()),
                ..ResultRow::error(id, class, *retryable, message)
            },
        }
    }
}

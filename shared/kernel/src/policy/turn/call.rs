//! A tool call that an agent is about to make, as far as a policy judges it.

use super::command::{ShellCommand, commands_of};
use super::tool::ToolClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who makes a call.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// The agent itself.
    #[default]
    Agent,
    /// An agent that another one started.
    Subagent,
}

impl Caller {
    /// Every caller.
    pub const ALL: [Self; 2] = [Self::Agent, Self::Subagent];

    /// Returns the word that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Subagent => "subagent",
        }
    }
}

/// A tool call, in terms that no agent differs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCall {
    /// What the tool does.
    pub class: ToolClass,
    /// Who makes it.
    pub caller: Caller,
    /// The agent's own name of the tool; of an MCP tool, `server/tool`.
    pub tool: String,
    /// The text that a shell runs.
    pub command: Option<String>,
    /// The files that it reads or writes, as [`CallPath`]s.
    pub paths: Vec<CallPath>,
    /// The hosts that it reaches, in lower case.
    pub hosts: Vec<String>,
}

impl AgentCall {
    /// Makes a call of which nothing but the tool is known.
    pub fn of(class: ToolClass, tool: &str) -> Self {
        Self {
            class,
            caller: Caller::Agent,
            tool: tool.to_owned(),
            command: None,
            paths: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// Returns the commands of its text; none where the text is not understood.
    pub(super) fn commands(&self) -> Option<Vec<ShellCommand>> {
        commands_of(self.command.as_deref()?)
    }
}

/// A path of a call: of a file in the worktree from its root, of any other file
/// absolute, without `.`, `..` and repeated slashes.
///
/// It is made of the text alone. Where a symlink in the worktree leads is for
/// the sandbox to bound.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallPath(String);

impl CallPath {
    /// Makes the path that a text means in a folder of a worktree; both folders
    /// are absolute.
    pub fn of(text: &str, folder: &str, worktree: &str) -> Self {
        let text = match text.starts_with('/') {
            true => text.to_owned(),
            false => format!("{folder}/{text}"),
        };
        let path = parts(&text);
        let root = parts(worktree);
        match path.strip_prefix(&*root) {
            Some(inside) => Self(inside.join("/")),
            None => Self(format!("/{}", path.join("/"))),
        }
    }

    /// Returns the path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the names of an absolute path, with `.` and `..` resolved.
fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_of_the_worktree_or_absolute() {
        for (text, expected) in [
            ("a.rs", "src/a.rs"),
            ("../b", "b"),
            ("./x//y/../z", "src/x/z"),
            ("/w/t/src", "src"),
            ("/w/t", ""),
            ("/w/tt/a", "/w/tt/a"),
            ("../../../etc/passwd", "/etc/passwd"),
            ("/w/t/../../etc", "/etc"),
            ("../../../../../..", "/"),
        ] {
            assert_eq!(
                CallPath::of(text, "/w/t/src", "/w/t").as_str(),
                expected,
                "{text}"
            );
        }
    }
}

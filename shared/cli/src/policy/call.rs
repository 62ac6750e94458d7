//! A tool call that an operator asks about.

use super::artifact::Policy;
use crate::error::CliError;
use clap::{Args, ValueEnum};
use premath_kernel::policy::turn::command::{ShellCommand, commands_of};
use premath_kernel::policy::turn::{
    AgentCall, CallCounts, CallPath, Caller, ToolClass, ToolVerdict, decide,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The worktree that paths are of: a rule sees them from its root.
const WORKTREE: &str = "/worktree";

/// A tool call.
#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// Decide about a call of a tool of this class [default: shell, if there is a command]
    #[arg(long, value_enum, value_name = "CLASS")]
    tool: Option<ToolArg>,
    /// Say who makes the call [default: agent]
    #[arg(long, value_enum, value_name = "CALLER")]
    caller: Option<CallerArg>,
    /// Set the agent's name of the tool; of an MCP tool, server/tool
    #[arg(long)]
    name: Option<String>,
    /// Add a file of the call, from the worktree's root, or absolute
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Add a host that the call reaches
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// The command of the call; one argument with blanks is a shell text
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A class of tools, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ToolArg(ToolClass);

impl ValueEnum for ToolArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ToolArg; ToolClass::ALL.len()] = {
            let mut all = [ToolArg(ToolClass::Other); ToolClass::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = ToolArg(ToolClass::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.as_str()))
    }
}

/// A caller, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallerArg(Caller);

impl ValueEnum for CallerArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [CallerArg; 2] = [CallerArg(Caller::ALL[0]), CallerArg(Caller::ALL[1])];
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.as_str()))
    }
}

/// A tool call, and what the policy decides about it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct JudgedCall {
    /// The class of the tool.
    tool: &'static str,
    /// The agent's name of the tool.
    name: String,
    /// The shell text.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The commands that were found in it; null where it cannot be parsed.
    commands: Option<Vec<String>>,
    /// The files, from the worktree's root or absolute.
    paths: Vec<String>,
    /// The hosts.
    hosts: Vec<String>,
    /// The decision, as the agent gets it.
    #[serde(flatten)]
    verdict: ToolVerdict,
}

impl JudgedCall {
    pub(super) const fn verdict(&self) -> &ToolVerdict {
        &self.verdict
    }

    pub(super) fn commands(&self) -> &[String] {
        self.commands.as_deref().unwrap_or_default()
    }
}

impl CallArgs {
    /// Returns whether a call is given.
    pub(super) fn is_given(&self) -> bool {
        let has_parts =
            !(self.paths.is_empty() && self.hosts.is_empty() && self.command.is_empty());
        self.tool.is_some() || self.caller.is_some() || self.name.is_some() || has_parts
    }

    /// Returns the decision about the call, as the first of a turn.
    pub(super) fn judged(&self, policy: &Policy) -> Result<JudgedCall, CliError> {
        let Policy::Turn(policy) = policy else {
            return Err(CliError::Usage(
                "a retry policy does not decide about tool calls; use `premath retry decide`"
                    .to_owned(),
            ));
        };
        let call = self.call()?;
        let verdict = decide(policy, &call, &CallCounts::default());
        let commands = commands_of(call.command.as_deref().unwrap_or_default());
        let commands = commands.map(|commands| {
            let shown = |command: &ShellCommand| {
                let words = command.words.iter().map(|word| word.text.as_str());
                words.collect::<Vec<_>>().join(" ")
            };
            commands.iter().map(shown).collect()
        });
        Ok(JudgedCall {
            tool: call.class.as_str(),
            name: call.tool,
            commands,
            command: call.command,
            paths: call
                .paths
                .iter()
                .map(|path| path.as_str().to_owned())
                .collect(),
            hosts: call.hosts,
            verdict,
        })
    }

    fn call(&self) -> Result<AgentCall, CliError> {
        let command = self.command_text();
        let class = match (self.tool, &command) {
            (Some(ToolArg(class)), None) => class,
            (None | Some(ToolArg(ToolClass::Shell)), Some(_)) => ToolClass::Shell,
            (Some(ToolArg(class)), Some(_)) => {
                let class = class.as_str();
                let detail = format!("a call of --tool {class} has no command");
                return Err(CliError::Usage(detail));
            }
            (None, None) => {
                let classes: Vec<&str> = ToolClass::ALL.iter().map(|tool| tool.as_str()).collect();
                let classes = classes.join(", ");
                let detail = format!("give --tool CLASS with the call: one of {classes}");
                return Err(CliError::Usage(detail));
            }
        };
        let path = |path: &String| CallPath::of(path, WORKTREE, WORKTREE);
        Ok(AgentCall {
            class,
            caller: self
                .caller
                .map_or(Caller::Agent, |CallerArg(caller)| caller),
            tool: self
                .name
                .clone()
                .unwrap_or_else(|| class.as_str().to_owned()),
            command,
            paths: self.paths.iter().map(path).collect(),
            hosts: self
                .hosts
                .iter()
                .map(|host| host.to_ascii_lowercase())
                .collect(),
        })
    }

    /// Returns the shell text: one argument is one, several are quoted.
    fn command_text(&self) -> Option<String> {
        match &*self.command {
            [] => None,
            [text] => Some(text.clone()),
            words => Some(
                words
                    .iter()
                    .map(|word| quoted(word))
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
        }
    }
}

/// Quotes a word for a shell, where it needs that.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word() {
        for word in ["a", "a b", "it's", "", "$X", "*"] {
            let found = commands_of(&format!("echo {}", quoted(word))).unwrap();
            assert_eq!(found[0].words.len(), 2, "{word}");
            assert_eq!(found[0].words[1].text, word);
        }
    }
}

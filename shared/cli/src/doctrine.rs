//! `premath doctrine check`: the table of operations against itself, the
//! contracts, and the command line.

use crate::answer::{Answer, CheckVerdict, Finished};
use crate::mcp::tool::served;
use crate::terminal::plain;
use clap::{Args, Command, Subcommand};
use premath_kernel::authority::doctrine::{DoctrineFault, ServedTool, faults};
use premath_kernel::authority::operation::{OPERATIONS, Operation};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Arguments of `premath doctrine`.
#[derive(Debug, Args)]
pub(crate) struct DoctrineArgs {
    #[command(subcommand)]
    command: DoctrineCommand,
}

#[derive(Debug, Subcommand)]
enum DoctrineCommand {
    /// Check that every command has one operation id and one route
    Check,
}

/// The answer of `premath doctrine check`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoctrineAnswer {
    /// Whether there are no faults.
    result: CheckVerdict,
    /// How many operations there are.
    operation_count: usize,
    /// How many commands there are.
    command_count: usize,
    /// How many tools the MCP server serves.
    tool_count: usize,
    /// The faults that were found.
    errors: Vec<DoctrineFault>,
}

impl DoctrineArgs {
    /// Checks the table against the command line `whole`.
    pub(crate) fn run(self, whole: &Command) -> Finished {
        match self.command {
            DoctrineCommand::Check => {
                let answer = check(OPERATIONS, &commands_of(whole), &served());
                Finished::new("doctrine.check", Ok(answer))
            }
        }
    }
}

fn check(operations: &[Operation], commands: &BTreeSet<String>, tools: &[ServedTool]) -> Answer {
    let errors = faults(operations, commands, tools);
    let right = errors.is_empty();
    let mut text = format!(
        "{}: {} operations, {} commands, {} tools, {} faults\n",
        if right { "ok" } else { "failed" },
        operations.len(),
        commands.len(),
        tools.len(),
        errors.len()
    );
    for error in &errors {
        let _ = writeln!(
            text,
            "  {} {}: {}",
            error.fault.as_str(),
            plain(&error.at),
            error.detail
        );
    }
    let document = DoctrineAnswer {
        result: CheckVerdict::of(right),
        operation_count: operations.len(),
        command_count: commands.len(),
        tool_count: tools.len(),
        errors,
    };
    Answer::new(document, text).refused(!right)
}

/// Returns the commands of a command line that do something, as in
/// `issue claim`.
fn commands_of(whole: &Command) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(whole, "", &mut found);
    found
}

fn collect(command: &Command, above: &str, found: &mut BTreeSet<String>) {
    for below in command.get_subcommands() {
        let path = format!("{above} {}", below.get_name());
        collect(below, &path, found);
        // One that requires a subcommand does nothing by itself.
        if !below.is_subcommand_required_set() {
            found.insert(path.trim_start().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Cli;
    use clap::CommandFactory;

    fn commands() -> BTreeSet<String> {
        commands_of(&Cli::command())
    }

    #[test]
    fn every_command_and_tool_has_an_operation_and_every_operation_its_own() {
        let answer = faults(OPERATIONS, &commands(), &served());
        assert_eq!(answer, []);
    }

    #[test]
    fn a_planted_fault_fails_the_check() {
        let mut table = OPERATIONS.to_vec();
        let last = table.pop().unwrap();
        let errors = faults(&table, &commands(), &served());
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(Some(&*errors[0].at), last.command);
        assert!(format!("{:?}", check(&table, &commands(), &served())).contains("refused: true"));
    }

    #[test]
    fn a_tool_that_was_forgotten_or_planted_fails_the_check() {
        let mut tools = served();
        let lost = tools.pop().unwrap();
        tools.push(ServedTool {
            name: "issue_burn",
            claim: None,
        });
        let errors = faults(OPERATIONS, &commands(), &tools);
        let found: Vec<_> = errors
            .iter()
            .map(|error| (error.fault.as_str(), &*error.at))
            .collect();
        assert_eq!(
            found,
            [("tool_unknown", "issue_burn"), ("tool_missing", lost.name)]
        );
        assert!(format!("{:?}", check(OPERATIONS, &commands(), &tools)).contains("refused: true"));
    }
}

//! `premath classes`: every failure class, and its place in the retry policy.

mod entry;
mod listing;
mod page;

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::policy::RetryPolicyFile;
use clap::{Args, ValueEnum};
use entry::{ClassEntry, entries};
use premath_kernel::failure::Family;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `premath classes`.
#[derive(Debug, Args)]
pub(crate) struct ClassesArgs {
    /// Classes to show in full [default: all, in short]
    #[arg(value_name = "CLASS", conflicts_with = "family")]
    classes: Vec<String>,
    /// List one family
    #[arg(long, value_enum)]
    family: Option<FamilyArg>,
    /// Print the documentation page, with the embedded policy
    #[arg(long, conflicts_with_all = ["classes", "family", "config"])]
    markdown: bool,
    /// Use the policy that this configuration names [default: harness.toml of the main worktree, where
    /// there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FamilyArg {
    /// The turn: tool calls, protocol, context, mutation, governance
    Typestate,
    /// Leases and the storage that holds them
    Lease,
    /// What a command of the step did
    Execution,
    /// Instruction envelopes and the policy that admits them
    Instruction,
    /// The loop itself: lanes, worktrees, policy, escalation
    Loop,
    /// The way of a turn to another world
    World,
    /// The feature ledger's check
    Ledger,
    /// The check of the issue store
    #[value(alias = "issue_graph")]
    IssueGraph,
}

impl FamilyArg {
    const fn family(self) -> Family {
        match self {
            Self::Typestate => Family::Typestate,
            Self::Lease => Family::Lease,
            Self::Execution => Family::Execution,
            Self::Instruction => Family::Instruction,
            Self::Loop => Family::Loop,
            Self::World => Family::World,
            Self::Ledger => Family::Ledger,
            Self::IssueGraph => Family::IssueGraph,
        }
    }
}

impl ClassesArgs {
    pub(crate) fn run(self) -> Finished {
        Finished::new("classes", self.perform())
    }

    fn perform(self) -> Result<Answer, CliError> {
        if self.markdown {
            let page = page::page(RetryPolicyFile::embedded()?.policy());
            return Ok(Answer::new(json!({"page": page}), page));
        }
        // What a class means can be determined whatever is wrong with the
        // policy.
        let active = RetryPolicyFile::find(self.config.as_deref());
        let policy = active.as_ref().ok().map(RetryPolicyFile::policy);
        let family = self.family.map(FamilyArg::family);
        let all = entries(policy);
        let chosen = if self.classes.is_empty() {
            all.into_iter()
                .filter(|entry| family.is_none() || entry.family() == family)
                .collect()
        } else {
            self.classes
                .iter()
                .map(|word| entry::find(&all, word.trim()).cloned())
                .collect::<Result<Vec<_>, _>>()?
        };
        let text = if self.classes.is_empty() {
            listing::short(&chosen, active.as_ref().ok())
        } else {
            listing::full(&chosen, active.as_ref().ok())
        };
        let document = json!({
            "policy": active.as_ref().map_or_else(unusable, RetryPolicyFile::document),
            "count": chosen.len(),
        });
        let answer = Answer::new(document, text).items(chosen.iter().map(ClassEntry::document));
        Ok(match active {
            Ok(_) => answer,
            Err(error) => answer
                .note(format!("error: {}", error.chain()))
                .note("hint: the loops refuse to run with this policy; its rules are not shown")
                .refused(true),
        })
    }
}

fn unusable(error: &CliError) -> Value {
    let classes: Vec<_> = error.class().iter().map(|class| class.as_str()).collect();
    json!({"error": error.chain(), "failureClasses": classes})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_can_be_asked_for_by_its_text() {
        for family in Family::ALL {
            let arg = FamilyArg::from_str(family.as_str(), false).unwrap();
            assert_eq!(arg.family(), *family);
        }
    }
}

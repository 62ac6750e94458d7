//! `premath policy`: shows, explains, checks, compares and seals the artifacts
//! that the loops are ruled by (`contracts.md` 7, `tool-gate.md` 4).

mod artifact;
mod call;
mod check;
mod diff;
mod explain;
mod file;
mod seal;
mod show;
mod words;

pub(crate) use check::PolicyCheckAnswer;
pub(crate) use diff::PolicyDiffAnswer;
pub(crate) use explain::PolicyExplainAnswer;
pub(crate) use file::{Configuration, RetryPolicyFile};
pub(crate) use seal::PolicySealAnswer;
pub(crate) use show::PolicyShowAnswer;

use crate::answer::Finished;
use crate::error::CliError;
use crate::policy_kind::PolicyKind;
use artifact::Artifact;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `premath policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Show the policy that is in force
    Show(show::ShowArgs),
    /// Explain the policy, or what it decides about a tool call
    Explain(explain::ExplainArgs),
    /// Write the digest of an edited policy into its file
    Seal(seal::SealArgs),
    /// Check a policy file and name what is wrong with it
    Check(check::CheckArgs),
    /// Show which rules and limits of two policies differ
    Diff(diff::DiffArgs),
}

impl PolicyArgs {
    pub(crate) fn run(self) -> Finished {
        match self.command {
            PolicyCommand::Show(args) => Finished::new("policy.show", args.perform()),
            PolicyCommand::Explain(args) => Finished::new("policy.explain", args.perform()),
            PolicyCommand::Seal(args) => args.run(),
            PolicyCommand::Check(args) => args.run(),
            PolicyCommand::Diff(args) => Finished::new("policy.diff", args.perform()),
        }
    }
}

/// Which policy a command reads.
#[derive(Debug, Args)]
struct Source {
    /// Read the policy of this kind that is in force
    #[arg(long, value_enum, default_value_t, conflicts_with = "policy")]
    kind: PolicyKind,
    /// Read this file, sealed or not, instead of the policy in force
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Set the configuration file [default: harness.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Source {
    fn artifact(&self) -> Result<Artifact, CliError> {
        match &self.policy {
            Some(path) => Artifact::read(path),
            None => Artifact::in_force(self.kind, self.config.as_deref()),
        }
    }
}

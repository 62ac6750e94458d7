//! `premath retry`: opens issues for another attempt (`control::retry`), and
//! says what the retry policy decides about a failure, for wrappers that run
//! commands themselves (`contracts.md` 7).

use crate::answer::{Answer, Finished};
use crate::control::AgainArgs;
use crate::error::CliError;
use crate::policy::{Configuration, RetryPolicyFile};
use clap::{Args, Subcommand};
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::retry::{Decision, RetryOutcome, decide, is_class_word};
use premath_kernel::record::trajectory::RetryRecord;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `premath retry`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct RetryArgs {
    #[command(subcommand)]
    command: Option<RetryCommand>,
    #[command(flatten)]
    again: AgainArgs,
}

#[derive(Debug, Subcommand)]
enum RetryCommand {
    /// Decide whether to retry or escalate a failed attempt
    Decide(DecideArgs),
}

/// A failure and the policy that decides over it.
#[derive(Debug, Args)]
pub(crate) struct FailureArgs {
    /// Add a class of the failure; the first that a rule names decides
    #[arg(long = "class", value_name = "CLASS", num_args = 1.., required = true)]
    classes: Vec<String>,
    /// Set the retry policy
    ///
    /// [default: the one in harness.toml, else
    /// policies/control/harness-retry-policy-v1.json if it exists, else the
    /// embedded one]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Set the configuration file [default: harness.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl FailureArgs {
    pub(crate) fn policy(&self) -> Result<RetryPolicyFile, CliError> {
        match &self.policy {
            Some(path) => RetryPolicyFile::read(path),
            None => RetryPolicyFile::find(self.config.as_deref()),
        }
    }

    pub(crate) fn configuration(&self) -> Result<Configuration, CliError> {
        Configuration::read(self.config.as_deref())
    }

    /// Returns the classes as words.
    pub(crate) fn classes(&self) -> Result<Vec<String>, CliError> {
        self.classes
            .iter()
            .map(|class| class.trim())
            .map(|class| match is_class_word(class) {
                true => Ok(class.to_owned()),
                false => Err(CliError::Usage(format!(
                    "invalid --class `{class}`: expected a failure class, for example \
                    `check_failed` or `tool.result_missing`"
                ))),
            })
            .collect()
    }
}

#[derive(Debug, Args)]
struct DecideArgs {
    #[command(flatten)]
    failure: FailureArgs,
    /// Set the number of the failed attempt, from 1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    attempt: u32,
}

/// The answer of `premath retry decide`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecideAnswer<'a> {
    /// The policy's id.
    policy_id: &'a str,
    /// The policy's digest.
    policy_digest: &'a str,
    /// The policy's file; null for the embedded one.
    policy_path: Option<String>,
    /// The decision of the policy.
    retry: RetryRecord,
}

impl RetryArgs {
    pub(crate) fn run(self) -> Finished {
        match self.command {
            Some(RetryCommand::Decide(args)) => Finished::new("retry.decide", args.perform()),
            None => self.again.run(),
        }
    }
}

impl DecideArgs {
    fn perform(self) -> Result<Answer, CliError> {
        let active = self.failure.policy()?;
        let classes = self.failure.classes()?;
        let policy = active.policy();
        let decision = decide(policy, &classes, self.attempt);
        let answer = Answer::new(
            DecideAnswer {
                policy_id: policy.policy_id(),
                policy_digest: policy.policy_digest(),
                policy_path: active.path().map(|path| path.display().to_string()),
                retry: RetryRecord::from(&decision),
            },
            format!("{}\n", describe(&decision)),
        );
        let strange =
            |class: &&String| !policy.knows(class) && class.parse::<FailureClass>().is_err();
        Ok(classes
            .iter()
            .filter(strange)
            .fold(answer, |answer, class| {
                answer.note(format!(
                    "note: unknown class `{class}`; the default rule applies"
                ))
            }))
    }
}

/// Describes a decision in one line.
pub(crate) fn describe(decision: &Decision) -> String {
    let outcome = match decision.outcome {
        RetryOutcome::Retry => format!("retry after backoff {}", decision.backoff_class),
        RetryOutcome::Escalate(action) => {
            format!("escalate: {} ({})", action.as_str(), action.meaning())
        }
    };
    format!(
        "{} (rule {}), attempt {} of {}: {outcome}",
        decision.class, decision.rule_id, decision.attempt, decision.max_attempts
    )
}

//! `premath policy explain`: a policy in plain words, or its decision about a
//! call.

use super::Source;
use super::artifact::{ArtifactRef, Policy};
use super::call::{CallArgs, JudgedCall};
use super::words;
use crate::answer::Answer;
use crate::error::CliError;
use crate::terminal::{plain, wrapped};
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    call: CallArgs,
}

/// The answer of `premath policy explain`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyExplainAnswer {
    #[serde(flatten)]
    source: ArtifactRef,
    /// The policy in plain words; absent where a call was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<String>,
    /// The call that was given, with the decision about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<JudgedCall>,
}

impl ExplainArgs {
    pub(super) fn perform(self) -> Result<Answer, CliError> {
        let artifact = self.source.artifact()?;
        let source = artifact.reference();
        if self.call.is_given() {
            let call = self.call.judged(&artifact.policy)?;
            let text = verdict(&call, &artifact.place());
            let document = PolicyExplainAnswer {
                source,
                explanation: None,
                call: Some(call),
            };
            return Ok(Answer::new(document, text));
        }
        let explanation = match &artifact.policy {
            Policy::Turn(policy) => words::turn(policy),
            Policy::Retry(policy) => words::retry(policy),
        };
        let text = format!("{}\n{explanation}", artifact.head());
        let document = PolicyExplainAnswer {
            source,
            explanation: Some(explanation),
            call: None,
        };
        Ok(Answer::new(document, text))
    }
}

fn verdict(call: &JudgedCall, place: &str) -> String {
    let verdict = call.verdict();
    let mut text = format!(
        "{}  rule {} ({place})\n",
        verdict.decision.as_str(),
        plain(&verdict.rule_id)
    );
    if verdict.is_denial() {
        text.push_str(&wrapped(&verdict.reason, 2));
    }
    // One command is what was asked about.
    if call.commands().len() > 1 {
        text.push_str("commands found:\n");
        for command in call.commands() {
            let _ = writeln!(text, "  {}", plain(command));
        }
    }
    text
}

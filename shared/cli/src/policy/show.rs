//! `premath policy show`: the policy in force, as a table.

use super::Source;
use super::artifact::{Artifact, ArtifactRef, Policy};
use super::words;
use crate::answer::Answer;
use crate::error::CliError;
use crate::terminal::table;
use clap::Args;
use premath_kernel::policy::retry::{RetryPolicy, RuleTerms};
use premath_kernel::policy::turn::TurnPolicy;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// How many characters of a rule's conditions are shown.
const CONDITIONS_MAX: usize = 80;

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    source: Source,
}

/// The answer of `premath policy show`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyShowAnswer {
    #[serde(flatten)]
    source: ArtifactRef,
    /// The artifact.
    policy: Value,
}

impl ShowArgs {
    pub(super) fn perform(self) -> Result<Answer, CliError> {
        let artifact = self.source.artifact()?;
        let text = text(&artifact);
        let document = PolicyShowAnswer {
            source: artifact.reference(),
            policy: artifact.document,
        };
        Ok(Answer::new(document, text))
    }
}

fn text(artifact: &Artifact) -> String {
    let head = artifact.head();
    match &artifact.policy {
        Policy::Turn(policy) => format!("{head}\n{}", turn(policy)),
        Policy::Retry(policy) => format!("{head}\n{}", retry(policy)),
    }
}

fn turn(policy: &TurnPolicy) -> String {
    let rules = policy.tools().iter().enumerate().map(|(at, rule)| {
        [
            (at + 1).to_string(),
            rule.rule_id.clone(),
            rule.decision.as_str().to_owned(),
            rule.tool.map_or("any", |tool| tool.as_str()).to_owned(),
            shortened(&words::conditions(rule)),
        ]
    });
    let rules: Vec<_> = rules.collect();
    format!(
        "{}\n{}",
        table(["", "RULE", "DECISION", "TOOL", "IF"], &rules),
        words::turn_rules(policy)
    )
}

fn retry(policy: &RetryPolicy) -> String {
    let row = |id: &str, terms: &RuleTerms, classes: String| {
        [
            id.to_owned(),
            terms.max_attempts.to_string(),
            terms.backoff_class.clone(),
            terms.escalation_action.as_str().to_owned(),
            shortened(&classes),
        ]
    };
    let rules = policy.rules().iter().map(|rule| {
        let classes: Vec<&str> = rule.failure_classes.iter().map(String::as_str).collect();
        row(&rule.rule_id, &rule.terms, classes.join(", "))
    });
    let default = row("default", policy.default_rule(), "any other".to_owned());
    let rules: Vec<_> = rules.chain([default]).collect();
    table(["RULE", "ATTEMPTS", "BACKOFF", "THEN", "CLASSES"], &rules)
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= CONDITIONS_MAX {
        return text.to_owned();
    }
    let kept: String = text.chars().take(CONDITIONS_MAX).collect();
    let kept = kept
        .rsplit_once([' ', '|'])
        .map_or(&*kept, |(kept, _)| kept);
    format!("{} …", kept.trim_end_matches(','))
}

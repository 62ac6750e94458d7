//! `premath policy check`: whether a file is a policy that the loops accept.

use super::artifact::{Artifact, bytes_of, kind_of};
use crate::answer::{Answer, CheckVerdict, Finished};
use crate::error::CliError;
use crate::policy_kind::PolicyKind;
use crate::terminal::plain;
use clap::Args;
use premath_kernel::failure::FailureClass;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The policy file, of either kind
    #[arg(value_name = "FILE")]
    path: PathBuf,
}

/// The answer of `premath policy check`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyCheckAnswer {
    /// The verdict.
    result: CheckVerdict,
    /// The kind of policy that the file states.
    kind: PolicyKind,
    /// The policy's id; null where the file is rejected.
    policy_id: Option<String>,
    /// The policy's digest; null where the file is rejected.
    policy_digest: Option<String>,
    /// The class of the fault, if there is one.
    failure_classes: Vec<FailureClass>,
    /// The fault: the field, and what would be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

impl CheckArgs {
    pub(super) fn run(self) -> Finished {
        Finished::on("policy.check", "path", Ok(self.path), check)
    }
}

fn check(path: &Path) -> Result<Answer, CliError> {
    let bytes = bytes_of(path)?;
    let kind = kind_of(path, &bytes)?;
    let fault = match Artifact::of(kind, Some(path), &bytes) {
        Ok(artifact) => {
            let (id, digest) = (artifact.policy.id(), artifact.policy.digest());
            let text = format!("accepted  {} {}\n  {digest}\n", kind.name(), plain(id));
            let document = PolicyCheckAnswer {
                result: CheckVerdict::Accepted,
                kind,
                policy_id: Some(id.to_owned()),
                policy_digest: Some(digest.to_owned()),
                failure_classes: Vec::new(),
                fault: None,
            };
            return Ok(Answer::new(document, text));
        }
        Err(fault) => fault,
    };
    let document = PolicyCheckAnswer {
        result: CheckVerdict::Rejected,
        kind,
        policy_id: None,
        policy_digest: None,
        failure_classes: fault.classes(),
        fault: Some(fault.chain()),
    };
    let answer = Answer::new(document, format!("rejected  {}\n", kind.name()));
    let answer = answer
        .refused(true)
        .note(format!("error: {}", fault.chain()));
    Ok(match fault.hint() {
        Some(hint) => answer.note(format!("hint: {hint}")),
        None => answer,
    })
}

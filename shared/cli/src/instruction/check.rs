//! `premath instruction check`

use crate::answer::{Answer, CheckVerdict};
use crate::error::CliError;
use crate::terminal::plain;
use premath_kernel::authority::claim::{ChangeMorphism, covers_nothing};
use premath_kernel::authority::instruction::{BATCH_CHANGES, BATCH_KIND, Classification};
use premath_kernel::failure::FailureClass;
use premath_memory::instruction::{ActivePolicy, read};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// The answer of `premath instruction check`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstructionCheckAnswer {
    /// The verdict.
    result: CheckVerdict,
    /// The classes of the faults, each once.
    failure_classes: Vec<FailureClass>,
    /// The faults for which the instruction is refused.
    errors: Vec<Fault>,
    /// What sessions, rows and witnesses name it by.
    instruction_ref: String,
    /// How the active policy classifies it.
    classification: Classification,
    /// The active policy's digest.
    policy_digest: String,
    /// The active policy's artifact; null for the embedded one.
    policy_path: Option<String>,
    /// The kinds of change that its claims cover, as in `issue_update`.
    covers: Vec<&'static str>,
    /// Claims that refer to changes and cover none that there is.
    covers_nothing: Vec<String>,
}

/// A reason to refuse an instruction.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Fault {
    /// The class of the fault.
    failure_class: FailureClass,
    /// The description of the fault.
    detail: String,
}

/// Checks an instruction; one that is not accepted is refused.
pub(super) fn perform(path: &Path, active: &ActivePolicy) -> Result<Answer, CliError> {
    let (answer, refused) = checked(path, active)?;
    Ok(answer.refused(refused))
}

/// Checks an instruction; returns whether it is refused. One for a batch is held
/// to what a batch does; any other to the policy alone.
pub(crate) fn checked(path: &Path, active: &ActivePolicy) -> Result<(Answer, bool), CliError> {
    let instruction = read(path)?;
    let envelope = instruction.envelope();
    let kind = envelope.instruction_type.as_deref();
    let faults = if kind == Some(BATCH_KIND) {
        instruction.faults_to_act(&active.policy, BATCH_CHANGES)
    } else {
        instruction.faults(&active.policy, &[])
    };
    let classification = active.policy.classify(kind);
    let mut failure_classes = Vec::new();
    for fault in &faults {
        if !failure_classes.contains(&fault.class()) {
            failure_classes.push(fault.class());
        }
    }
    let claims = instruction.claims();
    let covers: Vec<_> = claims.covered().map(ChangeMorphism::name).collect();
    let idle = envelope.capability_claims.iter();
    let idle: Vec<String> = idle.filter(|c| covers_nothing(c)).cloned().collect();
    let refused = !faults.is_empty();
    let document = InstructionCheckAnswer {
        result: CheckVerdict::of(!refused),
        failure_classes,
        errors: faults
            .iter()
            .map(|fault| Fault {
                failure_class: fault.class(),
                detail: fault.to_string(),
            })
            .collect(),
        instruction_ref: instruction.reference(),
        classification,
        policy_digest: active.policy.policy_digest().to_owned(),
        policy_path: active.path.as_ref().map(|path| path.display().to_string()),
        covers,
        covers_nothing: idle,
    };
    let text = text_of(&document, active);
    Ok((Answer::new(document, text), refused))
}

fn text_of(answer: &InstructionCheckAnswer, active: &ActivePolicy) -> String {
    let result = match answer.errors.is_empty() {
        true => "accepted",
        false => "rejected",
    };
    let mut text = format!("{result}  {}\n", plain(&answer.instruction_ref));
    let covers = match answer.covers.is_empty() {
        true => "nothing".to_owned(),
        false => answer.covers.join(", "),
    };
    let lines = [
        ("type", answer.classification.to_string()),
        ("policy", policy_text(active)),
        ("covers", covers),
    ];
    for (name, value) in lines {
        let _ = writeln!(text, "  {name:<8} {}", plain(&value));
    }
    for claim in &answer.covers_nothing {
        let _ = writeln!(
            text,
            "    warning  `{}` matches no capability",
            plain(claim)
        );
    }
    for error in &answer.errors {
        let _ = writeln!(text, "  {}: {}", error.failure_class, plain(&error.detail));
    }
    text
}

pub(super) fn policy_text(active: &ActivePolicy) -> String {
    let place = match &active.path {
        Some(path) => path.display().to_string(),
        None => "embedded".to_owned(),
    };
    format!("{} ({place})", active.policy.policy_digest())
}

//! `premath instruction show`

use super::check::policy_text;
use crate::answer::Answer;
use crate::error::CliError;
use crate::terminal::plain;
use premath_kernel::authority::instruction::InstructionScope;
use premath_kernel::authority::instruction::{Classification, InstructionEnvelope};
use premath_memory::instruction::{ActivePolicy, read};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// The answer of `premath instruction show`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstructionShowAnswer {
    /// Its id: the file's name without `.json`.
    instruction_id: String,
    /// What sessions, rows and witnesses name it by.
    instruction_ref: String,
    /// `instr1_` and the digest of the document.
    instruction_digest: String,
    /// How the active policy classifies it.
    classification: Classification,
    /// Whether it was written under the active policy.
    policy_is_active: bool,
    /// The parts of the envelope.
    instruction: InstructionEnvelope,
}

pub(super) fn perform(path: &Path, active: &ActivePolicy) -> Result<Answer, CliError> {
    let instruction = read(path)?;
    let envelope = instruction.envelope();
    let classification = active.policy.classify(envelope.instruction_type.as_deref());
    let policy_is_active = envelope.policy_digest == active.policy.policy_digest();
    let listed = |words: &std::collections::BTreeSet<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.join(", ")
    };
    let lines = [
        ("intent", envelope.intent.clone()),
        ("scope", scope_line(&envelope.scope)),
        ("type", classification.to_string()),
        ("digest", instruction.digest().to_owned()),
        ("normalizer", envelope.normalizer_id.clone()),
        (
            "policy",
            if policy_is_active {
                format!("{} (active)", envelope.policy_digest)
            } else {
                format!(
                    "{} (not the active policy {})",
                    envelope.policy_digest,
                    policy_text(active)
                )
            },
        ),
        ("claims", listed(&envelope.capability_claims)),
        ("checks", listed(&envelope.requested_checks)),
    ];
    let mut text = format!("{}\n", plain(&instruction.reference()));
    for (name, value) in lines {
        let _ = writeln!(text, "  {name:<10} {}", plain(&value));
    }
    let document = InstructionShowAnswer {
        instruction_id: instruction.id().to_owned(),
        instruction_ref: instruction.reference(),
        instruction_digest: instruction.digest().to_owned(),
        classification,
        policy_is_active,
        instruction: envelope.clone(),
    };
    Ok(Answer::new(document, text))
}

/// Returns a scope in a line: what it is about, then what it covers.
fn scope_line(scope: &InstructionScope) -> String {
    let lists = [
        ("issues", &scope.issues),
        ("labels", &scope.labels),
        ("types", &scope.types),
        ("paths", &scope.paths),
    ];
    let mut line = format!("{} {}", scope.kind, scope.target);
    for (name, words) in lists {
        if let Some(words) = words {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            line.push_str(&format!("; {name} {}", words.join(", ")));
        }
    }
    line
}

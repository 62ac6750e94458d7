//! `premath instruction new`

use super::named;
use crate::answer::Answer;
use crate::error::CliError;
use crate::terminal::plain;
use crate::trust::accept_created;
use clap::Args;
use premath_evidence::SHELL_NORMALIZER;
use premath_kernel::authority::claim::{ChangeMorphism, EVERY_CHANGE};
use premath_kernel::authority::instruction::{
    BATCH_CHANGES, BATCH_KIND, Instruction, InstructionEnvelope, InstructionScope, VERIFY_CHECK,
    file_name,
};
use premath_kernel::json::canonical::value_of;
use premath_kernel::json::time::Moment;
use premath_memory::clock;
use premath_memory::instruction::{ActivePolicy, InstructionFileError};
use premath_memory::roots::MemoryRoots;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The folder of envelopes, below the repository root.
const FOLDER: &str = "instructions";

/// The id of the envelope that `premath init` writes.
pub(crate) const FIRST_ID: &str = "batch";

/// Arguments of `premath instruction new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Set the intent, in your words
    #[arg(long, value_name = "TEXT")]
    intent: String,
    /// Set the last part of the file name, after the timestamp
    #[arg(long, value_name = "ID", default_value = FIRST_ID)]
    id: String,
    /// Set the kind of the scope, for people
    #[arg(long, value_name = "KIND", default_value = "repo")]
    scope_kind: String,
    /// Set the target of the scope [default: the name of the repository root's folder]
    #[arg(long, value_name = "NAME")]
    scope_target: Option<String>,
    /// Cover only this issue (repeatable)
    #[arg(long = "scope-issue", value_name = "ID")]
    scope_issues: Vec<String>,
    /// Cover only issues with this label, or another one given (repeatable)
    #[arg(long = "scope-label", value_name = "LABEL")]
    scope_labels: Vec<String>,
    /// Cover only issues of this type, or another one given (repeatable)
    #[arg(long = "scope-type", value_name = "TYPE")]
    scope_types: Vec<String>,
    /// Let work change only files that this pattern matches, from the root (repeatable)
    #[arg(long = "scope-path", value_name = "PATTERN")]
    scope_paths: Vec<String>,
    /// Set the type, as the active policy names it
    #[arg(long = "type", value_name = "TYPE", default_value = BATCH_KIND)]
    instruction_type: String,
    /// Execute the instruction even if its type is unknown
    #[arg(long)]
    allow_unknown: bool,
    /// Bind evidence to this normaliser [default: premath.harness.shell.v1, or the first that the policy allows]
    #[arg(long, value_name = "ID")]
    normalizer: Option<String>,
    /// Claim this change: issue_update, … or all (repeatable) [default: what a batch does, and
    /// issue_discover]
    #[arg(long = "claim", value_name = "CLAIM")]
    claims: Vec<String>,
    /// Request this check: verify or startup (repeatable) [default: verify]
    #[arg(long = "check", value_name = "CHECK")]
    checks: Vec<String>,
    /// Name it in harness.toml, in the place of the one there
    #[arg(long)]
    set: bool,
}

/// The answer of `premath instruction new`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstructionNewAnswer {
    /// The envelope's file.
    path: String,
    /// What sessions, rows and witnesses name it by.
    instruction_ref: String,
    /// `instr1_` and the digest of the document.
    instruction_digest: String,
    /// The policy that it is bound to.
    policy_digest: String,
}

impl NewArgs {
    pub(super) fn perform(self, active: &ActivePolicy) -> Result<Answer, CliError> {
        let root = MemoryRoots::discover(Path::new("."))?.repository;
        let mut envelope = first(active, &root);
        envelope.intent = self.intent;
        envelope.scope.kind = self.scope_kind;
        if let Some(target) = self.scope_target {
            envelope.scope.target = target;
        }
        let given = |words: Vec<String>| {
            let words: BTreeSet<String> = words.into_iter().collect();
            (!words.is_empty()).then_some(words)
        };
        envelope.scope.issues = given(self.scope_issues);
        envelope.scope.labels = given(self.scope_labels);
        envelope.scope.types = given(self.scope_types);
        envelope.scope.paths = given(self.scope_paths);
        envelope.instruction_type = Some(self.instruction_type);
        envelope.typing_policy.allow_unknown = self.allow_unknown;
        if let Some(normalizer) = self.normalizer {
            envelope.normalizer_id = normalizer;
        }
        if !self.claims.is_empty() {
            envelope.capability_claims = self.claims.iter().map(|claim| full(claim)).collect();
        }
        if !self.checks.is_empty() {
            envelope.requested_checks = self.checks.into_iter().collect();
        }
        let (path, instruction) = write(&root, &self.id, &envelope)?;
        let text = format!(
            "{}\n  {}\n",
            plain(&path.display().to_string()),
            plain(&instruction.reference())
        );
        let document = InstructionNewAnswer {
            path: path.display().to_string(),
            instruction_ref: instruction.reference(),
            instruction_digest: instruction.digest().to_owned(),
            policy_digest: envelope.policy_digest.clone(),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{FOLDER}/{name}");
        let unaccepted = accept_created(&root, &[&name]);
        if self.set {
            named::set(&root, &name)?;
        }
        let faults = if envelope.instruction_type.as_deref() == Some(BATCH_KIND) {
            instruction.faults_to_act(&active.policy, &[])
        } else {
            instruction.faults(&active.policy, &[])
        };
        let answer = Answer::new(document, text);
        let answer = unaccepted.into_iter().fold(answer, |answer, error| {
            answer.note(format!("warning: cannot record it as accepted: {error}"))
        });
        Ok(faults.into_iter().fold(answer, |answer, fault| {
            answer.note(format!("warning: it is invalid: {fault}"))
        }))
    }
}

/// Returns an envelope for a batch on a repository, under a policy.
pub(crate) fn first(active: &ActivePolicy, root: &Path) -> InstructionEnvelope {
    let policy = &active.policy;
    let target = root.file_name().unwrap_or_default().to_string_lossy();
    let scope = InstructionScope {
        kind: "repo".to_owned(),
        target: match target.trim() {
            "" => "repository".to_owned(),
            name => name.to_owned(),
        },
        ..InstructionScope::default()
    };
    let normalizers = policy.allowed_normalizers();
    let shell = normalizers.get(SHELL_NORMALIZER);
    let mut envelope = InstructionEnvelope::new(
        "Work through the ready issues of this repository.",
        scope,
        BATCH_KIND,
        shell.or(normalizers.first()).cloned().unwrap_or_default(),
        policy.policy_digest(),
    );
    let kinds = BATCH_CHANGES.iter().chain(&[ChangeMorphism::IssueDiscover]);
    envelope.capability_claims = kinds.map(|kind| kind.claim().to_owned()).collect();
    envelope.requested_checks.insert(VERIFY_CHECK.to_owned());
    envelope
}

/// How many envelopes with one id a second may have.
const NAMES_MAX: usize = 1_000;

/// Writes an envelope into the folder of envelopes, and overwrites nothing: its
/// id gets a number where the name is taken.
///
/// # Errors
///
/// An envelope that could not be read back, and a file that cannot be made.
pub(crate) fn write(
    root: &Path,
    id: &str,
    envelope: &InstructionEnvelope,
) -> Result<(PathBuf, Instruction), CliError> {
    write_at(root, id, envelope, clock::now())
}

fn write_at(
    root: &Path,
    id: &str,
    envelope: &InstructionEnvelope,
    now: Moment,
) -> Result<(PathBuf, Instruction), CliError> {
    let folder = root.join(FOLDER);
    let text = format!("{:#}\n", value_of(envelope));
    let mut number = 1;
    loop {
        let name = match number {
            1 => file_name(id, now.wall),
            _ => file_name(&format!("{}-{number}", id.trim()), now.wall),
        };
        let path = folder.join(&name);
        let instruction = Instruction::parse(&name, text.as_bytes()).map_err(|source| {
            InstructionFileError::Envelope {
                path: path.clone(),
                source,
            }
        })?;
        fs::create_dir_all(&folder).map_err(CliError::file("make", &folder))?;
        let opened = OpenOptions::new().write(true).create_new(true).open(&path);
        if let Err(error) = &opened
            && error.kind() == ErrorKind::AlreadyExists
            && number < NAMES_MAX
        {
            number += 1;
            continue;
        }
        opened
            .map_err(CliError::file("create", &path))?
            .write_all(text.as_bytes())
            .map_err(CliError::file("write", &path))?;
        return Ok((path, instruction));
    }
}

/// Returns a claim in full; one of the contract's may be given by its last part.
fn full(claim: &str) -> String {
    let claim = claim.trim();
    let kind = ChangeMorphism::ALL.iter().find(|kind| kind.name() == claim);
    match kind {
        Some(kind) => kind.claim().to_owned(),
        None if claim == "all" => format!("{EVERY_CHANGE}.all"),
        None => claim.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::authority::instruction::InstructionPolicy;

    #[test]
    fn the_first_envelope_is_admitted_by_the_embedded_policy() {
        let folder = tempfile::tempdir().unwrap();
        let active = ActivePolicy {
            policy: InstructionPolicy::embedded().unwrap(),
            path: None,
        };
        let envelope = first(&active, folder.path());
        let (path, instruction) = write(folder.path(), FIRST_ID, &envelope).unwrap();
        assert_eq!(instruction.faults(&active.policy, BATCH_CHANGES), []);
        let read = premath_memory::instruction::read(&path).unwrap();
        assert_eq!(read, instruction);
        // Within the same second another one gets a name of its own.
        let now = clock::now();
        let named = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let again = [(); 3].map(|()| write_at(folder.path(), "more", &envelope, now).unwrap());
        assert_eq!(
            again.each_ref().map(|(path, _)| named(path)),
            ["more", "more-2", "more-3"].map(|id| file_name(id, now.wall))
        );
        for (path, written) in &again {
            assert_eq!(premath_memory::instruction::read(path).unwrap(), *written);
        }
        assert_eq!(full("issue_add"), ChangeMorphism::IssueAdd.claim());
        assert_eq!(full("all"), "capabilities.change_morphisms.all");
        assert_eq!(full("mine.x"), "mine.x");
    }
}

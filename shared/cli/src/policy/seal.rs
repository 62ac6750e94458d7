//! `premath policy seal`: writes the digest of an edited policy into its file.

use super::artifact::{Policy, bytes_of, kind_of};
use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::operator;
use crate::policy_kind::PolicyKind;
use crate::terminal::plain;
use clap::Args;
use premath_kernel::policy::retry::{PolicyError, RetryPolicy};
use premath_kernel::policy::turn::{TurnPolicy, TurnPolicyError};
use premath_memory::artifact;
use premath_memory::roots::MemoryRoots;
use premath_memory::trust;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct SealArgs {
    /// The policy file, of either kind
    #[arg(value_name = "FILE")]
    path: PathBuf,
}

/// The answer of `premath policy seal`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicySealAnswer {
    /// The kind of policy.
    kind: PolicyKind,
    /// The policy's id.
    policy_id: String,
    /// The digest that the file had.
    previous_digest: String,
    /// The digest that it has.
    policy_digest: String,
    /// Whether the file was written; not if it had its digest already.
    changed: bool,
}

impl SealArgs {
    pub(super) fn run(self) -> Finished {
        Finished::on("policy.seal", "path", Ok(self.path), seal)
    }
}

fn seal(path: &Path) -> Result<Answer, CliError> {
    if operator::is_inside_step() {
        return Err(CliError::SealInsideStep);
    }
    let bytes = bytes_of(path)?;
    let kind = kind_of(path, &bytes)?;
    let digest = digest(kind, path, &bytes)?;
    let place = place_of_digest(&bytes).ok_or_else(|| CliError::DigestField {
        path: path.to_path_buf(),
    })?;
    let previous = String::from_utf8_lossy(&bytes[place.clone()]).into_owned();
    let sealed = [
        &bytes[..place.start],
        digest.as_bytes(),
        &bytes[place.end..],
    ]
    .concat();
    // What else is wrong is refused before the file is touched.
    let policy = Policy::parse(kind, path, &sealed)?;
    let is_changed = sealed != bytes;
    if is_changed {
        // A link is followed to the file, which is replaced.
        let file = fs::canonicalize(path).map_err(CliError::file("find", path))?;
        artifact::write(&file, &sealed)?;
    }
    let document = PolicySealAnswer {
        kind,
        policy_id: policy.id().to_owned(),
        previous_digest: previous.clone(),
        policy_digest: digest.clone(),
        changed: is_changed,
    };
    if !is_changed {
        return Ok(Answer::new(document, format!("unchanged  {digest}\n")));
    }
    let text = format!(
        "sealed  {}\n  old  {}\n  new  {digest}\n",
        kind.name(),
        plain(&previous)
    );
    let answer = Answer::new(document, text);
    Ok(match is_governing(path) {
        true => answer.note("hint: accept the changed file with `premath trust`"),
        false => answer,
    })
}

/// Computes the digest that a file must have.
fn digest(kind: PolicyKind, path: &Path, bytes: &[u8]) -> Result<String, CliError> {
    let path = path.to_path_buf();
    let turn = |source: TurnPolicyError| CliError::TurnPolicy {
        path: path.clone(),
        source,
    };
    let retry = |source: PolicyError| CliError::Policy {
        path: path.clone(),
        source,
    };
    match kind {
        PolicyKind::Turn => TurnPolicy::digest(bytes).map_err(turn),
        PolicyKind::Retry => RetryPolicy::digest(bytes).map_err(retry),
    }
}

/// Returns whether a file is of a repository whose governing files are accepted.
fn is_governing(path: &Path) -> bool {
    let Ok(path) = fs::canonicalize(path) else {
        return false;
    };
    let folder = path.parent().unwrap_or(&path);
    let Ok(roots) = MemoryRoots::discover(folder) else {
        return false;
    };
    path.starts_with(&roots.repository) && matches!(trust::read(&roots), Ok(Some(_)))
}

/// Returns where the text of the document's own `policyDigest` is, without its
/// quotes. The bytes are JSON.
fn place_of_digest(bytes: &[u8]) -> Option<Range<usize>> {
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let text = string_at(bytes, at)?;
                at = text.end + 1;
                if depth == 1 && bytes[text] == *b"policyDigest" {
                    at = after_blanks(bytes, at);
                    // As a value it is followed by no colon.
                    if bytes.get(at) == Some(&b':') {
                        return string_at(bytes, after_blanks(bytes, at + 1));
                    }
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns where the text of the string that begins at a quote is.
fn string_at(bytes: &[u8], quote: usize) -> Option<Range<usize>> {
    if bytes.get(quote) != Some(&b'"') {
        return None;
    }
    let mut at = quote + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(quote + 1..at),
            _ => at += 1,
        }
    }
}

fn after_blanks(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
    from + blanks.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_the_document_itself_is_found() {
        for (text, expected) in [
            (r#"{"policyDigest": "x"}"#, Some("x")),
            (
                r#"{"a": {"policyDigest": "y"}, "policyDigest" : "x"}"#,
                Some("x"),
            ),
            (r#"{"a": "policyDigest", "policyDigest":"x"}"#, Some("x")),
            (
                r#"{"a": "\"policyDigest\": \"y", "policyDigest":"x\""}"#,
                Some(r#"x\""#),
            ),
            (r#"{"policyDigest": 3}"#, None),
            (r#"{"a": [{"policyDigest": "x"}]}"#, None),
            (r#"{"a": "policyDigest"}"#, None),
        ] {
            let found = place_of_digest(text.as_bytes()).map(|place| &text[place]);
            assert_eq!(found, expected, "{text}");
        }
    }
}

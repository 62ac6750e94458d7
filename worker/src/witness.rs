//! Witness files: what a command or a change was, in a document that rows
//! refer to by its digest (HARNESS-RUNTIME 3.2).

use crate::supervisor::{Exit, ExitCause};
use crate::tree::TreeState;
use premath_kernel::canonical;
use premath_kernel::token;
use premath_memory::{StoreError, projection};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A witness that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    /// `ciwitness://<step>/<phase>/<H of the document>`.
    pub(crate) reference: String,
}

/// Writes a witness document below a folder.
pub(crate) fn write(
    folder: &Path,
    step_id: &str,
    phase: &str,
    document: &Value,
) -> Result<Witness, StoreError> {
    projection::write_value(&file(folder, step_id, phase, "json"), document)?;
    let digest = canonical::sha256_hex(canonical::canonical_value(document).as_bytes());
    Ok(Witness {
        reference: format!("ciwitness://{}/{phase}/{}", token::encode(step_id), digest),
    })
}

/// Names the file of a step's phase; a name too long for the disk ends in its
/// digest.
pub(crate) fn file(folder: &Path, step_id: &str, phase: &str, extension: &str) -> PathBuf {
    const LONGEST: usize = 180;
    let mut stem = token::encode(step_id);
    if stem.len() > LONGEST {
        let digest = canonical::sha256_hex(step_id.as_bytes());
        stem.truncate(LONGEST - 17);
        stem = format!("{stem}-{}", &digest[..16]);
    }
    folder.join(format!("{stem}.{phase}.{extension}"))
}

/// What the witness of a command says.
pub(crate) struct CommandFacts<'a> {
    pub(crate) step_id: &'a str,
    pub(crate) issue_id: &'a str,
    pub(crate) generation: u64,
    pub(crate) phase: &'a str,
    pub(crate) command_digest: &'a str,
    pub(crate) workdir: &'a str,
    pub(crate) environment: &'a [String],
    pub(crate) exit: &'a Exit,
    pub(crate) failure_classes: &'a [String],
    pub(crate) started_at: jiff::Timestamp,
    pub(crate) finished_at: jiff::Timestamp,
    pub(crate) before: &'a TreeState,
    pub(crate) after: &'a TreeState,
    pub(crate) stdout: &'a Path,
    pub(crate) stderr: &'a Path,
}

impl CommandFacts<'_> {
    /// Returns the document.
    pub(crate) fn document(&self) -> Value {
        let stream = |report: &crate::supervisor::StreamReport, path: &Path| {
            json!({
                "bytes": report.bytes,
                "sha256": report.sha256,
                "cutBytes": report.cut_bytes,
                "writeError": report.write_error,
                "path": path,
            })
        };
        json!({
            "schema": 1,
            "witnessKind": "premath.harness.command_witness.v1",
            "stepId": self.step_id,
            "issueId": self.issue_id,
            "generation": self.generation,
            "phase": self.phase,
            "commandDigest": self.command_digest,
            "workdir": self.workdir,
            "environmentNames": self.environment,
            "exit": {
                "cause": cause(&self.exit.cause),
                "code": self.exit.code,
                "signal": self.exit.signal,
            },
            "durationMs": self.exit.duration_ms,
            "leakedProcesses": self.exit.leaked,
            "survivingProcesses": self.exit.survivors,
            "failureClasses": self.failure_classes,
            "startedAt": premath_kernel::time::micros(self.started_at),
            "finishedAt": premath_kernel::time::micros(self.finished_at),
            "before": self.before,
            "after": self.after,
            "stdout": stream(&self.exit.stdout, self.stdout),
            "stderr": stream(&self.exit.stderr, self.stderr),
        })
    }
}

fn cause(cause: &ExitCause) -> &'static str {
    match cause {
        ExitCause::Exited => "exited",
        ExitCause::Limit => "limit",
        ExitCause::Stopped => "stopped",
        ExitCause::SpawnFailed { .. } => "spawn_failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_too_long_for_the_disk_ends_in_its_digest() {
        let long = "x".repeat(300);
        let name = |id: &str| {
            let path = file(Path::new("/w"), id, "verify", "json");
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert!(name(&long).len() < 255);
        assert_ne!(name(&long), name(&format!("{long}y")));
        assert_eq!(name("w.1.a/b.1"), "w.1.a%2Fb.1.verify.json");
    }
}

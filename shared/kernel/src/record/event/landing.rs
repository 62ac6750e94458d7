//! What a batch looks at when it is over: where its work landed.

use crate::failure::FailureClass;
use crate::json::id::WorkerName;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// Whether what a batch closed is on the branch that its work lands on, looked
/// at when it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LandingCheck {
    /// The branch, without `refs/heads/`.
    pub target: String,
    /// The commit that it is at; null where it is gone.
    pub tip: Option<String>,
    /// How many closed issues have a commit that the tip continues from.
    pub landed: usize,
    /// Closed issues that have none.
    pub missing: Vec<String>,
}

/// Why the branch that work landed on did not reach its remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PushFailure {
    /// The branch, without `refs/heads/`.
    pub target: String,
    /// The remote.
    pub remote: String,
    /// The message of git.
    pub reason: String,
}

/// The outcome of the verification of the last landed commit, in a fresh
/// checkout and without the build state that the verifications of steps began
/// with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TipCheck {
    /// The worker whose lane ran it; empty where none did.
    pub worker_id: WorkerName,
    /// The commit.
    pub commit: String,
    /// Whether the verification passed.
    pub passed: bool,
    /// The classes of the failed verification.
    pub failure_classes: Vec<String>,
    /// What there is to say beside that.
    pub detail: Option<String>,
    /// The file with the verification's output.
    pub output: Option<String>,
}

impl TipCheck {
    /// Returns whether the verification ran until it passed or failed. One that was
    /// interrupted, or could not be run, is still due.
    pub fn is_answered(&self) -> bool {
        let cut = FailureClass::StepInterrupted.as_str();
        self.detail.is_none() && self.failure_classes.iter().all(|class| class != cut)
    }
}

impl fmt::Display for TipCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commit = self.commit.get(..10).unwrap_or(&self.commit);
        if self.passed {
            return write!(f, "{commit} passes the verification without build state");
        }
        let verb = match self.is_answered() {
            true => "DOES NOT PASS the verification",
            false => "WAS NOT VERIFIED",
        };
        write!(f, "{commit} {verb} without build state")?;
        if !self.failure_classes.is_empty() {
            write!(f, ": {}", self.failure_classes.join(", "))?;
        }
        if let Some(detail) = &self.detail {
            write!(f, ": {detail}")?;
        }
        match &self.output {
            Some(output) => write!(f, " (its output is in {output})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for PushFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} was not pushed to {}: {}",
            self.target, self.remote, self.reason
        )
    }
}

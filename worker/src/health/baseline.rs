//! The verification of the commit that a batch which begins now begins at. It runs as in
//! a batch, also where batches are set to begin without it.

use crate::batch::{Batch, BatchError, FailedCommand, Opening};
use crate::interrupt::Interrupt;
use crate::lane::{BootError, Lane, LanePlan};
use crate::settings::Settings;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::health::BaselineFacts;
use premath_kernel::policy::landing::LandingMode;
use premath_memory::untrusted::read_end;
use premath_worktree::landing::next_base;
use std::path::Path;
use std::sync::Arc;

/// How many bytes of an output are looked at, and how many lines of them are shown.
const OUTPUT_MAX: u64 = 8 << 10;
const LINES_MAX: usize = 8;

/// Names the lane; its worktree is the main one, whose files are not touched.
const WORKER: &str = "doctor";

/// The verification could not be run.
#[derive(Debug, thiserror::Error)]
enum BaselineError {
    #[error("the repository has no commit")]
    NoCommit,
    #[error(transparent)]
    Batch(#[from] BatchError),
    #[error(transparent)]
    Boot(#[from] BootError),
}

/// Runs the verification without any work, confined and bounded as in a batch, and on
/// the commit that a batch would begin at. No branch moves, and no issue changes.
pub fn verify_baseline(settings: Settings) -> BaselineFacts {
    let repository = settings.roots.repository.clone();
    match run(settings) {
        Ok(()) => BaselineFacts::Passed,
        Err(BaselineError::Boot(BootError::Command(failed))) => {
            BaselineFacts::Red(problem(&repository, &failed))
        }
        Err(error) => BaselineFacts::Unrun(premath_memory::cause::chain(&error)),
    }
}

fn run(mut settings: Settings) -> Result<(), BaselineError> {
    let repository = settings.roots.repository.clone();
    let target = &settings.landing.target;
    let target = (settings.landing.mode != LandingMode::None).then_some(&**target);
    let commit = next_base(&repository, target).ok_or(BaselineError::NoCommit)?;
    // Nothing lands, and nothing is sent.
    settings.landing.mode = LandingMode::None;
    settings.telemetry = None;
    settings.notify = None;
    let interrupt = Interrupt::new(settings.limits.drain_grace);
    let worktrees = [repository.clone()];
    let batch = Batch::open(settings, &worktrees, Opening::Baseline, interrupt)?;
    let plan = LanePlan {
        worker_id: WORKER.into(),
        worktree: repository,
        index: 1,
        tolerate_cycle: true,
    };
    Ok(Lane::verify_commit(Arc::new(batch), &plan, &commit)?)
}

/// Returns what failed, and the last lines that it printed or how it ended.
fn problem(repository: &Path, failed: &FailedCommand) -> String {
    let classes = failed.classes.join(", ");
    let mut text = format!("the {} command failed: {classes}", failed.name);
    if !failed.absent.is_empty() {
        let absent = failed.absent.join(", ");
        text.push_str(&format!("; the checkout does not have {absent}"));
    }
    let output = failed.output.as_deref();
    let end = output.and_then(|path| printed(repository, path));
    let end = end.unwrap_or_else(|| failed.reason.clone());
    format!("{text}; {end}")
}

/// Returns the last lines that a command printed on both streams, escaped, and where
/// the rest is, by the file of one of its streams; `None` if it printed nothing.
fn printed(repository: &Path, output: &Path) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    for stream in ["stdout", "stderr"] {
        let path = output.with_extension(stream);
        let bytes = read_end(repository, &path, OUTPUT_MAX).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let said = text.lines().filter(|line| !line.trim().is_empty());
        let said: Vec<&str> = said.collect();
        let from = said.len().saturating_sub(LINES_MAX);
        lines.extend(said[from..].iter().map(|line| plain(line).into_owned()));
    }
    let text = || {
        let last = lines.join(" | ");
        format!("it printed last: {last}; output: {}", output.display())
    };
    (!lines.is_empty()).then(text)
}

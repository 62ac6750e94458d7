//! Why a step failed, read from what it left.

use crate::roots::MemoryRoots;
use crate::{artifact, untrusted, witness};
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::landing::{
    FAILURE_ROUND, LANDED_ROUNDS, WORK_ROUNDS, verification_rounds,
};
use premath_kernel::record::audit::WitnessRef;
use premath_kernel::record::trajectory::StepRow;
use premath_kernel::turn::broken_at;
use serde_json::Value;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The failure of a step.
#[derive(Debug)]
pub struct StepFailure {
    /// What failed, in a line.
    pub said: String,
    /// The output of the command that failed, where it is still there.
    pub output: Option<PathBuf>,
    /// The turn as it was judged, where it is still there.
    pub turn: Option<PathBuf>,
}

impl StepFailure {
    /// Reads it for the step of a row; `None` where that did not fail.
    pub fn read(row: &StepRow, roots: &MemoryRoots, left: &LeftFiles) -> Option<Self> {
        let class = row.failure_classes.first()?;
        let turn = artifact::of_step(&roots.witnesses, &row.step_id, "turn", "json");
        let root = &roots.repository;
        let judged = left.document(root, &turn);
        let (output, stderr) = output(row, class, roots, left).unzip();
        let said = judged
            .as_ref()
            .and_then(|judged| error_message(judged, class))
            .or_else(|| named_line(root, stderr.as_deref()?, class))
            .unwrap_or_else(|| match class.parse::<FailureClass>() {
                Ok(known) => match judged.clone().and_then(|turn| broken_at(turn, known)) {
                    Some(place) => format!("{} {place}", known.meaning()),
                    None => known.meaning().to_owned(),
                },
                Err(_) => "no details recorded".to_owned(),
            });
        Some(Self {
            said,
            output,
            turn: judged.map(|_| turn),
        })
    }
}

/// The files that steps left, where they were listed: a file that is not among them is
/// not looked for.
#[derive(Debug, Default)]
pub struct LeftFiles {
    names: Option<HashSet<OsString>>,
}

/// The fewest steps for which folders are listed.
const LISTED_FROM: usize = 200;

impl LeftFiles {
    /// Lists the files of steps, where there are enough of them.
    pub fn of(rows: &[&StepRow], roots: &MemoryRoots) -> Self {
        if rows.len() < LISTED_FROM {
            return Self::default();
        }
        let ids = || rows.iter().map(|row| row.step_id.as_str());
        let mut names = artifact::names_of_steps(&roots.witnesses, ids());
        names.extend(artifact::names_of_steps(&roots.streams, ids()));
        Self { names: Some(names) }
    }

    /// Returns whether a file may be there.
    pub fn may_have(&self, path: &Path) -> bool {
        let names = self.names.as_ref();
        names.is_none_or(|names| path.file_name().is_some_and(|name| names.contains(name)))
    }

    /// Reads a witness.
    pub fn document(&self, root: &Path, path: &Path) -> Option<Value> {
        self.may_have(path).then(|| witness::read(root, path))?
    }
}

/// How much of an error output is searched for a line, from its end.
const OUTPUT_SEARCHED: u64 = 1 << 20;

/// What a call of a turn failed with, by the class that the step failed with.
fn error_message(judged: &Value, class: &str) -> Option<String> {
    let results = judged["input"]["evidence"]["toolResults"].as_array()?;
    let of_class = results
        .iter()
        .rfind(|result| result["errorCode"].as_str() == Some(class))?;
    let message = of_class["errorMessage"].as_str()?;
    Some(message.to_owned()).filter(|message| !message.trim().is_empty())
}

/// The phases of a step, the later ones first. Of the verifications, the one
/// that the row names comes before those that repeated it.
fn phases(row: &StepRow) -> impl Iterator<Item = &'static str> {
    let named = row.verification.as_ref();
    let named =
        named.and_then(|verification| WitnessRef::parse(verification.witness_ref.as_ref()?));
    let named = verification_rounds()
        .find(move |round| named.as_ref().is_some_and(|named| named.phase == *round));
    let landed = LANDED_ROUNDS.iter().rev().copied();
    [FAILURE_ROUND]
        .into_iter()
        .chain(landed)
        .chain(named)
        .chain(verification_rounds())
        .chain(WORK_ROUNDS.iter().rev().copied())
        .chain(["setup"])
}

/// Finds the output of the command that failed by that class, and its error
/// output.
fn output(
    row: &StepRow,
    class: &str,
    roots: &MemoryRoots,
    left: &LeftFiles,
) -> Option<(PathBuf, PathBuf)> {
    phases(row).find_map(|phase| {
        let of_step = |folder, kind| artifact::of_step(folder, &row.step_id, phase, kind);
        let stderr = of_step(&roots.streams, "stderr");
        let failed = match left.document(&roots.repository, &of_step(&roots.witnesses, "json")) {
            Some(witness) => witness["failureClasses"]
                .as_array()
                .is_some_and(|classes| classes.iter().any(|one| one.as_str() == Some(class))),
            // What the harness itself reports has no witness.
            None => {
                left.may_have(&stderr) && named_line(&roots.repository, &stderr, class).is_some()
            }
        };
        let printed = || artifact::printed(&roots.streams, &row.step_id, phase);
        failed.then(printed)?.map(|output| (output, stderr))
    })
}

/// The last line of a command's error output that names the class.
fn named_line(root: &Path, output: &Path, class: &str) -> Option<String> {
    let bytes = untrusted::read_end(root, output, OUTPUT_SEARCHED)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(class)?.strip_prefix(": "))?;
    Some(line.trim().to_owned())
}

//! `premath harness-join-check` (`contracts.md` 2)

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::terminal::plain;
use clap::{Args, ValueEnum};
use premath_kernel::canonical::value_of;
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::{JoinCheck, ParsedInput, join_check};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Arguments of `premath harness-join-check`.
#[derive(Debug, Args)]
pub(crate) struct JoinCheckArgs {
    /// The evidence and its constraints, or a step's `….turn.json`; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Exit 1 where the verdict falls short of this
    #[arg(long, value_enum)]
    require: Option<RequireArg>,
    /// Say what each failure class means, and which fields of the input were ignored
    #[arg(long)]
    explain: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RequireArg {
    /// The join is closed
    Accepted,
    /// The join is closed and nothing stands against a change
    MutationReady,
}

impl JoinCheckArgs {
    pub(crate) fn run(self) -> Finished {
        Finished::new("harness-join-check", self.perform())
    }

    fn perform(self) -> Result<Answer, CliError> {
        let bytes = read(&self.input).map_err(|source| CliError::EvidenceFile {
            path: self.input.clone(),
            source,
        })?;
        let invalid = |source| CliError::Evidence {
            path: self.input.clone(),
            source,
        };
        let witness = turn_witness(&bytes);
        let parsed = match &witness {
            Some(witness) => ParsedInput::from_value(witness["input"].clone()),
            None => ParsedInput::from_slice(&bytes),
        };
        let parsed = parsed.map_err(invalid)?;
        let check = join_check(&parsed.input).map_err(invalid)?;
        let met = match self.require {
            None => true,
            Some(RequireArg::Accepted) => check.join_closed,
            Some(RequireArg::MutationReady) => {
                let held = witness.as_ref().is_some_and(|witness| !closes(witness));
                check.mutation_ready && !held
            }
        };
        let mut document = value_of(&check);
        let mut text = verdict(&check);
        if let Some(witness) = &witness {
            let classes = &witness["closeFailureClasses"];
            let _ = writeln!(
                text,
                "close     {}",
                if closes(witness) {
                    "allowed, as recorded".to_owned()
                } else {
                    format!("refused, as recorded: {}", plain(&classes.to_string()))
                }
            );
            document["closeFailureClasses"] = classes.clone();
        }
        if self.explain {
            let meanings = meanings(&check);
            for (class, meaning) in &meanings {
                let _ = writeln!(text, "{class}: {meaning}");
            }
            for field in &parsed.unknown_fields {
                let _ = writeln!(text, "ignored field: {}", plain(field));
            }
            document["explain"] =
                json!({"classes": meanings, "ignoredFields": parsed.unknown_fields});
        }
        Ok(Answer::new(document, text).refused(!met))
    }
}

/// Reads a step's turn witness, which holds the evidence that was judged and
/// whether the step's issue could be closed on it.
fn turn_witness(bytes: &[u8]) -> Option<Value> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    (document["witnessKind"] == "premath.harness.turn_witness.v1").then_some(document)
}

fn closes(witness: &Value) -> bool {
    witness["closeFailureClasses"]
        .as_array()
        .is_some_and(Vec::is_empty)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    std::fs::read(path)
}

fn verdict(check: &JoinCheck) -> String {
    let mut text = String::new();
    let (join, change) = (&check.failure_classes, &check.mutation_failure_classes);
    let _ = writeln!(
        text,
        "join      {}{}",
        if check.join_closed { "closed" } else { "open" },
        listed(join)
    );
    let _ = writeln!(
        text,
        "mutation  {}{}",
        if check.mutation_ready {
            "ready"
        } else {
            "not ready"
        },
        listed(change)
    );
    text
}

fn listed(classes: &BTreeSet<FailureClass>) -> String {
    if classes.is_empty() {
        return String::new();
    }
    let words: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
    format!(": {}", words.join(", "))
}

fn meanings(check: &JoinCheck) -> BTreeMap<&'static str, &'static str> {
    check
        .failure_classes
        .iter()
        .chain(&check.mutation_failure_classes)
        .map(|class| (class.as_str(), class.meaning()))
        .collect()
}

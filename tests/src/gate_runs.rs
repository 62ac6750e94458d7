//! Which classes and rules of the gate the runs of the tests broke, and by whose
//! turns. With the variable `PREMATH_GATE_RUNS` every scratch repository adds
//! its turns to that file when it is deleted; `premath-check gate-table` makes
//! the page of it.

use premath_kernel::turn::{ParsedInput, explain, normalize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The variable that names the file.
const VARIABLE: &str = "PREMATH_GATE_RUNS";

/// The file in a scratch folder that says that a real agent works there.
const REAL: &str = "real-agent";

/// Tests whose witnesses are not those of a run: they forge them.
const FORGERS: [&str; 1] = ["audit::"];

/// What one run showed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    /// `class` or `rule`.
    pub kind: String,
    /// The class, or the rule's name.
    pub name: String,
    /// Whose turn it was.
    pub source: String,
}

impl Sighting {
    /// Reads a line of the file.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split('\t').map(str::to_owned);
        Some(Self {
            kind: words.next()?,
            name: words.next()?,
            source: words.next()?,
        })
    }
}

/// Says that real agents work in a scratch folder, and not programs that print
/// what agents print.
pub fn mark_real(folder: &Path) {
    fs::write(folder.join(REAL), "").expect("the scratch folder can be written");
}

/// Adds what a repository shows to the file, when it is dropped.
#[derive(Debug)]
pub(crate) struct NoteRuns {
    pub(crate) folder: PathBuf,
    pub(crate) root: PathBuf,
}

impl Drop for NoteRuns {
    fn drop(&mut self) {
        let Some(file) = std::env::var_os(VARIABLE) else {
            return;
        };
        let thread = std::thread::current();
        let test = thread.name().unwrap_or_default();
        if FORGERS.iter().any(|forger| test.starts_with(forger)) || std::thread::panicking() {
            return;
        }
        let lines: String = self
            .sightings()
            .iter()
            .map(|seen| format!("{}\t{}\t{}\t{test}\n", seen.kind, seen.name, seen.source))
            .collect();
        let opened = fs::OpenOptions::new().create(true).append(true).open(file);
        let written = opened.and_then(|mut file| file.write_all(lines.as_bytes()));
        written.expect("the file of the runs can be written");
    }
}

impl NoteRuns {
    fn sightings(&self) -> BTreeSet<Sighting> {
        let mut seen = BTreeSet::new();
        let folder = self.root.join("artifacts/ciwitness");
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            let Ok(document) = serde_json::from_slice::<Value>(&bytes) else {
                continue;
            };
            match document["witnessKind"].as_str() {
                Some(kind) if kind.contains("turn") => self.add_turn(&document, &mut seen),
                Some(kind) if kind.contains("refusal") => {
                    add_classes(&document["failureClasses"], "before dispatch", &mut seen);
                }
                _ => {}
            }
        }
        seen
    }

    fn add_turn(&self, document: &Value, seen: &mut BTreeSet<Sighting>) {
        let source = self.source_of(document);
        add_classes(&document["joinCheck"]["failureClasses"], &source, seen);
        add_classes(&document["closeFailureClasses"], &source, seen);
        let Ok(parsed) = ParsedInput::from_value(document["input"].clone()) else {
            return;
        };
        let Ok(normal) = normalize(parsed.input.evidence) else {
            return;
        };
        for broken in explain(&normal, &parsed.input.constraints) {
            seen.insert(Sighting {
                kind: "rule".to_owned(),
                name: broken.rule,
                source: source.clone(),
            });
        }
    }

    /// Returns whose turn it was.
    fn source_of(&self, document: &Value) -> String {
        let spec = &document["input"]["evidence"]["callSpec"];
        let normalizer = spec["normalizerId"].as_str().unwrap_or_default();
        let name = match normalizer {
            premath_evidence::SHELL_NORMALIZER => "command",
            premath_evidence::FILE_NORMALIZER => "evidence file",
            premath_evidence::AGENT_NORMALIZER if self.folder.join(REAL).exists() => {
                let model = spec["modelRef"].as_str().unwrap_or_default();
                model.split(':').next().unwrap_or_default()
            }
            premath_evidence::AGENT_NORMALIZER => "scripted agent",
            _ => "escalation",
        };
        name.to_owned()
    }
}

fn add_classes(classes: &Value, source: &str, seen: &mut BTreeSet<Sighting>) {
    for class in classes.as_array().into_iter().flatten() {
        seen.insert(Sighting {
            kind: "class".to_owned(),
            name: class.as_str().unwrap_or_default().to_owned(),
            source: source.to_owned(),
        });
    }
}

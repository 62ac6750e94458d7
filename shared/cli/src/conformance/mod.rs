//! `premath conformance …`: the vectors that the gate is judged by.

mod listing;
mod page;
mod source;

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use clap::{Args, Subcommand, ValueEnum};
use premath_conformance::{Suite, SuiteReport, VectorOutcome};
use premath_kernel::json::canonical::value_of;
use serde_json::{Value, json};
use source::SuiteSource;
use std::fs;
use std::path::PathBuf;

/// Arguments of `premath conformance`.
#[derive(Debug, Args)]
pub(crate) struct ConformanceArgs {
    #[command(subcommand)]
    command: ConformanceCommand,
}

#[derive(Debug, Subcommand)]
enum ConformanceCommand {
    /// Run every vector and check the suite; exit 1 on any failure
    Run(RunArgs),
    /// List the typestate slices with their rules and vectors
    Slices(SlicesArgs),
    /// Write each vector's document as a harness-join-check input file
    Documents(DocumentsArgs),
}

/// Arguments of `premath conformance run`.
#[derive(Debug, Args)]
struct RunArgs {
    /// Judge the vectors of one suite, and ask for no coverage
    #[arg(long, value_enum)]
    suite: Option<SuiteArg>,
    /// Use the suite in this folder [default: the one that this binary was built with]
    #[arg(long, value_name = "DIR")]
    vectors: Option<PathBuf>,
}

/// Arguments of `premath conformance slices`.
#[derive(Debug, Args)]
struct SlicesArgs {
    /// Print the documentation page
    #[arg(long)]
    markdown: bool,
    /// Use the suite in this folder [default: the one that this binary was built with]
    #[arg(long, value_name = "DIR")]
    vectors: Option<PathBuf>,
}

/// Arguments of `premath conformance documents`.
#[derive(Debug, Args)]
struct DocumentsArgs {
    /// Write the documents into this folder
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Use the suite in this folder [default: the one that this binary was built with]
    #[arg(long, value_name = "DIR")]
    vectors: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SuiteArg {
    /// Turns that are accepted
    Golden,
    /// Turns with exactly one root class
    Adversarial,
    /// Two spellings of one turn
    Invariance,
    /// Inputs that cannot be read
    Refusal,
}

impl SuiteArg {
    const fn suite(self) -> Suite {
        match self {
            Self::Golden => Suite::Golden,
            Self::Adversarial => Suite::Adversarial,
            Self::Invariance => Suite::Invariance,
            Self::Refusal => Suite::Refusal,
        }
    }
}

impl ConformanceArgs {
    pub(crate) fn run(self) -> Finished {
        match self.command {
            ConformanceCommand::Run(args) => Finished::new("conformance.run", args.perform()),
            ConformanceCommand::Slices(args) => Finished::new("conformance.slices", args.perform()),
            ConformanceCommand::Documents(args) => {
                Finished::new("conformance.documents", args.perform())
            }
        }
    }
}

impl RunArgs {
    fn perform(self) -> Result<Answer, CliError> {
        let source = SuiteSource::find(self.vectors)?;
        let suite = self.suite.map(SuiteArg::suite);
        let report = premath_conformance::run(source.files());
        let report = suite.into_iter().fold(report, SuiteReport::only);
        let document = json!({
            "source": source.describe(),
            "suite": suite,
            "passed": report.passed(),
            "count": report.outcomes.len(),
            "failed": report.outcomes.iter().filter(|outcome| !outcome.passed()).count(),
            "classes": report.covered.len() + report.uncovered.len(),
            "covered": report.covered,
            "uncovered": report.uncovered,
            "faults": report.faults,
        });
        let passed = report.passed();
        Ok(Answer::new(document, listing::report(&report))
            .items(report.outcomes.iter().map(outcome))
            .refused(!passed))
    }
}

fn outcome(outcome: &VectorOutcome) -> Value {
    let mut document = value_of(outcome);
    document["passed"] = outcome.passed().into();
    document
}

impl SlicesArgs {
    fn perform(self) -> Result<Answer, CliError> {
        let source = SuiteSource::find(self.vectors)?;
        let rows = premath_conformance::slices(&premath_conformance::run(source.files()));
        if self.markdown {
            let page = page::page(&rows);
            return Ok(Answer::new(json!({"page": page}), page));
        }
        let document = json!({"source": source.describe(), "count": rows.len()});
        let text = listing::slices(&rows);
        Ok(Answer::new(document, text).items(rows.iter().map(value_of)))
    }
}

impl DocumentsArgs {
    fn perform(self) -> Result<Answer, CliError> {
        let source = SuiteSource::find(self.vectors)?;
        let documents = premath_conformance::documents(source.files());
        fs::create_dir_all(&self.dir).map_err(CliError::file("make", &self.dir))?;
        for (id, bytes) in &documents {
            let name = format!("{}.json", id.replace('/', "."));
            let path = self.dir.join(name);
            fs::write(&path, bytes).map_err(CliError::file("write", &path))?;
        }
        let text = format!("wrote {} documents\n", documents.len());
        let document = json!({
            "source": source.describe(), "dir": self.dir, "count": documents.len(),
        });
        Ok(Answer::new(document, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_can_be_asked_for_by_its_name() {
        for suite in Suite::ALL {
            let arg = SuiteArg::from_str(suite.as_str(), false).unwrap();
            assert_eq!(arg.suite(), *suite);
        }
    }
}

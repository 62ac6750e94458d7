//! `premath schema`: the form of every document that the harness reads or
//! writes, as JSON Schema.

mod folder;
mod kind;

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::terminal::table;
use clap::Args;
use clap::builder::PossibleValuesParser;
use kind::{KINDS, SchemaKind};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `premath schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The kind whose schema to print; without one the kinds are listed
    #[arg(value_parser = names(), hide_possible_values = true)]
    kind: Option<String>,
    /// Write every schema into this folder, each as KIND.schema.json
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kind", "check"])]
    dir: Option<PathBuf>,
    /// Check that this folder holds exactly the current schemas
    #[arg(long, value_name = "DIR", conflicts_with = "kind")]
    check: Option<PathBuf>,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(KINDS.iter().map(|kind| kind.name))
}

impl SchemaArgs {
    pub(crate) fn run(self) -> Finished {
        if let Some(dir) = self.dir {
            return Finished::on("schema.write", "path", Ok(dir), folder::write);
        }
        if let Some(dir) = self.check {
            return Finished::on("schema.check", "path", Ok(dir), folder::check);
        }
        match self.kind {
            Some(name) => Finished::new("schema.show", show(&name)),
            None => Finished::new("schema.list", Ok(list())),
        }
    }
}

fn list() -> Answer {
    let items: Vec<_> = KINDS
        .iter()
        .map(|kind| json!({"kind": kind.name, "title": kind.title, "file": kind.file()}))
        .collect();
    let rows: Vec<_> = KINDS
        .iter()
        .map(|kind| [kind.name.to_owned(), kind.title.to_owned()])
        .collect();
    Answer::new(
        json!({"count": items.len(), "items": items}),
        table(["KIND", "DESCRIBES"], &rows),
    )
}

fn show(name: &str) -> Result<Answer, CliError> {
    // The command line admits names of kinds only.
    let kind = SchemaKind::named(name)
        .ok_or_else(|| CliError::Usage(format!("unknown kind of document `{name}`")))?;
    Ok(Answer::new(
        json!({"kind": kind.name, "title": kind.title, "schema": kind.schema().to_value()}),
        kind.text(),
    ))
}

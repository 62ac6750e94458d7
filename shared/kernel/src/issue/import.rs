//! Issues of other trackers, read from a file: rows of beads, the JSON of
//! `gh issue list`, CSV, and task lists in Markdown.
//!
//! Everything in a record is kept: what has no field of its own goes to the
//! metadata. Nothing that an imported text says is run: a verification counts
//! only where an operator's transaction wrote it.

mod csv;
mod github;
mod markdown;
mod rows;

use super::EdgeKind;
use crate::json::canonical::sha256_hex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The format of a file with issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// One issue row a line, as beads and the harness write them.
    Beads,
    /// What `gh issue list --json …` prints.
    Github,
    /// A table with a header.
    Csv,
    /// A list of tasks: `- [ ] title`.
    Markdown,
}

/// The formats with their words.
const FORMATS: [(&str, ImportFormat); 4] = [
    ("beads", ImportFormat::Beads),
    ("github", ImportFormat::Github),
    ("csv", ImportFormat::Csv),
    ("markdown", ImportFormat::Markdown),
];

impl FromStr for ImportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = FORMATS.into_iter().find(|(word, _)| *word == text);
        found
            .map(|(_, format)| format)
            .ok_or_else(|| "a format is beads, github, csv or markdown".to_owned())
    }
}

impl fmt::Display for ImportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = FORMATS.into_iter().find(|(_, format)| format == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportFault {
    /// The line that it begins at.
    pub line: usize,
    /// What is wrong with it.
    pub detail: String,
}

/// What a record is found by when the same file is read again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportKey {
    /// Its id.
    Id(String),
    /// The field `external_ref` of the issue that was made from it, whose id is
    /// the next free one.
    Reference(String),
}

/// Where an edge of a record leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportTarget {
    /// To an issue of this id, in the file or in the issue memory.
    Issue(String),
    /// To the record of this number in the file.
    Record(usize),
}

/// The fields of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportBody {
    /// A whole row, as its text.
    Row(String),
    /// Fields of a row, without id and edges.
    Fields(Map<String, Value>),
}

/// An issue in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportRecord {
    /// The line that it begins at.
    pub line: usize,
    /// What it is found by.
    pub key: ImportKey,
    /// Its fields.
    pub body: ImportBody,
    /// Its edges beside those in a whole row.
    pub edges: Vec<(ImportTarget, EdgeKind)>,
}

/// Returns the format that a text has, by its first characters and lines.
pub fn detect(text: &str) -> Option<ImportFormat> {
    let trimmed = text.trim_start_matches('\u{feff}').trim_start();
    let first = trimmed.lines().find(|line| !line.starts_with('#'));
    let first = first.unwrap_or_default();
    if trimmed.starts_with("[{") || trimmed.starts_with('[') && !trimmed.starts_with("[ ]") {
        let rest = trimmed.get(1..).unwrap_or_default().trim_start();
        if rest.starts_with(['{', ']']) {
            return Some(ImportFormat::Github);
        }
    }
    if first.starts_with('{') {
        let row: Option<Map<String, Value>> = serde_json::from_str(first).ok();
        let is_github = row.is_some_and(|row| row.contains_key("number"));
        return Some(match is_github {
            true => ImportFormat::Github,
            false => ImportFormat::Beads,
        });
    }
    if text.lines().any(markdown::is_task) {
        return Some(ImportFormat::Markdown);
    }
    csv::has_title(trimmed).then_some(ImportFormat::Csv)
}

/// Reads a file with issues.
///
/// # Errors
///
/// Every record that cannot be read.
pub fn read(text: &str, format: ImportFormat) -> Result<Vec<ImportRecord>, Vec<ImportFault>> {
    let text = text.trim_start_matches('\u{feff}');
    let (records, mut faults) = match format {
        ImportFormat::Beads => rows::read(text),
        ImportFormat::Github => github::read(text),
        ImportFormat::Csv => csv::read(text),
        ImportFormat::Markdown => markdown::read(text),
    };
    let mut keys: BTreeMap<&ImportKey, usize> = BTreeMap::new();
    for record in &records {
        if let Some(line) = keys.insert(&record.key, record.line) {
            faults.push(ImportFault {
                line: record.line,
                detail: format!("the same issue as in line {line}"),
            });
        }
    }
    faults.sort_by_key(|fault| fault.line);
    match faults.is_empty() {
        true => Ok(records),
        false => Err(faults),
    }
}

/// What a reader of one format finds.
type Found = (Vec<ImportRecord>, Vec<ImportFault>);

/// Makes references of records that have no id: from their title, and from its
/// number among equal titles.
#[derive(Debug)]
struct Titles {
    format: ImportFormat,
    seen: BTreeMap<String, usize>,
}

impl Titles {
    fn of(format: ImportFormat) -> Self {
        Self {
            format,
            seen: BTreeMap::new(),
        }
    }

    /// Returns the key of the next record with this title; `within` says where in
    /// the file it is.
    fn key(&mut self, within: &str, title: &str) -> ImportKey {
        let path = format!("{within}\0{title}");
        let number = self.seen.entry(path.clone()).or_default();
        *number += 1;
        let digest = sha256_hex(format!("{path}\0{number}").as_bytes());
        let digest = digest.get(..16).unwrap_or_default();
        ImportKey::Reference(format!("{}:{digest}", self.format))
    }
}

#[cfg(test)]
mod tests;

//! Tables with a header, as RFC 4180 describes them.

use super::{
    Found, ImportBody, ImportFault, ImportFormat, ImportKey, ImportRecord, ImportTarget, Titles,
};
use crate::issue::EdgeKind;
use crate::issue::own_check::METADATA_FIELD;
use crate::issue::word::{KNOWN_STATUSES, parse_priority, status_meant_by};
use serde_json::{Map, Value};

/// The columns that have a field of their own, by their names in lower case with
/// `_` for a space.
const COLUMNS: [(&str, &str); 30] = [
    ("id", "id"),
    ("key", "id"),
    ("title", "title"),
    ("summary", "title"),
    ("name", "title"),
    ("description", "description"),
    ("body", "description"),
    ("status", "status"),
    ("state", "status"),
    ("priority", "priority"),
    ("type", "issue_type"),
    ("issue_type", "issue_type"),
    ("labels", "labels"),
    ("tags", "labels"),
    ("assignee", "assignee"),
    ("owner", "owner"),
    ("notes", "notes"),
    ("design", "design"),
    ("acceptance", "acceptance_criteria"),
    ("acceptance_criteria", "acceptance_criteria"),
    ("verify", VERIFICATION),
    ("verification", VERIFICATION),
    ("depends_on", DEPENDS_ON),
    ("blocked_by", DEPENDS_ON),
    ("parent", PARENT),
    ("external_ref", "external_ref"),
    ("url", "external_ref"),
    ("created_at", "created_at"),
    ("updated_at", "updated_at"),
    ("closed_at", "closed_at"),
];

const VERIFICATION: &str = METADATA_FIELD;
const DEPENDS_ON: &str = "depends_on";
const PARENT: &str = "parent";

/// A line of a table, which may go over several lines of the file.
struct Record {
    line: usize,
    cells: Vec<String>,
}

/// Returns whether a text begins with a header that has a title.
pub(super) fn has_title(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let header = split(first, separator(first)).ok();
    let header = header.and_then(|records| records.into_iter().next());
    header.is_some_and(|header| {
        let mut names = header.cells.iter();
        names.any(|name| column(name) == Some("title"))
    })
}

/// Returns what separates the cells: what the header has more of.
fn separator(header: &str) -> char {
    let count = |separator: char| header.matches(separator).count();
    let by_count = [',', ';', '\t'].into_iter().rev();
    by_count.max_by_key(|found| count(*found)).unwrap_or(',')
}

fn column(name: &str) -> Option<&'static str> {
    let name = name.trim().to_ascii_lowercase().replace([' ', '-'], "_");
    let mut known = COLUMNS.into_iter();
    known
        .find(|(word, _)| *word == name)
        .map(|(_, field)| field)
}

/// Splits a table into its cells.
fn split(text: &str, separator: char) -> Result<Vec<Record>, ImportFault> {
    let mut records = Vec::new();
    let (mut line, mut begun) = (1, 1);
    let mut cells: Vec<String> = Vec::new();
    let mut cell = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        line += usize::from(next == '\n');
        match next {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if cell.is_empty() => quoted = true,
            '\r' if !quoted && chars.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                cells.push(std::mem::take(&mut cell));
                let cells = std::mem::take(&mut cells);
                records.push(Record { line: begun, cells });
                begun = line;
            }
            other if other == separator && !quoted => cells.push(std::mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    if quoted {
        let detail = "a quoted cell does not end".to_owned();
        return Err(ImportFault {
            line: begun,
            detail,
        });
    }
    if !cell.is_empty() || !cells.is_empty() {
        cells.push(cell);
        records.push(Record { line: begun, cells });
    }
    // A blank line is not a record.
    records.retain(|record| record.cells.iter().any(|cell| !cell.trim().is_empty()));
    Ok(records)
}

pub(super) fn read(text: &str) -> Found {
    let first = text.lines().next().unwrap_or_default();
    let records = match split(text, separator(first)) {
        Ok(records) => records,
        Err(fault) => return (Vec::new(), vec![fault]),
    };
    let mut records = records.into_iter();
    let header = records.next().map_or(Vec::new(), |record| record.cells);
    if !header.iter().any(|name| column(name) == Some("title")) {
        let detail = "the header has no column `title`".to_owned();
        return (Vec::new(), vec![ImportFault { line: 1, detail }]);
    }
    let mut titles = Titles::of(ImportFormat::Csv);
    let mut found = Vec::new();
    let mut faults = Vec::new();
    for record in records {
        match read_record(&header, &record, &mut titles) {
            Ok(issue) => found.push(issue),
            Err(detail) => faults.push(ImportFault {
                line: record.line,
                detail,
            }),
        }
    }
    (found, faults)
}

fn read_record(
    header: &[String],
    record: &Record,
    titles: &mut Titles,
) -> Result<ImportRecord, String> {
    if record.cells.len() != header.len() {
        return Err(format!(
            "{} cells, but the header has {}",
            record.cells.len(),
            header.len()
        ));
    }
    let mut row = Map::new();
    let mut other = Map::new();
    let mut metadata = Map::new();
    let mut edges = Vec::new();
    let mut id = String::new();
    for (name, cell) in header.iter().zip(&record.cells) {
        let text = cell.trim();
        if text.is_empty() {
            continue;
        }
        match column(name) {
            None => drop(other.insert(name.trim().to_owned(), cell.as_str().into())),
            Some("id") => text.clone_into(&mut id),
            Some(VERIFICATION) => drop(metadata.insert(METADATA_FIELD.to_owned(), text.into())),
            Some(DEPENDS_ON) => edges.extend(listed(text).map(|to| {
                let to = ImportTarget::Issue(to.to_owned());
                (to, EdgeKind::parse(""))
            })),
            Some(PARENT) => {
                edges.push((ImportTarget::Issue(text.to_owned()), EdgeKind::ParentChild));
            }
            Some(field) => drop(row.insert(field.to_owned(), value(field, cell)?)),
        }
    }
    let title = row.get("title").and_then(Value::as_str).unwrap_or_default();
    if title.is_empty() {
        return Err("no title".to_owned());
    }
    let reference = row.get("external_ref").and_then(Value::as_str);
    let key = match (id.is_empty(), reference) {
        (false, _) => ImportKey::Id(id),
        (true, Some(reference)) => ImportKey::Reference(reference.to_owned()),
        (true, None) => titles.key("", title),
    };
    if !other.is_empty() {
        metadata.insert("csv".to_owned(), other.into());
    }
    if !metadata.is_empty() {
        row.insert("metadata".to_owned(), metadata.into());
    }
    Ok(ImportRecord {
        line: record.line,
        key,
        body: ImportBody::Fields(row),
        edges,
    })
}

/// Returns the words of a list in a cell.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split([',', ';', ' ', '\n']).map(str::trim);
    words.filter(|word| !word.is_empty())
}

/// Returns the value of a field.
fn value(field: &str, cell: &str) -> Result<Value, String> {
    let text = cell.trim();
    Ok(match field {
        "priority" => parse_priority(text)?.into(),
        "status" => status_meant_by(text)
            .ok_or_else(|| {
                let known = KNOWN_STATUSES.join(", ");
                format!("unknown status `{text}`; it must be one of {known}")
            })?
            .into(),
        "labels" => {
            let words = text.split([',', ';']).map(str::trim);
            let words = words.filter(|word| !word.is_empty());
            words.map(str::to_owned).collect::<Vec<_>>().into()
        }
        "title" | "issue_type" | "assignee" | "owner" | "external_ref" => text.into(),
        _ => cell.into(),
    })
}

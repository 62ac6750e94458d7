//! Lists of tasks: `- [ ] title` is an open issue, `- [x] title` a closed one.
//! An item below another is a part of it; text below an item is its description.

use super::{
    Found, ImportBody, ImportFault, ImportFormat, ImportKey, ImportRecord, ImportTarget, Titles,
};
use crate::issue::EdgeKind;
use serde_json::{Map, Value, json};

/// A box that is read: what is in it, and what follows.
struct Task<'a> {
    indent: usize,
    mark: char,
    title: &'a str,
}

/// An item, with the text below it.
struct Item {
    line: usize,
    indent: usize,
    is_done: bool,
    title: String,
    section: String,
    parent: Option<usize>,
    body: Vec<String>,
}

/// Returns whether a line is a task.
pub(super) fn is_task(line: &str) -> bool {
    task(line).is_some()
}

/// Reads a line that is a list item with a box.
fn task(line: &str) -> Option<Task<'_>> {
    let trimmed = line.trim_start();
    let indent = line.len() - trimmed.len();
    let digits = trimmed.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let item = match digits.len() < trimmed.len() {
        true => digits.strip_prefix(['.', ')']),
        false => trimmed.strip_prefix(['-', '*', '+']),
    };
    let rest = item?.strip_prefix(' ')?.trim_start().strip_prefix('[')?;
    let mut rest_chars = rest.chars();
    let mark = rest_chars.next()?;
    let rest = rest_chars.as_str().strip_prefix(']')?;
    let is_link = !rest.is_empty() && !rest.starts_with([' ', '\t']);
    (!is_link).then(|| Task {
        indent,
        mark,
        title: rest.trim(),
    })
}

pub(super) fn read(text: &str) -> Found {
    let mut faults = Vec::new();
    let mut items: Vec<Item> = Vec::new();
    let mut section = String::new();
    // Items that a deeper one is a part of.
    let mut open: Vec<usize> = Vec::new();
    let mut is_fenced = false;
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let is_fence = line.trim_start().starts_with("```");
        let found = task(line).filter(|_| !is_fenced && !is_fence);
        is_fenced ^= is_fence;
        let indent = line.len() - line.trim_start().len();
        let Some(task) = found else {
            if !is_fenced && !is_fence && indent == 0 && !line.trim().is_empty() {
                open.clear();
                if line.starts_with('#') {
                    section = line.trim_start_matches('#').trim().to_owned();
                }
            } else if let Some(item) = open.last().map(|at| &mut items[*at]) {
                item.body.push(line.to_owned());
            }
            continue;
        };
        let is_done = match task.mark {
            ' ' => false,
            'x' | 'X' => true,
            mark => {
                let detail = format!("unknown box `[{mark}]`; it is `[ ]` or `[x]`");
                faults.push(ImportFault {
                    line: line_number,
                    detail,
                });
                continue;
            }
        };
        if task.title.is_empty() {
            let detail = "a task without a title".to_owned();
            faults.push(ImportFault {
                line: line_number,
                detail,
            });
            continue;
        }
        open.retain(|at| items[*at].indent < task.indent);
        items.push(Item {
            line: line_number,
            indent: task.indent,
            is_done,
            title: task.title.to_owned(),
            section: section.clone(),
            parent: open.last().copied(),
            body: Vec::new(),
        });
        open.push(items.len() - 1);
    }
    (records(&items), faults)
}

fn records(items: &[Item]) -> Vec<ImportRecord> {
    let mut titles = Titles::of(ImportFormat::Markdown);
    let mut keys: Vec<ImportKey> = Vec::new();
    let mut records = Vec::new();
    for item in items {
        let within = match item.parent.map(|at| &keys[at]) {
            Some(ImportKey::Id(key) | ImportKey::Reference(key)) => key.clone(),
            None => item.section.clone(),
        };
        let key = titles.key(&within, &item.title);
        let parent = item.parent.map(ImportTarget::Record);
        keys.push(key.clone());
        records.push(ImportRecord {
            line: item.line,
            key,
            body: ImportBody::Fields(fields(item)),
            edges: parent
                .map(|to| (to, EdgeKind::ParentChild))
                .into_iter()
                .collect(),
        });
    }
    records
}

fn fields(item: &Item) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("title".to_owned(), item.title.as_str().into());
    let body = dedented(&item.body);
    if !body.is_empty() {
        row.insert("description".to_owned(), body.into());
    }
    let status = if item.is_done { "closed" } else { "open" };
    row.insert("status".to_owned(), status.into());
    if !item.section.is_empty() {
        let section = json!({ "markdown": { "section": item.section } });
        row.insert("metadata".to_owned(), section);
    }
    row
}

/// Removes the indentation that all lines have.
fn dedented(lines: &[String]) -> String {
    let indent = |line: &String| line.len() - line.trim_start().len();
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let least = filled.map(indent).min().unwrap_or(0);
    let cut: Vec<&str> = lines
        .iter()
        .map(|line| line.get(least..).unwrap_or("").trim_end())
        .collect();
    cut.join("\n").trim_matches('\n').to_owned()
}

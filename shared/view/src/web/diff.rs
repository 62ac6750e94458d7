//! What an attempt changed.

use crate::diff::{DiffSource, DiffView, FileStatus, FileView, shown};
use crate::html::escaped;
use premath_kernel::json::plain::counted;
use std::fmt::Write;

/// The most lines of a diff that are shown.
const LINES: usize = 3_000;

/// Writes a diff.
pub(super) fn diff(view: &DiffView, text: &mut String) {
    let source = match (view.source, &view.of) {
        (DiffSource::Running, _) => "the files of the running attempt, as they are now".to_owned(),
        (DiffSource::Commit, Some(of)) => format!("commit {of}"),
        (DiffSource::Commit, None) => "the issue closed without changes".to_owned(),
        (DiffSource::Salvage, of) => {
            format!("salvage branch {}", of.as_deref().unwrap_or_default())
        }
    };
    let _ = writeln!(
        text,
        "<p class=\"faint\">{}; {}, {} added, {} deleted</p>",
        escaped(&source),
        counted(view.files.len() as u64, "file"),
        counted(view.added, "line"),
        view.deleted
    );
    if view.files.is_empty() {
        text.push_str("<p class=\"empty\">Nothing is changed.</p>\n");
    }
    let mut left = LINES;
    for file in &view.files {
        one(file, &mut left, text);
    }
    if view.files_left_out > 0 {
        let _ = writeln!(
            text,
            "<p>{} more changed files are left out.</p>",
            view.files_left_out
        );
    }
    for path in &view.set_apart {
        let _ = writeln!(text, "<p>{} is not part of the work.</p>", escaped(path));
    }
}

fn one(file: &FileView, left: &mut usize, text: &mut String) {
    let status = match file.status {
        FileStatus::Added => "added",
        FileStatus::Deleted => "deleted",
        FileStatus::Modified => "changed",
        FileStatus::TypeChanged => "another kind of file",
    };
    let count = match (file.added, file.deleted) {
        (Some(added), Some(deleted)) => format!(", +{added} −{deleted}"),
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "<details class=\"file\" open><summary><code>{}</code> <span class=\"faint\">{status}{count}\
        </span></summary>",
        escaped(&shown(&file.path))
    );
    if let Some(left_out) = file.left_out {
        let _ = writeln!(text, "<p>{}</p>", escaped(left_out.sentence()));
    }
    if !file.hunks.is_empty() {
        let _ = write!(
            text,
            "<pre class=\"diff\" tabindex=\"0\" aria-label=\"Changes of {}\">",
            escaped(&file.path)
        );
        for hunk in &file.hunks {
            let _ = writeln!(text, "<span class=\"at\">{}</span>", escaped(&hunk.place));
            for line in &hunk.lines {
                if *left == 0 {
                    break;
                }
                *left -= 1;
                let line = line.replace('\t', "    ");
                let line = escaped(&shown(&line));
                let _ = match line.as_bytes().first() {
                    Some(b'+') => writeln!(text, "<ins>{line}</ins>"),
                    Some(b'-') => writeln!(text, "<del>{line}</del>"),
                    _ => writeln!(text, "{line}"),
                };
            }
        }
        text.push_str("</pre>\n");
        if *left == 0 {
            text.push_str("<p>The diff is longer; <code>premath diff</code> prints all.</p>\n");
        }
    }
    text.push_str("</details>\n");
}

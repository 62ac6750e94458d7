//! What an attempt changed, as a unified diff.

use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::json::plain::{cut_at, plain};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// The most bytes of a line for a person.
const LINE_MAX: usize = 2_000;

/// What an attempt changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffView {
    /// The issue.
    pub issue_id: IssueId,
    /// The attempt's step.
    pub step_id: StepId,
    /// What is compared with the base.
    pub source: DiffSource,
    /// The commit or the branch; null of an attempt that runs or closed without changes.
    pub of: Option<String>,
    /// The commit that it is compared with.
    pub base: String,
    /// How many lines were added, in files that were compared.
    pub added: u64,
    /// How many lines were deleted, in files that were compared.
    pub deleted: u64,
    /// The changed files.
    pub files: Vec<FileView>,
    /// How many changed files are left out, for they are too many.
    pub files_left_out: u64,
    /// What is no part of the work: nested repositories, and folders that lie too
    /// deep or cannot be read.
    pub set_apart: Vec<String>,
}

impl DiffView {
    /// Returns whether it is of an attempt that closed its issue without changes.
    pub fn closed_unchanged(&self) -> bool {
        self.source == DiffSource::Commit && self.of.is_none()
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffSource {
    /// The files of an attempt that runs, as they are now.
    Running,
    /// The commit that holds the work.
    Commit,
    /// The branch that keeps what the attempt left.
    Salvage,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileView {
    /// The file, with replacement characters where it is not UTF-8.
    pub path: String,
    /// How it changed.
    pub status: FileStatus,
    /// Its mode before, in octal digits as git writes it; null where it is new.
    pub old_mode: Option<String>,
    /// Its mode after; null where it is deleted.
    pub new_mode: Option<String>,
    /// How many lines were added; null where they were not compared.
    pub added: Option<u64>,
    /// How many lines were deleted; null where they were not compared.
    pub deleted: Option<u64>,
    /// Why there are no lines; null where there are all.
    pub left_out: Option<LeftOut>,
    /// The changed lines.
    pub hunks: Vec<HunkView>,
}

/// How a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It has another content or another mode.
    Modified,
    /// It is another kind of file.
    TypeChanged,
}

/// Why the lines of a file are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// The diff is too long with them.
    TooLong,
    /// The file is not text.
    Binary,
    /// The file is too large.
    TooLarge,
    /// The file goes through a filter, which is not run for this.
    Filtered,
    /// The file cannot be read.
    Unreadable,
}

impl LeftOut {
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::TooLong => "its lines are left out: the diff is too long",
            Self::Binary => "binary files differ",
            Self::TooLarge => "the file is too large to be compared",
            Self::Filtered => "the file goes through a filter and is not compared",
            Self::Unreadable => "the file cannot be read",
        }
    }
}

/// Changed lines with those around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HunkView {
    /// Where they are, as in `@@ -1,3 +1,4 @@`.
    pub place: String,
    /// The lines with their signs.
    pub lines: Vec<String>,
}

/// How a diff is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffStyle {
    /// Only the files, with how many lines changed.
    pub stat: bool,
    /// Whether colours are wanted.
    pub colour: bool,
}

const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const CYAN: &str = "36";

/// Writes a diff for a person.
pub fn text(view: &DiffView, style: DiffStyle) -> String {
    let mut text = String::new();
    if style.stat {
        stat(view, &mut text);
    } else {
        for file in &view.files {
            file_text(file, style, &mut text);
        }
    }
    for path in &view.set_apart {
        let _ = writeln!(text, "# {} is not part of the work", plain(path));
    }
    if view.files_left_out > 0 {
        let _ = writeln!(
            text,
            "# {} more changed files are left out",
            view.files_left_out
        );
    }
    if text.is_empty() {
        text.push_str("no changes\n");
    }
    text
}

fn stat(view: &DiffView, text: &mut String) {
    let width = view
        .files
        .iter()
        .map(|file| shown(&file.path).chars().count());
    let width = width.max().unwrap_or(0).min(60);
    for file in &view.files {
        let count = match (file.added, file.deleted) {
            (Some(added), Some(deleted)) => format!("+{added} -{deleted}"),
            _ => file.left_out.map_or("", LeftOut::sentence).to_owned(),
        };
        let letter = match file.status {
            FileStatus::Added => 'A',
            FileStatus::Deleted => 'D',
            FileStatus::Modified => 'M',
            FileStatus::TypeChanged => 'T',
        };
        let _ = writeln!(text, "{letter} {:<width$}  {count}", shown(&file.path));
    }
    if !view.files.is_empty() {
        let files = match view.files.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let _ = writeln!(text, "{files}, +{} -{}", view.added, view.deleted);
    }
}

fn file_text(file: &FileView, style: DiffStyle, text: &mut String) {
    let path = shown(&file.path);
    let mut put = |colour: &str, line: &str| {
        let _ = match style.colour && !colour.is_empty() {
            true => writeln!(text, "\u{1b}[{colour}m{line}\u{1b}[0m"),
            false => writeln!(text, "{line}"),
        };
    };
    put(BOLD, &format!("diff --git a/{path} b/{path}"));
    match (&file.old_mode, &file.new_mode) {
        (None, Some(new)) => put(BOLD, &format!("new file mode {new}")),
        (Some(old), None) => put(BOLD, &format!("deleted file mode {old}")),
        (Some(old), Some(new)) if old != new => {
            put(BOLD, &format!("old mode {old}"));
            put(BOLD, &format!("new mode {new}"));
        }
        _ => {}
    }
    if let Some(left_out) = file.left_out {
        put("", &format!("# {}", left_out.sentence()));
    }
    if file.hunks.is_empty() {
        return;
    }
    let side = |mode: &Option<String>, letter| match mode {
        Some(_) => format!("{letter}/{path}"),
        None => "/dev/null".to_owned(),
    };
    put(BOLD, &format!("--- {}", side(&file.old_mode, 'a')));
    put(BOLD, &format!("+++ {}", side(&file.new_mode, 'b')));
    for hunk in &file.hunks {
        put(CYAN, &shown(&hunk.place));
        for line in &hunk.lines {
            let colour = match line.as_bytes().first() {
                Some(b'+') => GREEN,
                Some(b'-') => RED,
                _ => "",
            };
            put(colour, &shown(line));
        }
    }
}

/// Escapes a line. A tab stays: lines of files have them.
pub(crate) fn shown(line: &str) -> String {
    let line = cut_at(line, LINE_MAX);
    let parts: Vec<_> = line.split('\t').map(plain).collect();
    parts.join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> DiffView {
        let file = |path: &str, old: Option<&str>, new: Option<&str>| FileView {
            path: path.to_owned(),
            status: FileStatus::Modified,
            old_mode: old.map(str::to_owned),
            new_mode: new.map(str::to_owned),
            added: Some(1),
            deleted: Some(1),
            left_out: None,
            hunks: vec![HunkView {
                place: "@@ -1 +1 @@".to_owned(),
                lines: vec!["-a\tb".to_owned(), "+\u{1b}[2J".to_owned()],
            }],
        };
        let binary = FileView {
            status: FileStatus::Added,
            added: None,
            deleted: None,
            left_out: Some(LeftOut::Binary),
            hunks: Vec::new(),
            ..file("x\u{1b}", None, Some("100644"))
        };
        DiffView {
            issue_id: "a".into(),
            step_id: "s".into(),
            source: DiffSource::Running,
            of: None,
            base: "0".to_owned(),
            added: 1,
            deleted: 1,
            files: vec![file("a.txt", Some("100644"), Some("100755")), binary],
            files_left_out: 3,
            set_apart: vec!["nested".to_owned()],
        }
    }

    #[test]
    fn a_diff_is_unified_escaped_and_says_what_is_left_out() {
        let expected = "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n\
            --- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\tb\n+\\u{1b}[2J\n\
            diff --git a/x\\u{1b} b/x\\u{1b}\nnew file mode 100644\n# binary files differ\n\
            # nested is not part of the work\n# 3 more changed files are left out\n";
        assert_eq!(text(&view(), DiffStyle::default()), expected);
    }

    #[test]
    fn colours_and_the_statistic_are_shown_on_request() {
        let colour = DiffStyle {
            colour: true,
            stat: false,
        };
        let coloured = text(&view(), colour);
        assert!(coloured.contains("\u{1b}[31m-a\tb\u{1b}[0m\n"));
        assert!(!coloured.contains("\u{1b}[2J"));
        let stat = DiffStyle {
            stat: true,
            ..DiffStyle::default()
        };
        let shown = text(&view(), stat);
        assert!(
            shown
                .starts_with("M a.txt    +1 -1\nA x\\u{1b}  binary files differ\n2 files, +1 -1\n")
        );
        let none = DiffView {
            files: Vec::new(),
            files_left_out: 0,
            set_apart: Vec::new(),
            ..view()
        };
        assert_eq!(text(&none, stat), "no changes\n");
        assert!(!none.closed_unchanged());
        let closed = DiffView {
            source: DiffSource::Commit,
            ..none
        };
        assert!(closed.closed_unchanged());
    }
}

//! The project's own verification surfaces (HARNESS-RUNTIME 9): checks of what
//! is committed, each a pure look at the files of a checkout.

mod dependencies;
pub mod docs;
pub mod features;
pub mod gate_table;
pub mod generate;
pub mod help;
pub mod hygiene;
pub mod idioms;
pub mod layers;
mod lexer;
pub mod licenses;
pub mod pipeline;
pub mod task;
mod token;
mod visibility;

use std::fmt;
use std::path::{Path, PathBuf};

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file, from the root.
    pub file: String,
    /// The line, from 1; 0 where it is about the file.
    pub line: usize,
    /// What is wrong.
    pub detail: String,
}

impl Fault {
    /// Names a fault.
    pub fn at(file: impl Into<String>, line: usize, detail: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.detail),
            line => write!(f, "{}:{line}: {}", self.file, self.detail),
        }
    }
}

/// Makes a text a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    prose(text).replace('|', "\\|")
}

/// Makes a text one of a page; code between backticks keeps its `<`.
pub(crate) fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.replace('<', "&lt;"),
        _ => part.to_owned(),
    });
    let parts: Vec<String> = parts.collect();
    parts.join("`")
}

/// Reads a text of a checkout; one that is not there is empty.
pub(crate) fn text_of(root: &Path, name: &str) -> String {
    let bytes = std::fs::read(root.join(name)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the files of a checkout that git tracks, sorted; where there is no
/// repository, all of them.
///
/// # Panics
///
/// Where the folder cannot be read.
pub fn files(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = match git2::Repository::open(root) {
        Ok(repository) => {
            let index = repository.index().expect("the index can be read");
            let name = |entry: git2::IndexEntry| String::from_utf8(entry.path).ok();
            index.iter().filter_map(name).collect()
        }
        Err(_) => below(root, PathBuf::new()),
    };
    names.retain(|name| root.join(name).is_file());
    names.sort();
    names.dedup();
    names
}

fn below(root: &Path, folder: PathBuf) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join(&folder)).expect("a folder can be read") {
        let entry = entry.expect("a folder can be read");
        let path = folder.join(entry.file_name());
        match root.join(&path).is_dir() {
            true => names.extend(below(root, path)),
            false => names.extend(path.to_str().map(str::to_owned)),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn a_cell_escapes_what_is_not_code() {
        assert_eq!(
            cell("a <b> | `<boundary>` or `x|y`"),
            "a &lt;b> \\| `<boundary>` or `x\\|y`"
        );
    }
}

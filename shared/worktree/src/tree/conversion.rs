//! Which files of a tree a checkout has to convert: line ends, filters, names of
//! objects in texts, other encodings. All others are written as they are.
//!
//! More files than need it may be named, never fewer: only speed depends on it.

use super::beneath::path;
use super::git_settings::AutoCrlf;
use super::private::settings_folder;
use super::{Filters, Tree};
use crate::entry_lookup::EntryLookup;
use git2::{ObjectType, Repository};
use premath_platform::file::read_regular;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The file of attributes in a folder.
const ATTRIBUTES: &[u8] = b".gitattributes";
/// The attributes of the whole machine (gitattributes(5)).
const SYSTEM: &str = "/etc/gitattributes";
/// How a line begins that defines a macro.
const MACRO: &[u8] = b"[attr]";

/// What the attributes say about the files of a tree.
pub(super) struct Conversion<'a> {
    repository: &'a Repository,
    lookup: EntryLookup<'a>,
    /// Whether a setting asks for a conversion of every file.
    is_any: bool,
    /// The operator's filters, whatever the tree's own attributes say.
    filters: Option<&'a Filters>,
    /// Names of attributes that convert.
    attributes: BTreeSet<Vec<u8>>,
    /// Which files of all folders are converted.
    outer: Vec<Pattern>,
    /// The folders down to that of the last path, each with its own patterns.
    folders: Vec<(Vec<u8>, Vec<Pattern>)>,
}

/// Which files a line is about, by the last part of their paths.
#[derive(Debug, PartialEq, Eq)]
enum Pattern {
    Any,
    End(Vec<u8>),
    Name(Vec<u8>),
}

impl Tree {
    /// Reads what the attributes say about the files of a tree.
    pub(super) fn conversion<'a>(&'a self, target: &git2::Tree<'a>) -> Conversion<'a> {
        let lookup = EntryLookup::new(&self.repository, target);
        let texts: Vec<Vec<u8>> = self
            .outer_attribute_files()
            .into_iter()
            .filter_map(|file| read_regular(&file).ok().flatten())
            .collect();
        let root = attributes_in(&self.repository, &lookup, b"").unwrap_or_default();
        let attributes = converting(texts.iter().chain([&root]));
        let outer = texts.iter().flat_map(|text| patterns(text, &attributes));
        Conversion {
            repository: &self.repository,
            is_any: self.converts_all(),
            filters: self.filters.as_deref(),
            outer: outer.collect(),
            folders: vec![(Vec::new(), patterns(&root, &attributes))],
            attributes,
            lookup,
        }
    }

    /// Returns whether a setting makes every text another one in a checkout.
    fn converts_all(&self) -> bool {
        let settings = self.settings();
        settings.is_eol_crlf || settings.line_ends == AutoCrlf::On
    }

    /// Returns the files of attributes that are not in a tree.
    fn outer_attribute_files(&self) -> Vec<PathBuf> {
        let mut files = vec![
            PathBuf::from(SYSTEM),
            self.common_folder().join("info/attributes"),
            self.git_folder().join("info/attributes"),
        ];
        files.extend(self.settings().attributes_file.clone());
        files.extend(settings_folder().map(|folder| folder.join("git/attributes")));
        files
    }
}

impl Conversion<'_> {
    /// Returns whether a file may have to be converted. It is fastest in the
    /// order of a tree.
    pub(super) fn concerns(&mut self, name: &[u8]) -> bool {
        let is_filtered = |filters: &Filters| filters.of(name).is_some();
        if self.is_any || self.filters.is_some_and(is_filtered) {
            return true;
        }
        let (folder, file) = match name.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&name[..at], &name[at + 1..]),
            None => (&name[..0], name),
        };
        self.enter(folder);
        let rules = self.folders.iter().flat_map(|(_, rules)| rules);
        rules.chain(&self.outer).any(|rule| rule.fits(file))
    }

    /// Makes the open folders those on the way to one.
    fn enter(&mut self, folder: &[u8]) {
        self.folders.retain(|(open, _)| is_within(folder, open));
        while let Some((open, _)) = self.folders.last()
            && open.len() < folder.len()
        {
            let start = if open.is_empty() { 0 } else { open.len() + 1 };
            let rest = &folder[start..];
            let length = rest.iter().position(|byte| *byte == b'/');
            let next = &folder[..start + length.unwrap_or(rest.len())];
            let text = attributes_in(self.repository, &self.lookup, next);
            let rules = text.map(|text| patterns(&text, &self.attributes));
            self.folders
                .push((next.to_vec(), rules.unwrap_or_default()));
        }
    }
}

impl Pattern {
    fn of(text: &[u8]) -> Self {
        let last = text.rsplit(|byte| *byte == b'/').next().unwrap_or(text);
        let is_special = |byte: &u8| b"*?[\\\"!".contains(byte);
        match last {
            [b'*', end @ ..] if !end.iter().any(is_special) => Self::End(end.to_vec()),
            [] => Self::Any,
            _ if text.iter().any(is_special) && last.iter().any(is_special) => Self::Any,
            _ if text.starts_with(b"\"") || text.starts_with(b"!") => Self::Any,
            name => Self::Name(name.to_vec()),
        }
    }

    /// Compares without regard to case: a setting may ask for that.
    fn fits(&self, file: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::End(end) => file
                .len()
                .checked_sub(end.len())
                .is_some_and(|start| file[start..].eq_ignore_ascii_case(end)),
            Self::Name(name) => file.eq_ignore_ascii_case(name),
        }
    }
}

/// Returns the text of the attributes in a folder of a tree.
fn attributes_in(
    repository: &Repository,
    lookup: &EntryLookup<'_>,
    folder: &[u8],
) -> Option<Vec<u8>> {
    let mut name = folder.to_vec();
    if !name.is_empty() {
        name.push(b'/');
    }
    name.extend_from_slice(ATTRIBUTES);
    let entry = lookup.get(&name)?;
    if entry.kind() != Some(ObjectType::Blob) {
        return None;
    }
    let blob = repository.find_blob(entry.id()).ok()?;
    Some(blob.content().to_vec())
}

/// Returns the names of attributes that convert: git's own, and macros of them.
fn converting<'t>(texts: impl Iterator<Item = &'t Vec<u8>> + Clone) -> BTreeSet<Vec<u8>> {
    let mut names: BTreeSet<Vec<u8>> = BTreeSet::new();
    loop {
        let before = names.len();
        for text in texts.clone() {
            for line in lines(text) {
                if let Some(rest) = line.strip_prefix(MACRO)
                    && let Some((name, values)) = split(rest)
                    && sets_any(values, &names)
                {
                    names.insert(name.to_vec());
                }
            }
        }
        if names.len() == before {
            return names;
        }
    }
}

/// Returns which files the lines of a text convert.
fn patterns(text: &[u8], macros: &BTreeSet<Vec<u8>>) -> Vec<Pattern> {
    lines(text)
        .filter(|line| !line.starts_with(MACRO) && !line.starts_with(b"#"))
        .filter_map(|line| match line.starts_with(b"\"") {
            true => Some((line, line)),
            false => split(line),
        })
        .filter(|(_, values)| sets_any(values, macros))
        .map(|(pattern, _)| Pattern::of(pattern))
        .collect()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii)
}

/// Splits a line at its first space.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let at = line.iter().position(u8::is_ascii_whitespace)?;
    Some((&line[..at], &line[at..]))
}

/// Returns whether any of the attributes that a line sets converts files. One
/// that is removed or unset does not.
fn sets_any(values: &[u8], macros: &BTreeSet<Vec<u8>>) -> bool {
    let values = values.split(u8::is_ascii_whitespace);
    values.into_iter().any(|value| {
        let (name, word) = match value.iter().position(|byte| *byte == b'=') {
            Some(at) => (&value[..at], Some(&value[at + 1..])),
            None => (value, None),
        };
        match name {
            b"ident" | b"filter" | b"working-tree-encoding" => true,
            b"eol" => word != Some(b"lf"),
            name => macros.contains(name),
        }
    })
}

/// Returns whether a folder is another one or is in it.
fn is_within(folder: &[u8], other: &[u8]) -> bool {
    path(folder).starts_with(path(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concerned(text: &str, file: &str) -> bool {
        let text = text.as_bytes().to_vec();
        let macros = converting([&text].into_iter());
        let patterns = patterns(&text, &macros);
        patterns.iter().any(|pattern| pattern.fits(file.as_bytes()))
    }

    #[test]
    fn files_that_attributes_convert_are_concerned() {
        for (text, file) in [
            ("*.txt eol=crlf", "a.txt"),
            ("*.txt eol=crlf", "A.TXT"),
            ("* text=auto eol=crlf", "a"),
            ("*.bin filter=lfs diff=lfs merge=lfs -text", "a.bin"),
            ("d/*.bin filter=lfs", "a.bin"),
            ("d/** filter=lfs", "a"),
            ("d/ filter=lfs", "a"),
            ("/a ident", "a"),
            ("  a\tident", "a"),
            ("\"a b\" ident", "a b"),
            ("a?c ident", "abc"),
            ("*[ab] ident", "a"),
            ("\\a ident", "a"),
            ("x working-tree-encoding=UTF-16", "x"),
            ("[attr]big filter=lfs\n*.iso big", "a.iso"),
            ("[attr]one two\n[attr]two ident\na one", "a"),
            ("\u{feff}a ident", "a"),
            ("a ident\r", "a"),
        ] {
            assert!(concerned(text, file), "{text:?} {file}");
        }
    }

    #[test]
    fn files_that_no_attribute_converts_are_not() {
        for (text, file) in [
            ("* text=auto", "a"),
            ("*.sh text eol=lf", "a.sh"),
            ("*.bin binary", "a.bin"),
            ("*.txt eol=crlf", "a.md"),
            ("d/name filter=lfs", "other"),
            ("# a ident", "a"),
            ("a -ident !filter", "a"),
            ("a", "a"),
            ("[attr]big filter=lfs", "big"),
            ("a linguist-generated", "a"),
        ] {
            assert!(!concerned(text, file), "{text:?} {file}");
        }
    }
}

//! Part of `ci-hygiene-check`: every public item of a library is used outside
//! of it.
//!
//! A function or a constant has to be named outside. A type may be part of what
//! is public instead: of a signature, a field, a variant or a trait.

use super::token::{Token, tokens};
use super::{Fault, text_of};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The words of one side of the border of a library.
type Words = BTreeSet<String>;

/// A public item.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    name: String,
    is_type: bool,
    line: usize,
}

/// A source file.
#[derive(Debug)]
struct Source<'n> {
    name: &'n str,
    /// The library that it belongs to, as the folder of its crate; for tests,
    /// benches and binaries the file itself.
    home: String,
    text: String,
}

impl<'n> Source<'n> {
    fn read(root: &Path, names: &[String], name: &'n str) -> Self {
        let (folder, rest) = name.split_once("src/").unwrap_or((name, ""));
        let library = format!("{folder}src/lib.rs");
        let is_library = rest != "main.rs" && !rest.starts_with("bin/") && names.contains(&library);
        let home = if is_library { folder } else { name };
        Self {
            name,
            home: home.to_owned(),
            text: text_of(root, name),
        }
    }
}

/// Checks the libraries among the files of a checkout.
pub(super) fn faults(root: &Path, names: &[String]) -> Vec<Fault> {
    let sources = names.iter().filter(|name| name.ends_with(".rs"));
    let sources: Vec<Source<'_>> = sources
        .map(|name| Source::read(root, names, name))
        .collect();
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in &sources {
        for token in tokens(&source.text) {
            if is_word(token.text) {
                users.entry(token.text).or_default().insert(&source.home);
            }
        }
    }
    let libraries = names
        .iter()
        .filter_map(|name| name.strip_suffix("src/lib.rs"));
    let libraries = libraries.filter(|library| *library != "tests/");
    libraries
        .flat_map(|library| unused(library, &sources, &users))
        .collect()
}

/// Returns the public items of a library that no other code uses.
fn unused(
    library: &str,
    sources: &[Source<'_>],
    users: &BTreeMap<&str, BTreeSet<&str>>,
) -> Vec<Fault> {
    let mut signatures = Words::new();
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.home == library) {
        let items = items(&tokens(&source.text), &mut signatures);
        // A file of tests has no items that other crates could use.
        if !source.name.ends_with("tests.rs") && !source.name.contains("/tests/") {
            found.extend(items.into_iter().map(|item| (source.name, item)));
        }
    }
    let is_used = |item: &Item| {
        let is_named = |homes: &BTreeSet<&str>| homes.iter().any(|home| *home != library);
        users.get(item.name.as_str()).is_some_and(is_named)
            || (item.is_type && signatures.contains(&item.name))
    };
    let unused = found.into_iter().filter(|(_, item)| !is_used(item));
    unused
        .map(|(name, item)| {
            let detail = format!("`{}` is public, and no other crate uses it", item.name);
            Fault::at(name, item.line, detail)
        })
        .collect()
}

/// Returns the public items of a file, and adds the words of what is public in
/// it to `signatures`.
fn items(tokens: &[Token<'_>], signatures: &mut Words) -> Vec<Item> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        // The type that an implementation of a trait names is as public as both.
        if token.text == "type" {
            signatures.extend(words(tokens, at + 2, &[";"]));
        }
        if token.text != "pub" || text(at + 1) == "(" {
            continue;
        }
        let skipped = |word: &str| ["const", "async", "unsafe"].contains(&word);
        let mut kind = at + 1;
        while skipped(text(kind)) && is_word(text(kind + 1)) && text(kind + 2) != ":" {
            kind += 1;
        }
        let end: &[&str] = match text(kind) {
            "use" | "mod" => continue,
            "enum" | "trait" => &["}"],
            "fn" | "struct" | "type" => &["{", ";"],
            "const" | "static" => &["="],
            // A field of a struct or of a tuple has no name of its own here.
            _ => {
                signatures.extend(words(tokens, kind, &[","]));
                continue;
            }
        };
        if !is_word(text(kind + 1)) {
            // A name that a macro gives.
            continue;
        }
        found.push(Item {
            name: text(kind + 1).to_owned(),
            is_type: !["fn", "const", "static"].contains(&text(kind)),
            line: token.line,
        });
        signatures.extend(words(tokens, kind + 2, end));
    }
    found
}

/// Returns the words from a token to one that ends them outside of brackets.
fn words(tokens: &[Token<'_>], from: usize, end: &[&str]) -> Vec<String> {
    let mut depth = 0_usize;
    let mut before = "";
    let mut found = Vec::new();
    for token in tokens.iter().skip(from) {
        let is_arrow = token.text == ">" && ["-", "="].contains(&before);
        before = token.text;
        match token.text {
            text if depth == 0 && end.contains(&text) => break,
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" if !is_arrow => {
                let Some(outer) = depth.checked_sub(1) else {
                    break;
                };
                depth = outer;
                if depth == 0 && end.contains(&token.text) {
                    break;
                }
            }
            word if is_word(word) => found.push(word.to_owned()),
            _ => {}
        }
    }
    found
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> (Vec<String>, Words) {
        let mut signatures = Words::new();
        let items = items(&tokens(source), &mut signatures);
        let names = items.into_iter().map(|item| item.name).collect();
        (names, signatures)
    }

    #[test]
    fn items_are_found_and_restricted_ones_are_not() {
        let source = "pub const fn a() {}\npub(crate) fn b() {}\npub struct C<T>(pub D<T>, E);\n\
                      pub const F: usize = 1; pub use g::H; pub mod i; impl C { pub async fn j() {} }";
        assert_eq!(read(source).0, ["a", "C", "F", "j"]);
    }

    #[test]
    fn a_signature_has_the_words_of_what_is_public() {
        let source = "pub fn a(b: &B<C>) -> Result<D, E> where F: G { H }\n\
                      pub struct I { pub j: Map<J, T>, k: K }\npub enum L { M(N), O { p: P } }\n\
                      impl Q for R { type Error = S; }";
        let types: Vec<String> = read(source).1.into_iter().collect();
        let types: Vec<&str> = types.iter().map(String::as_str).collect();
        let upper: Vec<&str> = types
            .into_iter()
            .filter(|word| word.len() == 1 && word.chars().all(char::is_uppercase))
            .collect();
        assert_eq!(
            upper,
            [
                "B", "C", "D", "E", "F", "G", "J", "M", "N", "O", "P", "S", "T"
            ]
        );
    }
}

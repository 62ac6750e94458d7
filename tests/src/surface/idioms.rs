//! Plain language: idioms that a reader from outside stumbles over, with what
//! to write instead.
//!
//! Read are the comments and the names of functions of every Rust file, the texts
//! of its string literals outside of tests, the pages, the task descriptions, the template of the
//! configuration, the default prompt and the example. Code between backticks and
//! in blocks is skipped.

use super::lexer::{Piece, pieces};
use super::token::tokens;
use super::{Fault, files, text_of};
use std::collections::BTreeMap;

/// The word list.
const LIST: &str = include_str!("idioms.txt");

/// Texts that are read beside sources and pages.
const TEXTS: [&str; 4] = [
    "mise.toml",
    "shared/cli/src/init/harness.toml",
    "shared/evidence/tests/recorded/README.md",
    "worker/src/prompt_default.md",
];

/// The example, and the part of it that is data of its project.
const EXAMPLE: [&str; 2] = ["worktrees.example/", "worktrees.example/project/share/"];

/// The most words in a gap of an idiom.
const GAP_MAX: usize = 3;

/// A part of an idiom.
#[derive(Debug)]
enum Part {
    /// One of these words.
    Word(Vec<&'static str>),
    /// At most [`GAP_MAX`] words, without a mark.
    Gap,
}

/// One idiom: a sequence of words, each with its alternatives, and of gaps.
#[derive(Debug)]
struct Idiom {
    /// The idiom is not a fault after one of these words.
    not_after: Vec<&'static str>,
    parts: Vec<Part>,
    /// The idiom is not a fault before one of these words.
    not_before: Vec<&'static str>,
    instead: &'static str,
}

/// A word of a text, or a mark between two words.
#[derive(Debug)]
struct Word {
    /// Lower case; empty for a mark, which ends every idiom.
    text: String,
    line: usize,
}

/// The idioms, by the first word of each.
#[derive(Debug)]
struct Idioms {
    by_first: BTreeMap<&'static str, Vec<usize>>,
    all: Vec<Idiom>,
}

/// Returns the idioms in a checkout's texts.
pub fn faults(root: &std::path::Path) -> Vec<Fault> {
    let idioms = Idioms::of_the_list();
    let mut faults = Vec::new();
    for name in files(root).iter().filter(|name| is_checked(name)) {
        let text = text_of(root, name);
        for piece in pieces_of(name, &text) {
            for (line, idiom, instead) in idioms.find(&piece) {
                let detail = format!("\"{idiom}\": write instead: {instead}");
                faults.push(Fault::at(name, line, detail));
            }
        }
    }
    faults
}

/// Returns whether a file holds text for readers.
fn is_checked(name: &str) -> bool {
    let page = name.ends_with(".md") && (!name.contains('/') || name.starts_with("docs/"));
    let [example, data_of_it] = EXAMPLE;
    let example = name.starts_with(example) && !name.starts_with(data_of_it);
    let data = ["tests/data/", "tests/conformance/"];
    let source = name.ends_with(".rs") && !data.iter().any(|folder| name.starts_with(folder));
    page || TEXTS.contains(&name) || example || source
}

/// Returns the texts of a file that are checked.
fn pieces_of(name: &str, text: &str) -> Vec<Piece> {
    if !name.ends_with(".rs") {
        return vec![Piece::page(text)];
    }
    let is_test = name.split('/').any(|part| {
        ["tests", "tests.rs", "compile_fail"].contains(&part) && !name.starts_with("tests/src/")
    });
    let mut found = pieces(text);
    found.retain(|piece| piece.is_comment || (!is_test && piece.text.contains(' ')));
    found.extend(names_of(text));
    found
}

/// Returns the names of a file's functions, as texts: that of a test is a
/// sentence.
fn names_of(source: &str) -> Vec<Piece> {
    let tokens = tokens(source);
    let pairs = tokens.iter().zip(tokens.iter().skip(1));
    let names = pairs.filter(|(keyword, _)| keyword.text == "fn");
    names
        .map(|(_, name)| Piece {
            line: name.line,
            text: name.text.replace('_', " "),
            is_comment: false,
        })
        .collect()
}

impl Idioms {
    fn of_the_list() -> Self {
        let lines = LIST.lines().filter(|line| !line.starts_with('#'));
        let all: Vec<Idiom> = lines.filter_map(Idiom::of_line).collect();
        let mut by_first: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, idiom) in all.iter().enumerate() {
            if let Some(Part::Word(alternatives)) = idiom.parts.first() {
                for first in alternatives {
                    by_first.entry(first).or_default().push(at);
                }
            }
        }
        Self { by_first, all }
    }

    /// Returns the idioms of a text: the line, the words, the replacement.
    fn find(&self, piece: &Piece) -> Vec<(usize, String, &'static str)> {
        let words = words(piece);
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let candidates = self.by_first.get(word.text.as_str());
            let idioms = candidates.into_iter().flatten();
            let hit = idioms
                .filter_map(|index| self.all.get(*index))
                .find_map(|idiom| Some((idiom, idiom.end(&words, at)?)));
            if let Some((idiom, end)) = hit {
                let span = words.get(at..end).unwrap_or_default();
                let span: Vec<&str> = span.iter().map(|word| word.text.as_str()).collect();
                found.push((word.line, span.join(" "), idiom.instead));
            }
        }
        found
    }
}

impl Idiom {
    fn of_line(line: &'static str) -> Option<Self> {
        let (pattern, instead) = line.split_once('\t')?;
        let mut idiom = Self {
            not_after: Vec::new(),
            parts: Vec::new(),
            not_before: Vec::new(),
            instead,
        };
        for part in pattern.split(' ') {
            match part.strip_prefix('!') {
                None if part == "~" => idiom.parts.push(Part::Gap),
                None => idiom.parts.push(Part::Word(part.split('|').collect())),
                Some(part) if idiom.parts.is_empty() => {
                    idiom.not_after = part.split('|').collect();
                }
                Some(part) => idiom.not_before = part.split('|').collect(),
            }
        }
        Some(idiom)
    }

    /// Returns the end of the idiom, if it begins at a word of a text.
    fn end(&self, words: &[Word], at: usize) -> Option<usize> {
        let end = end_of(&self.parts, words, at)?;
        let is = |at: Option<usize>, list: &[&str]| {
            let word = at.and_then(|at| words.get(at));
            word.is_some_and(|word| list.contains(&word.text.as_str()))
        };
        let is_excluded = is(at.checked_sub(1), &self.not_after) || is(Some(end), &self.not_before);
        (!is_excluded).then_some(end)
    }
}

/// Returns the end of a sequence of parts, if it begins at a word of a text. A
/// gap is as short as it can be.
fn end_of(parts: &[Part], words: &[Word], at: usize) -> Option<usize> {
    let Some((part, rest)) = parts.split_first() else {
        return Some(at);
    };
    match part {
        Part::Word(alternatives) => {
            let word = words.get(at)?;
            let is_one = alternatives.contains(&word.text.as_str());
            is_one.then(|| end_of(rest, words, at + 1)).flatten()
        }
        Part::Gap => (at..=at + GAP_MAX)
            .take_while(|end| is_gap(words.get(at..*end)))
            .find_map(|end| end_of(rest, words, end)),
    }
}

/// Returns whether a part of a text has no mark.
fn is_gap(words: Option<&[Word]>) -> bool {
    words.is_some_and(|words| words.iter().all(|word| !word.text.is_empty()))
}

/// Splits a text into words. Code between backticks counts as a mark.
fn words(piece: &Piece) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let mut line = piece.line;
    let mut code = false;
    let mut inside = false;
    for c in piece.text.chars() {
        let is_word = !code && (c.is_alphanumeric() || matches!(c, '\'' | '-' | '_'));
        if c == '`' {
            code = !code;
        }
        if is_word {
            match found.last_mut().filter(|_| inside) {
                Some(word) => word.text.extend(c.to_lowercase()),
                None => found.push(Word {
                    text: c.to_lowercase().collect(),
                    line,
                }),
            }
        } else if !c.is_whitespace() {
            found.push(Word {
                text: String::new(),
                line,
            });
        }
        inside = is_word;
        line += usize::from(c == '\n');
    }
    found
}

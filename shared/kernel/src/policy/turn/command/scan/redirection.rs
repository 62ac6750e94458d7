//! Redirections and here-documents.

use super::super::{ShellCommand, ShellWord};
use super::{Document, Scanned, Scanner, Unreadable};

/// The redirection that a word follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redirection {
    Write,
    Read,
    Text,
    Document { strips_tabs: bool },
}

impl Scanner {
    /// Reads a redirection with its word.
    pub(super) fn redirect(&mut self, command: &mut ShellCommand, depth: usize) -> Scanned<()> {
        let operators = [
            ("<<<", Redirection::Text),
            ("<<-", Redirection::Document { strips_tabs: true }),
            ("<<", Redirection::Document { strips_tabs: false }),
            ("<>", Redirection::Write),
            ("<&", Redirection::Read),
            ("<", Redirection::Read),
            ("&>>", Redirection::Write),
            ("&>", Redirection::Write),
            (">>", Redirection::Write),
            (">&", Redirection::Write),
            (">|", Redirection::Write),
            (">", Redirection::Write),
        ];
        let kind = operators.into_iter().find(|(text, _)| self.take(text));
        let (_, kind) = kind.ok_or(Unreadable)?;
        self.blanks();
        let start = self.at;
        let word = self.word(depth)?;
        match kind {
            Redirection::Read => {}
            Redirection::Text => command.input.push(word),
            Redirection::Write => {
                let is_descriptor = |c: char| c.is_ascii_digit() || c == '-';
                if !word.text.chars().all(is_descriptor) {
                    command.written.push(word);
                }
            }
            Redirection::Document { strips_tabs } => {
                let quoted = self.letters[start..self.at].iter();
                let mut quoted = quoted.filter(|letter| "'\"\\".contains(**letter));
                self.documents.push(Document {
                    end: word.text,
                    strips_tabs,
                    expands: quoted.next().is_none(),
                    number: self.texts.len(),
                });
                command.documents.push(self.texts.len());
                self.texts.push(ShellWord::default());
            }
        }
        Ok(())
    }

    /// Reads the here-documents that begin at this line.
    pub(super) fn bodies(&mut self, depth: usize) -> Scanned<()> {
        for document in std::mem::take(&mut self.documents) {
            loop {
                if self.at >= self.letters.len() {
                    return Err(Unreadable);
                }
                let rest = &self.letters[self.at..];
                let length = rest.iter().position(|letter| *letter == '\n');
                let length = length.unwrap_or(rest.len());
                let line: String = rest[..length].iter().collect();
                let line = match document.strips_tabs {
                    true => line.trim_start_matches('\t'),
                    false => &line,
                };
                if line == document.end {
                    self.at = (self.at + length + 1).min(self.letters.len());
                    break;
                }
                let text = self.texts.get_mut(document.number);
                if let Some(text) = text {
                    text.text.push_str(line);
                    text.text.push('\n');
                    text.is_dynamic |= document.expands && line.contains(['$', '`']);
                }
                if document.expands {
                    self.expanding_line(self.at + length, depth)?;
                }
                self.at = (self.at + length + 1).min(self.letters.len());
            }
        }
        Ok(())
    }

    /// Reads the substitutions of a line of a here-document; one that goes over
    /// the end of the line is not understood.
    fn expanding_line(&mut self, end: usize, depth: usize) -> Scanned<()> {
        let start = self.at;
        while self.at < end {
            match self.peek() {
                Some('\\') => self.at += 2,
                Some('$' | '`') => self.expand(&mut ShellWord::default(), depth)?,
                _ => self.at += 1,
            }
        }
        let is_within = self.at <= end || self.letters.get(end - 1) == Some(&'\\');
        self.at = start;
        is_within.then_some(()).ok_or(Unreadable)
    }
}

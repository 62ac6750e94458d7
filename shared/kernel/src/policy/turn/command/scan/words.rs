//! Words: quotes, expansions and substitutions.

use super::super::{COMMANDS_MAX, DEPTH_MAX, ShellWord};
use super::{BREAKS, Close, Scanned, Scanner, Unreadable, commands};

/// How far the end of a brace is looked for.
const BRACE_MAX: usize = 128;

impl Scanner {
    /// Reads one word; it has at least one letter.
    pub(super) fn word(&mut self, depth: usize) -> Scanned<ShellWord> {
        let mut word = ShellWord::default();
        let start = self.at;
        while let Some(letter) = self.peek() {
            match letter {
                '<' | '>' if self.is_substitution() && self.at == start => {
                    self.at += 2;
                    self.list(depth + 1, Close::Parenthesis)?;
                    word.is_dynamic = true;
                }
                // An extended pattern: `@(a|b)`.
                '(' if word.text.ends_with(['@', '+', '?', '*', '!']) => return Err(Unreadable),
                // `name=(a b)` assigns a list.
                '(' if word.text.ends_with('=') && word.is_assignment() => {
                    self.at += 1;
                    self.elements(depth + 1)?;
                }
                letter if BREAKS.contains(letter) => break,
                '\\' => {
                    self.at += 1;
                    match self.peek().ok_or(Unreadable)? {
                        '\n' => {}
                        letter => word.text.push(letter),
                    }
                    self.at += 1;
                }
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word, depth)?,
                '$' | '`' => self.expand(&mut word, depth)?,
                '{' => {
                    word.is_dynamic |= self.is_brace_expansion();
                    word.text.push(letter);
                    self.at += 1;
                }
                letter => {
                    word.text.push(letter);
                    self.at += 1;
                }
            }
        }
        match self.at > start {
            true => Ok(word),
            false => Err(Unreadable),
        }
    }

    /// Reads the elements of a list that is assigned.
    fn elements(&mut self, depth: usize) -> Scanned<()> {
        if depth > DEPTH_MAX {
            return Err(Unreadable);
        }
        loop {
            self.white();
            if self.take(")") {
                return Ok(());
            }
            self.word(depth)?;
        }
    }

    /// Reads `'…'`.
    fn single(&mut self, word: &mut ShellWord) -> Scanned<()> {
        self.at += 1;
        loop {
            let letter = self.peek().ok_or(Unreadable)?;
            self.at += 1;
            if letter == '\'' {
                return Ok(());
            }
            word.text.push(letter);
        }
    }

    /// Reads `$'…'`; its escapes are not resolved.
    fn escaped(&mut self, word: &mut ShellWord) -> Scanned<()> {
        self.at += 2;
        loop {
            let letter = self.peek().ok_or(Unreadable)?;
            self.at += 1;
            match letter {
                '\'' => return Ok(()),
                '\\' => {
                    word.is_dynamic = true;
                    word.text.extend(['\\', self.peek().ok_or(Unreadable)?]);
                    self.at += 1;
                }
                letter => word.text.push(letter),
            }
        }
    }

    /// Reads `"…"`.
    pub(super) fn double(&mut self, word: &mut ShellWord, depth: usize) -> Scanned<()> {
        self.at += 1;
        loop {
            match self.peek().ok_or(Unreadable)? {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    let letter = self.peek_after(1).ok_or(Unreadable)?;
                    match letter {
                        '\n' => {}
                        '$' | '`' | '"' | '\\' => word.text.push(letter),
                        _ => word.text.extend(['\\', letter]),
                    }
                    self.at += 2;
                }
                '$' if matches!(self.peek_after(1), Some('"' | '\'')) => {
                    word.text.push('$');
                    self.at += 1;
                }
                '$' | '`' => self.expand(word, depth)?,
                letter => {
                    word.text.push(letter);
                    self.at += 1;
                }
            }
        }
    }

    /// Reads an expansion; its text goes into the word as it is.
    pub(super) fn expand(&mut self, word: &mut ShellWord, depth: usize) -> Scanned<()> {
        let start = self.at;
        if self.peek() == Some('`') {
            self.backquoted(depth)?;
        } else {
            match self.peek_after(1) {
                Some('(') if self.is_next("$((") => {
                    self.at += 3;
                    self.arithmetic(depth + 1)?;
                }
                Some('(') => {
                    self.at += 2;
                    self.list(depth + 1, Close::Parenthesis)?;
                }
                Some('{') => self.parameter(depth)?,
                Some('\'') => return self.escaped(word),
                Some('"') => {
                    self.at += 1;
                    return self.double(word, depth);
                }
                Some(letter) if letter == '_' || letter.is_ascii_alphanumeric() => {
                    self.at += 2;
                    let is_name = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
                    while self.peek().is_some_and(is_name) {
                        self.at += 1;
                    }
                }
                Some('?' | '!' | '#' | '$' | '*' | '@' | '-') => self.at += 2,
                _ => {
                    word.text.push('$');
                    self.at += 1;
                    return Ok(());
                }
            }
        }
        word.is_dynamic = true;
        word.text.extend(&self.letters[start..self.at]);
        Ok(())
    }

    /// Reads `${…}`.
    fn parameter(&mut self, depth: usize) -> Scanned<()> {
        if depth > DEPTH_MAX {
            return Err(Unreadable);
        }
        self.at += 2;
        let mut within = ShellWord::default();
        loop {
            match self.peek().ok_or(Unreadable)? {
                '}' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => self.at += 2,
                '"' => self.double(&mut within, depth + 1)?,
                '\'' => self.single(&mut within)?,
                '$' | '`' => self.expand(&mut within, depth + 1)?,
                _ => self.at += 1,
            }
            within.text.clear();
        }
    }

    /// Reads the commands between two backquotes.
    fn backquoted(&mut self, depth: usize) -> Scanned<()> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let letter = self.peek().ok_or(Unreadable)?;
            self.at += 1;
            match letter {
                '`' => break,
                '\\' => {
                    let letter = self.peek().ok_or(Unreadable)?;
                    self.at += 1;
                    if !matches!(letter, '`' | '\\' | '$') {
                        text.push('\\');
                    }
                    text.push(letter);
                }
                letter => text.push(letter),
            }
        }
        let found = commands(&text, depth + 1).ok_or(Unreadable)?;
        self.found.extend(found);
        match self.found.len() > COMMANDS_MAX {
            true => Err(Unreadable),
            false => Ok(()),
        }
    }

    /// Returns whether a brace begins words that the shell makes of one.
    fn is_brace_expansion(&self) -> bool {
        let rest = self.letters[self.at..].iter().take(BRACE_MAX);
        let within: String = rest.take_while(|c| !BREAKS.contains(**c)).collect();
        let within = within.split_once('}').map(|(within, _)| within);
        within.is_some_and(|within| within.contains(',') || within.contains(".."))
    }
}

//! Finds the simple commands of a shell text in one pass.

use super::{COMMANDS_MAX, DEPTH_MAX, ShellCommand, ShellWord, TEXT_MAX};

/// Words that begin or end a compound command where a program could be.
const RESERVED: [&str; 13] = [
    "!", "do", "done", "elif", "else", "esac", "fi", "if", "then", "until", "while", "{", "}",
];

/// The letters that end a word.
const BREAKS: &str = " \t\n;&|()<>";

/// How far the end of a brace is looked for.
const BRACE_MAX: usize = 128;

/// A text that is not understood.
#[derive(Debug)]
struct Unreadable;

type Scanned<T> = Result<T, Unreadable>;

/// Returns the commands of a text with the depth that they are at; none where
/// the text is not understood.
pub(super) fn commands(text: &str, depth: usize) -> Option<Vec<(ShellCommand, usize)>> {
    if text.len() > TEXT_MAX || text.contains('\0') {
        return None;
    }
    let mut scanner = Scanner {
        letters: text.chars().collect(),
        at: 0,
        documents: Vec::new(),
        texts: Vec::new(),
        found: Vec::new(),
    };
    scanner.list(depth, Close::End).ok()?;
    let Scanner {
        mut found,
        mut texts,
        ..
    } = scanner;
    for (command, _) in &mut found {
        for number in std::mem::take(&mut command.documents) {
            command
                .input
                .extend(texts.get_mut(number).map(std::mem::take));
        }
    }
    Some(found)
}

/// What ends a list of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Close {
    /// The end of the text.
    End,
    /// A closing parenthesis.
    Parenthesis,
    /// `;;` or `esac`, after a pattern of `case`.
    Case,
}

/// The redirection that a word follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redirection {
    Write,
    Read,
    Text,
    Document { strips_tabs: bool },
}

/// The text of a here-document that is still to come.
#[derive(Debug)]
struct Document {
    end: String,
    strips_tabs: bool,
    expands: bool,
    /// Its number among the documents of the text.
    number: usize,
}

struct Scanner {
    letters: Vec<char>,
    at: usize,
    documents: Vec<Document>,
    /// The texts of the here-documents so far, by number.
    texts: Vec<ShellWord>,
    found: Vec<(ShellCommand, usize)>,
}

impl Scanner {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn peek_after(&self, distance: usize) -> Option<char> {
        self.letters.get(self.at + distance).copied()
    }

    fn is_next(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(distance, letter)| self.peek_after(distance) == Some(letter))
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.is_next(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn push(&mut self, command: &mut ShellCommand, depth: usize) -> Scanned<()> {
        let command = std::mem::take(command);
        if command.words.is_empty() && command.written.is_empty() {
            return Ok(());
        }
        if self.found.len() >= COMMANDS_MAX {
            return Err(Unreadable);
        }
        self.found.push((command, depth));
        Ok(())
    }

    /// Reads commands up to what ends them, and the end with them.
    fn list(&mut self, depth: usize, close: Close) -> Scanned<()> {
        if depth > DEPTH_MAX {
            return Err(Unreadable);
        }
        let mut command = ShellCommand::default();
        loop {
            let Some(letter) = self.peek() else {
                self.push(&mut command, depth)?;
                return match close {
                    Close::End if self.documents.is_empty() => Ok(()),
                    _ => Err(Unreadable),
                };
            };
            match letter {
                ' ' | '\t' => self.at += 1,
                '\\' if self.peek_after(1) == Some('\n') => self.at += 2,
                '#' => self.comment(),
                '\n' => {
                    self.at += 1;
                    self.push(&mut command, depth)?;
                    self.bodies(depth)?;
                }
                ';' if self.is_next(";;") => {
                    self.push(&mut command, depth)?;
                    if close != Close::Case {
                        return Err(Unreadable);
                    }
                    self.at += 2;
                    self.take("&");
                    return Ok(());
                }
                '&' if self.is_next("&>") => self.redirect(&mut command, depth)?,
                ';' | '&' | '|' => {
                    self.at += 1;
                    self.push(&mut command, depth)?;
                }
                ')' if close == Close::Parenthesis => {
                    self.at += 1;
                    return self.push(&mut command, depth);
                }
                ')' => return Err(Unreadable),
                '(' => self.parenthesis(&mut command, depth)?,
                '<' | '>' if !self.is_substitution() => self.redirect(&mut command, depth)?,
                _ => {
                    let word = self.word(depth)?;
                    if close == Close::Case && command.words.is_empty() && word.text == "esac" {
                        self.at -= "esac".len();
                        return Ok(());
                    }
                    self.add(&mut command, word, depth)?;
                }
            }
        }
    }

    /// Adds a word to a command, or reads the compound command that it begins.
    fn add(&mut self, command: &mut ShellCommand, word: ShellWord, depth: usize) -> Scanned<()> {
        let is_number = !word.text.is_empty() && word.text.chars().all(|c| c.is_ascii_digit());
        if is_number && matches!(self.peek(), Some('<' | '>')) && !self.is_substitution() {
            return self.redirect(command, depth);
        }
        if command.words.is_empty() && !word.is_dynamic {
            match &*word.text {
                "for" | "select" => return self.skip_words(depth),
                "case" => return self.case(depth),
                "function" => {
                    self.blanks();
                    self.word(depth)?;
                    return Ok(());
                }
                "[[" => return self.condition(depth),
                text if RESERVED.contains(&text) => return Ok(()),
                _ => {}
            }
        }
        // An assignment before the program is none of its words.
        if command.words.is_empty() && word.is_assignment() {
            return Ok(());
        }
        command.words.push(word);
        Ok(())
    }

    fn comment(&mut self) {
        while self.peek().is_some_and(|letter| letter != '\n') {
            self.at += 1;
        }
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// Reads a subshell, an arithmetic command, or the head of a function.
    fn parenthesis(&mut self, command: &mut ShellCommand, depth: usize) -> Scanned<()> {
        if !command.words.is_empty() {
            // `name() { … }`: the body is read as commands.
            self.at += 1;
            self.blanks();
            if command.words.len() > 1 || !self.take(")") {
                return Err(Unreadable);
            }
            command.words.clear();
            return Ok(());
        }
        if self.take("((") {
            return self.arithmetic(depth + 1);
        }
        self.at += 1;
        self.list(depth + 1, Close::Parenthesis)
    }

    /// Reads an arithmetic expression and the two parentheses that end it; the
    /// commands of its substitutions are found. Where the second parenthesis
    /// does not follow the first, a shell reads subshells: not understood.
    fn arithmetic(&mut self, depth: usize) -> Scanned<()> {
        if depth > DEPTH_MAX {
            return Err(Unreadable);
        }
        let mut within = ShellWord::default();
        let mut open = 1_usize;
        loop {
            match self.peek().ok_or(Unreadable)? {
                ')' if open == 1 => return self.take("))").then_some(()).ok_or(Unreadable),
                ')' => open -= 1,
                '(' => open += 1,
                '\'' | '\\' => return Err(Unreadable),
                '"' => {
                    self.double(&mut within, depth + 1)?;
                    continue;
                }
                '$' | '`' => {
                    self.expand(&mut within, depth + 1)?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Reads the words after `for`; substitutions in them are commands.
    fn skip_words(&mut self, depth: usize) -> Scanned<()> {
        loop {
            self.blanks();
            match self.peek() {
                None | Some(';' | '\n') => return Ok(()),
                Some('(') if self.take("((") => return self.arithmetic(depth + 1),
                Some('(' | ')' | '<' | '>' | '&' | '|') => return Err(Unreadable),
                Some(_) => {
                    self.word(depth)?;
                }
            }
        }
    }

    /// Reads `case WORD in PATTERN) COMMANDS ;; … esac`.
    fn case(&mut self, depth: usize) -> Scanned<()> {
        self.blanks();
        self.word(depth)?;
        self.white();
        if self.word(depth)?.text != "in" {
            return Err(Unreadable);
        }
        loop {
            self.white();
            self.take("(");
            self.blanks();
            let pattern = self.word(depth)?;
            if pattern.text == "esac" {
                return Ok(());
            }
            loop {
                self.blanks();
                match self.peek().ok_or(Unreadable)? {
                    ')' => break,
                    '|' => self.at += 1,
                    letter if BREAKS.contains(letter) => return Err(Unreadable),
                    _ => {
                        self.word(depth)?;
                    }
                }
            }
            self.at += 1;
            self.list(depth + 1, Close::Case)?;
        }
    }

    /// Skips blanks, line feeds and comments.
    fn white(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\n') => self.at += 1,
                Some('#') => self.comment(),
                _ => return,
            }
        }
    }

    /// Reads `[[ … ]]`, in which operators are words.
    fn condition(&mut self, depth: usize) -> Scanned<()> {
        loop {
            self.white();
            if self.is_substitution() {
                return Err(Unreadable);
            }
            match self.peek().ok_or(Unreadable)? {
                letter if BREAKS.contains(letter) => self.at += 1,
                _ => {
                    if self.word(depth)?.text == "]]" {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn is_substitution(&self) -> bool {
        self.is_next("<(") || self.is_next(">(")
    }

    /// Reads a redirection with its word.
    fn redirect(&mut self, command: &mut ShellCommand, depth: usize) -> Scanned<()> {
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
    fn bodies(&mut self, depth: usize) -> Scanned<()> {
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

    /// Reads one word; it has at least one letter.
    fn word(&mut self, depth: usize) -> Scanned<ShellWord> {
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
    fn double(&mut self, word: &mut ShellWord, depth: usize) -> Scanned<()> {
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
    fn expand(&mut self, word: &mut ShellWord, depth: usize) -> Scanned<()> {
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

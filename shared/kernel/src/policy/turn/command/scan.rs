//! Finds the simple commands of a shell text in one pass.

mod redirection;
mod words;

use super::{COMMANDS_MAX, DEPTH_MAX, ShellCommand, ShellWord, TEXT_MAX};

/// Words that begin or end a compound command where a program could be.
const RESERVED: [&str; 13] = [
    "!", "do", "done", "elif", "else", "esac", "fi", "if", "then", "until", "while", "{", "}",
];

/// The letters that end a word.
const BREAKS: &str = " \t\n;&|()<>";

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
}

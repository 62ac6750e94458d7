//! The conversation of a review: one change after the other, a question each. It has
//! no terminal of its own, so that it can be tested.

use crate::error::CliError;
use crate::terminal::plain;
use premath_view::report::ReviewItem;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, Read, Write};

/// The longest answer that is read.
const ANSWER_MAX: u64 = 4096;

/// Shows changes and carries out what is decided about them.
pub(super) trait Desk {
    /// Returns what is known about a change, as lines.
    fn head(&self, item: &ReviewItem) -> Vec<String>;
    /// Shows the change itself.
    fn show(&mut self, item: &ReviewItem, output: &mut dyn Write) -> Result<(), CliError>;
    /// Records that the change is accepted.
    fn accept(&mut self, item: &ReviewItem) -> Result<String, CliError>;
    /// Opens the issue again, with a note for its next attempt.
    fn reopen(&mut self, item: &ReviewItem, note: &str) -> Result<String, CliError>;
    /// Reverts the change where it landed, and opens the issue again.
    fn revert(&mut self, item: &ReviewItem, note: &str) -> Result<String, CliError>;
}

/// What was decided in a review.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decisions {
    /// The decisions, by issue.
    pub(super) made: BTreeMap<String, String>,
    /// How many changes were skipped, or not reached.
    pub(super) left: usize,
}

impl Decisions {
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for (issue, decision) in &self.made {
            let _ = writeln!(text, "{decision} {}", plain(issue));
        }
        let _ = writeln!(text, "{} decided, {} left", self.made.len(), self.left);
        text
    }
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Accept,
    Reopen,
    Revert,
    Show,
    Skip,
    Quit,
}

impl Reply {
    fn of(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "a" | "accept" => Some(Self::Accept),
            "o" | "reopen" => Some(Self::Reopen),
            "r" | "revert" => Some(Self::Revert),
            "d" | "diff" => Some(Self::Show),
            "s" | "skip" => Some(Self::Skip),
            "q" | "quit" => Some(Self::Quit),
            _ => None,
        }
    }
}

/// Goes through changes; the end of the input quits.
///
/// # Errors
///
/// The terminal cannot be written to. What cannot be carried out is reported, and asked again.
pub(super) fn go_through(
    items: &[ReviewItem],
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    desk: &mut dyn Desk,
) -> Result<Decisions, CliError> {
    let mut decisions = Decisions::default();
    for (index, item) in items.iter().enumerate() {
        let head = format!("[{} of {}] ", index + 1, items.len());
        for (line, mark) in desk
            .head(item)
            .iter()
            .zip(std::iter::once(&*head).chain(std::iter::repeat("")))
        {
            say(output, &format!("{mark}{}\n", plain(line)))?;
        }
        if let Err(error) = desk.show(item, output) {
            say(
                output,
                &format!("cannot show it: {}\n", plain(&error.chain())),
            )?;
        }
        match decide(item, input, output, desk)? {
            Decision::Made(word) => {
                decisions
                    .made
                    .insert(item.issue_id.to_string(), word.to_owned());
            }
            Decision::Skipped => decisions.left += 1,
            Decision::Quit => {
                decisions.left += items.len() - index;
                return Ok(decisions);
            }
        }
    }
    Ok(decisions)
}

/// The outcome of a question.
enum Decision {
    Made(&'static str),
    Skipped,
    Quit,
}

fn decide(
    item: &ReviewItem,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    desk: &mut dyn Desk,
) -> Result<Decision, CliError> {
    const QUESTION: &str =
        "accept (a), reopen with a note (o), revert (r), diff again (d), skip (s), quit (q)? ";
    loop {
        let Some(text) = ask(QUESTION, input, output)? else {
            return Ok(Decision::Quit);
        };
        let done = match Reply::of(&text) {
            None => {
                say(output, "answer a, o, r, d, s or q\n")?;
                continue;
            }
            Some(Reply::Quit) => return Ok(Decision::Quit),
            Some(Reply::Skip) => return Ok(Decision::Skipped),
            Some(Reply::Show) => {
                if let Err(error) = desk.show(item, output) {
                    say(
                        output,
                        &format!("cannot show it: {}\n", plain(&error.chain())),
                    )?;
                }
                continue;
            }
            Some(Reply::Accept) => desk.accept(item).map(|said| ("accepted", said)),
            Some(reply) => {
                let Some(note) = ask("note for the next attempt: ", input, output)? else {
                    return Ok(Decision::Quit);
                };
                if note.trim().is_empty() {
                    say(output, "a note is needed; nothing was changed\n")?;
                    continue;
                }
                match reply {
                    Reply::Reopen => desk
                        .reopen(item, note.trim())
                        .map(|said| ("reopened", said)),
                    _ => desk
                        .revert(item, note.trim())
                        .map(|said| ("reverted", said)),
                }
            }
        };
        match done {
            Ok((word, said)) => {
                say(output, &format!("{}\n\n", plain(&said)))?;
                return Ok(Decision::Made(word));
            }
            Err(error) => say(output, &format!("error: {}\n", plain(&error.chain())))?,
        }
    }
}

fn say(output: &mut dyn Write, text: &str) -> Result<(), CliError> {
    let said = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
    said.map_err(CliError::Terminal)
}

/// Asks; `None` at the end of the input.
fn ask(
    question: &str,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<Option<String>, CliError> {
    say(output, question)?;
    let mut answer = Vec::new();
    let mut bounded = input.take(ANSWER_MAX);
    let read = bounded
        .read_until(b'\n', &mut answer)
        .map_err(CliError::Terminal)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    Ok((read > 0).then_some(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes what it is asked for.
    #[derive(Default)]
    struct Noted {
        calls: Vec<String>,
        refuses: bool,
    }

    impl Noted {
        fn note(&mut self, call: String) -> Result<String, CliError> {
            self.calls.push(call.clone());
            match self.refuses {
                true => Err(CliError::Terminal(std::io::Error::other(
                    "the target moved",
                ))),
                false => Ok(call),
            }
        }
    }

    impl Desk for Noted {
        fn head(&self, item: &ReviewItem) -> Vec<String> {
            vec![format!(
                "{} {}",
                item.issue_id,
                item.title.as_deref().unwrap()
            )]
        }
        fn show(&mut self, item: &ReviewItem, _: &mut dyn Write) -> Result<(), CliError> {
            self.calls.push(format!("show {}", item.issue_id));
            Ok(())
        }
        fn accept(&mut self, item: &ReviewItem) -> Result<String, CliError> {
            self.note(format!("accept {}", item.issue_id))
        }
        fn reopen(&mut self, item: &ReviewItem, note: &str) -> Result<String, CliError> {
            self.note(format!("reopen {} {note}", item.issue_id))
        }
        fn revert(&mut self, item: &ReviewItem, note: &str) -> Result<String, CliError> {
            self.note(format!("revert {} {note}", item.issue_id))
        }
    }

    fn item(id: &str) -> ReviewItem {
        ReviewItem {
            place: 1,
            issue_id: id.into(),
            title: Some("a\u{1b}[2Jb".to_owned()),
            closed: true,
            score: 0,
            reasons: Vec::new(),
            change: None,
            revision: "c".to_owned(),
            step_id: "s".into(),
            row: 1,
            command: String::new(),
            reviewed: None,
        }
    }

    fn talk(desk: &mut Noted, answers: &str) -> (Decisions, String) {
        let items = ["x-1", "x-2", "x-3"].map(item);
        let (mut input, mut output) = (answers.as_bytes(), Vec::new());
        let decisions = go_through(&items, &mut input, &mut output, desk).unwrap();
        (decisions, String::from_utf8(output).unwrap())
    }

    fn made(decisions: &Decisions) -> Vec<(&str, &str)> {
        let made = decisions.made.iter();
        made.map(|(issue, word)| (issue.as_str(), word.as_str()))
            .collect()
    }

    #[test]
    fn each_change_is_shown_and_decided_about() {
        let mut desk = Noted::default();
        let (decisions, said) = talk(&mut desk, "a\nreopen\nsay why\nR\nbreaks it\n");
        let expected = [
            ("x-1", "accepted"),
            ("x-2", "reopened"),
            ("x-3", "reverted"),
        ];
        assert_eq!(made(&decisions), expected);
        assert_eq!(
            desk.calls,
            [
                "show x-1",
                "accept x-1",
                "show x-2",
                "reopen x-2 say why",
                "show x-3",
                "revert x-3 breaks it"
            ]
        );
        assert!(said.contains("[1 of 3] x-1 a\\u{1b}[2Jb\n"), "{said}");
        assert_eq!(decisions.left, 0);
    }

    #[test]
    fn an_unknown_answer_and_an_empty_note_are_asked_again() {
        let mut desk = Noted::default();
        let (decisions, said) = talk(&mut desk, "yes\no\n\nd\ns\nq\n");
        assert!(decisions.made.is_empty());
        assert_eq!(decisions.left, 3);
        assert_eq!(desk.calls, ["show x-1", "show x-1", "show x-2"]);
        assert!(said.contains("answer a, o, r, d, s or q"));
        assert!(said.contains("a note is needed"));
    }

    #[test]
    fn the_end_of_the_input_quits_and_what_fails_decides_nothing() {
        let mut desk = Noted {
            refuses: true,
            ..Noted::default()
        };
        let (decisions, said) = talk(&mut desk, "a\n");
        assert!(decisions.made.is_empty());
        assert_eq!(decisions.left, 3);
        assert!(
            said.contains("error: cannot use the terminal: the target moved"),
            "{said}"
        );
        assert_eq!(decisions.text(), "0 decided, 3 left\n");
    }
}

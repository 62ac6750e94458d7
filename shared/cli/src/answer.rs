//! What a command answers, and the only place that prints.
//!
//! Data goes to stdout, as lines or as one JSON document; everything else to
//! stderr. Text from outside has its control characters escaped on the way.

use crate::error::CliError;
use crate::exit;
use crate::terminal::plain;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::{canonical, value_of};
use premath_kernel::json::plain::plain_json;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a command found or did.
#[derive(Debug)]
pub(crate) struct Answer {
    document: Map<String, Value>,
    /// What is under `items`, each as its own JSON text: of a list as long as
    /// issue memory, generic values would take many times its size.
    items: Option<Vec<Box<str>>>,
    text: String,
    notes: Vec<String>,
    refused: bool,
}

impl Answer {
    /// Returns an answer: the fields of its JSON document, and its lines for a
    /// person, whose foreign parts went through [`plain`].
    pub(crate) fn new(document: impl Serialize, text: impl Into<String>) -> Self {
        Self {
            document: object(document),
            items: None,
            text: text.into(),
            notes: Vec::new(),
            refused: false,
        }
    }

    /// Adds a list to the document, as `items`.
    pub(crate) fn items(mut self, items: impl Iterator<Item = impl Serialize>) -> Self {
        self.items = Some(items.map(|item| canonical(&item).into()).collect());
        self
    }

    /// Returns whether a person would see nothing.
    pub(crate) fn is_silent(&self) -> bool {
        self.text.is_empty() && self.notes.is_empty()
    }

    /// Returns whether the exit code is that of a failed check.
    pub(crate) const fn is_refused(&self) -> bool {
        self.refused
    }

    /// Returns what a person reads, in one line, and whether something is refused.
    pub(crate) fn line(&self) -> (String, bool) {
        let lines = self
            .text
            .lines()
            .chain(self.notes.iter().map(String::as_str));
        (lines.collect::<Vec<_>>().join("; "), self.refused)
    }

    /// Adds a line for stderr.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Makes the exit code that of a failed check where `refused`.
    pub(crate) fn refused(mut self, refused: bool) -> Self {
        self.refused = refused;
        self
    }
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Verdict")]
pub(crate) enum CheckVerdict {
    /// No fault was found.
    Accepted,
    /// Something is, and the exit code is 1.
    Rejected,
}

impl CheckVerdict {
    /// Returns the verdict over something that is right or not.
    pub(crate) const fn of(right: bool) -> Self {
        if right {
            Self::Accepted
        } else {
            Self::Rejected
        }
    }
}

/// What a command answers that was refused, or that failed.
///
/// The file that it worked on is next to this under its name in answers, and
/// `claimed` is false where it was a claim.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Refusal {
    /// The command.
    action: &'static str,
    /// The error with all its causes, in a line.
    error: String,
    /// Its class, where the contracts name one.
    failure_classes: Vec<FailureClass>,
}

/// Returns a document's fields, none where it is not an object.
fn object(document: impl Serialize) -> Map<String, Value> {
    match value_of(&document) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The file that a command works on, under its name in answers.
#[derive(Debug)]
struct ListPlace {
    key: &'static str,
    path: PathBuf,
}

/// A command that has run.
#[derive(Debug)]
pub(crate) struct Finished {
    action: &'static str,
    place: Option<ListPlace>,
    when_refused: Option<(&'static str, Value)>,
    result: Result<Answer, CliError>,
}

impl Finished {
    /// Takes the result of a command that works on no one file.
    pub(crate) fn new(action: &'static str, result: Result<Answer, CliError>) -> Self {
        Self {
            action,
            place: None,
            when_refused: None,
            result,
        }
    }

    /// Performs a command on the file that `path` resolves to, which is in the
    /// answer under `key`, refusals included.
    pub(crate) fn on(
        action: &'static str,
        key: &'static str,
        path: Result<PathBuf, CliError>,
        perform: impl FnOnce(&Path) -> Result<Answer, CliError>,
    ) -> Self {
        match path {
            Ok(path) => {
                let result = perform(&path);
                Self {
                    place: Some(ListPlace { key, path }),
                    ..Self::new(action, result)
                }
            }
            Err(error) => Self::new(action, Err(error)),
        }
    }

    /// Adds a field to the document of a refusal.
    pub(crate) fn when_refused(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.when_refused = Some((key, value.into()));
        self
    }

    /// Takes the document out of the answer, for it may be large.
    fn document(&mut self) -> Value {
        let mut document = match &mut self.result {
            Ok(answer) => std::mem::take(&mut answer.document),
            Err(error) => {
                let mut refusal = object(Refusal {
                    action: self.action,
                    error: error.chain(),
                    failure_classes: error.classes(),
                });
                if let Some((key, value)) = &self.when_refused {
                    refusal.insert((*key).into(), value.clone());
                }
                refusal
            }
        };
        // A dispatch answers with the action that it was asked for.
        document
            .entry("action")
            .or_insert_with(|| self.action.into());
        if let Some(place) = &self.place {
            document.insert(place.key.into(), place.path.display().to_string().into());
        }
        Value::Object(document)
    }

    /// Returns the outcome of the command as one value: its answer, or its
    /// refusal with what can be done about it.
    pub(crate) fn into_outcome(mut self) -> Result<Value, Value> {
        let hint = self.result.as_ref().err().and_then(CliError::hint);
        let mut document = self.document();
        match self.result {
            Ok(Answer { items, .. }) => {
                if let Some(items) = items {
                    let items = items.iter().map(|item| serde_json::from_str::<Value>(item));
                    document[ITEMS] = items.filter_map(Result::ok).collect();
                }
                Ok(document)
            }
            Err(_) => {
                if let Some(hint) = hint {
                    document["hint"] = hint.into();
                }
                Err(document)
            }
        }
    }

    fn write_json(&mut self, out: &mut impl Write) -> io::Result<()> {
        let mut document = self.document();
        let items = self.result.as_ref().ok().and_then(|a| a.items.as_ref());
        let Some(items) = items.filter(|items| !items.is_empty()) else {
            if items.is_some() {
                document[ITEMS] = Value::Array(Vec::new());
            }
            let text = format!("{document:#}\n");
            drop(document);
            return out.write_all(plain_json(&text).as_bytes());
        };
        document[ITEMS] = PLACE.into();
        let text = format!("{document:#}\n");
        // No string has a raw line end, so this can be in one place only.
        let (head, tail) = text
            .split_once(&format!("\n  \"{ITEMS}\": \"{PLACE}\""))
            .ok_or_else(|| io::Error::other("the list has no place in the document"))?;
        write!(out, "{}\n  \"{ITEMS}\": [", plain_json(head))?;
        for (index, item) in items.iter().enumerate() {
            let item: Value = serde_json::from_str(item)?;
            let text = format!("{item:#}").replace('\n', "\n    ");
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}\n    {}", plain_json(&text))?;
        }
        write!(out, "\n  ]{}", plain_json(tail))
    }
}

/// The name of the list in a document.
const ITEMS: &str = "items";
/// What is in the list's place while the rest is written.
const PLACE: &str = "(the list)";

/// Prints the outcome of a command and returns its exit code.
pub(crate) fn deliver(mut finished: Finished, json: bool) -> ExitCode {
    let (mut code, printed) = match &mut finished.result {
        Ok(answer) => {
            for note in &answer.notes {
                complain("", note);
            }
            let code = if answer.refused {
                exit::REFUSED
            } else {
                exit::OK
            };
            let text = std::mem::take(&mut answer.text);
            (code, put(&mut finished, &text, json))
        }
        Err(error) => {
            complain(error.prefix(), &error.chain());
            if let Some(hint) = error.hint() {
                complain("hint: ", &hint);
            }
            (error.exit_code(), put(&mut finished, "", json))
        }
    };
    if let Err(error) = printed {
        complain("error: ", &format!("cannot write to stdout: {error}"));
        code = code.max(exit::REFUSED);
    }
    ExitCode::from(code)
}

/// Writes the data to stdout; a closed pipe is not an error.
fn put(finished: &mut Finished, text: &str, json: bool) -> io::Result<()> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let written = if json {
        finished.write_json(&mut stdout)
    } else {
        stdout.write_all(text.as_bytes())
    };
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints an answer that others follow, on a terminal in the place of the last
/// one; returns whether it can be read.
pub(crate) fn put_again(finished: Finished, json: bool) -> Result<bool, ExitCode> {
    const CLEARED: &str = "\u{1b}[H\u{1b}[2J";
    let head = match !json && io::stdout().is_terminal() {
        true => CLEARED,
        false => "",
    };
    put_one(finished, json, head)
}

/// Prints a part of an answer, after those before it; returns whether it can be
/// read.
pub(crate) fn put_part(finished: Finished, json: bool) -> Result<bool, ExitCode> {
    put_one(finished, json, "")
}

/// Prints one of several answers, as JSON in a line.
fn put_one(mut finished: Finished, json: bool, head: &str) -> Result<bool, ExitCode> {
    let Ok(answer) = &mut finished.result else {
        return Err(deliver(finished, json));
    };
    let mut text = std::mem::take(&mut answer.text);
    if json {
        text = format!("{}\n", plain_json(&canonical(&finished.document())));
    }
    let mut stdout = io::stdout().lock();
    let written = write!(stdout, "{head}{text}");
    Ok(written.and_then(|()| stdout.flush()).is_ok())
}

/// Prints a diagnostic next to the answer.
pub(crate) fn print_diagnostic(text: &str) {
    complain("", text);
}

fn complain(prefix: &str, text: &str) {
    // If stderr cannot be written, there is no place to report it.
    let _ = writeln!(io::stderr().lock(), "{prefix}{}", plain(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_is_in_the_document_as_if_it_were_one_value() {
        let items = [
            json!({"id": "a", "n": [1, {"x": "(the list)\n"}]}),
            json!({}),
        ];
        for count in 0..=items.len() {
            let answer = |document| Answer::new(document, "");
            let listed = answer(json!({"count": count, "z": "\"items\": "}));
            let whole =
                answer(json!({"count": count, "z": "\"items\": ", "items": items[..count]}));
            let [streamed, whole] =
                [listed.items(items[..count].iter().cloned()), whole].map(|answer| {
                    let mut text = Vec::new();
                    let mut finished = Finished::new("issue.list", Ok(answer));
                    finished.write_json(&mut text).unwrap();
                    String::from_utf8(text).unwrap()
                });
            assert_eq!(streamed, whole);
        }
    }

    #[test]
    fn a_refusal_names_action_place_and_classes() {
        let mut finished = Finished::on(
            "issue.claim",
            "issuesPath",
            Ok(PathBuf::from("/x/issues.jsonl")),
            |_| Err(CliError::InsideStep),
        )
        .when_refused("claimed", false);
        let document = finished.document();
        assert_eq!(document["action"], "issue.claim");
        assert_eq!(document["issuesPath"], "/x/issues.jsonl");
        assert_eq!(document["claimed"], false);
        assert_eq!(
            document["failureClasses"],
            json!(["mutation.use_evidence_missing"])
        );
    }
}

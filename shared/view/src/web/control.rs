//! The questions before a batch is changed, and what came of it.

use super::{foreign, issue_link};
use crate::html::escaped;
use std::fmt::Write;

/// A question that a person confirms.
#[derive(Clone, Debug)]
pub struct Asking<'a> {
    /// Where the answer goes.
    pub address: &'a str,
    /// What happens.
    pub sentence: &'a str,
    /// What the button says.
    pub button: &'a str,
    /// What the form bears, so that no other page can send it.
    pub form_value: &'a str,
    /// The batch or the issue, under its name.
    pub subject: (&'static str, &'a str),
    /// What a person can add to it.
    pub fields: &'a [Field],
}

/// Something that a person can add to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Why.
    Reason,
    /// A hint for the next attempt.
    Note,
    /// The status of the issue afterwards.
    Then,
}

impl Field {
    const fn html(self) -> &'static str {
        match self {
            Self::Reason => {
                "<p><label>Reason, recorded in the run log (optional) \
                 <input name=\"reason\" maxlength=\"400\" autocomplete=\"off\"></label></p>\n"
            }
            Self::Note => {
                "<p><label>Note for the next attempt (optional); its prompt has it \
                 <textarea name=\"note\" rows=\"4\" maxlength=\"4000\"></textarea></label></p>\n"
            }
            Self::Then => {
                "<fieldset><legend>The issue afterwards</legend>\
                 <label><input type=\"radio\" name=\"then\" value=\"deferred\" checked> deferred: no \
                 batch takes it until it is reopened</label>\
                 <label><input type=\"radio\" name=\"then\" value=\"open\"> open: the batch may take it \
                 again</label></fieldset>\n"
            }
        }
    }
}

/// Writes the content of a question.
pub fn asking(asking: &Asking<'_>) -> String {
    let (name, value) = asking.subject;
    let subject = match name {
        "issue" => issue_link(value),
        _ => format!("<code>{}</code>", escaped(value)),
    };
    let mut text = format!(
        "<form class=\"ask\" method=\"post\" action=\"{}\">\n<p>{} <b>{}</b></p>\n\
        <input type=\"hidden\" name=\"form\" value=\"{}\">\n\
        <input type=\"hidden\" name=\"{name}\" value=\"{}\">\n",
        escaped(asking.address),
        escaped(asking.sentence),
        subject,
        escaped(asking.form_value),
        escaped(value)
    );
    for field in asking.fields {
        text.push_str(field.html());
    }
    let _ = writeln!(
        text,
        "<p class=\"buttons\"><button class=\"do\">{}</button> <a class=\"button\" href=\"/\">Go back\
        </a></p>\n</form>",
        escaped(asking.button)
    );
    text
}

/// What came of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Whether all of it is done.
    pub is_done: bool,
    /// What was done, or why not.
    pub detail: String,
    /// What can be done about it.
    pub hint: Option<String>,
    /// The outcome for each issue.
    pub issues: Vec<(String, String)>,
}

/// Writes the content of what came of a request.
pub fn done(done: &Done) -> String {
    let (class, word) = match done.is_done {
        true => ("good", "done"),
        false => ("bad", "refused"),
    };
    let mut text = format!(
        "<p role=\"status\"><span class=\"state {class}\">{word}</span> {}</p>\n",
        foreign(&done.detail)
    );
    if let Some(hint) = &done.hint {
        let _ = writeln!(text, "<p>{}</p>", escaped(hint));
    }
    if !done.issues.is_empty() {
        text.push_str("<ul>\n");
        for (id, detail) in &done.issues {
            let _ = writeln!(text, "<li>{}: {}</li>", issue_link(id), foreign(detail));
        }
        text.push_str("</ul>\n");
    }
    text.push_str("<p><a class=\"button\" href=\"/\">Overview</a></p>\n");
    text
}

//! `premath issue add`: files an issue, with its edges, in one transaction.

use super::form::IssueForm;
use super::write::{NewFields, added, read_text, titled, with_aside_note};
use crate::answer::Answer;
use crate::editor::Draft;
use crate::error::CliError;
use crate::operator::Reason;
use crate::paths;
use clap::Args;
use premath_kernel::authority::OperatorOverride;
use premath_memory::{IssueChange, NewIssue};
use std::path::{Path, PathBuf};

/// The issue to file.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// What the issue is about, in a line; `-` reads stdin
    ///
    /// Without a title, or with `-`, the first line of the text from --file or stdin is the title,
    /// and the rest is the description.
    #[arg(required_unless_present_any = ["file", "edit"])]
    title: Option<String>,
    /// Read the description from a file; `-` reads stdin
    #[arg(long, value_name = "FILE", conflicts_with = "description")]
    file: Option<PathBuf>,
    /// Wait for this issue; may be repeated
    #[arg(long, value_name = "ID")]
    depends_on: Vec<String>,
    /// Make it a part of this issue
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Set how it is to be done
    #[arg(long, default_value = "", value_name = "TEXT")]
    design: String,
    /// Set the status
    #[arg(long, default_value = "open")]
    status: String,
    /// Write it in your editor: $VISUAL, else $EDITOR, else vi
    #[arg(long)]
    edit: bool,
    #[command(flatten)]
    fields: NewFields,
    #[command(flatten)]
    reason: Reason,
}

impl AddArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let authority = self.reason.authority()?;
        let stdin = PathBuf::from("-");
        let (given, file) = match self.title {
            Some(title) if title == "-" && self.file.is_none() => (None, Some(stdin)),
            title => (title, self.file),
        };
        let body = file.as_deref().map(read_text).transpose()?;
        let (title, body) = match (given, body) {
            (Some(title), body) => (title, body),
            (None, None) => (String::new(), None),
            (None, body) => split_title(&body.unwrap_or_default()),
        };
        let new = NewIssue {
            design: self.design,
            depends_on: self.depends_on,
            parent: self.parent,
            ..self.fields.into_issue(title, Some(self.status))
        };
        let new = NewIssue {
            description: body.unwrap_or_else(|| new.description.clone()),
            ..new
        };
        let (new, draft) = match self.edit {
            true => {
                let (new, draft) = written(new)?;
                (new, Some(draft))
            }
            false => (new, None),
        };
        let answer = filed(path, authority, new);
        answer.map_err(|error| match draft {
            Some(draft) => draft.keep(error),
            None => error,
        })
    }
}

fn filed(path: &Path, authority: OperatorOverride, new: NewIssue) -> Result<Answer, CliError> {
    titled(&new.title)?;
    let memory = paths::open(path, !paths::is_stray(path)?)?;
    let row = memory.operate(authority, IssueChange::Add(new))?;
    Ok(with_aside_note(added(&row), &memory))
}

/// Returns the issue as the person wrote it, which begins as `new`.
fn written(new: NewIssue) -> Result<(NewIssue, Draft), CliError> {
    const COMMENT: &str = "a new issue: give it a title, save, and close the editor";
    let mut draft = Draft::new(IssueForm::of_new(&new).text(COMMENT))?;
    match draft.edited(IssueForm::read) {
        Ok(Some(form)) => match form.into_new(new.id) {
            Ok(new) => Ok((new, draft)),
            Err(fault) => Err(draft.keep(CliError::Usage(fault))),
        },
        Ok(None) => Err(CliError::Usage(
            "the text was left as it was; no issue was filed".to_owned(),
        )),
        Err(error) => Err(draft.keep(error)),
    }
}

/// Takes a text apart: its first line that is not blank is the title, also where
/// it is a heading of Markdown; what follows is the description.
fn split_title(text: &str) -> (String, Option<String>) {
    let text = text.trim_start();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let unmarked = first.trim_start_matches('#');
    let title = match unmarked.starts_with(' ') {
        true => unmarked,
        false => first,
    };
    let rest = rest.trim_start_matches(['\n', '\r']);
    let body = (!rest.trim().is_empty()).then(|| rest.to_owned());
    (title.trim().to_owned(), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_text_is_the_title() {
        for (text, title, body) in [
            ("One\n\nbody\nmore\n", "One", Some("body\nmore\n")),
            ("\n# Two\r\n\r\nbody", "Two", Some("body")),
            ("#3 is wrong", "#3 is wrong", None),
            ("Four\n\n  \n", "Four", None),
            ("", "", None),
        ] {
            let expected = (title.to_owned(), body.map(str::to_owned));
            assert_eq!(split_title(text), expected, "{text:?}");
        }
    }
}

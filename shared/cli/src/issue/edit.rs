//! `premath issue edit`: changes an issue in the person's editor.

use super::form::IssueForm;
use super::query::no_such;
use super::view::{item, line};
use super::write::{IssueAnswer, updated};
use crate::answer::Answer;
use crate::editor::Draft;
use crate::error::CliError;
use crate::operator::Reason;
use crate::paths;
use clap::Args;
use premath_kernel::issue::Status;
use premath_memory::{ChangeError, IssueChange, IssueEdit, IssueMemory, IssueRow};
use std::path::Path;

/// The issue to edit.
#[derive(Debug, Args)]
pub(super) struct EditArgs {
    /// The issue
    id: String,
    #[command(flatten)]
    reason: Reason,
}

impl EditArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        // Before the person writes anything.
        self.reason.clone().authority()?;
        let memory = paths::open(path, false)?;
        let row = memory.view(|view| view.row(&self.id).cloned())?;
        let Some(row) = row else {
            return Err(ChangeError::Refused(no_such(&self.id)).into());
        };
        let comment = format!(
            "{}: change what is to be different, save, and close the editor",
            row.issue.id
        );
        let was = IssueEdit::of(&row);
        let mut draft = Draft::new(IssueForm::of(&row).text(&comment))?;
        let form = match draft.edited(read_existing) {
            Ok(Some(form)) => form,
            Ok(None) => return Ok(unchanged(&row)),
            Err(error) => return Err(draft.keep(error)),
        };
        let edit = form.into_edit().map_err(CliError::Usage)?.since(&was);
        if edit == IssueEdit::default() {
            return Ok(unchanged(&row));
        }
        self.write(&memory, was, edit)
            .map_err(|error| draft.keep(error))
    }

    fn write(
        self,
        memory: &IssueMemory,
        was: IssueEdit,
        edit: IssueEdit,
    ) -> Result<Answer, CliError> {
        let status = edit.status.as_deref().map(Status::parse);
        let authority = match status.filter(Status::needs_evidence) {
            Some(status) => {
                let change = format!("setting status `{}`", status.as_str());
                self.reason.authority_without_turn(&change)?
            }
            None => self.reason.authority()?,
        };
        let change = IssueChange::Revise {
            id: self.id,
            was: Box::new(was),
            edit: Box::new(edit),
        };
        Ok(updated(&memory.operate(authority, change)?))
    }
}

fn read_existing(text: &str) -> Result<IssueForm, String> {
    let form = IssueForm::read(text)?;
    if form.depends_on.is_some() || form.parent.is_some() {
        return Err("edges are changed with `premath dep`".to_owned());
    }
    Ok(form)
}

fn unchanged(row: &IssueRow) -> Answer {
    Answer::new(IssueAnswer { issue: item(row) }, line("unchanged", row))
}

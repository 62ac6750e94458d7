//! An issue as a text that a person edits.

use premath_kernel::issue::{DEFAULT_PRIORITY, word};
use premath_memory::{IssueEdit, IssueRow, NewIssue};
use serde::{Deserialize, Serialize};
use toml::Value;

/// The fields of an issue, in TOML.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IssueForm {
    pub(super) title: String,
    pub(super) status: String,
    priority: Priority,
    #[serde(rename = "type")]
    pub(super) issue_type: String,
    pub(super) labels: Vec<String>,
    pub(super) assignee: String,
    pub(super) owner: String,
    /// Only of a new issue; the edges of one that is there are `premath dep`'s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) depends_on: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    pub(super) verification: String,
    pub(super) description: String,
    pub(super) design: String,
    pub(super) acceptance_criteria: String,
    pub(super) notes: String,
}

/// A priority, written as a number or as a word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct Priority(Value);

impl Default for Priority {
    fn default() -> Self {
        Self(Value::Integer(DEFAULT_PRIORITY))
    }
}

impl IssueForm {
    /// Returns the form of an issue that is there.
    pub(super) fn of(row: &IssueRow) -> Self {
        let fields = IssueEdit::of(row);
        Self {
            title: fields.title.unwrap_or_default(),
            status: fields.status.unwrap_or_default(),
            priority: Priority(Value::Integer(fields.priority.unwrap_or_default())),
            issue_type: fields.issue_type.unwrap_or_default(),
            labels: fields.labels.unwrap_or_default(),
            assignee: fields.assignee.unwrap_or_default(),
            owner: fields.owner.unwrap_or_default(),
            depends_on: None,
            parent: None,
            verification: fields.verification.unwrap_or_default(),
            description: fields.description.unwrap_or_default(),
            design: fields.design.unwrap_or_default(),
            acceptance_criteria: fields.acceptance_criteria.unwrap_or_default(),
            notes: fields.notes.unwrap_or_default(),
        }
    }

    /// Returns the form of an issue that is to be filed.
    pub(super) fn of_new(new: &NewIssue) -> Self {
        let priority = new.priority.unwrap_or(DEFAULT_PRIORITY);
        Self {
            title: new.title.clone(),
            status: new.status.clone().unwrap_or_default(),
            priority: Priority(Value::Integer(priority)),
            issue_type: new.issue_type.clone().unwrap_or_default(),
            labels: new.labels.clone(),
            assignee: new.assignee.clone(),
            owner: new.owner.clone(),
            depends_on: Some(new.depends_on.clone()),
            parent: Some(new.parent.clone().unwrap_or_default()),
            verification: new.verification.clone(),
            description: new.description.clone(),
            design: new.design.clone(),
            acceptance_criteria: new.acceptance_criteria.clone(),
            notes: new.notes.clone(),
        }
    }

    /// Returns the text, below a comment of one line.
    pub(super) fn text(&self, comment: &str) -> String {
        let fields = toml::to_string_pretty(self).unwrap_or_default();
        format!("# {comment}\n\n{fields}")
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// What is wrong, with the line.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let form: Self = toml::from_str(text).map_err(|error| fault(text, &error))?;
        form.priority()?;
        if form.title.trim().is_empty() {
            return Err("the title is empty".to_owned());
        }
        Ok(form)
    }

    /// Returns the priority as a number.
    ///
    /// # Errors
    ///
    /// What a priority is.
    pub(super) fn priority(&self) -> Result<i64, String> {
        let text = match &self.priority.0 {
            Value::String(word) => word.clone(),
            other => other.to_string(),
        };
        word::parse_priority(&text).map_err(|error| format!("priority: {error}"))
    }

    /// Returns every field, as they are set in an issue that is there.
    ///
    /// # Errors
    ///
    /// As [`IssueForm::priority`].
    pub(super) fn into_edit(self) -> Result<IssueEdit, String> {
        let priority = self.priority()?;
        Ok(IssueEdit {
            title: Some(self.title),
            description: Some(self.description),
            verification: Some(self.verification),
            design: Some(self.design),
            acceptance_criteria: Some(self.acceptance_criteria),
            notes: Some(self.notes),
            status: Some(self.status),
            priority: Some(priority),
            issue_type: Some(self.issue_type),
            labels: Some(super::words(self.labels)),
            assignee: Some(self.assignee),
            owner: Some(self.owner),
        })
    }

    /// Returns the issue to file, with this id or the next free one.
    ///
    /// # Errors
    ///
    /// As [`IssueForm::priority`].
    pub(super) fn into_new(self, id: Option<String>) -> Result<NewIssue, String> {
        let priority = self.priority()?;
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        Ok(NewIssue {
            id,
            title: self.title,
            description: self.description,
            verification: self.verification,
            design: self.design,
            acceptance_criteria: self.acceptance_criteria,
            notes: self.notes,
            status: some(self.status),
            priority: Some(priority),
            issue_type: some(self.issue_type),
            assignee: self.assignee,
            owner: self.owner,
            labels: super::words(self.labels),
            depends_on: self.depends_on.unwrap_or_default(),
            parent: self.parent.and_then(some),
        })
    }
}

/// Returns what is wrong, after the line that it is in; its number changes when the
/// text is opened again.
fn fault(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    let start = error.span().map(|span| span.start);
    let before = start.and_then(|start| text.get(..start));
    match before.and_then(|before| text.lines().nth(before.matches('\n').count())) {
        Some(line) => format!("`{}`: {message}", line.trim()),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(description: &str) -> IssueForm {
        IssueForm {
            title: "Say hello".to_owned(),
            status: "open".to_owned(),
            issue_type: "task".to_owned(),
            description: description.to_owned(),
            ..IssueForm::default()
        }
    }

    #[test]
    fn a_text_is_read_as_it_was_written() {
        for description in [
            "",
            "one line",
            "two\nlines\n",
            "```toml\ntitle = \"\"\"x\"\"\"\n```\n'''\n\\n \u{1b}[0m\r\nend",
        ] {
            let form = form(description);
            assert_eq!(
                IssueForm::read(&form.text("bd-1")),
                Ok(form),
                "{description:?}"
            );
        }
    }

    #[test]
    fn lines_of_a_description_are_lines_of_the_text() {
        let text = form("first\nsecond\n").text("bd-1");
        assert!(text.contains("\nfirst\nsecond\n"), "{text}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = form("").text("bd-1");
        for (from, to, expected) in [
            ("priority = 2", "priority = \"urgent\"", "priority: "),
            (
                "title = \"Say hello\"",
                "title = \" \"",
                "the title is empty",
            ),
            ("labels", "label", "unknown field `label`"),
            ("status = \"open\"", "status = open", "`status = open`: "),
        ] {
            assert!(text.contains(from), "{text}");
            let error = IssueForm::read(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let word = text.replacen("priority = 2", "priority = \"high\"", 1);
        assert_eq!(IssueForm::read(&word).unwrap().priority(), Ok(1));
    }
}

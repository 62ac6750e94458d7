//! What a person asks for by a key, carried out as the command of the same name
//! does.

use crate::answer::Answer;
use crate::control::{Asked, CancelInput, RetryInput, again, cancel, whole};
use crate::error::CliError;
use crate::issue::query::no_such;
use crate::operator::{self, Reason};
use crate::paths;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::control::{CancelThen, ControlOperation};
use premath_memory::roots::MemoryRoots;
use premath_memory::{ChangeError, IssueChange, IssueEdit, IssueRow};
use premath_view::live::{Operation, PriorityChange, Request};

/// The reason that is recorded.
const REASON: &str = "asked for in the live view";

/// The numbers of priorities.
const FIRST: i64 = 0;
const LAST: i64 = 4;

/// Carries a request out; returns a line for a person.
pub(super) fn perform(roots: &MemoryRoots, request: &Request) -> Result<String, String> {
    let said = answer(roots, request).map(|answer| answer.line());
    match said {
        Ok((line, false)) => Ok(line),
        Ok((line, true)) => Err(line),
        Err(error) => Err(match error.hint() {
            Some(hint) => format!("{}; {hint}", error.chain()),
            None => error.chain(),
        }),
    }
}

fn answer(roots: &MemoryRoots, request: &Request) -> Result<Answer, CliError> {
    let asked = Asked {
        batch: request.batch.clone(),
        operator: operator::name(),
        reason: Some(REASON),
    };
    let batch = |asked: Asked<'_>, operation| whole(asked.ask(roots, operation)?);
    match &request.operation {
        Operation::Pause => batch(asked, ControlOperation::Pause),
        Operation::Resume => batch(asked, ControlOperation::Resume),
        Operation::Drain => batch(asked, ControlOperation::Drain),
        Operation::Cancel { issue, again } => {
            let then = match again {
                true => CancelThen::Open,
                false => CancelThen::Deferred,
            };
            let issues = vec![issue.clone()];
            let input = CancelInput { issues, then };
            cancel(roots, asked, input, |edit| change(roots, edit))
        }
        Operation::Priority { issue, change } => priority(roots, issue, *change),
        Operation::Reopen { issue, note } => {
            let input = RetryInput {
                issues: vec![issue.clone()],
                note: note.clone(),
            };
            again(roots, asked, &input, |edit| change(roots, edit))
        }
    }
}

/// Changes an issue for the person at the terminal.
fn change(roots: &MemoryRoots, change: IssueChange) -> Result<IssueRow, CliError> {
    let authority = Reason::default().or(REASON).authority()?;
    let memory = paths::open_to_share(&roots.issues)?;
    Ok(memory.operate(authority, change)?)
}

fn priority(
    roots: &MemoryRoots,
    issue: &IssueId,
    wanted: PriorityChange,
) -> Result<Answer, CliError> {
    let memory = paths::open_to_share(&roots.issues)?;
    let row = memory.view(|view| view.row(issue).cloned())?;
    let row = row.ok_or_else(|| CliError::from(ChangeError::Refused(no_such(issue))))?;
    let was = row.issue.priority;
    let number = match wanted {
        PriorityChange::Raise => was - 1,
        PriorityChange::Lower => was + 1,
        PriorityChange::Set(number) => number,
    };
    if !(FIRST..=LAST).contains(&number) {
        let why = format!("the priority of {issue} is {was}; it goes from {FIRST} to {LAST}");
        return Err(CliError::Usage(why));
    }
    let edit = IssueEdit {
        priority: Some(number),
        ..IssueEdit::default()
    };
    let id = issue.to_string();
    change(roots, IssueChange::Update { id, edit })?;
    let text = format!("the priority of {issue} is {number}, and was {was}");
    Ok(Answer::new((), text))
}

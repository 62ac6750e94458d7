//! `premath why`: why an issue is not worked on now, or why it did not close.

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::failure::LastFailure;
use crate::issue::history::{IssueLog, Window};
use crate::issue::query::no_such;
use crate::paths;
use crate::status::is_running;
use crate::terminal::{block, plain};
use clap::Args;
use harness_worker::batch::set_aside_of;
use harness_worker::settings::{LoopFlags, SET_ASIDE_AFTER, Settings};
use premath_kernel::issue::Selection;
use premath_kernel::issue::lease::AssigneeRule;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::live::LiveBatch;
use premath_kernel::record::why::{Reason, WhyScope, reasons};
use premath_memory::live::LiveFolder;
use premath_memory::roots::MemoryRoots;
use premath_memory::{ChangeError, IssueMemory, MemoryView, clock};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Arguments of `premath why`.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The issue
    #[arg(value_name = "ISSUE")]
    id: String,
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
}

/// The answer of `premath why`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WhyAnswer {
    /// The issue.
    issue_id: IssueId,
    /// Its title.
    title: String,
    /// Its status.
    status: String,
    /// Why it is not worked on now; the first reason is to be removed first.
    reasons: Vec<Reason>,
    /// The failure of its last attempt; null where it did not fail, or where
    /// there was none.
    last_failure: Option<LastFailure>,
}

/// Which issues a batch takes.
struct Taken {
    selection: Selection,
    assignees: AssigneeRule,
    set_aside_after: u32,
}

impl WhyArgs {
    pub(crate) fn run(self) -> Finished {
        let folder = self.repo_root.as_deref().unwrap_or(Path::new("."));
        let roots = match MemoryRoots::discover(folder) {
            Ok(roots) => roots,
            Err(error) => return Finished::new("why", Err(error.into())),
        };
        Finished::on("why", "issuesPath", Ok(roots.issues.clone()), |path| {
            let memory = paths::open(path, false)?;
            let none = Window {
                most: 0,
                before: None,
            };
            let log = IssueLog::read(&self.id, &roots, none)?;
            let answer = WhyAnswer::of(&self.id, &roots, &memory, &log)?;
            let answer = answer.ok_or_else(|| self.unknown())?;
            let text = answer.text();
            Ok(Answer::new(answer, text))
        })
    }

    fn unknown(&self) -> CliError {
        CliError::Change(ChangeError::Refused(no_such(&self.id)))
    }
}

impl Taken {
    /// Reads what a batch that starts now would take; where its settings cannot be
    /// read, what a batch takes by default.
    fn of(roots: &MemoryRoots) -> Self {
        let flags = LoopFlags {
            repo_root: Some(roots.repository.clone()),
            ..LoopFlags::default()
        };
        match Settings::resolve(&flags, clock::now().wall) {
            Ok(settings) => Self {
                selection: settings.selection,
                assignees: settings.assignees,
                set_aside_after: settings.set_aside_after,
            },
            Err(_) => Self {
                selection: Selection::default(),
                assignees: AssigneeRule::default(),
                set_aside_after: SET_ASIDE_AFTER,
            },
        }
    }
}

impl WhyAnswer {
    /// Finds out why an issue is not worked on; `None` where there is no such issue.
    ///
    /// # Errors
    ///
    /// What batches publish, the run log or the issue store cannot be read.
    pub(crate) fn of(
        id: &str,
        roots: &MemoryRoots,
        memory: &IssueMemory,
        log: &IssueLog,
    ) -> Result<Option<Self>, CliError> {
        let mut batches = LiveFolder::of(roots).read()?;
        batches.retain(is_running);
        let last = log.last.as_ref();
        let failure = last.and_then(|row| LastFailure::read(row, roots));
        let taken = Taken::of(roots);
        // Rows that do not name the issue change nothing of its own streak.
        let streaks = log.streaks.clone();
        let aside = set_aside_of(streaks, memory, (taken.set_aside_after, None))?;
        let answer = memory.view(|view| Self::seen(id, &view, &taken, &aside, &batches))?;
        Ok(answer.map(|answer| Self {
            last_failure: failure,
            ..answer
        }))
    }

    /// Returns why it is not worked on now.
    pub(crate) fn reasons(self) -> Vec<Reason> {
        self.reasons
    }

    fn seen(
        id: &str,
        view: &MemoryView<'_>,
        taken: &Taken,
        set_aside: &BTreeSet<IssueId>,
        batches: &[LiveBatch],
    ) -> Option<Self> {
        let row = view.row(id)?;
        let ready = view.graph().frontier();
        let scope = WhyScope {
            batches,
            selection: &taken.selection,
            assignees: &taken.assignees,
            set_aside,
            before: ready.take_while(|ready| ***ready != *id).count(),
            seen: &clock::observe(),
        };
        let holds = view.graph().holds(id);
        Some(Self {
            issue_id: id.into(),
            title: row.text_of("title"),
            status: row.issue.status.as_str().to_owned(),
            reasons: reasons(&row.issue, &holds, &scope),
            last_failure: None,
        })
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{}  {}\nstatus {}\n",
            plain(&self.issue_id),
            plain(&self.title),
            plain(&self.status)
        );
        for reason in &self.reasons {
            text.push_str(&format!("\n{}\n", plain(&reason.text)));
            if let Some(next) = &reason.next {
                text.push_str(&format!("  next: {}\n", plain(next)));
            }
        }
        if let Some(failure) = &self.last_failure {
            text.push_str("\nits last attempt failed\n");
            text.push_str(&block(&failure.text()));
            if let Some(class) = failure.failure_classes.first() {
                text.push_str(&format!("  next: premath classes {}\n", plain(class)));
            }
        }
        text
    }
}

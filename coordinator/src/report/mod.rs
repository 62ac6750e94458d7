//! What a person or a program sees of a batch while it runs, and at its end.
//!
//! Notices are a contract; reporters only consume them.

mod bound;
mod end_facts;
mod human;
mod json;
mod next;
mod notify;
mod observation;
mod outcome;
mod sensitive;
mod set_aside;
mod why;

pub use end_facts::BrokenTarget;
pub(crate) use end_facts::end_facts;
pub use human::HumanReporter;
pub use json::JsonReporter;
pub(crate) use notify::NotifyingReporter;
pub(crate) use observation::observation;
pub use set_aside::SetAside;

use harness_worker::batch::{Pushed, SupervisionChange};
use harness_worker::interrupt::Level;
use harness_worker::lane::BootReport;
use harness_worker::step::StepReport;
use premath_kernel::authority::MutationMode;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::{BatchId, IssueId, WorkerName};
use premath_kernel::policy::admission::EndedBy;
use premath_kernel::policy::landing::LandingRule;
use premath_kernel::policy::room::Shortage;
use premath_kernel::policy::sandbox::SandboxChoice;
use premath_kernel::policy::target_sync::TargetSync;
use premath_kernel::record::control::ControlResult;
use premath_kernel::record::event::{ActsUnder, LandingCheck, PushFailure, TipCheck};
use premath_kernel::record::trajectory::{Account, ControlRecord};
use premath_memory::{Claimed, ForeignRow, OutsideChange};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a batch is run with.
#[derive(Debug)]
pub struct BatchTerms<'a> {
    /// The id of the batch.
    pub batch_id: &'a BatchId,
    /// Whether it was cut before.
    pub resumed: bool,
    /// How many lanes it has.
    pub lanes: usize,
    /// What its changes rest on.
    pub mode: &'a MutationMode,
    /// The issue store.
    pub issues_path: &'a Path,
    /// The branch that steps begin at and, in mode `merge`, land on.
    pub landing: Option<&'a LandingRule>,
    /// When no new work begins any more.
    pub ends_at: Option<jiff::Timestamp>,
    /// The sandbox mode of the commands, and why.
    pub sandbox: &'a SandboxChoice,
    /// Whether agents' tool calls are checked before they run, in a line; none
    /// where no agent works.
    pub hooks: Option<String>,
    /// Which agents mend work that fails its verification.
    pub repair: Option<String>,
}

/// Something that happened in a batch.
#[derive(Debug)]
pub enum Notice<'a> {
    /// The batch began or continues.
    BatchStarted(BatchTerms<'a>),
    /// What there is to report about the landing target before the first step.
    TargetSync(&'a TargetSync),
    /// A lane is ready.
    LaneBooted {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// The worktree of the lane.
        worktree: &'a Path,
        /// The report of the boot.
        report: &'a BootReport,
    },
    /// A lane gets no more work.
    LaneGivenUp {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// The worktree of the lane.
        worktree: &'a Path,
        /// The class of the failure.
        class: FailureClass,
        /// The cause, in words.
        detail: &'a str,
        /// What a person can do.
        hint: Option<&'a str>,
    },
    /// A lane got an issue.
    Dispatched {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// The claim.
        claim: &'a Claimed,
    },
    /// A step is over.
    StepEnded {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// The report of the step.
        report: &'a StepReport,
    },
    /// The work of a closed issue is on the landing target.
    Landed {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// The issue.
        issue_id: &'a IssueId,
        /// The commit that holds the work.
        commit: &'a str,
        /// The branch that it landed on.
        target: &'a str,
    },
    /// The landing target was pushed, or was not.
    Pushed(&'a Pushed),
    /// A cycle appeared; its members are held.
    Cycle {
        /// The cycle, the first id again at the end.
        path: &'a [String],
    },
    /// Nothing runs until an issue may be tried again.
    Waiting {
        /// The time until which the batch waits.
        until: jiff::Timestamp,
    },
    /// Nothing runs and nothing is ready; the batch waits for new issues.
    Idle,
    /// The window in which attempts begin opened, or closed.
    Window {
        /// Whether it is open.
        is_open: bool,
        /// When that changes.
        until: jiff::Timestamp,
    },
    /// A step's end changed something for the steps to come.
    Changed(&'a SupervisionChange),
    /// A lane found out whether the verification passes without any work.
    BaselineChecked {
        /// The lane's worker.
        worker_id: &'a WorkerName,
        /// Whether the verification passes.
        passes: bool,
    },
    /// The machine has too little free disk or memory for a dispatch; `None`
    /// where it has enough again.
    Room(Option<&'a Shortage>),
    /// What a person should know about the batch.
    Warning {
        /// The text of the warning.
        detail: &'a str,
    },
    /// The batch reached a bound of its own.
    Ending {
        /// The bound that was reached.
        ended_by: EndedBy,
        /// The figures, where there are some.
        detail: &'a str,
    },
    /// A person asked for an end.
    Interrupted {
        /// The level of the interrupt.
        level: Level,
    },
    /// An operator asked something of the batch.
    Control {
        /// Who asked what.
        record: &'a ControlRecord,
        /// Whether it is done.
        result: ControlResult,
    },
    /// The issue store was changed by no transaction.
    MemoryChanged {
        /// The change that was found.
        change: &'a OutsideChange,
    },
    /// The issue store or the trajectory cannot be used any more.
    StoreLost {
        /// The cause, in words.
        detail: &'a str,
    },
}

/// A turn that did not close its issue.
#[derive(Debug)]
pub struct JudgedTurn {
    /// The witness.
    pub path: PathBuf,
    /// Where it breaks the rule of the class that the step failed with.
    pub broken_at: Option<String>,
}

/// A lane that gets no more work, or that could not be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisabledLane {
    /// The lane's worker; of a lane that could not be created, its folder.
    pub name: String,
    /// The class of the failure.
    pub class: FailureClass,
    /// The cause, in words.
    pub detail: String,
    /// What a person can do, or the file with the output of the command that failed.
    pub hint: Option<String>,
}

impl DisabledLane {
    /// Returns the cause and the hint in a line.
    pub(crate) fn reason(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.detail),
            None => self.detail.clone(),
        }
    }
}

/// The outcome of a batch.
#[derive(Debug)]
pub struct Summary {
    /// The batch's id.
    pub batch_id: BatchId,
    /// What its changes rested on.
    pub acts_under: ActsUnder,
    /// The exit code.
    pub exit_code: u8,
    /// The duration of the batch.
    pub elapsed: Duration,
    /// By issue: the last worker, the attempts in this batch, the last report.
    pub issues: Vec<(WorkerName, u32, StepReport)>,
    /// The lanes that had to be disabled, with the reasons.
    pub disabled: Vec<DisabledLane>,
    /// A cycle among the active issues, where there is one.
    pub cycle: Option<Vec<String>>,
    /// All issues of memory, by what they are.
    pub counts: BTreeMap<&'static str, usize>,
    /// What landed, where work is to land.
    pub landing: Option<LandingCheck>,
    /// What did not pass its check and stays on the target.
    pub broken: Option<BrokenTarget>,
    /// Why the last push of what landed failed.
    pub push_failure: Option<PushFailure>,
    /// The outcomes of the verifications of last commits without build state.
    pub tips: Vec<TipCheck>,
    /// The bound of its own that ended it.
    pub ended_by: Option<EndedBy>,
    /// What it used and waited for.
    pub account: Account,
    /// The time at which the batch ended.
    pub ended_at: jiff::Timestamp,
    /// How often the issue store was found changed by no transaction.
    pub memory_changes: usize,
    /// The rows that changed outside a transaction and are not accepted.
    pub foreign_rows: Vec<ForeignRow>,
    /// By issue that did not close: its turn as it was judged, where it was.
    pub judged: BTreeMap<IssueId, JudgedTurn>,
    /// The open issues that something holds, and what it is, by id.
    pub waiting: Vec<(String, Vec<String>)>,
    /// The issues that the next batch sets aside.
    pub set_aside: SetAside,
    /// The issues that were worked on, and are open.
    pub open: BTreeSet<IssueId>,
    /// The file that this is kept in, as text.
    pub kept: Option<PathBuf>,
}

impl Summary {
    /// Returns the report as text, to be read later.
    pub(crate) fn text(&self) -> String {
        let ended = format!("batch {}, ended {:.0}\n", self.batch_id, self.ended_at);
        ended + &human::text(self)
    }
}

/// A consumer of notices.
pub trait Reporter {
    /// Reports what happened.
    fn notice(&mut self, notice: &Notice<'_>);
    /// Reports the outcome of the batch.
    fn summary(&mut self, summary: &Summary);
}

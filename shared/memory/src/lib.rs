//! Issue memory and artifact files: the only crate that touches the files of
//! authority and projection, and the only one that takes locks.
//!
//! Invariant: nothing outside this crate may assume that issue memory is a
//! file; a second store will come.

#![warn(clippy::too_many_lines)]

pub mod artifact;
pub mod audit;
pub mod cause;
pub mod clock;
pub mod control;
pub mod dispatch;
mod error;
pub mod escalation;
pub mod governance;
pub mod hook_journals;
pub mod ignored;
mod in_use;
mod inspect;
pub mod instruction;
mod issues;
mod journal;
pub mod lane_record;
pub mod leftover;
pub mod live;
mod lock;
pub mod observation;
pub mod private;
pub mod projection;
pub mod read_back;
pub mod report;
pub mod roots;
mod row;
mod snapshot;
pub mod step_failure;
pub mod step_output;
mod tip_debt;
mod trajectory;
pub mod trust;
pub mod uninstall;
pub mod untrusted;
pub mod upkeep;
pub mod witness;
pub mod world;

pub use error::{ChangeError, StoreError};
pub use in_use::{RepositoryRemoval, RepositoryUse};
pub use inspect::{Inspection, LineFault, inspect_issues, inspect_trajectory, repair_issues};
pub use issues::{
    ClaimScope, Claimed, CompactionRule, DependencyEdit, ForeignKind, ForeignRow, ForeignSelection,
    Imported, ImportedIssue, IssueChange, IssueEdit, IssueMemory, MemoryView, NewIssue,
    OpenOptions, OutsideChange, OwnChecks, StatusChange, StatusChanged, StatusTargets,
};
pub use lock::{
    CacheLock, CacheUse, CommandLock, LandingLock, LandingWaiter, LockState, LockWait,
    PREDECESSOR_WAIT, ProjectionLock, WarmBuild, WarmUse, WorktreeLock, WorktreesLock,
    landing_lock, lane_lock,
};
pub use row::IssueRow;
pub use tip_debt::{Owed, TipDebt};
pub use trajectory::{
    BackBounds, GlancedRow, LinePlace, RowsBack, Trajectory, TrajectoryFileError, each_glance,
    each_row_naming, last_step, rows_back,
};

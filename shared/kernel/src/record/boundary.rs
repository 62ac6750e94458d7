//! The boundaries between the durable actions of a batch and of its steps.
//!
//! A process may die at each of them. A test kills it at every one and checks
//! that the next run converges.

use std::fmt;
use std::str::FromStr;

/// Declares the boundaries with their names, in order.
macro_rules! boundaries {
    ($( $(#[$doc:meta])* $variant:ident = $name:literal, )+) => {
        /// A boundary between two durable actions, named for the action that
        /// is complete.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Boundary { $( $(#[$doc])* $variant, )+ }

        impl Boundary {
            /// Every boundary, in the order in which a batch reaches them.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// Returns the name.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }
        }
    };
}

boundaries! {
    /// The landing target exists.
    TargetReady = "target-ready",
    /// The row of the batch's start or resumption is written.
    BatchRecorded = "batch-recorded",
    /// A closed issue whose step had no row has one.
    RowRecovered = "row-recovered",
    /// The session says that an interrupted step is being recovered.
    RecoveryBegun = "recovery-begun",
    /// The work of an interrupted step is on its salvage branch.
    WorkSalvaged = "work-salvaged",
    /// The worktree is back at the interrupted step's base.
    LaneRestored = "lane-restored",
    /// The row of the salvage is written.
    SalvageRecorded = "salvage-recorded",
    /// The interrupted step's branch is left.
    BranchRecovered = "branch-recovered",
    /// The lane is at the landing target.
    LaneAtTarget = "lane-at-target",
    /// The session of the boot is written.
    LaneBooted = "lane-booted",
    /// The claim is written.
    Claimed = "claimed",
    /// The row of a lease that was taken over is written.
    TakeOverRecorded = "take-over-recorded",
    /// The step's session is written.
    SessionBegun = "session-begun",
    /// The worktree is on the step's branch.
    BranchMade = "branch-made",
    /// The private git folder of the step is made.
    GitPrepared = "git-prepared",
    /// The feature is in progress in the ledger.
    FeatureBegun = "feature-begun",
    /// The step's files and its prompt are written.
    FilesWritten = "files-written",
    /// A setup command ended and is recorded.
    SetUp = "set-up",
    /// The work command ended and its witness is written.
    WorkEnded = "work-ended",
    /// The files of the work are in the repository.
    TreeImported = "tree-imported",
    /// The commit that is verified is written.
    CandidateWritten = "candidate-written",
    /// The commit that is verified has a reference.
    CandidateHeld = "candidate-held",
    /// The checkout for verifications is at the commit.
    CheckoutReady = "checkout-ready",
    /// A verification ended and its witness is written.
    Verified = "verified",
    /// The outbox of work that is to land is kept.
    OutboxKept = "outbox-kept",
    /// The commit that is to land is written.
    LandingCommitted = "landing-committed",
    /// The witness of the turn is written.
    TurnWitnessed = "turn-witnessed",
    /// The witnesses of a crossing to another world are written in both.
    CrossingWitnessed = "crossing-witnessed",
    /// The landing is marked.
    LandingMarked = "landing-marked",
    /// The landing target is at the commit.
    TargetAdvanced = "target-advanced",
    /// The check of what landed ended and its witness is written.
    LandingChecked = "landing-checked",
    /// Landed work is off the target again.
    LandingUndone = "landing-undone",
    /// The mark of a landing that was undone is removed.
    UndoneUnmarked = "undone-unmarked",
    /// A follow-up of the outbox is filed.
    FollowUpFiled = "follow-up-filed",
    /// The lane's branch is at the commit of work that does not land.
    BranchMoved = "branch-moved",
    /// The issue is closed.
    IssueClosed = "issue-closed",
    /// The witness of the close is written.
    CloseWitnessed = "close-witnessed",
    /// The worktree is clean again.
    LaneCleaned = "lane-cleaned",
    /// The step's branch is left.
    BranchLeft = "branch-left",
    /// The reference of the verified commit is removed.
    CandidateReleased = "candidate-released",
    /// The issue is blocked.
    IssueBlocked = "issue-blocked",
    /// The follow-up of a failed step is filed.
    EscalationFiled = "escalation-filed",
    /// The lease is released.
    LeaseReleased = "lease-released",
    /// The row of the step is written.
    RowWritten = "row-written",
    /// The mark of the landing is removed.
    LandingUnmarked = "landing-unmarked",
    /// The landing target is pushed.
    TargetPushed = "target-pushed",
    /// The stop hook ended.
    StopHookEnded = "stop-hook-ended",
    /// The feature's end is in the ledger.
    FeatureEnded = "feature-ended",
    /// The step's session is over.
    SessionEnded = "session-ended",
    /// The row of the tip's verification is written.
    TipRecorded = "tip-recorded",
    /// The lane is back on its own branch.
    LaneHome = "lane-home",
    /// The lane's last session is written.
    LaneFinished = "lane-finished",
    /// The marks of closed issues are removed.
    MarksSwept = "marks-swept",
    /// Issue memory is compacted.
    MemoryCompacted = "memory-compacted",
    /// The row of the batch's end is written.
    BatchEnded = "batch-ended",
    /// The report is written.
    ReportKept = "report-kept",
}

/// A name of no known boundary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown boundary `{0}`")]
pub struct UnknownBoundary(String);

impl FromStr for Boundary {
    type Err = UnknownBoundary;

    fn from_str(name: &str) -> Result<Self, UnknownBoundary> {
        let mut all = Self::ALL.iter();
        let found = all.find(|boundary| boundary.name() == name);
        found
            .copied()
            .ok_or_else(|| UnknownBoundary(name.to_owned()))
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A boundary and how often it must be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KillAt {
    /// The boundary.
    pub boundary: Boundary,
    /// Which time it is reached, from 1.
    pub occurrence: u32,
}

impl FromStr for KillAt {
    type Err = UnknownBoundary;

    /// Reads `<boundary>` or `<boundary>:<occurrence>`.
    fn from_str(text: &str) -> Result<Self, UnknownBoundary> {
        let (name, occurrence) = text.split_once(':').unwrap_or((text, "1"));
        let unknown = || UnknownBoundary(text.to_owned());
        Ok(Self {
            boundary: name.parse()?,
            occurrence: occurrence.parse().map_err(|_| unknown())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_is_read_back_and_is_unique() {
        let names: BTreeSet<_> = Boundary::ALL.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), Boundary::ALL.len());
        for boundary in Boundary::ALL {
            assert_eq!(boundary.name().parse(), Ok(*boundary));
        }
    }

    #[test]
    fn an_occurrence_is_read_and_anything_else_is_refused() {
        let second = KillAt {
            boundary: Boundary::Claimed,
            occurrence: 2,
        };
        assert_eq!("claimed:2".parse(), Ok(second));
        for text in ["claim", "claimed:", "claimed:x", ""] {
            assert!(text.parse::<KillAt>().is_err(), "{text}");
        }
    }
}

//! The relation of the landing target to the main worktree's HEAD, and how a
//! batch updates the target before its first step.

use crate::json::plain::counted;
use std::fmt;

/// How many commits of two histories are not in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distance {
    /// Commits of the main worktree's HEAD that the target does not have.
    pub lacks: usize,
    /// Commits of the target that the main worktree's HEAD does not have.
    pub own: usize,
}

/// What is to be done with the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// The target has every commit of HEAD.
    Stay,
    /// All of it was merged, and the branch moved on: the target follows.
    Follow,
    /// Both have new commits. Only a person can merge them.
    Apart,
}

impl Distance {
    /// Reports what is to be done.
    pub const fn course(self) -> Course {
        match self {
            Self { lacks: 0, .. } => Course::Stay,
            Self { own: 0, .. } => Course::Follow,
            _ => Course::Apart,
        }
    }
}

/// What is reported about a target before the first step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetSync {
    /// The target, without `refs/heads/`.
    pub target: String,
    /// What there is to say.
    pub change: TargetChange,
}

/// The outcome of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetChange {
    /// It was not there, and was made.
    Made {
        /// What the main worktree has checked out.
        from: String,
        /// The commit.
        tip: String,
    },
    /// It moved to the main worktree's HEAD.
    Followed {
        /// The branch of that HEAD, or `HEAD`.
        from: String,
        /// How many commits that was.
        commits: usize,
        /// The commit.
        tip: String,
    },
    /// It would have followed, but another batch works on it.
    Held {
        /// What the main worktree has checked out.
        from: String,
        /// How many of its commits the target lacks.
        commits: usize,
    },
    /// It and the main worktree's HEAD diverged.
    Apart {
        /// The branch of that HEAD, or `HEAD`.
        from: String,
        /// How many of its commits the target lacks.
        commits: usize,
    },
    /// It was recreated, without what landed on it before.
    Lost {
        /// The closed issues whose commits it does not have.
        issues: Vec<String>,
    },
}

impl TargetSync {
    /// Returns whether a person should do something about it.
    pub const fn is_warning(&self) -> bool {
        match self.change {
            TargetChange::Made { .. } | TargetChange::Followed { .. } => false,
            TargetChange::Held { .. } | TargetChange::Apart { .. } | TargetChange::Lost { .. } => {
                true
            }
        }
    }

    /// Returns the commit that the target is at now, where it came there just
    /// now.
    pub fn tip(&self) -> Option<&str> {
        match &self.change {
            TargetChange::Made { tip, .. } | TargetChange::Followed { tip, .. } => Some(tip),
            TargetChange::Held { .. } | TargetChange::Apart { .. } | TargetChange::Lost { .. } => {
                None
            }
        }
    }
}

impl fmt::Display for TargetSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.target)?;
        match &self.change {
            TargetChange::Made { from, tip } => {
                write!(f, "was created from {from} at {}", short(tip))
            }
            TargetChange::Followed { from, commits, tip } => write!(
                f,
                "follows {from}: {}, now at {}",
                counted(*commits as u64, "commit"),
                short(tip)
            ),
            TargetChange::Held { from, commits } => write!(
                f,
                "lacks {} of {from}, and is not updated while another batch works on it",
                counted(*commits as u64, "commit")
            ),
            TargetChange::Apart { from, commits } => f.write_str(&apart(from, *commits)),
            TargetChange::Lost { issues } => {
                const SHOWN: usize = 6;
                let more = if issues.len() > SHOWN { ", …" } else { "" };
                let shown = issues[..issues.len().min(SHOWN)].join(", ");
                write!(
                    f,
                    "lacks earlier landed work of {} ({shown}{more}); list the commits with \
                     `premath doctor`",
                    counted(issues.len() as u64, "closed issue"),
                )
            }
        }
    }
}

/// Describes a diverged target, and what to do.
pub(crate) fn apart(from: &str, commits: usize) -> String {
    format!(
        "lacks {} of {from}: merge them into it, or it into {from}, before the next batch",
        counted(commits as u64, "commit")
    )
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_taken_over_whole_is_moved() {
        for (lacks, own, course) in [
            (0, 0, Course::Stay),
            (0, 4, Course::Stay),
            (3, 0, Course::Follow),
            (3, 4, Course::Apart),
        ] {
            assert_eq!(Distance { lacks, own }.course(), course, "{lacks} {own}");
        }
    }

    #[test]
    fn a_line_says_the_outcome_of_the_target() {
        let from = || "main".to_owned();
        let tip = || "abc1234567890".to_owned();
        let ids = |count: usize| (1..=count).map(|id| format!("wk-{id}")).collect();
        for (change, is_warning, said) in [
            (
                TargetChange::Made {
                    from: from(),
                    tip: tip(),
                },
                false,
                "t was created from main at abc1234567",
            ),
            (
                TargetChange::Followed {
                    from: from(),
                    commits: 3,
                    tip: tip(),
                },
                false,
                "t follows main: 3 commits, now at abc1234567",
            ),
            (
                TargetChange::Held {
                    from: from(),
                    commits: 1,
                },
                true,
                "t lacks 1 commit of main, and is not updated while another batch works on it",
            ),
            (
                TargetChange::Apart {
                    from: from(),
                    commits: 3,
                },
                true,
                "t lacks 3 commits of main: merge them into it, or it into main, before the next \
                 batch",
            ),
            (
                TargetChange::Lost { issues: ids(1) },
                true,
                "t lacks earlier landed work of 1 closed issue (wk-1); list the commits with \
                 `premath doctor`",
            ),
            (
                TargetChange::Lost { issues: ids(7) },
                true,
                "t lacks earlier landed work of 7 closed issues (wk-1, wk-2, wk-3, wk-4, wk-5, \
                 wk-6, …); list the commits with `premath doctor`",
            ),
        ] {
            let target = "t".to_owned();
            let target_sync = TargetSync { target, change };
            assert_eq!(target_sync.to_string(), said);
            assert_eq!(target_sync.is_warning(), is_warning, "{said}");
        }
    }
}

//! The breaker of a batch: what fails again and again for a reason that no
//! issue has pauses dispatch (`agents.md`, "Supervision").

use crate::failure::FailureClass;
use crate::json::id::{IssueId, WorkerName};
use crate::policy::retry::{EscalationAction, RetryPolicy, decide, retry_at};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// When the breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerRule {
    /// How many issues in a row that fail alike; 0 turns the breaker off.
    pub failures: u32,
    /// The time for which dispatch pauses.
    pub pause: Duration,
}

impl Default for BreakerRule {
    fn default() -> Self {
        Self {
            failures: 3,
            pause: Duration::from_secs(5 * 60),
        }
    }
}

/// What the end of a step shows about its environment, not its issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blame {
    /// It ended well, or failed by something of the issue's own.
    Issue,
    /// It failed the verification, which may fail without any work as well.
    Check,
    /// It failed with a class that does not blame the issue.
    Surroundings(String),
    /// Nothing: the step did not begin, or the harness ended it.
    NotCounted,
}

/// Returns what a failed attempt's classes blame: a class for which the policy
/// blocks the issue blames the issue.
pub fn blame(policy: &RetryPolicy, classes: &[String]) -> Blame {
    let class = decide(policy, classes, 1).class;
    if class == FailureClass::CheckFailed.as_str() {
        return Blame::Check;
    }
    // The result alone is at fault, whatever is done with its issue.
    if class == FailureClass::WorkUnfit.as_str() {
        return Blame::Issue;
    }
    match policy.place_of(&class).1.escalation_action {
        EscalationAction::MarkBlocked => Blame::Issue,
        EscalationAction::IssueDiscover | EscalationAction::Stop => Blame::Surroundings(class),
    }
}

/// What the breaker lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// All steps pass.
    All,
    /// One step, which asks whether things are better.
    One,
    /// None until it is known whether the verification passes without any work.
    Baseline,
    /// No step passes before this time.
    NoneUntil(Timestamp),
    /// None: the step or the verification that asks runs.
    NoneYet,
}

/// A change of the breaker's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakerChange {
    /// Dispatch pauses.
    Opened {
        /// The class that the failures have in common.
        class: String,
        /// The issues that it failed on.
        issues: Vec<IssueId>,
        /// When one step is let through.
        until: Timestamp,
    },
    /// Dispatch continues.
    Closed,
}

impl fmt::Display for BreakerChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened {
                class,
                issues,
                until,
            } => write!(
                f,
                "BREAKER OPEN: {class} on {} issues in a row ({}); dispatch pauses, one probe at \
                {until:.0}",
                issues.len(),
                issues.join(", ")
            ),
            Self::Closed => f.write_str("breaker closed: dispatch resumes"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// The worker that runs the verification without any work.
    Asking(WorkerName),
    Open {
        class: String,
        until: Timestamp,
        /// The worker whose step asks.
        probe: Option<WorkerName>,
    },
}

/// The breaker of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Breaker {
    rule: BreakerRule,
    state: State,
    class: String,
    issues: BTreeSet<IssueId>,
    /// The issues in a row that failed the verification.
    checks: BTreeSet<IssueId>,
    /// Set where a step passed the verification while it was reported to fail
    /// without any work: it is not asked again.
    is_refuted: bool,
}

impl Breaker {
    /// Begins closed.
    pub(crate) const fn new(rule: BreakerRule) -> Self {
        Self {
            rule,
            state: State::Closed,
            class: String::new(),
            issues: BTreeSet::new(),
            checks: BTreeSet::new(),
            is_refuted: false,
        }
    }

    /// Says what may be dispatched now.
    pub(crate) fn passage(&self, now: Timestamp) -> Passage {
        match &self.state {
            State::Closed if !self.is_refuted && self.is_reached(&self.checks) => Passage::Baseline,
            State::Closed => Passage::All,
            State::Asking(_) => Passage::NoneYet,
            State::Open { probe: Some(_), .. } => Passage::NoneYet,
            State::Open { until, .. } if *until > now => Passage::NoneUntil(*until),
            State::Open { .. } => Passage::One,
        }
    }

    /// Records that a worker begins a step.
    pub(crate) fn take(&mut self, worker: &WorkerName) {
        if let State::Open { probe, .. } = &mut self.state {
            *probe = Some(worker.to_owned());
        }
    }

    /// Records that a worker finds out whether the verification passes without
    /// any work.
    pub(crate) fn ask(&mut self, worker: &WorkerName) {
        self.state = State::Asking(worker.to_owned());
    }

    /// Takes the answer in: a verification that fails without any work pauses
    /// dispatch.
    pub(crate) fn answered(&mut self, passes: bool, now: Timestamp) -> Option<BreakerChange> {
        if !matches!(self.state, State::Asking(_)) {
            return None;
        }
        self.state = State::Closed;
        let checks = std::mem::take(&mut self.checks);
        if passes {
            return None;
        }
        FailureClass::StartupCheckFailed
            .as_str()
            .clone_into(&mut self.class);
        self.issues = checks;
        Some(self.open(now))
    }

    fn is_reached(&self, issues: &BTreeSet<IssueId>) -> bool {
        let count = u32::try_from(issues.len()).unwrap_or(u32::MAX);
        self.rule.failures > 0 && count >= self.rule.failures
    }

    /// Takes a step's end in.
    pub(crate) fn ended(
        &mut self,
        worker: &WorkerName,
        issue_id: &IssueId,
        blame: Blame,
        now: Timestamp,
    ) -> Option<BreakerChange> {
        if let State::Asking(asks) = &self.state {
            if asks == worker {
                self.state = State::Closed;
            }
            return None;
        }
        if let State::Open { class, probe, .. } = &mut self.state {
            if probe.as_ref() != Some(worker) {
                // A step that began earlier carries no information about now.
                return None;
            }
            *probe = None;
            let class = class.clone();
            let by_baseline = class == FailureClass::StartupCheckFailed.as_str();
            let again = match &blame {
                Blame::NotCounted => return None,
                Blame::Surroundings(again) => *again == class,
                Blame::Check => by_baseline,
                Blame::Issue => false,
            };
            return match blame {
                _ if again => {
                    self.issues.insert(issue_id.to_owned());
                    Some(self.open(now))
                }
                other => {
                    self.is_refuted |= by_baseline && other == Blame::Issue;
                    self.state = State::Closed;
                    self.issues.clear();
                    self.count(issue_id, other);
                    Some(BreakerChange::Closed)
                }
            };
        }
        self.count(issue_id, blame);
        self.is_reached(&self.issues).then(|| self.open(now))
    }

    fn count(&mut self, issue_id: &IssueId, blame: Blame) {
        match blame {
            Blame::NotCounted => {}
            Blame::Issue => {
                self.issues.clear();
                self.checks.clear();
            }
            Blame::Check => {
                self.issues.clear();
                self.checks.insert(issue_id.to_owned());
            }
            Blame::Surroundings(class) => {
                self.checks.clear();
                if class != self.class {
                    self.issues.clear();
                    self.class = class;
                }
                self.issues.insert(issue_id.to_owned());
            }
        }
    }

    fn open(&mut self, now: Timestamp) -> BreakerChange {
        let until = retry_at(now, self.rule.pause);
        self.state = State::Open {
            class: self.class.clone(),
            until,
            probe: None,
        };
        BreakerChange::Opened {
            class: self.class.clone(),
            issues: self.issues.iter().cloned().collect(),
            until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn breaker(failures: u32) -> Breaker {
        Breaker::new(BreakerRule {
            failures,
            pause: Duration::from_secs(300),
        })
    }

    /// Ends steps, each as `issue class`: `ok` ended well, `-` carries no
    /// information.
    fn end(breaker: &mut Breaker, steps: &[&str]) -> Vec<bool> {
        let ended = steps.iter().map(|step| {
            let (issue, class) = step.split_once(' ').unwrap();
            let blame = match class {
                "ok" => Blame::Issue,
                "-" => Blame::NotCounted,
                "check" => Blame::Check,
                class => Blame::Surroundings(class.into()),
            };
            breaker
                .ended(&"w".into(), &issue.into(), blame, at(0))
                .is_some()
        });
        ended.collect()
    }

    #[test]
    fn it_opens_where_different_issues_fail_alike_in_a_row() {
        for (steps, opens) in [
            (&["a x", "b x", "c x"][..], true),
            (&["a x", "a x", "a x"], false),
            (&["a x", "a x", "b x", "c x"], true),
            (&["a x", "b x", "c y"], false),
            (&["a x", "b x", "d ok", "c x"], false),
            (&["a x", "b x", "d -", "c x"], true),
            (&["a x", "y y", "b x", "c x", "d x"], true),
        ] {
            let opened = end(&mut breaker(3), steps);
            assert_eq!(opened.last(), Some(&opens), "{steps:?}");
            assert!(!opened[..steps.len() - 1].contains(&true), "{steps:?}");
        }
        assert!(!end(&mut breaker(0), &["a x", "b x", "c x"]).contains(&true));
    }

    #[test]
    fn one_step_asks_after_the_pause_and_says_whether_dispatch_continues() {
        let mut breaker = breaker(2);
        end(&mut breaker, &["a x"]);
        let opened = breaker.ended(
            &"w".into(),
            &"b".into(),
            Blame::Surroundings("x".into()),
            at(10),
        );
        assert_eq!(
            opened,
            Some(BreakerChange::Opened {
                class: "x".into(),
                issues: vec!["a".into(), "b".into()],
                until: at(310),
            })
        );
        assert_eq!(
            opened.unwrap().to_string(),
            "BREAKER OPEN: x on 2 issues in a row (a, b); dispatch pauses, one probe at \
            1970-01-01T00:05:10Z"
        );
        assert_eq!(breaker.passage(at(309)), Passage::NoneUntil(at(310)));
        // What began before the pause changes nothing.
        assert_eq!(
            breaker.ended(&"late".into(), &"c".into(), Blame::Issue, at(20)),
            None
        );
        assert_eq!(breaker.passage(at(310)), Passage::One);
        breaker.take(&"w".into());
        assert_eq!(breaker.passage(at(311)), Passage::NoneYet);
        assert_eq!(
            breaker.ended(&"w".into(), &"d".into(), Blame::NotCounted, at(312)),
            None
        );
        assert_eq!(breaker.passage(at(312)), Passage::One);
        breaker.take(&"w".into());
        let again = breaker.ended(
            &"w".into(),
            &"d".into(),
            Blame::Surroundings("x".into()),
            at(320),
        );
        assert!(matches!(again, Some(BreakerChange::Opened { until, .. }) if until == at(620)));
        breaker.take(&"v".into());
        let other = breaker.ended(
            &"v".into(),
            &"e".into(),
            Blame::Surroundings("y".into()),
            at(630),
        );
        assert_eq!(other, Some(BreakerChange::Closed));
        assert_eq!(breaker.passage(at(630)), Passage::All);
        // The one that closed it counts already.
        let opened = breaker.ended(
            &"v".into(),
            &"f".into(),
            Blame::Surroundings("y".into()),
            at(640),
        );
        assert!(matches!(opened, Some(BreakerChange::Opened { .. })));
    }

    #[test]
    fn checks_that_fail_in_a_row_ask_whether_they_pass_without_work() {
        let mut breaker = breaker(2);
        for (steps, expected) in [
            (
                &["a check", "a check", "b ok", "c check", "d x"][..],
                Passage::All,
            ),
            (&["a check", "b -", "b check"], Passage::Baseline),
        ] {
            assert!(!end(&mut breaker, steps).contains(&true));
            assert_eq!(breaker.passage(at(0)), expected, "{steps:?}");
        }
        breaker.ask(&"w".into());
        assert_eq!(breaker.passage(at(0)), Passage::NoneYet);
        assert_eq!(breaker.answered(true, at(1)), None);
        assert_eq!(breaker.passage(at(1)), Passage::All);
        // One that is lost asks nothing; the next worker does.
        end(&mut breaker, &["a check", "b check"]);
        breaker.ask(&"w".into());
        assert_eq!(
            breaker.ended(&"w".into(), &"".into(), Blame::NotCounted, at(2)),
            None
        );
        assert_eq!(breaker.passage(at(2)), Passage::Baseline);
        breaker.ask(&"v".into());
        assert_eq!(
            breaker.answered(false, at(3)),
            Some(BreakerChange::Opened {
                class: "startup_check_failed".into(),
                issues: vec!["a".into(), "b".into()],
                until: at(303),
            })
        );
        breaker.take(&"v".into());
        let again = breaker.ended(&"v".into(), &"c".into(), Blame::Check, at(310));
        assert!(matches!(again, Some(BreakerChange::Opened { .. })));
        breaker.take(&"v".into());
        let closed = breaker.ended(&"v".into(), &"d".into(), Blame::Issue, at(700));
        assert_eq!(closed, Some(BreakerChange::Closed));
        // It passes with work: what it does without is irrelevant here.
        end(&mut breaker, &["a check", "b check", "c check"]);
        assert_eq!(breaker.passage(at(700)), Passage::All);
    }

    #[test]
    fn a_class_that_blocks_its_issue_blames_it() {
        let policy = RetryPolicy::embedded().unwrap();
        for (class, blames) in [
            ("landing_conflict", false),
            ("budget_exceeded", false),
            ("work_unfit", false),
            ("work_failed", true),
            ("executor_unavailable", true),
            ("flaky_execution", true),
            ("gate_timeout", true),
            ("agent_stream_invalid", true),
        ] {
            let expected = if blames {
                Blame::Surroundings(class.into())
            } else {
                Blame::Issue
            };
            assert_eq!(blame(&policy, &[class.to_owned()]), expected, "{class}");
        }
        assert_eq!(blame(&policy, &["check_failed".to_owned()]), Blame::Check);
    }
}

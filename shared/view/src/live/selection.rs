//! What is selected on the first screen: a lane or an outcome, by its name, so that
//! it stays selected where rows move.

use super::key::Key;
use crate::status::BatchView;
use premath_kernel::json::id::{IssueId, StepId, WorkerName};
use premath_kernel::record::live::LiveOutcome;

/// How many rows a page has that was not painted yet.
const PAGE: usize = 8;

/// Which of the two tables the keys move in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Focus {
    /// The lanes.
    #[default]
    Lanes,
    /// The outcomes.
    Outcomes,
}

/// What is selected.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    focus: Focus,
    lane: Option<WorkerName>,
    step: Option<StepId>,
}

impl Selection {
    /// Returns the table that the keys move in: the outcomes where no lane runs.
    pub(super) fn focus(&self, batch: Option<&BatchView>) -> Focus {
        let has_lanes = batch.is_some_and(|batch| batch.state.is_running());
        match has_lanes {
            true => self.focus,
            false => Focus::Outcomes,
        }
    }

    /// Returns which lane is selected.
    pub(super) fn lane_at(&self, batch: &BatchView) -> usize {
        let mut lanes = batch.lanes.iter();
        let found = lanes.position(|lane| Some(&lane.worker_id) == self.lane.as_ref());
        found.unwrap_or(0)
    }

    /// Returns which outcome is selected.
    pub(super) fn outcome_at(&self, batch: &BatchView) -> usize {
        let mut outcomes = batch.outcomes.iter();
        let found = outcomes.position(|outcome| Some(&outcome.step_id) == self.step.as_ref());
        found.unwrap_or(0)
    }

    /// Moves by a key.
    pub(super) fn key(&mut self, key: Key, batch: Option<&BatchView>) {
        let Some(batch) = batch else { return };
        let focus = self.focus(Some(batch));
        if key == Key::Tab {
            self.focus = match focus {
                Focus::Lanes => Focus::Outcomes,
                Focus::Outcomes => Focus::Lanes,
            };
            return;
        }
        let (at, count) = match focus {
            Focus::Lanes => (self.lane_at(batch), batch.lanes.len()),
            Focus::Outcomes => (self.outcome_at(batch), batch.outcomes.len()),
        };
        let last = count.saturating_sub(1);
        let to = match key {
            Key::Up | Key::Char('k') => at.saturating_sub(1),
            Key::Down | Key::Char('j') => (at + 1).min(last),
            Key::PageUp => at.saturating_sub(PAGE),
            Key::PageDown => (at + PAGE).min(last),
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            _ => return,
        };
        match focus {
            Focus::Lanes => self.lane = batch.lanes.get(to).map(|lane| lane.worker_id.clone()),
            Focus::Outcomes => {
                let outcome = batch.outcomes.get(to);
                self.step = outcome.map(|outcome| outcome.step_id.clone());
            }
        }
    }

    /// Goes to the outcomes; returns whether there are any.
    pub(super) fn select_outcomes(&mut self, batch: Option<&BatchView>) -> bool {
        let has_some = batch.is_some_and(|batch| !batch.outcomes.is_empty());
        if has_some {
            self.focus = Focus::Outcomes;
        }
        has_some
    }

    /// Returns the outcome that is selected.
    pub(super) fn outcome<'a>(&self, batch: Option<&'a BatchView>) -> Option<&'a LiveOutcome> {
        let batch = batch.filter(|batch| self.focus(Some(batch)) == Focus::Outcomes)?;
        batch.outcomes.get(self.outcome_at(batch))
    }

    /// Returns the lane that is selected and the issue of its running attempt.
    pub(super) fn running(&self, batch: Option<&BatchView>) -> Option<(WorkerName, IssueId)> {
        let batch = batch.filter(|batch| self.focus(Some(batch)) == Focus::Lanes)?;
        let lane = batch.lanes.get(self.lane_at(batch))?;
        let attempt = lane.attempt.as_ref()?;
        Some((lane.worker_id.clone(), attempt.issue_id.clone()))
    }

    /// Returns the issue of what is selected.
    pub(super) fn issue(&self, batch: Option<&BatchView>) -> Option<IssueId> {
        let of_outcome = self.outcome(batch).map(|outcome| outcome.issue_id.clone());
        of_outcome.or_else(|| self.running(batch).map(|(_, issue)| issue))
    }

    /// Returns the log of what is selected.
    pub(super) fn stream(&self, batch: Option<&BatchView>) -> Option<Shown> {
        if let Some(outcome) = self.outcome(batch) {
            let issue = outcome.issue_id.to_string();
            return Some(Shown {
                name: format!("{issue}, attempt {}", outcome.attempt),
                log: issue,
                title: outcome.title.clone(),
            });
        }
        let batch = batch.filter(|batch| self.focus(Some(batch)) == Focus::Lanes)?;
        let lane = batch.lanes.get(self.lane_at(batch))?;
        let log = lane.worker_id.to_string();
        let (name, title) = match &lane.attempt {
            Some(attempt) => (format!("{log} on {}", attempt.issue_id), &*attempt.title),
            None => (log.clone(), "its last attempt"),
        };
        Some(Shown {
            log,
            name,
            title: title.to_owned(),
        })
    }
}

/// A log that is shown.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// The issue or the lane by which it is found.
    pub(super) log: String,
    /// What it is the log of.
    pub(super) name: String,
    /// The title of the issue.
    pub(super) title: String,
}

//! The history of an issue: all of its attempts, and how they look on a terminal, the
//! last one first.

use super::UsageView;
use super::attempt::{AttemptOutcome, AttemptView, between_ms};
use super::page::Fact;
use super::text::{INDENT, of_facts};
use crate::figures::{UNKNOWN, Viewer, brief_ms, money, tokens};
use premath_kernel::json::plain::{counted, plain};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::trajectory::StepRow;
use schemars::JsonSchema;
use serde::Serialize;

/// An attempt at an issue, with the end of what its command printed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastAttempt {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: AttemptView,
    /// The last lines of the output that has content; empty where it did not fail, and
    /// where the output is an agent's event stream.
    pub output_end: Vec<String>,
    /// The command by which a person continues the agent's session; null where none is
    /// recorded, and where it ended with the private home of its attempt or its worktree.
    pub resume: Option<String>,
}

/// What all attempts at an issue took, those that are not listed included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PastTotals {
    /// Attempts that ended.
    pub attempts: u64,
    /// Those that count: one that was cut short does not.
    pub counted: u64,
    /// Those that closed the issue.
    pub closed: u64,
    /// Their time, in milliseconds.
    pub duration_ms: u64,
    /// What they used.
    pub usage: UsageView,
}

impl PastTotals {
    /// Takes in the row of an attempt.
    pub fn observe(&mut self, row: &StepRow) {
        let began = row.started_at.as_ref().map(Stamp::time);
        let took = began.map_or(0, |began| between_ms(began, row.finished_at.time()));
        let agent = row.agent.as_ref();
        self.attempts += 1;
        self.counted += u64::from(row.is_attempt());
        self.closed += u64::from(AttemptOutcome::of(row) == AttemptOutcome::Closed);
        self.duration_ms = self.duration_ms.saturating_add(took);
        self.usage.add_reported(
            agent.and_then(|agent| agent.tokens),
            agent.and_then(|agent| agent.cost_nano_usd),
        );
    }

    /// Returns them in a line.
    pub fn sentence(&self) -> String {
        format!(
            "{} in all, {} counted, {} closed it, took {}; {}",
            self.attempts,
            self.counted,
            self.closed,
            brief_ms(self.duration_ms),
            self.usage.sentence()
        )
    }
}

/// Returns attempts at an issue as lines. `earlier` is how many came before them.
pub fn history_lines(attempts: &[PastAttempt], earlier: u64, viewer: &Viewer) -> Vec<String> {
    let mut lines = Vec::new();
    for (past, number) in numbered(attempts, earlier) {
        let attempt = &past.attempt;
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let batch = attempt.batch_id.as_ref();
        let batch = batch.map_or_else(|| "no batch".to_owned(), |id| format!("batch {id}"));
        lines.push(format!(
            "{number}. {}, {}",
            attempt.outcome.phrase(),
            plain(&batch)
        ));
        lines.extend(of_facts(&facts(attempt, viewer), 2, viewer.width));
        if let Some(command) = &past.resume {
            // In one line, so that it can be copied.
            lines.push(format!("  {:INDENT$}{}", "resume", plain(command)));
        }
        let end = past.output_end.iter();
        lines.extend(end.map(|line| format!("  | {}", plain(&line.replace('\t', "    ")))));
    }
    lines
}

/// Returns attempts with their numbers, the last one first.
pub(crate) fn numbered(
    attempts: &[PastAttempt],
    earlier: u64,
) -> impl Iterator<Item = (&PastAttempt, u64)> {
    let count = u64::try_from(attempts.len()).unwrap_or(u64::MAX);
    let last = earlier.saturating_add(count);
    attempts.iter().rev().zip((1..=last).rev())
}

pub(crate) fn facts(attempt: &AttemptView, viewer: &Viewer) -> Vec<Fact> {
    let start = attempt.started_at.as_ref().unwrap_or(&attempt.finished_at);
    let lane = attempt.worker_id.as_ref();
    let mut facts = vec![(
        "began",
        format!(
            "{}, {}, took {}",
            viewer.when(start.time()),
            lane.map_or_else(|| "lane unknown".to_owned(), ToString::to_string),
            attempt
                .duration_ms
                .map_or_else(|| UNKNOWN.to_owned(), brief_ms)
        ),
    )];
    if let Some(class) = attempt.failure_classes.first() {
        let said = attempt.said.as_deref().unwrap_or_default();
        let classes = attempt.failure_classes.join(", ");
        let text = match said.strip_prefix(class.as_str()) {
            Some(rest) => format!("{classes}{rest}"),
            None if said.is_empty() => classes,
            None => format!("{classes}: {said}"),
        };
        facts.push(("why", text));
    }
    facts.push(("agent", agent(attempt)));
    if attempt.denied() > 0 {
        let denials = attempt.denials.iter();
        let denials: Vec<String> = denials
            .map(|(rule, count)| format!("{count} by {rule}"))
            .collect();
        facts.push(("denied", denials.join(", ")));
    }
    if let Some(commit) = &attempt.commit {
        let landed = attempt.landed_on.as_ref();
        let landed = landed.map_or_else(String::new, |target| format!(" on {target}"));
        facts.push(("commit", format!("{commit}{landed}")));
    }
    if let Some(salvage) = &attempt.salvage {
        facts.push(("saved", salvage.clone()));
    }
    if let Some(output) = &attempt.output {
        facts.push(("output", output.clone()));
    }
    let mut proof = format!("run log row {}", attempt.row);
    for witness in &attempt.witnesses {
        proof.push(' ');
        proof.push_str(witness);
    }
    facts.push(("proof", proof));
    facts
}

fn agent(attempt: &AttemptView) -> String {
    let name = attempt.agent.as_deref().unwrap_or("none recorded");
    let model = attempt.model.as_ref().map(|model| format!(" ({model})"));
    let used = attempt.tokens.map(|sum| tokens(sum.total()));
    let cost = attempt.cost_nano_usd.map(money);
    let mut text = format!(
        "{name}{}, tokens {}, USD {}",
        model.unwrap_or_default(),
        used.as_deref().unwrap_or(UNKNOWN),
        cost.as_deref().unwrap_or(UNKNOWN)
    );
    if attempt.repair_rounds > 0 {
        let rounds = counted(attempt.repair_rounds, "repair round");
        text.push_str(&format!(", {rounds}"));
    }
    text
}

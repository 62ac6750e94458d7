//! Tokens and money, whatever way an agent counts them.

use crate::event::{ReportedUsage, Tokens, UsageBasis};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many messages are held open: those of the agent and its sub-agents that
/// are reported at the same time.
const OPEN_MESSAGES: usize = 64;

/// The usage of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSpending {
    /// The tokens, where any were reported.
    pub tokens: Option<Tokens>,
    /// The cost in billionths of a dollar, where it was reported. That of older
    /// versions of Claude is the whole session's: of a session that is resumed,
    /// what it had cost before is in it.
    pub cost_nano_usd: Option<u64>,
}

impl RunSpending {
    pub(super) fn view(self) -> Value {
        json!({
            "costNanoUsd": self.cost_nano_usd,
            "tokens": self.tokens.map(|tokens| json!({
                "cached": tokens.cached,
                "input": tokens.input,
                "output": tokens.output,
            })),
        })
    }
}

impl RunSpending {
    /// Returns the usage of two runs together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: match (self.tokens, other.tokens) {
                (Some(one), Some(other)) => Some(one.plus(other)),
                (one, other) => one.or(other),
            },
            cost_nano_usd: match (self.cost_nano_usd, other.cost_nano_usd) {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            },
        }
    }
}

/// Folds usage figures of every basis.
#[derive(Debug, Default)]
pub(super) struct UsageFold {
    /// What the totals of the session had before the run.
    before: RunSpending,
    /// What is over and counted.
    settled: Tokens,
    /// The messages of the turn that were reported, each by what was reported
    /// about it last.
    open: BTreeMap<Arc<str>, Tokens>,
    /// Messages of the turn that are no longer open.
    closed: Tokens,
    /// Whether any tokens were reported.
    is_reported: bool,
    cost: Option<u64>,
}

impl UsageFold {
    /// Begins with a session whose totals continue from what it had used.
    pub(super) fn after(before: RunSpending) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    pub(super) fn take(&mut self, usage: ReportedUsage) {
        let ReportedUsage {
            basis,
            tokens,
            cost_nano_usd,
        } = usage;
        self.is_reported |= tokens.is_some();
        match (&basis, cost_nano_usd) {
            (_, None) => {}
            (UsageBasis::Step, Some(cost)) => {
                self.cost = Some(self.cost.unwrap_or_default().saturating_add(cost));
            }
            // A total of the session so far.
            (_, Some(total)) => {
                let before = self.before.cost_nano_usd.unwrap_or_default();
                self.cost = self.cost.max(Some(total.saturating_sub(before)));
            }
        }
        let Some(tokens) = tokens else { return };
        match basis {
            UsageBasis::RunningTotal => {
                let before = self.before.tokens.unwrap_or_default();
                self.settled = tokens.minus(before);
            }
            UsageBasis::Turn => {
                self.settled = self.settled.plus(tokens);
                self.open.clear();
                self.closed = Tokens::default();
            }
            UsageBasis::Step => self.settled = self.settled.plus(tokens),
            UsageBasis::Message(id) => self.message(id, tokens),
        }
    }

    fn message(&mut self, id: Arc<str>, tokens: Tokens) {
        self.open.insert(id, tokens);
        if self.open.len() > OPEN_MESSAGES {
            // The least id: which one matters little, that it is always the
            // same one does.
            if let Some((_, tokens)) = self.open.pop_first() {
                self.closed = self.closed.plus(tokens);
            }
        }
    }

    pub(super) fn spent(&self) -> RunSpending {
        let open = self
            .open
            .values()
            .fold(self.closed, |sum, one| sum.plus(*one));
        RunSpending {
            tokens: self.is_reported.then(|| self.settled.plus(open)),
            cost_nano_usd: self.cost,
        }
    }

    pub(super) fn retained_bytes(&self) -> usize {
        let ids: usize = self.open.keys().map(|id| id.len()).sum();
        ids + self.open.len() * size_of::<(Arc<str>, Tokens)>() * 2
    }
}

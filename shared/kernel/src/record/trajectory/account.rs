//! What a batch used and waited for, computed from its rows: the same for a run
//! that resumes it.

use super::{AgentRecord, StepRow, TokenCounts, action};
use crate::failure::FailureClass;
use crate::json::id::IssueId;
use crate::policy::budget::Spent;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a batch had of one provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderAccount {
    /// Steps that its agent worked in.
    pub steps: u64,
    /// What its model counted, where it is reported.
    pub tokens: Option<TokenCounts>,
    /// What it cost, in billionths of a dollar, where it is reported.
    pub cost_nano_usd: Option<u64>,
    /// How many calls of its agent the turn policy denied, by the rule or the limit.
    pub denials: BTreeMap<String, u64>,
    /// How often it was parked.
    pub parkings: u64,
    /// How long it was parked, what still lasts left out.
    parked: Duration,
    /// Since when it is parked, and until when.
    parked_now: Option<(Timestamp, Timestamp)>,
}

impl ProviderAccount {
    /// Returns how long it was parked by now.
    pub fn parked(&self, now: Timestamp) -> Duration {
        let lasts = self
            .parked_now
            .map_or(Duration::ZERO, |(since, _)| between(since, now));
        self.parked.saturating_add(lasts)
    }

    fn add(&mut self, agent: &AgentRecord) {
        self.steps += 1;
        if let Some(new) = agent.tokens {
            let sum = self.tokens.get_or_insert_default();
            sum.input = sum.input.saturating_add(new.input);
            sum.cached = sum.cached.saturating_add(new.cached);
            sum.output = sum.output.saturating_add(new.output);
        }
        if let Some(cost) = agent.cost_nano_usd {
            let sum = self.cost_nano_usd.get_or_insert_default();
            *sum = sum.saturating_add(cost);
        }
        for (rule, count) in &agent.denials {
            let sum = self.denials.entry(rule.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

/// What an issue used in a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IssueAccount {
    /// Tokens and money.
    pub spent: Spent,
    /// From claims to rows, without the time in which others were waited for.
    pub time: Duration,
    /// How many calls of its agents the turn policy denied.
    pub denials: u64,
}

/// How often attempts closed their issues, by what it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloseCounts {
    /// In the first attempt, as its work was at first.
    pub first_pass: u64,
    /// In the first attempt, after its agent mended its work.
    pub after_repair: u64,
    /// In a later attempt.
    pub after_retry: u64,
}

impl CloseCounts {
    /// Returns how many issues closed.
    pub const fn total(self) -> u64 {
        let first = self.first_pass.saturating_add(self.after_repair);
        first.saturating_add(self.after_retry)
    }
}

/// How many failure classes are counted apart.
const CLASSES_MAX: usize = 64;

/// All further ones.
const OTHER: &str = "other";

/// What a batch used and waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Attempts that ended.
    attempts: u64,
    /// How often agents were run again in their session.
    repair_rounds: u64,
    closes: CloseCounts,
    /// Attempts that did not close their issue, by their first failure class.
    failures: BTreeMap<String, u64>,
    /// The issues that an attempt of the batch failed at.
    failed: BTreeSet<IssueId>,
    providers: BTreeMap<String, ProviderAccount>,
    issues: BTreeMap<IssueId, IssueAccount>,
    breaker_openings: u64,
}

impl Account {
    /// Takes in the next row of the batch, in file order.
    pub fn observe(&mut self, row: &StepRow) {
        let provider = row.supervision.as_ref().and_then(|s| s.provider.as_ref());
        match (row.action.as_str(), provider) {
            (action::WORKER_LOOP, _) => self.step(row),
            (action::PROVIDER_PARKED, Some(provider)) => {
                let at = row.finished_at.time();
                let until = row.supervision.as_ref().and_then(|s| s.until.as_ref());
                let until = until.map_or(at, |until| until.time());
                let account = self.providers.entry(provider.clone()).or_default();
                account.parkings += 1;
                let since = account.parked_now.map_or(at, |(since, _)| since);
                account.parked_now = Some((since, until));
            }
            (action::PROVIDER_RESUMED, Some(provider)) => {
                let account = self.providers.entry(provider.clone()).or_default();
                if let Some((since, _)) = account.parked_now.take() {
                    let lasted = between(since, row.finished_at.time());
                    account.parked = account.parked.saturating_add(lasted);
                }
            }
            (action::BREAKER_OPEN, _) => self.breaker_openings += 1,
            _ => {}
        }
    }

    /// Counts a failure by its first class; those of further classes are one.
    fn count_failure(&mut self, row: &StepRow) {
        let class = row.failure_classes.first().filter(|_| !row.succeeded());
        let Some(class) = class else { return };
        let is_known = self.failures.contains_key(class) || self.failures.len() < CLASSES_MAX;
        let class = if is_known { class.as_str() } else { OTHER };
        let count = self.failures.entry(class.to_owned()).or_default();
        *count = count.saturating_add(1);
    }

    fn count_close(&mut self, row: &StepRow) {
        let Some(issue) = &row.issue_id else { return };
        let repaired = |agent: &AgentRecord| agent.repair_rounds.is_some_and(|rounds| rounds > 0);
        if !row.succeeded() {
            // What a person or a limit cut short is not an attempt.
            if !row.is_limited() && !row.has_class(FailureClass::StepInterrupted) {
                self.failed.insert(issue.clone());
            }
        } else if self.failed.contains(issue) {
            self.closes.after_retry += 1;
        } else if row.agent.as_ref().is_some_and(repaired) {
            self.closes.after_repair += 1;
        } else {
            self.closes.first_pass += 1;
        }
    }

    fn step(&mut self, row: &StepRow) {
        self.count_close(row);
        self.count_failure(row);
        self.attempts += 1;
        let rounds = row.agent.as_ref().and_then(|agent| agent.repair_rounds);
        self.repair_rounds = self.repair_rounds.saturating_add(rounds.unwrap_or(0));
        let spent = row.agent.as_ref().map_or_else(Spent::default, |agent| {
            let account = self.providers.entry(agent.adapter.clone()).or_default();
            account.add(agent);
            Spent {
                tokens: agent.tokens.map(TokenCounts::total),
                cost_nano_usd: agent.cost_nano_usd,
            }
        });
        let cut = row.has_class(FailureClass::StepInterrupted);
        if let Some(issue) = &row.issue_id {
            let account = self.issues.entry(issue.clone()).or_default();
            account.spent = account.spent.plus(spent);
            let denials = row.agent.iter().flat_map(|agent| agent.denials.values());
            account.denials = denials.fold(account.denials, |sum, one| sum.saturating_add(*one));
            // What a person or a limit cut short is not held against the issue.
            if !cut && let Some(started) = &row.started_at {
                let time = between(started.time(), row.finished_at.time());
                let waited = Duration::from_millis(row.waited_ms.unwrap_or(0));
                let own = time.saturating_sub(waited);
                account.time = account.time.saturating_add(own);
            }
        }
    }

    /// Returns what the batch used.
    pub fn spent(&self) -> Spent {
        let of = |account: &ProviderAccount| Spent {
            tokens: account.tokens.map(TokenCounts::total),
            cost_nano_usd: account.cost_nano_usd,
        };
        let providers = self.providers.values().map(of);
        providers.fold(Spent::default(), Spent::plus)
    }

    /// Returns what an issue used.
    pub fn of_issue(&self, issue_id: &IssueId) -> IssueAccount {
        self.issues.get(issue_id).copied().unwrap_or_default()
    }

    /// Returns what the batch had of each provider, by name.
    pub const fn providers(&self) -> &BTreeMap<String, ProviderAccount> {
        &self.providers
    }

    /// Returns how many calls of agents the turn policy denied, by the rule or the
    /// limit.
    pub fn denials(&self) -> BTreeMap<&str, u64> {
        let mut denials = BTreeMap::<&str, u64>::new();
        let providers = self.providers.values();
        for (rule, count) in providers.flat_map(|provider| &provider.denials) {
            let sum = denials.entry(rule).or_default();
            *sum = sum.saturating_add(*count);
        }
        denials
    }

    /// Returns the issues in whose steps the turn policy denied calls, sorted.
    pub fn denied_issues(&self) -> impl Iterator<Item = &IssueId> {
        let denied = self.issues.iter();
        denied.filter_map(|(id, account)| (account.denials > 0).then_some(id))
    }

    /// Returns how many attempts did not close their issue, by their first failure
    /// class; `other` are those of classes that are beyond a bound.
    pub const fn failures(&self) -> &BTreeMap<String, u64> {
        &self.failures
    }

    /// Returns how often attempts closed their issues.
    pub const fn closes(&self) -> CloseCounts {
        self.closes
    }

    /// Returns how many attempts ended.
    pub const fn attempts(&self) -> u64 {
        self.attempts
    }

    /// Returns how often agents were run again in their session.
    pub const fn repair_rounds(&self) -> u64 {
        self.repair_rounds
    }

    /// Returns how often the breaker opened.
    pub const fn breaker_openings(&self) -> u64 {
        self.breaker_openings
    }

    /// Returns the providers that are parked, and until when.
    pub fn parked(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        self.providers.iter().filter_map(|(name, account)| {
            let (_, until) = account.parked_now?;
            Some((name.as_str(), until))
        })
    }
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::breaker::BreakerChange;
    use crate::policy::provider::ProviderChange;
    use crate::record::trajectory::{breaker_row, provider_row};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn step(issue: &str, from: i64, to: i64, tokens: u64, cost: Option<u64>) -> StepRow {
        StepRow {
            issue_id: Some(issue.into()),
            started_at: Some(at(from).into()),
            agent: Some(AgentRecord {
                adapter: "codex".into(),
                tokens: Some(TokenCounts {
                    input: tokens,
                    cached: 1,
                    output: 2,
                }),
                cost_nano_usd: cost,
                ..AgentRecord::default()
            }),
            ..StepRow::new(
                format!("w.{issue}.{from}"),
                action::WORKER_LOOP,
                "failed",
                at(to),
            )
        }
    }

    #[test]
    fn what_was_used_adds_up_by_provider_and_issue() {
        let mut account = Account::default();
        account.observe(&step("a", 0, 10, 100, Some(5)));
        account.observe(&step("a", 20, 25, 50, None));
        account.observe(&step("b", 0, 1, 10, None));
        let mut waiting = step("b", 0, 90, 0, None);
        waiting.waited_ms = Some(88_000);
        account.observe(&waiting);
        let mut cut = step("b", 0, 500, 7, None);
        cut.failure_classes = vec!["step_interrupted".into()];
        account.observe(&cut);
        let failures: Vec<_> = account.failures().iter().collect();
        assert_eq!(failures, [(&"step_interrupted".to_owned(), &1)]);
        let mut bounded = account.clone();
        for number in 0..100 {
            let mut failed = step("c", 0, 1, 0, None);
            failed.failure_classes = vec![format!("class_{number}")];
            bounded.observe(&failed);
        }
        assert_eq!(bounded.failures()["other"], 37);
        assert_eq!(bounded.failures().len(), CLASSES_MAX + 1);
        let of = |issue: &str| {
            let account = account.of_issue(&issue.into());
            (account.spent.tokens, account.time.as_secs())
        };
        assert_eq!(of("a"), (Some(154), 15));
        assert_eq!(of("b"), (Some(23), 3));
        assert_eq!(of("c"), (None, 0));
        let sum = account.spent();
        assert_eq!((sum.tokens, sum.cost_nano_usd), (Some(177), Some(5)));
        assert_eq!(account.providers()["codex"].steps, 5);
    }

    #[test]
    fn closes_are_counted_by_what_they_took() {
        let mut account = Account::default();
        let mut observe = |issue: &str, result: &str, rounds: Option<u64>, class: &str| {
            let mut row = step(issue, 0, 1, 1, None);
            row.result_class = result.to_owned();
            row.failure_classes.push(class.to_owned());
            row.agent.as_mut().unwrap().repair_rounds = rounds;
            account.observe(&row);
        };
        observe("a", "completed", None, "");
        observe("b", "completed", Some(1), "");
        observe("c", "failed", Some(2), "check_failed");
        observe("c", "completed", Some(1), "");
        observe("d", "released", None, "step_interrupted");
        observe("d", "completed", None, "");
        observe("e", "failed", None, "check_failed");
        let expected = CloseCounts {
            first_pass: 2,
            after_repair: 1,
            after_retry: 1,
        };
        assert_eq!(account.closes(), expected);
    }

    #[test]
    fn a_parking_lasts_until_the_provider_answers() {
        let mut account = Account::default();
        let parked = |until| ProviderChange::Parked {
            provider: "codex".into(),
            until: at(until),
        };
        let resumed = ProviderChange::Resumed {
            provider: "codex".into(),
        };
        account.observe(&provider_row(&"hb".into(), &parked(100), at(10)));
        assert_eq!(account.parked().collect::<Vec<_>>(), [("codex", at(100))]);
        account.observe(&provider_row(&"hb".into(), &parked(200), at(101)));
        account.observe(&provider_row(&"hb".into(), &resumed, at(210)));
        assert_eq!(account.parked().count(), 0);
        account.observe(&provider_row(&"hb".into(), &parked(400), at(300)));
        let codex = &account.providers()["codex"];
        assert_eq!(codex.parked(at(330)), Duration::from_secs(230));
        assert_eq!((codex.parkings, codex.steps), (3, 0));
        let opened = BreakerChange::Opened {
            class: "x".into(),
            issues: Vec::new(),
            until: at(1),
        };
        account.observe(&breaker_row(&"hb".into(), &opened, at(0)));
        assert_eq!(account.breaker_openings(), 1);
    }
}

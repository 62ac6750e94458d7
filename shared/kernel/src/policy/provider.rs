//! The providers of the agents' models: which of them a lane works with, and
//! what happens to one that refuses more work (`agents.md`, "Supervision").
//!
//! A usage limit parks the provider and never the issue: for minutes at first,
//! and up to the stated reset only when probes are refused too. When its time
//! comes, one step probes it; the others wait until that step says that it
//! answers.

use crate::json::id::WorkerName;
use crate::policy::retry::{jitter, retry_at};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A stated reset that is further away is not a reset: no limit is longer than
/// a week.
const STATED_MAX: Duration = Duration::from_secs(8 * 86_400);

/// How long a provider is parked at first, whatever was reported: the text that
/// says it comes through a step. Each refused probe doubles it.
const FIRST_PARK: Duration = Duration::from_secs(300);

/// How long a wait counts for its jitter.
const JITTERED_MAX: Duration = Duration::from_secs(3_600);

/// A provider refused more work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageLimit {
    /// When the limit resets, where that is reported.
    pub resets_at: Option<Timestamp>,
}

impl UsageLimit {
    /// Reads what a command reported about its limit: `resets at` and a time,
    /// RFC 3339 or seconds since 1970, in the text after the class word.
    fn reported_in(text: &str) -> Self {
        const WORDS: &str = "resets at ";
        let at = text.find(WORDS).and_then(|at| {
            let word = text[at + WORDS.len()..].split_whitespace().next()?;
            let word = word.trim_end_matches(['.', ',', ';', ')']);
            let seconds = |word: &str| Timestamp::from_second(word.parse().ok()?).ok();
            word.parse().ok().or_else(|| seconds(word))
        });
        Self { resets_at: at }
    }

    /// Reads the last line of a stream that names the limit by its class word.
    pub fn named_in(stderr: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(stderr);
        let mut lines = text.lines().rev();
        lines.find_map(|line| line.strip_prefix("usage_limit:").map(Self::reported_in))
    }
}

/// Whether a line of a command's error output may park a provider. The events
/// of an agent's own stream always may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitLines {
    /// The step fails, and an attempt is used up: anything that runs in a step
    /// can print the line.
    #[default]
    Ignore,
    /// The line parks the provider, as an agent's event does.
    Park,
}

/// A word that names no way to treat such a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value `{0}`: expected `ignore` or `park`")]
pub struct UnknownLimitLines(String);

impl FromStr for LimitLines {
    type Err = UnknownLimitLines;

    fn from_str(text: &str) -> Result<Self, UnknownLimitLines> {
        match text {
            "ignore" => Ok(Self::Ignore),
            "park" => Ok(Self::Park),
            other => Err(UnknownLimitLines(other.to_owned())),
        }
    }
}

/// Which providers there are for the lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderRule {
    /// The lanes' own, in the order of lanes, from the first again at the end.
    pub own: Vec<String>,
    /// What a lane works with while its own is parked, in order.
    pub fallback: Vec<String>,
    /// How long one is parked whose reset is not said.
    pub pause: Duration,
    /// Whether a line of error output may park one.
    pub limit_lines: LimitLines,
}

/// What a lane that gets a claim now works with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderAssignment {
    /// The provider.
    pub provider: String,
    /// Whether the step is the one that asks a parked provider again.
    pub probe: bool,
}

/// How a step ended for its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderAnswer {
    /// The provider refused more work.
    Refused(UsageLimit),
    /// The provider did not refuse.
    Answered,
    /// No information: the step did not start, or was cancelled.
    Unknown,
}

/// What changed for a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderChange {
    /// No lane works with it until a time.
    Parked {
        /// The provider.
        provider: String,
        /// When it is asked again.
        until: Timestamp,
    },
    /// The provider answers again.
    Resumed {
        /// The provider.
        provider: String,
    },
}

impl fmt::Display for ProviderChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parked { provider, until } => write!(
                f,
                "PROVIDER PARKED: {provider} refused work; one probe at {until:.0}"
            ),
            Self::Resumed { provider } => write!(f, "provider {provider} is available again"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parked {
    until: Timestamp,
    stated: bool,
    /// How often it was asked again and refused.
    refusals: u32,
    /// The worker whose attempt probes the provider now.
    probe: Option<WorkerName>,
}

/// Which provider each lane works with now.
#[derive(Clone, Debug)]
pub struct ProviderPool {
    rule: ProviderRule,
    jitter_percent: u32,
    seed: String,
    parked: BTreeMap<String, Parked>,
    at_work: BTreeMap<WorkerName, String>,
}

impl ProviderPool {
    /// Begins with every provider free; the seed decides the jitter.
    pub fn new(rule: ProviderRule, jitter_percent: u32, seed: impl Into<String>) -> Self {
        Self {
            rule,
            jitter_percent,
            seed: seed.into(),
            parked: BTreeMap::new(),
            at_work: BTreeMap::new(),
        }
    }

    /// Takes up that a provider was parked before.
    pub fn restore(&mut self, provider: impl Into<String>, until: Timestamp) {
        let parked = Parked {
            until,
            stated: true,
            refusals: 0,
            probe: None,
        };
        self.parked.insert(provider.into(), parked);
    }

    /// Returns the provider that a worker's lane works with; while it has no
    /// work, the one that it would get, `None` where it waits.
    pub(crate) fn of(&self, worker: &WorkerName, now: Timestamp) -> Option<&str> {
        match self.at_work.get(worker) {
            Some(provider) => Some(provider),
            None => {
                let open = |name: &&str| self.is_free(name) || self.is_due(name, now);
                self.choices(worker).into_iter().find(open)
            }
        }
    }

    /// Returns the providers of a worker's lane, its own first.
    fn choices(&self, worker: &WorkerName) -> Vec<&str> {
        let own = self
            .rule
            .own
            .get(lane_of(worker) % self.rule.own.len().max(1));
        let mut choices: Vec<&str> = own.into_iter().map(String::as_str).collect();
        for name in &self.rule.fallback {
            if !choices.contains(&name.as_str()) {
                choices.push(name);
            }
        }
        choices
    }

    fn is_free(&self, provider: &str) -> bool {
        !self.parked.contains_key(provider)
    }

    fn is_due(&self, provider: &str, now: Timestamp) -> bool {
        self.parked
            .get(provider)
            .is_some_and(|parked| parked.probe.is_none() && parked.until <= now)
    }

    /// Says what each worker would work with, in order: a parked provider whose
    /// time came is asked by one of them.
    pub(crate) fn assignments(
        &self,
        workers: &[&WorkerName],
        now: Timestamp,
    ) -> Vec<Option<ProviderAssignment>> {
        let mut asked = BTreeSet::new();
        let mut assignments = Vec::new();
        for worker in workers {
            let mut assignment = None;
            for name in self.choices(worker) {
                let probe = self.is_due(name, now) && !asked.contains(name);
                if probe {
                    asked.insert(name);
                }
                if probe || self.is_free(name) {
                    assignment = Some(ProviderAssignment {
                        provider: name.to_owned(),
                        probe,
                    });
                    break;
                }
            }
            assignments.push(assignment);
        }
        assignments
    }

    /// Returns when the first provider that a worker's lane waits for is asked
    /// again; `None` where it waits for a step that runs.
    pub(crate) fn next(&self, worker: &WorkerName) -> Option<Timestamp> {
        self.choices(worker)
            .into_iter()
            .filter_map(|name| self.parked.get(name))
            .filter(|parked| parked.probe.is_none())
            .map(|parked| parked.until)
            .min()
    }

    /// Records that a worker begins a step.
    pub(crate) fn take(&mut self, worker: &WorkerName, assignment: ProviderAssignment) {
        if assignment.probe
            && let Some(parked) = self.parked.get_mut(&assignment.provider)
        {
            parked.probe = Some(worker.to_owned());
        }
        self.at_work.insert(worker.to_owned(), assignment.provider);
    }

    /// Takes a step's end in.
    pub(crate) fn ended(
        &mut self,
        worker: &WorkerName,
        answer: ProviderAnswer,
        now: Timestamp,
    ) -> Option<ProviderChange> {
        let provider = self.at_work.remove(worker)?;
        let parked = self.parked.get_mut(&provider);
        let asks = parked
            .as_ref()
            .is_some_and(|parked| parked.probe.as_ref() == Some(worker));
        match answer {
            ProviderAnswer::Refused(limit) => self.park(provider, limit, asks, now),
            ProviderAnswer::Answered if asks => {
                self.parked.remove(&provider);
                Some(ProviderChange::Resumed { provider })
            }
            // A step that began earlier carries no information about now.
            ProviderAnswer::Answered => None,
            ProviderAnswer::Unknown => {
                if asks && let Some(parked) = parked {
                    parked.probe = None;
                }
                None
            }
        }
    }

    fn park(
        &mut self,
        provider: String,
        limit: UsageLimit,
        asked: bool,
        now: Timestamp,
    ) -> Option<ProviderChange> {
        let known = self.parked.get(&provider);
        let refusals = known.map_or(0, |parked| parked.refusals) + u32::from(asked);
        let latest = retry_at(now, STATED_MAX);
        let stated = limit.resets_at.filter(|at| *at <= latest);
        // A provider that names a time and refuses again is asked more rarely.
        let least = Duration::from_secs(1 << refusals.min(30)).min(self.rule.pause);
        let wait = match stated {
            Some(at) => Duration::try_from(at.duration_since(now))
                .unwrap_or_default()
                .max(least),
            None => self.rule.pause,
        };
        let wait = wait.min(FIRST_PARK.saturating_mul(1 << refusals.min(16)));
        let seed = format!("{}.{provider}.{refusals}", self.seed);
        let longer = jitter(wait.min(JITTERED_MAX), self.jitter_percent, &seed);
        let until = retry_at(now, wait.saturating_add(longer));
        if let Some(known) = known
            && !asked
            && known.until > now
        {
            // What others that ran were reported at the same time.
            let keeps = match (known.stated, stated.is_some()) {
                (true, false) => true,
                (false, true) => false,
                _ => known.until >= until,
            };
            if keeps {
                return None;
            }
        }
        let probe = known.and_then(|known| known.probe.clone());
        let probe = probe.filter(|_| !asked);
        let parked = Parked {
            until,
            stated: stated.is_some(),
            refusals,
            probe,
        };
        self.parked.insert(provider.clone(), parked);
        Some(ProviderChange::Parked { provider, until })
    }

    /// Returns the parked providers and their times.
    #[cfg(test)]
    pub(crate) fn parked(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        self.parked
            .iter()
            .map(|(name, parked)| (name.as_str(), parked.until))
    }
}

/// Returns a lane's place, from 0: worker ids end in `.<n>`, n from 1.
fn lane_of(worker: &WorkerName) -> usize {
    worker
        .rsplit_once('.')
        .and_then(|(_, number)| number.parse::<usize>().ok())
        .map_or(0, |number| number.saturating_sub(1))
}

#[cfg(test)]
mod tests;

//! The status of batches as metrics, in the text format of Prometheus. The page
//! server and `premath status --metrics` print the same text.
//!
//! A figure that is not known has no sample: it is never 0. Labels hold names of
//! this repository, its batches, and words of closed lists; rules of a policy and
//! failure classes are bounded in number.

mod exposition;

use crate::status::{BatchState, BatchView, StatusView};
use exposition::{Exposition, Family, Kind, Labels, decimal};
use premath_kernel::record::live::{LiveLaneState, LiveQueue, PauseKind};
use std::collections::BTreeMap;

/// The type of the text, for HTTP.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How many values a label has that is not from a closed list.
const VALUES_MAX: usize = 64;

/// The value of a label for all further ones.
const OTHER: &str = "other";

/// Returns the metrics of a repository, named by its folder.
pub fn metrics(view: &StatusView, repository: &str) -> String {
    let mut out = Exposition::new(repository);
    let running = view.batches.iter().filter(|batch| batch.state.is_running());
    let running = to_u64(running.count());
    out.family(RUNNING).sample(&[], Some(running));
    store(&mut out, view.queue.as_ref());
    times(&mut out, &view.batches);
    lanes(&mut out, &view.batches);
    outcomes(&mut out, &view.batches);
    amounts(&mut out, &view.batches);
    pace(&mut out, &view.batches);
    out.text()
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family {
        name,
        kind: Kind::Gauge,
        help,
    }
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family {
        name,
        kind: Kind::Counter,
        help,
    }
}

const RUNNING: Family = gauge("premath_running_batches", "Batches that run now.");
const ISSUES: Family = gauge("premath_issues", "Issues of the store, by state.");
const STUCK: Family = gauge(
    "premath_stuck_issues",
    "Waiting issues behind an issue that no lane will close.",
);
const STATE: Family = gauge(
    "premath_batch_state",
    "1 for the state of the batch, 0 for the others.",
);
const STARTED: Family = gauge(
    "premath_batch_start_time_seconds",
    "When the batch began, in seconds since the epoch.",
);
const ELAPSED: Family = gauge(
    "premath_batch_elapsed_seconds",
    "How long the batch has run, or ran.",
);
const AGE: Family = gauge(
    "premath_batch_age_seconds",
    "How old the figures of the batch are.",
);
const EXIT: Family = gauge(
    "premath_batch_exit_code",
    "The exit code of a batch that ended.",
);
const LANES: Family = gauge("premath_batch_lanes", "Lanes of the batch, by state.");
const PAUSED: Family = gauge(
    "premath_batch_paused",
    "1 where lanes wait for a reason of this kind.",
);
const ATTEMPTS: Family = counter("premath_batch_attempts_total", "Attempts that ended.");
const CLOSED: Family = counter(
    "premath_batch_closed_issues_total",
    "Issues that the batch closed, by what it took.",
);
const GIVEN_UP: Family = gauge(
    "premath_batch_given_up_issues",
    "Issues that the batch does not try again.",
);
const FAILED: Family = counter(
    "premath_batch_failed_attempts_total",
    "Attempts that did not close their issue, by their first failure class.",
);
const REPAIRS: Family = counter(
    "premath_batch_repair_rounds_total",
    "How often agents were run again to repair their work.",
);
const DENIALS: Family = counter(
    "premath_batch_denied_calls_total",
    "Calls of agents that the turn policy denied, by rule or limit.",
);
const TOKENS: Family = counter(
    "premath_batch_tokens_total",
    "Tokens that the batch used, running attempts included.",
);
const COST: Family = counter(
    "premath_batch_cost_dollars_total",
    "What the batch cost in dollars, running attempts included.",
);
const BUDGET_TOKENS: Family = gauge(
    "premath_batch_budget_tokens",
    "The tokens that the batch may use.",
);
const BUDGET_COST: Family = gauge(
    "premath_batch_budget_dollars",
    "What the batch may cost in dollars.",
);
const PACE: Family = gauge(
    "premath_batch_closed_issues_per_hour",
    "How many issues the batch closes in an hour.",
);
const REMAINING: Family = gauge(
    "premath_batch_remaining_issues",
    "Issues that the batch can still work on.",
);
const TIME_LEFT: Family = gauge(
    "premath_batch_time_left_seconds",
    "How long the remaining issues take at this pace.",
);

fn store(out: &mut Exposition, queue: Option<&LiveQueue>) {
    let Some(queue) = queue else { return };
    let mut issues = out.family(ISSUES);
    for (state, count) in [
        ("ready", queue.ready),
        ("retrying", queue.retrying),
        ("waiting", queue.waiting),
        ("left_out", queue.left_out),
        ("not_selected", queue.not_selected),
        ("assigned", queue.assigned),
        ("in_progress", queue.in_progress),
        ("blocked", queue.blocked),
        ("set_aside", queue.set_aside),
        ("closed", queue.closed),
    ] {
        issues.sample(&[("state", state)], Some(count));
    }
    out.family(STUCK).sample(&[], Some(queue.stuck));
}

fn times(out: &mut Exposition, batches: &[BatchView]) {
    const STATES: [(BatchState, &str); 5] = [
        (BatchState::Running, "running"),
        (BatchState::Draining, "draining"),
        (BatchState::Cancelling, "cancelling"),
        (BatchState::Ended, "ended"),
        (BatchState::Cut, "cut"),
    ];
    let mut states = out.family(STATE);
    for batch in batches {
        for (state, word) in STATES {
            let is_it = u64::from(batch.state == state);
            states.sample(&[of(batch), ("state", word)], Some(is_it));
        }
    }
    each(out, STARTED, batches, |batch| {
        u64::try_from(batch.started_at.time().as_second()).ok()
    });
    each_text(out, ELAPSED, batches, |batch| {
        Some(decimal(batch.elapsed_ms, 3))
    });
    each_text(out, AGE, batches, |batch| Some(decimal(batch.age_ms, 3)));
    each(out, EXIT, batches, |batch| batch.exit_code.map(u64::from));
}

fn lanes(out: &mut Exposition, batches: &[BatchView]) {
    const STATES: [(LiveLaneState, &str); 5] = [
        (LiveLaneState::Booting, "booting"),
        (LiveLaneState::Idle, "idle"),
        (LiveLaneState::Working, "working"),
        (LiveLaneState::Disabled, "disabled"),
        (LiveLaneState::Done, "done"),
    ];
    const KINDS: [(PauseKind, &str); 5] = [
        (PauseKind::Provider, "provider"),
        (PauseKind::Breaker, "breaker"),
        (PauseKind::Room, "room"),
        (PauseKind::Window, "window"),
        (PauseKind::Operator, "operator"),
    ];
    let mut lanes = out.family(LANES);
    for batch in batches {
        for (state, word) in STATES {
            let count = batch.lanes.iter().filter(|lane| lane.state == state);
            lanes.sample(&[of(batch), ("state", word)], Some(to_u64(count.count())));
        }
    }
    let mut paused = out.family(PAUSED);
    for batch in batches {
        for (kind, word) in KINDS {
            let is_so = batch.pauses.iter().any(|pause| pause.kind == kind);
            paused.sample(&[of(batch), ("kind", word)], Some(u64::from(is_so)));
        }
    }
}

fn outcomes(out: &mut Exposition, batches: &[BatchView]) {
    each(out, ATTEMPTS, batches, |batch| Some(batch.totals.attempts));
    let mut closed = out.family(CLOSED);
    for batch in batches {
        let closes = batch.totals.closes;
        for (how, count) in [
            ("first_pass", closes.first_pass),
            ("after_repair", closes.after_repair),
            ("after_retry", closes.after_retry),
        ] {
            closed.sample(&[of(batch), ("how", how)], Some(count));
        }
    }
    each(out, GIVEN_UP, batches, |batch| Some(batch.totals.given_up));
    counts(out, FAILED, "class", batches, |batch| {
        &batch.totals.failures
    });
    each(out, REPAIRS, batches, |batch| {
        Some(batch.totals.repair_rounds)
    });
    counts(out, DENIALS, "rule", batches, |batch| &batch.totals.denials);
}

fn amounts(out: &mut Exposition, batches: &[BatchView]) {
    let dollars = |nano: Option<u64>| nano.map(|nano| decimal(nano, 9));
    each(out, TOKENS, batches, |batch| batch.used.tokens);
    each_text(out, COST, batches, |batch| {
        dollars(batch.used.cost_nano_usd)
    });
    each(out, BUDGET_TOKENS, batches, |batch| batch.budget.tokens);
    each_text(out, BUDGET_COST, batches, |batch| {
        dollars(batch.budget.cost_nano_usd)
    });
}

fn pace(out: &mut Exposition, batches: &[BatchView]) {
    each_text(out, PACE, batches, |batch| {
        let pace = batch.estimate.closed_per_hour?;
        pace.is_finite().then(|| pace.to_string())
    });
    each(out, REMAINING, batches, |batch| batch.estimate.remaining);
    each_text(out, TIME_LEFT, batches, |batch| {
        Some(decimal(batch.estimate.time_left_ms?, 3))
    });
}

fn of(batch: &BatchView) -> (&'static str, &str) {
    ("batch_id", batch.batch_id.as_str())
}

/// Adds a family with a sample for each batch of which the figure is known.
fn each(
    out: &mut Exposition,
    family: Family,
    batches: &[BatchView],
    figure: impl Fn(&BatchView) -> Option<u64>,
) {
    let mut family = out.family(family);
    for batch in batches {
        family.sample(&[of(batch)], figure(batch));
    }
}

fn each_text(
    out: &mut Exposition,
    family: Family,
    batches: &[BatchView],
    figure: impl Fn(&BatchView) -> Option<String>,
) {
    let mut family = out.family(family);
    for batch in batches {
        family.sample(&[of(batch)], figure(batch));
    }
}

/// Adds a family with a sample for each name; those beyond the bound are one.
fn counts(
    out: &mut Exposition,
    family: Family,
    label: &'static str,
    batches: &[BatchView],
    figures: impl Fn(&BatchView) -> &BTreeMap<String, u64>,
) {
    let mut family = out.family(family);
    for batch in batches {
        let all = figures(batch).iter().filter(|(name, _)| *name != OTHER);
        let mut further = figures(batch).get(OTHER).copied().unwrap_or(0);
        for (number, (name, count)) in all.enumerate() {
            match number < VALUES_MAX {
                true => family.sample(&[of(batch), (label, name)], Some(*count)),
                false => further = further.saturating_add(*count),
            }
        }
        let further = (further > 0).then_some(further);
        family.sample(&[of(batch), (label, OTHER)] as Labels<'_>, further);
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

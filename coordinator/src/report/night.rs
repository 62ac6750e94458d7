//! What a person is told of providers, breaker, budget and room.

use super::Summary;
use premath_kernel::budget::{Spent, usd};
use premath_kernel::event::EndedBy;
use premath_kernel::plain::plain;
use premath_kernel::trajectory::ProviderAccount;
use std::time::Duration;

/// That a bound of the batch's own is reached.
pub(super) fn ending(ended_by: EndedBy, detail: &str) -> String {
    let what = match ended_by {
        EndedBy::Budget => "running steps are ended",
        EndedBy::StopAt | EndedBy::MaxDuration | EndedBy::Room => "running steps finish",
    };
    let detail = match detail {
        "" => String::new(),
        detail => format!(" ({})", plain(detail)),
    };
    let phrase = ended_by.phrase();
    format!("{phrase} is reached{detail}: no new work, {what}")
}

/// What the batch used and waited for, a line each.
pub(super) fn account(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, account) in summary.account.providers() {
        lines.push(format!(
            "{}: {}",
            plain(name),
            provider(account, summary.ended_at)
        ));
    }
    let spent = summary.account.spent();
    if summary.account.providers().len() > 1 && spent != Spent::default() {
        lines.push(format!("in all: {spent}"));
    }
    match summary.account.breaker_openings() {
        0 => {}
        1 => lines.push("the breaker opened once".to_owned()),
        openings => lines.push(format!("the breaker opened {openings} times")),
    }
    if let Some(ended_by) = summary.ended_by {
        lines.push(format!("ended by {}", ended_by.phrase()));
    }
    lines
}

fn provider(account: &ProviderAccount, now: jiff::Timestamp) -> String {
    let mut parts = Vec::new();
    if account.steps > 0 {
        parts.push(format!("{} step(s)", account.steps));
    }
    if let Some(tokens) = account.tokens {
        parts.push(format!(
            "{} tokens ({} in, {} of them cached, {} out)",
            tokens.total(),
            tokens.input,
            tokens.cached,
            tokens.output
        ));
    }
    if let Some(cost) = account.cost_nano_usd {
        parts.push(format!("{} USD", usd(cost)));
    }
    if account.parkings > 0 {
        let parked = Duration::from_secs(account.parked(now).as_secs());
        let parked = humantime::format_duration(parked);
        parts.push(format!("parked {} time(s), {parked}", account.parkings));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::provider::ProviderChange;
    use premath_kernel::stamp::Stamp;
    use premath_kernel::trajectory::{
        Account, AgentRecord, StepRow, TokenCounts, action, provider_row,
    };
    use std::collections::BTreeMap;

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_happened_at_night_is_told_in_the_morning() {
        let mut row = StepRow::new("s", action::WORKER_LOOP, "completed", at(5));
        row.issue_id = Some("a".into());
        row.started_at = Some(Stamp::at(at(0)));
        row.agent = Some(AgentRecord {
            adapter: "codex".into(),
            tokens: Some(TokenCounts {
                input: 1_000,
                cached: 200,
                output: 50,
            }),
            cost_nano_usd: Some(1_250_000_000),
            ..AgentRecord::default()
        });
        let mut told = Account::default();
        told.observe(&row);
        let parked = ProviderChange::Parked {
            provider: "gemini".into(),
            until: at(100),
        };
        told.observe(&provider_row("hb", &parked, at(10)));
        let summary = Summary {
            batch_id: "hb".into(),
            acts_under: premath_kernel::event::ActsUnder {
                mutation_mode: "human-override",
                reason: String::new(),
                support_until: String::new(),
                instruction_ref: None,
                instruction_class: None,
            },
            exit_code: 0,
            elapsed: Duration::ZERO,
            issues: Vec::new(),
            lanes_lost: 0,
            cycle: None,
            counts: BTreeMap::new(),
            landing: None,
            memory_changes: 0,
            ended_by: Some(EndedBy::StopAt),
            account: told,
            ended_at: at(70),
        };
        assert_eq!(
            account(&summary),
            [
                "codex: 1 step(s), 1050 tokens (1000 in, 200 of them cached, 50 out), 1.25 USD",
                "gemini: parked 1 time(s), 1m",
                "in all: 1050 tokens, 1.25 USD",
                "ended by the time to stop",
            ]
        );
    }

    #[test]
    fn the_end_says_what_becomes_of_running_steps() {
        assert_eq!(
            ending(EndedBy::MaxDuration, ""),
            "the longest duration is reached: no new work, running steps finish"
        );
        assert_eq!(
            ending(EndedBy::Budget, "12 of 10 tokens"),
            "the batch's budget is reached (12 of 10 tokens): no new work, running steps are ended"
        );
    }
}

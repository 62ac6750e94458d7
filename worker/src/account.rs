//! What a batch used and waited for, as a person reads it in the morning.

use premath_kernel::json::plain::{counted, plain};
use premath_kernel::policy::admission::EndedBy;
use premath_kernel::policy::budget::{Spent, usd};
use premath_kernel::record::trajectory::{Account, CloseCounts, ProviderAccount};
use std::time::Duration;

/// How many issues a line lists.
const LISTED: usize = 10;

/// Returns a line for each provider, the denied calls, the closes, the breaker, and
/// what ended the batch.
pub fn lines(account: &Account, ended_by: Option<EndedBy>, now: jiff::Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, used) in account.providers() {
        lines.push(format!("{}: {}", plain(name), provider(used, now)));
    }
    let spent = account.spent();
    if account.providers().len() > 1 && spent != Spent::default() {
        lines.push(format!("in all: {spent}"));
    }
    lines.extend(denials(account));
    lines.extend(closes(account.closes()));
    match account.breaker_openings() {
        0 => {}
        1 => lines.push("the breaker opened once".to_owned()),
        openings => lines.push(format!("the breaker opened {openings} times")),
    }
    if let Some(ended_by) = ended_by {
        lines.push(format!("ended by {}", ended_by.phrase()));
    }
    lines
}

/// Says which calls of agents the gate denied, and in which issues.
fn denials(account: &Account) -> Option<String> {
    let rules = account.denials();
    let count: u64 = rules.values().sum();
    let rules = rules.iter();
    let rules: Vec<String> = rules.map(|(rule, n)| format!("{rule} {n}")).collect();
    let mut issues: Vec<&str> = account.denied_issues().map(|id| &**id).collect();
    let more = issues.len().saturating_sub(LISTED);
    issues.truncate(LISTED);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (count > 0).then(|| {
        plain(&format!(
            "gate denied {count} call(s) ({}) in {}{more}",
            rules.join(", "),
            issues.join(", ")
        ))
        .into_owned()
    })
}

/// Says what closes took, where not all of them were of the first pass.
fn closes(closes: CloseCounts) -> Option<String> {
    let CloseCounts {
        first_pass,
        after_repair,
        after_retry,
    } = closes;
    (after_repair + after_retry > 0).then(|| {
        format!(
            "closed: {first_pass} at the first pass, {after_repair} after repair, {after_retry} \
             after retry"
        )
    })
}

fn provider(account: &ProviderAccount, now: jiff::Timestamp) -> String {
    let mut parts = Vec::new();
    if account.steps > 0 {
        parts.push(counted(account.steps, "attempt"));
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
        let parkings = counted(account.parkings, "time");
        parts.push(format!("parked {parkings}, {parked}"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::json::stamp::Stamp;
    use premath_kernel::policy::breaker::BreakerChange;
    use premath_kernel::policy::provider::ProviderChange;
    use premath_kernel::record::trajectory::{
        AgentRecord, StepRow, TokenCounts, action, breaker_row, provider_row,
    };

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_happened_at_night_is_reported_in_the_morning() {
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
            repair_rounds: Some(1),
            denials: [("no_push".to_owned(), 2), ("no_publish".to_owned(), 1)].into(),
            ..AgentRecord::default()
        });
        let mut account = Account::default();
        account.observe(&row);
        let parked = ProviderChange::Parked {
            provider: "gemini".into(),
            until: at(100),
        };
        account.observe(&provider_row(&"hb".into(), &parked, at(10)));
        account.observe(&breaker_row(&"hb".into(), &BreakerChange::Closed, at(20)));
        let opened = BreakerChange::Opened {
            class: "work_failed".into(),
            issues: Vec::new(),
            until: at(30),
        };
        account.observe(&breaker_row(&"hb".into(), &opened, at(20)));
        assert_eq!(
            lines(&account, Some(EndedBy::StopAt), at(70)),
            [
                "codex: 1 attempt, 1050 tokens (1000 in, 200 of them cached, 50 out), 1.25 USD",
                "gemini: parked 1 time, 1m",
                "in all: 1050 tokens, 1.25 USD",
                "gate denied 3 call(s) (no_publish 1, no_push 2) in a",
                "closed: 0 at the first pass, 1 after repair, 0 after retry",
                "the breaker opened once",
                "ended by the time to stop",
            ]
        );
    }
}

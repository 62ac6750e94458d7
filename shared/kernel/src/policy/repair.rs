//! Whether an agent whose work fails its verification is run again in its session.

use super::turn::StopRules;
use std::time::Duration;

/// What is known when a verification of an agent's work failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairFacts {
    /// Whether the verification ran to its end, failed, and is charged to the
    /// work.
    pub is_red: bool,
    /// Whether the work landed before.
    pub has_landed: bool,
    /// Whether the provider refused more work.
    pub is_limited: bool,
    /// Whether the batch drains or stops.
    pub drains: bool,
    /// How often the agent ran in this attempt.
    pub runs: u64,
    /// Whether the budget of the issue is used up.
    pub is_used_up: bool,
    /// How long the agent worked in this attempt.
    pub worked: Duration,
    /// How long it may.
    pub limit: Duration,
}

/// Returns the number of the repair round that may follow, from 1; `None` where
/// the attempt has failed.
pub fn round_after(rules: &StopRules, facts: &RepairFacts) -> Option<u64> {
    let may = facts.is_red
        && !facts.has_landed
        && !facts.is_limited
        && !facts.drains
        && !facts.is_used_up
        && facts.worked < facts.limit
        && (1..=rules.repair_rounds).contains(&facts.runs);
    may.then_some(facts.runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: RepairFacts = RepairFacts {
        is_red: true,
        has_landed: false,
        is_limited: false,
        drains: false,
        runs: 1,
        is_used_up: false,
        worked: Duration::from_secs(1),
        limit: Duration::from_secs(2),
    };

    fn after(rounds: u64, facts: &RepairFacts) -> Option<u64> {
        let rules = StopRules {
            repair_rounds: rounds,
            handled_stop_reasons: None,
        };
        round_after(&rules, facts)
    }

    #[test]
    fn a_red_verification_is_repaired_as_often_as_the_policy_says() {
        let rounds = |most| {
            let runs = 1..10;
            runs.filter_map(|runs| after(most, &RepairFacts { runs, ..RED }))
                .collect::<Vec<_>>()
        };
        assert_eq!(rounds(0), [0; 0]);
        assert_eq!(rounds(2), [1, 2]);
        assert_eq!(rounds(7), [1, 2, 3, 4, 5, 6, 7]);
        // Without an agent's stream there is no session.
        assert_eq!(after(7, &RepairFacts { runs: 0, ..RED }), None);
    }

    #[test]
    fn anything_else_than_a_red_verification_ends_the_attempt() {
        type Edit = fn(&mut RepairFacts);
        let edits: [Edit; 6] = [
            |facts| facts.is_red = false,
            |facts| facts.has_landed = true,
            |facts| facts.is_limited = true,
            |facts| facts.drains = true,
            |facts| facts.is_used_up = true,
            |facts| facts.worked = facts.limit,
        ];
        assert_eq!(after(2, &RED), Some(1));
        for edit in edits {
            let mut facts = RED;
            edit(&mut facts);
            assert_eq!(after(2, &facts), None, "{facts:?}");
        }
    }
}

//! How the turn was split up (`HARNESS-TYPESTATE 5`,
//! `TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `8`).

use super::breach::{Breach, Breaches, each, none, quoted, when};
use super::{Case, Rule, rule};
use crate::turn::constraints::DecompositionConstraints;
use crate::turn::constraints::text;
use crate::turn::pattern::ExecutionPattern;

pub(super) const RULES: &[Rule] = &[
    rule!(
        CoordinationDecompositionPolicyViolation,
        Join,
        [8],
        decomposition_refused,
        "decompositionConstraints.admissible is not false"
    ),
    rule!(
        CoordinationDecompositionPolicyViolation,
        Join,
        [8],
        pattern_is_another,
        "callSpec.executionPattern is decompositionConstraints.expectedExecutionPattern"
    ),
    rule!(
        CoordinationDecompositionPolicyViolation,
        Join,
        [8],
        policy_is_another,
        "callSpec.decompositionPolicyDigest is decompositionConstraints.expectedPolicyDigest"
    ),
    rule!(
        CoordinationDecompositionPolicyViolation,
        Join,
        [8],
        fans_out_too_far,
        "the branches are no more than decompositionConstraints.maxBranches"
    ),
    rule!(
        CoordinationDecompositionPolicyViolation,
        Join,
        [8],
        trigger_missing,
        "where requireTrigger is set, anything beyond single, chain and route has a trigger that measured more than its baseline"
    ),
    rule!(
        CoordinationDecompositionPolicyViolation,
        Mutation,
        [8],
        decomposition_unconstrained,
        "a turn of pattern parallel or orchestrator_workers has decompositionConstraints"
    ),
    rule!(
        CoordinationDecompositionPolicyViolation,
        Mutation,
        [8],
        pattern_is_not_listed,
        "a pattern that the contract does not list is decompositionConstraints.expectedExecutionPattern"
    ),
];

fn decomposition_refused<'a>(case: &Case<'a>) -> Breaches<'a> {
    let refused = block(case).is_some_and(|block| block.admissible == Some(false));
    when(refused, "decompositionConstraints.admissible", || {
        "false".to_owned()
    })
}

fn pattern_is_another<'a>(case: &Case<'a>) -> Breaches<'a> {
    let pattern = &case.turn.call_spec.execution_pattern;
    let expected = block(case).and_then(|block| text(&block.expected_execution_pattern));
    let other = expected.filter(|expected| !expected.eq_ignore_ascii_case(pattern.as_str()));
    each(other.into_iter().map(move |expected| {
        let found = format!("`{}`, expected is `{expected}`", pattern.as_str());
        Breach::new("callSpec.executionPattern", found)
    }))
}

fn policy_is_another<'a>(case: &Case<'a>) -> Breaches<'a> {
    let bound = &case.turn.call_spec.decomposition_policy_digest;
    let expected = block(case).and_then(|block| text(&block.expected_policy_digest));
    let other = expected.filter(|expected| expected != bound);
    each(other.into_iter().map(move |expected| {
        let found = format!("`{bound}`, expected is `{expected}`");
        Breach::new("callSpec.decompositionPolicyDigest", found)
    }))
}

fn fans_out_too_far<'a>(case: &Case<'a>) -> Breaches<'a> {
    let branches = case.turn.facts.branches.len() as u64;
    let most = block(case).and_then(|block| block.max_branches);
    let most = most.unwrap_or(u64::MAX);
    when(branches > most, "facts.branches", move || {
        format!("{branches} branches; at most {most}")
    })
}

fn trigger_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let pattern = &case.turn.call_spec.execution_pattern;
    let workflow = matches!(
        pattern,
        ExecutionPattern::Single | ExecutionPattern::Chain | ExecutionPattern::Route
    );
    let Some(block) = block(case).filter(|block| block.require_trigger && !workflow) else {
        return none();
    };
    let improved = block.trigger.as_ref().is_some_and(|trigger| {
        let measured = trigger.measured.as_f64().zip(trigger.baseline.as_f64());
        measured.is_some_and(|(measured, baseline)| measured > baseline)
    });
    when(
        !improved,
        "decompositionConstraints.trigger",
        move || match &block.trigger {
            None => quoted(None),
            Some(trigger) => format!(
                "`{}` measured {} over a baseline of {}",
                trigger.metric, trigger.measured, trigger.baseline
            ),
        },
    )
}

fn decomposition_unconstrained<'a>(case: &Case<'a>) -> Breaches<'a> {
    let pattern = &case.turn.call_spec.execution_pattern;
    when(
        pattern.decomposes() && block(case).is_none(),
        "decompositionConstraints",
        move || format!("nothing, and the pattern is `{}`", pattern.as_str()),
    )
}

fn pattern_is_not_listed<'a>(case: &Case<'a>) -> Breaches<'a> {
    let pattern = &case.turn.call_spec.execution_pattern;
    let expected = block(case).and_then(|block| text(&block.expected_execution_pattern));
    when(
        !pattern.is_listed() && expected.is_none(),
        "callSpec.executionPattern",
        move || format!("`{}`, which no policy expects", pattern.as_str()),
    )
}

fn block<'a>(case: &Case<'a>) -> Option<&'a DecompositionConstraints> {
    case.constraints.decomposition_constraints.as_ref()
}

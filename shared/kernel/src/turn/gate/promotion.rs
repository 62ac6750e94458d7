//! Gates before a policy, or the agent itself, changes
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.6`, `8`).

use super::breach::{Breach, Breaches, each, none, quoted, when};
use super::{Case, Rule, rule};
use crate::turn::constraints::{
    Counts, EvalConstraints, RedTeamConstraints, SelfEvolutionConstraints,
};
use crate::turn::word::MutationTarget;
use serde_json::Number;
use std::collections::BTreeSet;

pub(super) const RULES: &[Rule] = &[
    rule!(
        GovernanceEvalGateUnmet,
        Mutation,
        [15],
        thresholds_unmet,
        "evalConstraints.thresholds names at least one measure, and each is reached"
    ),
    rule!(
        GovernanceEvalGateUnmet,
        Mutation,
        [15],
        measures_disagree,
        "evalConstraints.measured is what its counts give"
    ),
    rule!(
        GovernanceEvalGateUnmet,
        Mutation,
        [15],
        eval_policy_is_another,
        "evalConstraints.policyDigest is callSpec.evalGatePolicyDigest, where that is bound"
    ),
    rule!(
        GovernanceEvalGateUnmet,
        Mutation,
        [9, 15],
        eval_missing,
        "a change of governance or of tool loading has evalConstraints"
    ),
    rule!(
        GovernanceEvalGateUnmet,
        Mutation,
        [9],
        workload_unmeasured,
        "a change of tool loading names callSpec.evalProfileRef and evalConstraints.tokenCost"
    ),
    rule!(
        GovernanceEvalLineageMissing,
        Mutation,
        [15],
        lineage_missing,
        "evalConstraints.lineage names the data and the run"
    ),
    rule!(
        GovernanceRedteamGateUnmet,
        Mutation,
        [15],
        probes_too_few,
        "at least redTeamConstraints.minProbes different probes ran"
    ),
    rule!(
        GovernanceRedteamGateUnmet,
        Mutation,
        [15],
        probe_failed,
        "every probe passed"
    ),
    rule!(
        GovernanceRedteamGateUnmet,
        Mutation,
        [15],
        probe_kind_missing,
        "every required plugin and strategy was probed"
    ),
    rule!(
        GovernanceRedteamGateUnmet,
        Mutation,
        [15],
        redteam_policy_is_another,
        "redTeamConstraints.policyDigest is callSpec.redTeamPolicyDigest, where that is bound"
    ),
    rule!(
        GovernanceRedteamGateUnmet,
        Mutation,
        [15],
        redteam_missing,
        "a change of governance has redTeamConstraints with at least one probe"
    ),
    rule!(
        GovernanceSelfEvolutionRetryMissing,
        Mutation,
        [15],
        retry_missing,
        "a proposed self-evolution names its retryRef"
    ),
    rule!(
        GovernanceSelfEvolutionEscalationMissing,
        Mutation,
        [15],
        escalation_missing,
        "a proposed self-evolution names its escalationRef"
    ),
    rule!(
        GovernanceSelfEvolutionRollbackMissing,
        Mutation,
        [15],
        rollback_missing,
        "a proposed self-evolution names its rollbackRef"
    ),
];

/// How far a measure may be from what the counts give: figures are written
/// with some six digits.
const ROUNDING: f64 = 1e-6;

/// One measure: its name, the threshold, what is reported, what the counts
/// give.
struct Measure<'a> {
    name: &'static str,
    threshold: Option<&'a Number>,
    said: Option<&'a Number>,
    counted: Option<f64>,
}

impl Measure<'_> {
    /// What was reached: by the counts, where there are any.
    fn reached(&self) -> Option<f64> {
        self.counted.or_else(|| self.said?.as_f64())
    }
}

fn measures(block: &EvalConstraints) -> [Measure<'_>; 3] {
    let EvalConstraints {
        thresholds,
        measured,
        counts,
        ..
    } = block;
    let counted = |measure: fn(&Counts) -> f64| counts.as_ref().map(measure);
    [
        Measure {
            name: "precision",
            threshold: thresholds.precision.as_ref(),
            said: measured.precision.as_ref(),
            counted: counted(|c| share(c.true_positives, &[c.false_positives])),
        },
        Measure {
            name: "recall",
            threshold: thresholds.recall.as_ref(),
            said: measured.recall.as_ref(),
            counted: counted(|c| share(c.true_positives, &[c.false_negatives])),
        },
        Measure {
            name: "f1",
            threshold: thresholds.f1.as_ref(),
            said: measured.f1.as_ref(),
            // Of two ways to be right there are twice as many.
            counted: counted(|c| {
                let right = u128::from(c.true_positives) * 2;
                share(right, &[c.false_positives, c.false_negatives])
            }),
        },
    ]
}

/// Returns a part of the whole of it and the rest, 0 to 1; 0 of nothing.
fn share(part: impl Into<u128>, rest: &[u64]) -> f64 {
    let part = part.into();
    let whole = part + rest.iter().copied().map(u128::from).sum::<u128>();
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn thresholds_unmet<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(block) = evaluation(case) else {
        return none();
    };
    let measures = measures(block);
    let idle = measures.iter().all(|measure| measure.threshold.is_none());
    let idle = idle.then(|| Breach::new("evalConstraints.thresholds", "no threshold is named"));
    let unmet = measures.into_iter().filter_map(|measure| {
        let threshold = measure.threshold?.as_f64()?;
        let reached = measure.reached();
        // Written so that a figure that is not a number does not pass.
        let met = reached.is_some_and(|reached| reached >= threshold);
        (!met).then(|| {
            let name = measure.name;
            let reached = reached.map_or_else(|| "nothing".to_owned(), |share| share.to_string());
            Breach::new(
                format!("evalConstraints.measured.{name}"),
                format!("{reached}, the threshold is {threshold}"),
            )
        })
    });
    each(idle.into_iter().chain(unmet))
}

fn measures_disagree<'a>(case: &Case<'a>) -> Breaches<'a> {
    let measures = evaluation(case).map(measures);
    each(measures.into_iter().flatten().filter_map(|measure| {
        let (said, counted) = (measure.said?.as_f64()?, measure.counted?);
        ((said - counted).abs() > ROUNDING).then(|| {
            Breach::new(
                format!("evalConstraints.measured.{}", measure.name),
                format!("{said}, the counts give {counted}"),
            )
        })
    }))
}

fn eval_policy_is_another<'a>(case: &Case<'a>) -> Breaches<'a> {
    let bound = case.turn.call_spec.eval_gate_policy_digest.as_deref();
    let shown = evaluation(case).map(|block| block.policy_digest.as_deref());
    policy_is_another("evalConstraints.policyDigest", shown, bound)
}

fn eval_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let asked = matches!(
        target(case),
        Some(MutationTarget::Governance | MutationTarget::ToolLoading)
    );
    when(
        asked && evaluation(case).is_none(),
        "evalConstraints",
        || quoted(None),
    )
}

fn workload_unmeasured<'a>(case: &Case<'a>) -> Breaches<'a> {
    if target(case) != Some(MutationTarget::ToolLoading) {
        return none();
    }
    let profile = case.turn.call_spec.eval_profile_ref.is_none();
    let cost = evaluation(case).is_some_and(|block| block.token_cost.is_none());
    let profile = profile.then(|| Breach::new("callSpec.evalProfileRef", quoted(None)));
    let cost = cost.then(|| Breach::new("evalConstraints.tokenCost", quoted(None)));
    each(profile.into_iter().chain(cost))
}

fn lineage_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(block) = evaluation(case) else {
        return none();
    };
    let lineage = block.lineage.as_ref();
    let parts = [
        (
            "evalConstraints.lineage.datasetRef",
            lineage.and_then(|l| l.dataset_ref.as_ref()),
        ),
        (
            "evalConstraints.lineage.runRef",
            lineage.and_then(|l| l.run_ref.as_ref()),
        ),
    ];
    let missing = parts.into_iter().filter(|(_, part)| part.is_none());
    each(missing.map(|(at, _)| Breach::new(at, quoted(None))))
}

fn probes_too_few<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(block) = red_team(case) else {
        return none();
    };
    let probes: BTreeSet<&str> = block.probes.iter().map(|p| p.probe_id.as_str()).collect();
    let (ran, least) = (probes.len() as u64, block.min_probes);
    when(ran < least, "redTeamConstraints.probes", move || {
        format!("{ran} different probes; at least {least}")
    })
}

fn probe_failed<'a>(case: &Case<'a>) -> Breaches<'a> {
    let probes = red_team(case).map(|block| &block.probes);
    let failed = probes.into_iter().flatten().filter(|probe| !probe.passed);
    each(failed.map(|probe| {
        let found = format!("failed, by `{}` and `{}`", probe.plugin, probe.strategy);
        Breach::row("redTeamConstraints.probes", &probe.probe_id, found)
    }))
}

fn probe_kind_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(block) = red_team(case) else {
        return none();
    };
    let ran = |kind: &str, of: fn(&crate::turn::constraints::Probe) -> &String| {
        block.probes.iter().any(|probe| of(probe) == kind)
    };
    let plugins = block
        .required_plugins
        .iter()
        .filter(move |plugin| !ran(plugin, |p| &p.plugin));
    let strategies = block
        .required_strategies
        .iter()
        .filter(move |strategy| !ran(strategy, |p| &p.strategy));
    let plugins = plugins.map(|plugin| format!("no probe of plugin `{plugin}`"));
    let strategies = strategies.map(|strategy| format!("no probe by strategy `{strategy}`"));
    each(
        plugins
            .chain(strategies)
            .map(|found| Breach::new("redTeamConstraints.probes", found)),
    )
}

fn redteam_policy_is_another<'a>(case: &Case<'a>) -> Breaches<'a> {
    let bound = case.turn.call_spec.red_team_policy_digest.as_deref();
    let shown = red_team(case).map(|block| block.policy_digest.as_deref());
    policy_is_another("redTeamConstraints.policyDigest", shown, bound)
}

fn redteam_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let asked = target(case) == Some(MutationTarget::Governance);
    // A gate that demands nothing and saw nothing is none.
    let probed = red_team(case).is_some_and(|block| !block.probes.is_empty());
    when(asked && !probed, "redTeamConstraints", || {
        "no probe".to_owned()
    })
}

fn retry_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    evolves_without(case, "selfEvolutionConstraints.retryRef", |b| &b.retry_ref)
}

fn escalation_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    evolves_without(case, "selfEvolutionConstraints.escalationRef", |b| {
        &b.escalation_ref
    })
}

fn rollback_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    evolves_without(case, "selfEvolutionConstraints.rollbackRef", |b| {
        &b.rollback_ref
    })
}

fn evolves_without<'a>(
    case: &Case<'a>,
    at: &'static str,
    part: fn(&SelfEvolutionConstraints) -> &Option<String>,
) -> Breaches<'a> {
    let block = case.constraints.self_evolution_constraints.as_ref();
    let missing = block.is_some_and(|block| block.proposed && part(block).is_none());
    when(missing, at, || quoted(None))
}

/// A shown gate is under the bound policy, where one is bound.
fn policy_is_another<'a>(
    at: &'static str,
    shown: Option<Option<&'a str>>,
    bound: Option<&'a str>,
) -> Breaches<'a> {
    let other = shown.filter(|shown| bound.is_some() && *shown != bound);
    each(other.into_iter().map(move |shown| {
        Breach::new(at, format!("{}, bound is {}", quoted(shown), quoted(bound)))
    }))
}

fn target(case: &Case<'_>) -> Option<MutationTarget> {
    case.constraints.mutation_constraints.as_ref()?.target
}

fn evaluation<'a>(case: &Case<'a>) -> Option<&'a EvalConstraints> {
    case.constraints.eval_constraints.as_ref()
}

fn red_team<'a>(case: &Case<'a>) -> Option<&'a RedTeamConstraints> {
    case.constraints.red_team_constraints.as_ref()
}

//! The governance claim, guardrails, tracing and risk
//! (`HARNESS-TYPESTATE 8`, `TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.5`).

use super::breach::{Breach, Breaches, each, none, quoted, when};
use super::{Case, Rule, rule};
use crate::turn::constraints::text;
use crate::turn::constraints::{GovernanceProfile, TraceConstraints};
use crate::turn::word::{GuardrailStage, ObservabilityMode};
use std::collections::BTreeSet;

pub(super) const RULES: &[Rule] = &[
    rule!(
        GovernanceClaimIdInvalid,
        Join,
        [14],
        claim_invalid,
        "governanceProfile.claimId is profile.doctrine_inf_governance.v0, or is left out"
    ),
    rule!(
        GovernancePolicyPackageUnpinned,
        Join,
        [14],
        package_unpinned,
        "a claimed governance profile has policyProvenance with pinned, packageRef, expectedDigest and boundDigest"
    ),
    rule!(
        GovernancePolicyPackageMismatch,
        Join,
        [14],
        package_mismatch,
        "policyProvenance.boundDigest is its expectedDigest"
    ),
    rule!(
        GovernanceGuardrailStageMissing,
        Join,
        [13],
        stage_missing,
        "every required guardrail stage has a decision in facts.guardrails, under the bound stage policy"
    ),
    rule!(
        GovernanceGuardrailStageMissing,
        Mutation,
        [13],
        stages_unshown,
        "a turn that binds guardrailStagePolicyDigest shows its decisions in facts.guardrails"
    ),
    rule!(
        GovernanceGuardrailStageOrderInvalid,
        Join,
        [13],
        stages_out_of_order,
        "guardrails decide in the order pre_flight, input, output, by their sequence"
    ),
    rule!(
        GovernanceTraceModeViolation,
        Join,
        [16],
        trace_mode_refused,
        "callSpec.observabilityMode is one of traceConstraints.admittedModes, and no dashboard where zeroDataRetention is set"
    ),
    rule!(
        GovernanceTraceModeViolation,
        Join,
        [16],
        traced_otherwise,
        "facts.trace.mode is callSpec.observabilityMode"
    ),
    rule!(
        GovernanceTraceModeViolation,
        Join,
        [16],
        traced_while_disabled,
        "nothing is traced in mode disabled"
    ),
    rule!(
        GovernanceTraceModeViolation,
        Join,
        [16],
        processor_missing,
        "a trace in mode internal_processor names its processor"
    ),
    rule!(
        GovernanceRiskTierProfileMissing,
        Join,
        [14],
        profile_missing,
        "riskConstraints.controlProfiles has a profile for callSpec.riskTier"
    ),
    rule!(
        GovernanceRiskTierProfileMissing,
        Mutation,
        [14],
        profiles_unshown,
        "a turn that binds a riskTier shows its control profile in riskConstraints"
    ),
];

/// A foreign claim is refused, claimed or not, and checked no further.
fn claim_invalid<'a>(case: &Case<'a>) -> Breaches<'a> {
    let profile = case.constraints.governance_profile.as_ref();
    let claim = profile.filter(|profile| !profile.claim_is_known());
    each(
        claim.into_iter().map(|profile| {
            Breach::new("governanceProfile.claimId", quoted(text(&profile.claim_id)))
        }),
    )
}

fn package_unpinned<'a>(case: &Case<'a>) -> Breaches<'a> {
    let unpinned = claimed(case).is_some_and(|profile| profile.pinned().is_none());
    when(unpinned, "governanceProfile.policyProvenance", || {
        "the policy package is not pinned whole".to_owned()
    })
}

fn package_mismatch<'a>(case: &Case<'a>) -> Breaches<'a> {
    let other = claimed(case)
        .and_then(GovernanceProfile::pinned)
        .filter(|(expected, bound)| expected != bound);
    each(other.into_iter().map(|(expected, bound)| {
        let found = format!("`{bound}`, expected is `{expected}`");
        Breach::new("governanceProfile.policyProvenance.boundDigest", found)
    }))
}

fn claimed<'a>(case: &Case<'a>) -> Option<&'a GovernanceProfile> {
    let profile = case.constraints.governance_profile.as_ref()?;
    (profile.claimed && profile.claim_is_known()).then_some(profile)
}

fn stage_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let rows = &case.turn.facts.guardrails;
    let block = case.constraints.guardrail_constraints.as_ref();
    let required: BTreeSet<GuardrailStage> = match block {
        Some(block) => block.required_stages.clone(),
        // Where guardrails decide at all, they decide at every stage.
        None if rows.is_empty() => return none(),
        None => GuardrailStage::ALL.iter().copied().collect(),
    };
    let bound = case.turn.call_spec.guardrail_stage_policy_digest.as_deref();
    each(required.into_iter().filter_map(move |stage| {
        let decided = rows.iter().any(|row| {
            let policy = row.policy_digest.as_deref();
            row.stage == stage && (policy.is_none() || bound.is_none() || policy == bound)
        });
        (!decided).then(|| {
            let found = format!(
                "no decision at stage `{}` under the bound policy",
                stage.as_str()
            );
            Breach::new("facts.guardrails", found)
        })
    }))
}

fn stages_unshown<'a>(case: &Case<'a>) -> Breaches<'a> {
    let bound = case.turn.call_spec.guardrail_stage_policy_digest.as_deref();
    when(
        bound.is_some() && case.turn.facts.guardrails.is_empty(),
        "facts.guardrails",
        move || format!("nothing, and the call spec binds {}", quoted(bound)),
    )
}

fn stages_out_of_order<'a>(case: &Case<'a>) -> Breaches<'a> {
    // Rows are sorted by their sequence.
    let rows = &case.turn.facts.guardrails;
    each(rows.windows(2).filter_map(|pair| {
        let (earlier, later) = (pair.first()?, pair.last()?);
        (later.stage < earlier.stage).then(|| {
            let found = format!(
                "stage `{}` after stage `{}`",
                later.stage.as_str(),
                earlier.stage.as_str()
            );
            Breach::row("facts.guardrails", &later.sequence.to_string(), found)
        })
    }))
}

fn trace_mode_refused<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(block) = case.constraints.trace_constraints.as_ref() else {
        return none();
    };
    let mode = case.turn.call_spec.observability_mode;
    let TraceConstraints {
        admitted_modes: admitted,
        zero_data_retention,
    } = block;
    let listed = admitted.is_empty() || mode.is_some_and(|mode| admitted.contains(&mode));
    // Without a mode it is not declared that nothing is kept.
    let kept = matches!(mode, None | Some(ObservabilityMode::Dashboard));
    when(
        !listed || *zero_data_retention && kept,
        "callSpec.observabilityMode",
        move || quoted(mode.map(ObservabilityMode::as_str)),
    )
}

fn traced_otherwise<'a>(case: &Case<'a>) -> Breaches<'a> {
    let bound = case.turn.call_spec.observability_mode;
    let traced = case.turn.facts.trace.as_ref().map(|trace| trace.mode);
    let other = traced.zip(bound).filter(|(traced, bound)| traced != bound);
    each(other.into_iter().map(|(traced, bound)| {
        let found = format!("`{}`, bound is `{}`", traced.as_str(), bound.as_str());
        Breach::new("facts.trace.mode", found)
    }))
}

fn traced_while_disabled<'a>(case: &Case<'a>) -> Breaches<'a> {
    let trace = case.turn.facts.trace.as_ref();
    let trace = trace.filter(|trace| trace.mode == ObservabilityMode::Disabled);
    let kept = trace.and_then(|trace| trace.trace_refs.first().or(trace.processor_ref.as_ref()));
    each(
        kept.into_iter()
            .map(|kept| Breach::new("facts.trace", format!("`{kept}` was kept in mode disabled"))),
    )
}

fn processor_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let missing = case.turn.facts.trace.as_ref().is_some_and(|trace| {
        trace.mode == ObservabilityMode::InternalProcessor && trace.processor_ref.is_none()
    });
    when(missing, "facts.trace.processorRef", || quoted(None))
}

fn profile_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(block) = case.constraints.risk_constraints.as_ref() else {
        return none();
    };
    let tier = case.turn.call_spec.risk_tier;
    let bound = tier.is_some_and(|tier| block.control_profiles.contains_key(&tier));
    when(
        !bound,
        "riskConstraints.controlProfiles",
        move || match tier {
            Some(tier) => format!("no profile for the tier `{}`", tier.as_str()),
            None => "the call spec binds no riskTier".to_owned(),
        },
    )
}

fn profiles_unshown<'a>(case: &Case<'a>) -> Breaches<'a> {
    let tier = case.turn.call_spec.risk_tier;
    let unshown = tier.filter(|_| case.constraints.risk_constraints.is_none());
    each(unshown.into_iter().map(|tier| {
        let found = format!("nothing, and the call spec's tier is `{}`", tier.as_str());
        Breach::new("riskConstraints", found)
    }))
}

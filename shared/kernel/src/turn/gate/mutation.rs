//! Use evidence, witness linkage and authority (`HARNESS-TYPESTATE 6`,
//! `contracts.md` 2, 8, `TOOL-CALLING-HARNESS-TYPESTATE 4.4`, `4.6`).

use super::breach::{Breach, Breaches, each, none, quoted, when};
use super::{Case, Rule, Step, rule};
use crate::authority::claim::ClaimSet;
use crate::turn::constraints::{MutationConstraints, text};
use crate::turn::word::{Disposition, ResultStatus};
use std::collections::BTreeSet;

pub(super) const RULES: &[Rule] = &[
    rule!(
        ToolUseUnknownResult,
        Mutation,
        [1],
        use_names_another_result,
        "a toolUse row's resultDigest is that of its call's result"
    ),
    rule!(
        MutationUseEvidenceMissing,
        Mutation,
        [1],
        discarded_without_reason,
        "a discarded result has a useReason"
    ),
    rule!(
        MutationUseEvidenceMissing,
        Mutation,
        [1],
        consumed_without_provenance,
        "a consumed result has a provenanceRef to what was built on it"
    ),
    rule!(
        MutationUseEvidenceMissing,
        AnyStep,
        [3],
        linkage_to_any_step_missing,
        "sessionRefs holds a session:// reference and trajectoryRefs a trajectory://step/ one"
    ),
    rule!(
        MutationUseEvidenceMissing,
        ThisStep,
        [3],
        linkage_to_this_step_missing,
        "sessionRefs and trajectoryRefs name this very step's session and row"
    ),
    rule!(
        MutationPolicyDigestMismatch,
        Mutation,
        [3],
        policy_is_not_the_shown_one,
        "callSpec.mutationPolicyDigest is mutationConstraints.activePolicyDigest"
    ),
    rule!(
        MutationPolicyDigestMismatch,
        ThisStep,
        [3],
        policy_is_not_the_active_one,
        "callSpec.mutationPolicyDigest is that of the active mutation policy"
    ),
    rule!(
        MutationCapabilityClaimMissing,
        Mutation,
        [3],
        shown_claim_missing,
        "mutationConstraints.claims cover every one of requiredClaims"
    ),
    rule!(
        MutationCapabilityClaimMissing,
        ThisStep,
        [3],
        claim_missing,
        "the step's claims cover the kind of change"
    ),
    rule!(
        InstructionNormalizerNotAllowed,
        ThisStep,
        [3],
        normalizer_is_another,
        "callSpec.normalizerId is that of the instruction that the step rests on"
    ),
    rule!(
        CheckFailed,
        ThisStep,
        [3],
        verification_not_passed,
        "closing an issue rests on a verification result with status ok"
    ),
];

fn use_names_another_result<'a>(case: &Case<'a>) -> Breaches<'a> {
    let results = &case.turn.tool_results;
    each(case.turn.tool_use.iter().filter_map(|row| {
        let used = row.result_digest.as_deref()?;
        // A call without any result is `tool.use_without_result`.
        let place = results.binary_search_by(|result| result.tool_call_id.cmp(&row.tool_call_id));
        let given = results.get(place.ok()?)?.result_digest.as_deref();
        (given != Some(used)).then(|| {
            let found = format!("refers to `{used}`, the result is {}", quoted(given));
            Breach::row("toolUse", &row.tool_call_id, found)
        })
    }))
}

fn discarded_without_reason<'a>(case: &Case<'a>) -> Breaches<'a> {
    let rows = case.turn.tool_use.iter();
    let bare = rows.filter(|r| r.disposition == Disposition::Discarded && r.use_reason.is_none());
    each(bare.map(|row| Breach::row("toolUse", &row.tool_call_id, "discarded without a reason")))
}

fn consumed_without_provenance<'a>(case: &Case<'a>) -> Breaches<'a> {
    let rows = case.turn.tool_use.iter();
    let bare =
        rows.filter(|r| r.disposition == Disposition::Consumed && r.provenance_ref.is_none());
    each(bare.map(|row| Breach::row("toolUse", &row.tool_call_id, "consumed without provenance")))
}

/// What a session's reference begins with.
const SESSION: &str = "session://";

/// What a trajectory row's reference begins with.
const STEP: &str = "trajectory://step/";

fn linkage_to_any_step_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let lists = [
        ("sessionRefs", &case.turn.session_refs, SESSION),
        ("trajectoryRefs", &case.turn.trajectory_refs, STEP),
    ];
    each(lists.into_iter().filter_map(|(at, refs, prefix)| {
        let named = |one: &String| one.len() > prefix.len() && one.starts_with(prefix);
        (!refs.iter().any(named)).then(|| Breach::new(at, format!("no reference `{prefix}…`")))
    }))
}

fn linkage_to_this_step_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(Step { binding, .. }) = case.step else {
        return none();
    };
    let step = &binding.step;
    // An empty name would be linked by the bare prefix.
    let named = !step.session_id.is_empty() && !step.issue_id.is_empty();
    let lists = [
        (
            "sessionRefs",
            &case.turn.session_refs,
            binding.session_ref(),
        ),
        (
            "trajectoryRefs",
            &case.turn.trajectory_refs,
            binding.trajectory_ref(),
        ),
    ];
    each(lists.into_iter().filter_map(move |(at, refs, asked)| {
        let linked = named && refs.contains(&asked);
        (!linked).then(|| Breach::new(at, format!("no `{asked}`")))
    }))
}

fn policy_is_not_the_shown_one<'a>(case: &Case<'a>) -> Breaches<'a> {
    let active = authority(case).and_then(|block| block.active_policy_digest.as_deref());
    policy_is_another(case, active)
}

fn policy_is_not_the_active_one<'a>(case: &Case<'a>) -> Breaches<'a> {
    let active = case
        .step
        .map(|step| step.binding.mutation_policy_digest.as_str());
    policy_is_another(case, active)
}

fn policy_is_another<'a>(case: &Case<'a>, active: Option<&'a str>) -> Breaches<'a> {
    let bound = &case.turn.call_spec.mutation_policy_digest;
    let other = active.filter(|active| active != bound);
    each(other.into_iter().map(move |active| {
        let found = format!("`{bound}`, active is `{active}`");
        Breach::new("callSpec.mutationPolicyDigest", found)
    }))
}

fn shown_claim_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(block) = authority(case) else {
        return none();
    };
    let claims = ClaimSet::named(&block.claims);
    let missing = block
        .required_claims
        .iter()
        .filter(move |claim| !claims.covers(claim));
    each(missing.map(|claim| {
        Breach::new(
            "mutationConstraints.claims",
            format!("nothing covers `{claim}`"),
        )
    }))
}

fn claim_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(Step { binding, demand }) = case.step else {
        return none();
    };
    when(!binding.claims.covers(demand.claim), "claims", move || {
        format!("nothing covers `{}`", demand.claim)
    })
}

fn normalizer_is_another<'a>(case: &Case<'a>) -> Breaches<'a> {
    let bound = &case.turn.call_spec.normalizer_id;
    let asked = case.step.and_then(|step| step.binding.normalizer.as_ref());
    let other = asked.filter(|asked| *asked != bound);
    each(other.into_iter().map(move |asked| {
        let found = format!("`{bound}`, the instruction's is `{asked}`");
        Breach::new("callSpec.normalizerId", found)
    }))
}

fn verification_not_passed<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(Step { binding, demand }) = case.step else {
        return none();
    };
    let named = text(&binding.verification);
    let results = &case.turn.tool_results;
    let passed = results
        .iter()
        .any(|row| Some(row.tool_call_id.as_str()) == named && row.status == ResultStatus::Ok);
    when(
        demand.verification && !passed,
        "toolResults",
        move || match named {
            Some(named) => format!("the verification `{named}` has no result with status ok"),
            None => "the step has no verification".to_owned(),
        },
    )
}

fn authority<'a>(case: &Case<'a>) -> Option<&'a MutationConstraints> {
    case.constraints.mutation_constraints.as_ref()
}

/// Returns the texts of a list trimmed, where anything is left.
pub(super) fn texts(texts: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    texts.iter().map(|t| t.trim()).filter(|t| !t.is_empty())
}

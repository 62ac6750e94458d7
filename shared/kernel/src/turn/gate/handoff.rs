//! A transfer to another agent (`HARNESS-TYPESTATE 5`,
//! `TOOL-CALLING-HARNESS-TYPESTATE 4.5`, `4.6`).

use super::breach::{Breach, Breaches, each, none, quoted, when};
use super::mutation::texts;
use super::{Case, Rule, rule};
use crate::turn::constraints::HandoffConstraints;
use crate::turn::evidence::HandoffPacket;
use crate::turn::word::OrchestrationRole;

pub(super) const RULES: &[Rule] = &[
    rule!(
        HandoffRequiredArtifactMissing,
        Join,
        [17],
        artifact_missing,
        "handoff.requiredArtifactRefs holds all of handoffConstraints.requiredArtifactRefs"
    ),
    rule!(
        HandoffRequiredArtifactMissing,
        Join,
        [12, 17],
        artifact_unavailable,
        "every artifact of the handoff is among handoffConstraints.availableArtifactRefs"
    ),
    rule!(
        HandoffTargetNotAllowed,
        Join,
        [17],
        target_refused,
        "handoff.target is one of handoffConstraints.allowedTargets"
    ),
    rule!(
        HandoffTargetNotAllowed,
        Join,
        [17],
        role_refused,
        "callSpec.orchestrationRole is one of handoffConstraints.allowedRoles"
    ),
    rule!(
        HandoffTargetNotAllowed,
        Join,
        [17],
        contract_is_another,
        "handoffConstraints.contractDigest is callSpec.handoffContractDigest"
    ),
    rule!(
        HandoffReturnPathMissing,
        Join,
        [17],
        return_path_missing,
        "handoff.returnPathRef is given where handoffConstraints.requireReturnPath is set"
    ),
    rule!(
        HandoffTargetNotAllowed,
        Mutation,
        [17],
        handoff_unconstrained,
        "a handoff has handoffConstraints, which allow its target"
    ),
];

fn artifact_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(block) = block(case) else {
        return none();
    };
    let packet = packet(case);
    let missing = texts(&block.required_artifact_refs).filter(move |artifact| {
        !packet.is_some_and(|packet| packet.required_artifact_refs.contains(*artifact))
    });
    each(missing.map(|artifact| {
        let found = format!("`{artifact}` does not go with it");
        Breach::new("handoff.requiredArtifactRefs", found)
    }))
}

fn artifact_unavailable<'a>(case: &Case<'a>) -> Breaches<'a> {
    let available = block(case).and_then(|block| block.available_artifact_refs.as_ref());
    let Some((packet, available)) = packet(case).zip(available) else {
        return none();
    };
    each(
        packet
            .required_artifact_refs
            .difference(available)
            .map(|artifact| {
                Breach::new(
                    "handoff.requiredArtifactRefs",
                    format!("`{artifact}` does not exist"),
                )
            }),
    )
}

fn target_refused<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(block) = block(case) else {
        return none();
    };
    let target = packet(case).map(|packet| packet.target.as_str());
    let mut allowed = texts(&block.allowed_targets).peekable();
    let refused = allowed.peek().is_some() && !allowed.any(|allowed| target == Some(allowed));
    when(refused, "handoff.target", move || quoted(target))
}

fn role_refused<'a>(case: &Case<'a>) -> Breaches<'a> {
    let role = case.turn.call_spec.orchestration_role;
    let roles = block(case).map(|block| &block.allowed_roles);
    let refused = roles
        .is_some_and(|roles| !roles.is_empty() && !role.is_some_and(|role| roles.contains(&role)));
    when(
        refused && packet(case).is_some(),
        "callSpec.orchestrationRole",
        move || quoted(role.map(OrchestrationRole::as_str)),
    )
}

fn contract_is_another<'a>(case: &Case<'a>) -> Breaches<'a> {
    let bound = case.turn.call_spec.handoff_contract_digest.as_deref();
    let shown = block(case).and_then(|block| block.contract_digest.as_deref());
    when(
        shown.is_some() && shown != bound,
        "handoffConstraints.contractDigest",
        move || format!("{}, bound is {}", quoted(shown), quoted(bound)),
    )
}

fn return_path_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let required = block(case).is_some_and(|block| block.require_return_path);
    let path = packet(case).and_then(|packet| packet.return_path_ref.as_deref());
    when(
        required && path.is_none(),
        "handoff.returnPathRef",
        move || quoted(path),
    )
}

fn handoff_unconstrained<'a>(case: &Case<'a>) -> Breaches<'a> {
    let target = packet(case).map(|packet| packet.target.as_str());
    when(
        target.is_some() && block(case).is_none(),
        "handoffConstraints",
        move || format!("nothing, and the handoff goes to {}", quoted(target)),
    )
}

fn packet<'a>(case: &Case<'a>) -> Option<&'a HandoffPacket> {
    case.turn.handoff.as_ref()
}

fn block<'a>(case: &Case<'a>) -> Option<&'a HandoffConstraints> {
    case.constraints.handoff_constraints.as_ref()
}

//! What the next turn is rebuilt from, and what a role may see
//! (`contracts.md` 2, `TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.5`).

use super::breach::{Breach, Breaches, each, none, quoted, when};
use super::{Case, Rule, rule};
use crate::json::canonical;
use crate::turn::constraints::ScopeConstraints;
use crate::turn::word::{Disposition, OrchestrationRole, ScopeMode};
use std::collections::BTreeSet;

pub(super) const RULES: &[Rule] = &[
    rule!(
        ContextInjectionPointMissing,
        Join,
        [2],
        injection_point_missing,
        "where the loop continues or a result is consumed, every result has a row in toolRender \
        and there is a state view"
    ),
    rule!(
        ContextQueuePolicyViolation,
        Join,
        [2],
        queue_policy_violated,
        "where the loop continues or a result is consumed, there is a reminderQueue row, and every \
        policyDigest is the call spec's"
    ),
    rule!(
        ContextInjectionPointMissing,
        Mutation,
        [2],
        continuation_injection_point_missing,
        "before the loop continues, every result has a row in toolRender and there is a state view"
    ),
    rule!(
        ContextQueuePolicyViolation,
        Mutation,
        [2],
        continuation_queue_policy_violated,
        "before the loop continues, there is a reminderQueue row, and every policyDigest is the \
        call spec's"
    ),
    rule!(
        ContextScopeViolation,
        Join,
        [18],
        scope_unbound,
        "the scope that is shown is the one that callSpec.contextScopeDigest binds"
    ),
    rule!(
        ContextScopeViolation,
        Join,
        [18],
        scope_of_another_role,
        "the scope is for callSpec.orchestrationRole"
    ),
    rule!(
        ContextScopeViolation,
        Join,
        [18],
        accessed_outside,
        "only what is readable or writable is read; only what is writable, or owned by the role, is written"
    ),
    rule!(
        ContextScopeViolation,
        Join,
        [18],
        written_outside,
        "artifacts are written where scopeConstraints.writable says, or by the role that owns the place"
    ),
];

/// The context counts where the loop continues, or where something was built on
/// a result.
fn in_scope(case: &Case<'_>) -> bool {
    let uses = &case.turn.tool_use;
    case.turn.protocol_state.continuation_allowed
        || uses
            .iter()
            .any(|row| row.disposition == Disposition::Consumed)
}

fn injection_point_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    if !in_scope(case) {
        return none();
    }
    let context = &case.turn.context_state;
    let unshown = context
        .missing_render_call_ids
        .iter()
        .map(|id| Breach::row("toolResults", id, "the result has no row in toolRender"));
    let unseen =
        (!context.state_view_present).then(|| Breach::new("stateViews", "there is no state view"));
    each(unshown.chain(unseen))
}

fn queue_policy_violated<'a>(case: &Case<'a>) -> Breaches<'a> {
    if !in_scope(case) {
        return none();
    }
    let context = &case.turn.context_state;
    let spec = &case.turn.call_spec;
    let list = |valid: bool, at: &'static str, bound: &str| {
        (!valid).then(|| Breach::new(at, format!("a row is not under the bound policy `{bound}`")))
    };
    let unreduced = (!context.queue_reduction_present)
        .then(|| Breach::new("reminderQueue", "no queue was reduced"));
    let renders = list(
        context.render_policy_valid,
        "toolRender[].policyDigest",
        &spec.tool_render_protocol_digest,
    );
    let queues = list(
        context.queue_policy_valid,
        "reminderQueue[].policyDigest",
        &spec.reminder_queue_policy_digest,
    );
    let views = list(
        context.state_view_policy_valid,
        "stateViews[].policyDigest",
        &spec.state_view_policy_digest,
    );
    each([unreduced, renders, queues, views].into_iter().flatten())
}

fn continuation_injection_point_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    if case.turn.protocol_state.continuation_allowed {
        injection_point_missing(case)
    } else {
        none()
    }
}

fn continuation_queue_policy_violated<'a>(case: &Case<'a>) -> Breaches<'a> {
    if case.turn.protocol_state.continuation_allowed {
        queue_policy_violated(case)
    } else {
        none()
    }
}

fn scope_unbound<'a>(case: &Case<'a>) -> Breaches<'a> {
    let bound = case.turn.call_spec.context_scope_digest.as_deref();
    let shown = scope(case).map(canonical::digest);
    let other = shown.filter(|shown| bound.is_some_and(|bound| bound != shown));
    each(other.into_iter().map(move |shown| {
        let found = format!("its digest is `{shown}`, bound is {}", quoted(bound));
        Breach::new("scopeConstraints", found)
    }))
}

fn scope_of_another_role<'a>(case: &Case<'a>) -> Breaches<'a> {
    let role = case.turn.call_spec.orchestration_role;
    let meant = scope(case).and_then(|scope| scope.role);
    when(
        meant.is_some() && meant != role,
        "scopeConstraints.role",
        move || {
            let name =
                |role: Option<OrchestrationRole>| quoted(role.map(OrchestrationRole::as_str));
            format!(
                "the scope is for {}, the call spec's role is {}",
                name(meant),
                name(role)
            )
        },
    )
}

fn accessed_outside<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(scope) = scope(case) else {
        return none();
    };
    let role = case.turn.call_spec.orchestration_role;
    each(
        case.turn
            .facts
            .scope_accesses
            .iter()
            .filter_map(move |access| {
                let place = access.reference.as_str();
                if access.access == ScopeMode::Read && covers(&scope.readable, place) {
                    return None;
                }
                let found = unwritable(scope, role, place)?;
                let found = format!("{} outside of the scope: {found}", access.access.as_str());
                Some(Breach::row("facts.scopeAccesses", place, found))
            }),
    )
}

fn written_outside<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(scope) = scope(case) else {
        return none();
    };
    let role = case.turn.call_spec.orchestration_role;
    let rows = case.turn.tool_results.iter();
    each(rows.filter_map(move |row| {
        let writes = &row.facts.as_ref()?.artifact_writes;
        let found = writes
            .iter()
            .find_map(|write| unwritable(scope, role, &write.path))?;
        Some(Breach::row("toolResults", &row.tool_call_id, found))
    }))
}

/// Reports why a role may not write a place, where it may not. The owner of the
/// narrowest place that holds it decides; without one, `writable` does.
fn unwritable(
    scope: &ScopeConstraints,
    role: Option<OrchestrationRole>,
    place: &str,
) -> Option<String> {
    if is_hidden(place) {
        return Some(format!("`{place}` hides where it leads"));
    }
    let owners = scope.owners.iter().filter(|(of, _)| covers_one(of, place));
    match owners.max_by_key(|(of, _)| of.len()) {
        Some((_, owner)) if Some(*owner) == role => None,
        Some((_, owner)) => Some(format!("`{place}` belongs to the {}", owner.as_str())),
        None if covers(&scope.writable, place) => None,
        None => Some(format!("`{place}` is not writable")),
    }
}

fn scope<'a>(case: &Case<'a>) -> Option<&'a ScopeConstraints> {
    case.constraints.scope_constraints.as_ref()
}

fn covers(places: &BTreeSet<String>, reference: &str) -> bool {
    places.iter().any(|place| covers_one(place, reference))
}

/// An entry that ends in `/` represents everything below it.
fn covers_one(place: &str, reference: &str) -> bool {
    if place.ends_with('/') {
        reference.starts_with(place) && !is_hidden(reference)
    } else {
        reference == place
    }
}

/// Returns whether a reference has a part that is not a name: it may lead
/// elsewhere than it says.
fn is_hidden(reference: &str) -> bool {
    let path = reference
        .split_once("://")
        .map_or(reference, |(_, path)| path);
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/').any(|part| matches!(part, "" | "." | ".."))
}

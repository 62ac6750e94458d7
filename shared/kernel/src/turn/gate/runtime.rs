//! Where commands ran, what wrote files, and what a compaction left
//! (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.3`).

use super::breach::{Breach, Breaches, each, none, quoted};
use super::{Case, Rule, rule};
use crate::turn::evidence::{BoundaryPolicy, Policy, ShellEvidence};
use crate::turn::normal::NormalResult;
use std::path::{Component, Path};

pub(super) const RULES: &[Rule] = &[
    rule!(
        RuntimeShellBoundaryViolation,
        Join,
        [11],
        shell_evidence_missing,
        "a result of a shell tool has facts.shell with workdir, sandboxRef and commandDigest"
    ),
    rule!(
        RuntimeShellBoundaryViolation,
        Join,
        [11],
        sandbox_is_another,
        "a shell command runs under the sandbox of callSpec.runtimeSandboxRef"
    ),
    rule!(
        RuntimeShellBoundaryViolation,
        Join,
        [11],
        workdir_outside,
        "a shell command runs in or below a folder of executionBoundaryPolicy.workdirRoots"
    ),
    rule!(
        RuntimeShellBoundaryViolation,
        Join,
        [11],
        written_off_surface,
        "artifacts are written by tools of executionBoundaryPolicy.editSurfaces alone"
    ),
    rule!(
        RuntimeCompactionStateInvalid,
        Join,
        [12],
        compaction_unbound,
        "a compaction is done under callSpec.compactionPolicyDigest"
    ),
    rule!(
        RuntimeCompactionStateInvalid,
        Join,
        [12],
        compaction_dropped,
        "a compaction carries forward all of compactionConstraints.requiredRefs"
    ),
    rule!(
        RuntimeCompactionStateInvalid,
        Join,
        [12],
        compaction_unseen,
        "the state view that a compaction left is among stateViews"
    ),
];

fn shell_evidence_missing<'a>(case: &Case<'a>) -> Breaches<'a> {
    let policy = boundary(case);
    let turn = case.turn;
    each(turn.tool_results.iter().filter_map(move |row| {
        let is_shell = || policy?.shell_tools.get(case_tool(turn, row)?);
        let lacking = match shell(row) {
            Some(shell) => lacking(shell)?,
            None if is_shell().is_some() => "any evidence of the shell's boundary",
            None => return None,
        };
        Some(Breach::row(
            "toolResults",
            &row.tool_call_id,
            format!("lacks {lacking}"),
        ))
    }))
}

/// Names the first part that is missing.
fn lacking(shell: &ShellEvidence) -> Option<&'static str> {
    if shell.workdir.is_none() {
        Some("facts.shell.workdir")
    } else if shell.sandbox_ref.is_none() {
        Some("facts.shell.sandboxRef")
    } else if shell.command_digest.is_none() {
        Some("facts.shell.commandDigest")
    } else {
        None
    }
}

fn sandbox_is_another<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(bound) = case.turn.call_spec.runtime_sandbox_ref.as_deref() else {
        return none();
    };
    each(case.turn.tool_results.iter().filter_map(move |row| {
        let sandbox = shell(row)?.sandbox_ref.as_deref()?;
        (sandbox != bound).then(|| {
            let found = format!("ran under `{sandbox}`, bound is `{bound}`");
            Breach::row("toolResults", &row.tool_call_id, found)
        })
    }))
}

fn workdir_outside<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(policy) = boundary(case).filter(|policy| !policy.workdir_roots.is_empty()) else {
        return none();
    };
    each(case.turn.tool_results.iter().filter_map(move |row| {
        let workdir = shell(row)?.workdir.as_deref()?;
        let inside = policy
            .workdir_roots
            .iter()
            .any(|root| is_within(workdir, root));
        (!inside).then(|| {
            Breach::row(
                "toolResults",
                &row.tool_call_id,
                format!("ran in `{workdir}`"),
            )
        })
    }))
}

/// Returns whether a path is a folder or is below it, without any way up.
fn is_within(path: &str, root: &str) -> bool {
    let path = Path::new(path);
    path.starts_with(root) && !path.components().any(|part| part == Component::ParentDir)
}

fn written_off_surface<'a>(case: &Case<'a>) -> Breaches<'a> {
    let Some(policy) = boundary(case).filter(|policy| !policy.edit_surfaces.is_empty()) else {
        return none();
    };
    let turn = case.turn;
    each(turn.tool_results.iter().filter_map(move |row| {
        let write = row.facts.as_ref()?.artifact_writes.first()?;
        let tool = case_tool(turn, row);
        let admitted = tool.is_some_and(|tool| policy.edit_surfaces.contains(tool));
        (!admitted).then(|| {
            let found = format!("`{}` was written by {}", write.path, quoted(tool));
            Breach::row("toolResults", &row.tool_call_id, found)
        })
    }))
}

fn compaction_unbound<'a>(case: &Case<'a>) -> Breaches<'a> {
    let done = case.turn.facts.compaction.as_ref();
    let bound = case.turn.call_spec.compaction_policy_digest.as_deref();
    let other = done.filter(|done| Some(done.policy_digest.as_str()) != bound);
    each(other.into_iter().map(move |done| {
        let found = format!(
            "done under `{}`, bound is {}",
            done.policy_digest,
            quoted(bound)
        );
        Breach::new("facts.compaction.policyDigest", found)
    }))
}

fn compaction_dropped<'a>(case: &Case<'a>) -> Breaches<'a> {
    let block = case.constraints.compaction_constraints.as_ref();
    let done = case.turn.facts.compaction.as_ref();
    let Some((block, done)) = block.zip(done) else {
        return none();
    };
    each(
        block
            .required_refs
            .difference(&done.carried_forward_refs)
            .map(|dropped| {
                let found = format!("`{dropped}` was not carried forward");
                Breach::new("facts.compaction.carriedForwardRefs", found)
            }),
    )
}

fn compaction_unseen<'a>(case: &Case<'a>) -> Breaches<'a> {
    let views = &case.turn.state_views;
    let done = case.turn.facts.compaction.as_ref();
    let unseen = done.filter(|done| {
        !views
            .iter()
            .any(|view| view.view_digest == done.view_digest)
    });
    each(unseen.into_iter().map(|done| {
        let found = format!("no state view has the digest `{}`", done.view_digest);
        Breach::new("facts.compaction.viewDigest", found)
    }))
}

fn boundary<'a>(case: &Case<'a>) -> Option<&'a BoundaryPolicy> {
    let policy = case.turn.call_spec.execution_boundary_policy.as_ref();
    policy.and_then(Policy::content)
}

fn shell(row: &NormalResult) -> Option<&ShellEvidence> {
    row.facts.as_ref()?.shell.as_ref()
}

/// Returns the tool that a result is of, where its call was requested.
fn case_tool<'a>(turn: &'a crate::turn::Normalized, row: &NormalResult) -> Option<&'a str> {
    let requests = &turn.tool_requests;
    let place = requests.binary_search_by(|request| request.tool_call_id.cmp(&row.tool_call_id));
    Some(requests.get(place.ok()?)?.tool_name.as_str())
}

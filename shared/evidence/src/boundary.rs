//! The boundary of the harness's own commands as evidence: where each ran, and
//! under which sandbox profile (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.3`).
//!
//! A turn claims a profile only where every command of it ran under that one.

use crate::shell::{ShellCall, TOOL};
use premath_kernel::turn::Evidence;
use premath_kernel::turn::evidence::{BoundaryPolicy, Policy, ResultFacts, ShellEvidence};
use std::collections::BTreeSet;

/// Returns what the result of a command says of its boundary; nothing where it
/// was not confined.
pub(crate) fn facts_of(call: &ShellCall) -> Option<Box<ResultFacts>> {
    let sandbox = call.sandbox_ref.as_ref()?;
    Some(Box::new(ResultFacts {
        shell: Some(ShellEvidence {
            command_digest: Some(call.command_digest.clone()),
            sandbox_ref: Some(sandbox.clone()),
            workdir: Some(call.workdir.clone()),
        }),
        ..ResultFacts::default()
    }))
}

/// Binds a turn to the profile that all its commands ran under.
pub(crate) fn bind<'a>(evidence: &mut Evidence, calls: impl Iterator<Item = &'a ShellCall>) {
    let mut profiles = BTreeSet::new();
    let mut workdirs = BTreeSet::new();
    for call in calls {
        profiles.insert(call.sandbox_ref.clone());
        workdirs.insert(call.workdir.clone());
    }
    let mut profiles = profiles.into_iter();
    let (Some(Some(profile)), None) = (profiles.next(), profiles.next()) else {
        return;
    };
    let further = &mut evidence.call_spec.further;
    further.runtime_sandbox_ref = Some(profile);
    further.execution_boundary_policy = Some(Policy::Content(BoundaryPolicy {
        shell_tools: BTreeSet::from([TOOL.to_owned()]),
        workdir_roots: workdirs,
        ..BoundaryPolicy::default()
    }));
}

//! The boundary of the harness's own commands as evidence: where each ran, and
//! under which sandbox profile (`TOOL-CALLING-HARNESS-TYPESTATE 4.1`, `4.3`).
//!
//! A turn claims a profile only where every command of it ran under that one.

use crate::call::{SHELL_TOOL, ShellCall};
use premath_kernel::turn::Evidence;
use premath_kernel::turn::evidence::{BoundaryPolicy, Policy, ResultFacts, ShellEvidence};
use std::collections::BTreeSet;

/// Returns what the result of a command reports about its boundary; nothing
/// where it was not confined.
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
    let spec = &mut evidence.call_spec;
    spec.runtime_sandbox_ref = Some(profile);
    spec.execution_boundary_policy = Some(Policy::Content(BoundaryPolicy {
        shell_tools: BTreeSet::from([SHELL_TOOL.to_owned()]),
        workdir_roots: workdirs,
        ..BoundaryPolicy::default()
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{own, policies, step, verdict};
    use crate::{ShellTurn, shell_turn};
    use premath_kernel::failure::FailureClass;
    use premath_kernel::turn::JoinCheckInput;

    fn call(phase: &'static str, sandbox: Option<&str>) -> ShellCall {
        ShellCall {
            sandbox_ref: sandbox.map(str::to_owned),
            ..own(phase)
        }
    }

    fn turn(calls: &[ShellCall]) -> JoinCheckInput {
        shell_turn(&ShellTurn {
            step: &step(),
            policies: &policies(),
            calls,
        })
    }

    fn violates(input: &JoinCheckInput) -> bool {
        let violation = FailureClass::RuntimeShellBoundaryViolation;
        verdict(input).is_err_and(|classes| classes.contains(&violation))
    }

    #[test]
    fn a_turn_whose_commands_were_all_confined_is_bound_to_their_profile() {
        let mut input = turn(&[call("work", Some("s")), call("verify", Some("s"))]);
        let spec = &input.evidence.call_spec;
        assert_eq!(spec.runtime_sandbox_ref.as_deref(), Some("s"));
        assert!(spec.execution_boundary_policy.is_some());
        assert!(!violates(&input));
        // The gate holds it to what it claims.
        input.evidence.tool_results[1].facts = None;
        assert!(violates(&input));
    }

    #[test]
    fn a_turn_with_a_command_that_was_not_claims_none() {
        for second in [None, Some("other")] {
            let input = turn(&[call("work", Some("s")), call("verify", second)]);
            let spec = &input.evidence.call_spec;
            assert_eq!(spec.runtime_sandbox_ref, None);
            assert_eq!(spec.execution_boundary_policy, None);
            assert!(!violates(&input));
        }
        let free = turn(&[call("work", None)]);
        assert!(free.evidence.tool_results[0].facts.is_none());
    }
}

//! The `shell` adapter: the harness itself ran the work and the verify
//! command, and both are tool calls (`agents.md`).

use crate::boundary;
use crate::call::{CallEnd, SHELL_TOOL, ShellCall};
use crate::context;
use crate::demand;
use crate::policy::{Seen, TurnHead, TurnPolicies};
use premath_kernel::authority::StepIdentity;
use premath_kernel::json::canonical;
use premath_kernel::record::turn_context::TurnContext;
use premath_kernel::turn::evidence::RequestFacts;
use premath_kernel::turn::{
    Constraints, Evidence, JoinCheckInput, RequestRow, ResultRow, TruncationConstraints, UseRow,
};
use serde_json::json;

/// The normaliser that shell evidence is bound to.
pub const SHELL_NORMALIZER: &str = "premath.harness.shell.v1";

/// A step's turn by the shell adapter.
#[derive(Clone, Debug)]
pub struct ShellTurn<'a> {
    /// The step.
    pub step: &'a StepIdentity,
    /// The policies in force.
    pub policies: &'a TurnPolicies,
    /// The commands that were run, in their order.
    pub calls: &'a [ShellCall],
}

/// Makes the evidence of a step that ran shell commands.
///
/// A call without an end has a request and no result, and fails closed.
pub fn shell_turn(turn: &ShellTurn<'_>) -> JoinCheckInput {
    let rows = rows(turn.step, turn.calls);
    let seen = seen(&rows);
    let head = TurnHead {
        step: turn.step,
        call_id: &turn.step.step_id(),
        model_ref: SHELL_TOOL,
        normalizer_id: SHELL_NORMALIZER,
        policies: turn.policies,
    };
    let mut evidence = head.evidence(&seen, &context::of_calls(&seen));
    add(&mut evidence, &rows);
    let mut input = JoinCheckInput::new(evidence);
    input.constraints = constraints(turn.policies, turn.calls);
    demand::bind(&mut input, turn.policies);
    input
}

/// Returns what the context rows of the turn are digests of.
pub fn shell_context(turn: &ShellTurn<'_>) -> TurnContext {
    context::of_calls(&seen(&rows(turn.step, turn.calls)))
}

/// A command as a row: its call id and the digest of its result.
pub(crate) struct ShellRow<'a> {
    pub(crate) call: &'a ShellCall,
    pub(crate) id: String,
    digest: String,
}

pub(crate) fn rows<'a>(step: &StepIdentity, calls: &'a [ShellCall]) -> Vec<ShellRow<'a>> {
    let row = |call: &'a ShellCall| ShellRow {
        call,
        id: call_id(step, call.phase),
        digest: result_digest(call),
    };
    calls.iter().map(row).collect()
}

/// Returns the commands whose end was seen.
pub(crate) fn seen<'a>(rows: &'a [ShellRow<'a>]) -> Vec<Seen<'a>> {
    let seen = |row: &'a ShellRow<'a>| {
        let failure = match row.call.end.as_ref()? {
            CallEnd::Ok => None,
            CallEnd::Error { class, .. } => Some(class.as_str()),
        };
        Some(Seen {
            call_id: &row.id,
            result_digest: row.digest.as_str().into(),
            failure,
        })
    };
    rows.iter().filter_map(seen).collect()
}

/// Adds the commands to a turn's evidence.
pub(crate) fn add(evidence: &mut Evidence, rows: &[ShellRow<'_>]) {
    for ShellRow { call, id, digest } in rows {
        let prompted = call.prompt_digest.as_ref().map(|digest| {
            Box::new(RequestFacts {
                input_digest: Some(digest.clone()),
                ..RequestFacts::default()
            })
        });
        evidence.tool_requests.push(RequestRow {
            schema_digest: Some(call.command_digest.clone()),
            facts: prompted,
            ..RequestRow::new(id, SHELL_TOOL)
        });
        let Some(end) = &call.end else { continue };
        evidence.tool_results.push(ResultRow {
            facts: boundary::facts_of(call),
            ..end.row(id, digest)
        });
        evidence.tool_use.push(UseRow {
            result_digest: Some(digest.clone()),
            ..UseRow::consumed(id, &call.witness_ref)
        });
    }
    boundary::bind(evidence, rows.iter().map(|row| row.call));
}

pub(crate) fn constraints(policies: &TurnPolicies, calls: &[ShellCall]) -> Constraints {
    let truncated = calls.iter().any(|call| call.truncated);
    Constraints {
        governance_profile: policies.profile.clone(),
        // The supervisor cuts in the middle and leaves the marker; the whole
        // stream is in the digest.
        truncation_constraints: truncated.then_some(TruncationConstraints {
            required: true,
            valid: true,
        }),
        ..Constraints::default()
    }
}

pub(crate) fn call_id(step: &StepIdentity, phase: &str) -> String {
    format!("{}/{phase}", step.step_id())
}

fn result_digest(call: &ShellCall) -> String {
    canonical::digest(&json!({
        "exitCode": call.exit_code,
        "signal": call.signal,
        "workdir": call.workdir,
        "commandDigest": call.command_digest,
        "stdoutSha256": call.stdout_sha256,
        "stderrSha256": call.stderr_sha256,
        "truncated": call.truncated,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{self, own, policies, step};
    use premath_kernel::failure::FailureClass;
    use std::collections::BTreeSet;

    fn ended(phase: &'static str, end: Option<CallEnd>) -> ShellCall {
        ShellCall { end, ..own(phase) }
    }

    fn verdict(calls: &[ShellCall]) -> Result<(), BTreeSet<FailureClass>> {
        case::verdict(&shell_turn(&ShellTurn {
            step: &step(),
            policies: &policies(),
            calls,
        }))
    }

    #[test]
    fn the_embedded_instruction_policy_admits_the_shell_adapter() {
        let policy = premath_kernel::authority::instruction::InstructionPolicy::embedded().unwrap();
        assert!(policy.allowed_normalizers().contains(SHELL_NORMALIZER));
    }

    #[test]
    fn work_and_verification_that_passed_may_close() {
        assert_eq!(verdict(&[own("work"), own("verify")]), Ok(()));
    }

    #[test]
    fn a_verification_that_failed_or_never_ran_may_not() {
        let failed = CallEnd::Error {
            class: "check_failed".into(),
            retryable: false,
            message: "no".into(),
        };
        for calls in [
            vec![own("work"), ended("verify", Some(failed))],
            vec![own("work")],
        ] {
            let classes = verdict(&calls).unwrap_err();
            assert_eq!(classes, BTreeSet::from([FailureClass::CheckFailed]));
        }
    }

    #[test]
    fn a_call_whose_end_was_not_seen_fails_closed() {
        let classes = verdict(&[ended("work", None)]).unwrap_err();
        assert!(classes.contains(&FailureClass::ToolResultMissing));
        assert!(classes.contains(&FailureClass::ToolJoinIncomplete));
    }
}

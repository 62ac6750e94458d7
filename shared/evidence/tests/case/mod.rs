//! A step that was taken, for tests and fuzz targets: who took it, what the
//! harness ran, and what the gate says.

use premath_evidence::{CallEnd, ShellCall, StepDemand, TurnPolicies};
use premath_kernel::authority::{MutationMode, StepIdentity};
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::turn::TurnPolicy;
use premath_kernel::turn::{CallSpec, Close, JoinCheckInput, MutationBinding};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The step.
pub(crate) fn step() -> StepIdentity {
    StepIdentity {
        issue_id: "x".into(),
        worker_id: "worker.1".into(),
        owner: "worker.1".into(),
        lease_id: "l".into(),
        generation: 1,
        session_id: "hs1_20260101T000000Z_x".into(),
    }
}

/// What its changes rest on.
pub(crate) fn mode() -> MutationMode {
    MutationMode::human_override("test", None, jiff::Timestamp::UNIX_EPOCH).unwrap()
}

pub(crate) fn policies() -> TurnPolicies {
    TurnPolicies {
        profile: None,
        mutation: mode().policy_digest(),
        turn: Some(Arc::new(TurnPolicy::embedded().unwrap())),
        demand: StepDemand::default(),
    }
}

/// A command of the harness's own that went well.
pub(crate) fn own(phase: &'static str) -> ShellCall {
    ShellCall {
        phase,
        command_digest: "sha256:c".into(),
        prompt_digest: None,
        workdir: "/w".into(),
        sandbox_ref: None,
        exit_code: Some(0),
        signal: None,
        stdout_sha256: "o".into(),
        stderr_sha256: "e".into(),
        truncated: false,
        end: Some(CallEnd::Ok),
        witness_ref: format!("ciwitness://{phase}"),
    }
}

/// Returns whether the gate grants the right to close, and why not.
pub(crate) fn verdict(input: &JoinCheckInput) -> Result<(), BTreeSet<FailureClass>> {
    let verification = Some(format!("{}/verify", step().step_id()));
    let binding = MutationBinding::of_mode(step(), &mode(), verification);
    let turn = CallSpec::bind(input).unwrap();
    turn.admitted::<Close>(&binding).map(drop)
}

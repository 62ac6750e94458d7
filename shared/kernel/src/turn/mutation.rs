//! The right to change one issue in one way (`HARNESS-TYPESTATE 6`, `contracts.md` 8).

use super::normal::Normalized;
use crate::authority::claim::ChangeMorphism;
pub use crate::authority::claim::ClaimSet;
use crate::authority::{MutationMode, StepIdentity};
use crate::json::id::{IssueId, LeaseId, SessionId, StepId};
use crate::json::{canonical, reference, token};
use schemars::JsonSchema;
use serde::Serialize;
use std::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
}

/// A kind of change to an issue. Sealed: there are [`Close`], [`Block`],
/// [`Discover`], and the changes of edges.
pub trait MutationKind: sealed::Sealed + std::fmt::Debug {
    /// The kind's name, as in `mutation-ready://<issue>/<name>/…`.
    const NAME: &'static str;
    /// The claim that an instruction must make for it (`contracts.md` 8).
    const CLAIM: &'static str;
    /// Whether a verification must have passed.
    const NEEDS_VERIFICATION: bool;
}

/// Closing the step's issue; needs a verification that passed.
#[derive(Debug)]
pub enum Close {}

/// Setting the step's issue blocked.
#[derive(Debug)]
pub enum Block {}

/// Filing an issue that the step discovered.
#[derive(Debug)]
pub enum Discover {}

/// Adding an edge to the step's issue. A turn that may not close its issue
/// changes nothing, so that it needs a verification too.
#[derive(Debug)]
pub enum AddEdge {}

/// Removing an edge from the step's issue.
#[derive(Debug)]
pub enum RemoveEdge {}

/// Replacing an edge of the step's issue.
#[derive(Debug)]
pub enum ReplaceEdge {}

impl sealed::Sealed for AddEdge {}
impl sealed::Sealed for RemoveEdge {}
impl sealed::Sealed for ReplaceEdge {}
impl sealed::Sealed for Close {}
impl sealed::Sealed for Block {}
impl sealed::Sealed for Discover {}

impl MutationKind for Close {
    const NAME: &'static str = "close";
    const CLAIM: &'static str = ChangeMorphism::IssueUpdate.claim();
    const NEEDS_VERIFICATION: bool = true;
}

impl MutationKind for Block {
    const NAME: &'static str = "block";
    const CLAIM: &'static str = ChangeMorphism::IssueUpdate.claim();
    const NEEDS_VERIFICATION: bool = false;
}

impl MutationKind for Discover {
    const NAME: &'static str = "discover";
    const CLAIM: &'static str = ChangeMorphism::IssueDiscover.claim();
    const NEEDS_VERIFICATION: bool = false;
}

impl MutationKind for AddEdge {
    const NAME: &'static str = ChangeMorphism::DepAdd.name();
    const CLAIM: &'static str = ChangeMorphism::DepAdd.claim();
    const NEEDS_VERIFICATION: bool = true;
}

impl MutationKind for RemoveEdge {
    const NAME: &'static str = ChangeMorphism::DepRemove.name();
    const CLAIM: &'static str = ChangeMorphism::DepRemove.claim();
    const NEEDS_VERIFICATION: bool = true;
}

impl MutationKind for ReplaceEdge {
    const NAME: &'static str = ChangeMorphism::DepReplace.name();
    const CLAIM: &'static str = ChangeMorphism::DepReplace.claim();
    const NEEDS_VERIFICATION: bool = true;
}

/// The right of a turn to a change that is asked for under an instruction.
#[derive(Debug)]
#[must_use = "a right that is not used changes nothing"]
pub enum GatedChange {
    /// To close the issue.
    Close(MutationReady<Close>),
    /// To set it blocked.
    Block(MutationReady<Block>),
    /// To add an edge.
    AddEdge(MutationReady<AddEdge>),
    /// To remove an edge.
    RemoveEdge(MutationReady<RemoveEdge>),
    /// To replace an edge.
    ReplaceEdge(MutationReady<ReplaceEdge>),
}

impl GatedChange {
    /// Returns [`MutationKind::NAME`].
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Close(_) => Close::NAME,
            Self::Block(_) => Block::NAME,
            Self::AddEdge(_) => AddEdge::NAME,
            Self::RemoveEdge(_) => RemoveEdge::NAME,
            Self::ReplaceEdge(_) => ReplaceEdge::NAME,
        }
    }

    /// Returns the step whose turn it is.
    pub const fn step(&self) -> &StepIdentity {
        match self {
            Self::Close(ready) => ready.step(),
            Self::Block(ready) => ready.step(),
            Self::AddEdge(ready) => ready.step(),
            Self::RemoveEdge(ready) => ready.step(),
            Self::ReplaceEdge(ready) => ready.step(),
        }
    }

    /// Returns the reference of what the right rests on.
    pub fn witness_ref(&self) -> String {
        match self {
            Self::Close(ready) => ready.witness_ref(),
            Self::Block(ready) => ready.witness_ref(),
            Self::AddEdge(ready) => ready.witness_ref(),
            Self::RemoveEdge(ready) => ready.witness_ref(),
            Self::ReplaceEdge(ready) => ready.witness_ref(),
        }
    }
}

/// What a turn is held against when it asks to change an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutationBinding {
    /// The step that the turn belongs to.
    pub step: StepIdentity,
    /// The digest of the mutation policy that is active.
    pub mutation_policy_digest: String,
    /// The claims that the change may rest on.
    pub claims: ClaimSet,
    /// The `toolCallId` of the verification's result; closing needs one.
    pub verification: Option<String>,
    /// The normaliser that the evidence must be bound to; any where absent.
    pub normalizer: Option<String>,
    /// The instruction that the change rests on, where it rests on one.
    pub instruction_ref: Option<String>,
}

impl MutationBinding {
    /// Binds a step to what its mode rests on.
    pub fn of_mode(step: StepIdentity, mode: &MutationMode, verification: Option<String>) -> Self {
        Self {
            step,
            mutation_policy_digest: mode.policy_digest(),
            claims: mode.claims(),
            verification,
            normalizer: mode.normalizer_id().map(str::to_owned),
            instruction_ref: mode.instruction_ref().map(str::to_owned),
        }
    }

    /// Returns the binding of a turn that the harness writes itself, by its own
    /// normaliser.
    #[must_use]
    pub fn normalized_by(mut self, normalizer_id: &str) -> Self {
        self.normalizer = self.normalizer.map(|_| normalizer_id.to_owned());
        self
    }

    /// Returns the changes that a step's turn admits where it admits the close,
    /// sorted: those that the step may make by it.
    pub fn changes_of_step(&self) -> Vec<&'static str> {
        let changes = [
            self.covered::<Close>(),
            self.covered::<AddEdge>(),
            self.covered::<RemoveEdge>(),
            self.covered::<ReplaceEdge>(),
            self.covered::<Discover>(),
        ];
        changes.into_iter().flatten().collect()
    }

    /// Returns the changes that the turn of an escalation admits, sorted:
    /// blocking and discovering, nothing else (`contracts.md` 7).
    pub fn changes_of_escalation(&self) -> Vec<&'static str> {
        let changes = [self.covered::<Block>(), self.covered::<Discover>()];
        changes.into_iter().flatten().collect()
    }

    fn covered<C: MutationKind>(&self) -> Option<&'static str> {
        self.claims.covers(C::CLAIM).then_some(C::NAME)
    }

    /// Returns the reference that `sessionRefs` must hold.
    pub(crate) fn session_ref(&self) -> String {
        session_ref(&self.step)
    }

    /// Returns the reference that `trajectoryRefs` must hold.
    pub(crate) fn trajectory_ref(&self) -> String {
        trajectory_ref(&self.step)
    }
}

/// Returns the reference of a step's session: `session://<session id>`, the
/// id encoded (`contracts.md` 2, 11).
pub fn session_ref(step: &StepIdentity) -> String {
    reference::session(&step.session_id)
}

/// Returns the reference of a step's trajectory row:
/// `trajectory://step/<step id>`, the id encoded (`contracts.md` 2, 11).
pub fn trajectory_ref(step: &StepIdentity) -> String {
    reference::trajectory_step(&step.step_id())
}

/// The right to change the issue of one step in one way, once.
///
/// Minted by [`JoinClosed::admit`](super::chain::JoinClosed::admit) alone and
/// consumed by writing the change. It cannot be copied, defaulted, read from a
/// file or used for another kind of change; `shared/kernel/tests/compile_fail` proves
/// it.
#[derive(Debug)]
#[must_use = "a right that is not used changes nothing"]
pub struct MutationReady<C: MutationKind> {
    step: StepIdentity,
    witness: MutationWitness,
    change: PhantomData<fn() -> C>,
}

/// The facts that a change rests on, as they are written down and digested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MutationWitness {
    /// `mutation-ready`.
    pub kind: &'static str,
    /// [`MutationKind::NAME`].
    pub change: &'static str,
    /// The issue.
    pub issue_id: IssueId,
    /// The step.
    pub step_id: StepId,
    /// The step's session.
    pub session_id: SessionId,
    /// The lease that the step runs under.
    pub lease_id: LeaseId,
    /// The lease's owner.
    pub lease_owner: String,
    /// The lease's generation.
    pub lease_generation: u64,
    /// The turn's binding.
    pub call_spec_digest: String,
    /// The turn's closed join.
    pub join_set_digest: String,
    /// The active mutation policy.
    pub mutation_policy_digest: String,
    /// The verification that passed, where the change needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification_call_id: Option<String>,
    /// The instruction that the change rests on; absent under a person's override.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction_ref: Option<String>,
}

impl<C: MutationKind> MutationReady<C> {
    /// Mints the right. Only the chain calls it, after the gate found nothing.
    pub(super) fn mint(turn: &Normalized, binding: &MutationBinding) -> Self {
        let step = &binding.step;
        let verification = binding.verification.as_deref().map(str::trim);
        let witness = MutationWitness {
            kind: "mutation-ready",
            change: C::NAME,
            issue_id: step.issue_id.clone(),
            step_id: step.step_id(),
            session_id: step.session_id.clone(),
            lease_id: step.lease_id.clone(),
            lease_owner: step.owner.clone(),
            lease_generation: step.generation,
            call_spec_digest: turn.digests.call_spec_digest.clone(),
            join_set_digest: turn.digests.join_set_digest.clone(),
            mutation_policy_digest: binding.mutation_policy_digest.clone(),
            verification_call_id: verification
                .filter(|_| C::NEEDS_VERIFICATION)
                .map(str::to_owned),
            instruction_ref: binding.instruction_ref.clone(),
        };
        Self {
            step: step.clone(),
            witness,
            change: PhantomData,
        }
    }

    /// Returns the step whose issue may be changed.
    pub const fn step(&self) -> &StepIdentity {
        &self.step
    }

    /// Returns the facts that the right rests on, for the record.
    pub const fn witness(&self) -> &MutationWitness {
        &self.witness
    }

    /// Returns `mutation-ready://<issue>/<change>/<H of the facts>`.
    pub fn witness_ref(&self) -> String {
        format!(
            "mutation-ready://{}/{}/{}",
            token::encode(&self.step.issue_id),
            C::NAME,
            canonical::ref_digest(&self.witness)
        )
    }
}

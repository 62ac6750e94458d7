//! The chain as types (`HARNESS-TYPESTATE 2`).
//!
//! A state cannot be made, copied or skipped: each has private fields and
//! comes from the one before, which it uses up.

use super::constraints::Constraints;
use super::error::EvidenceError;
use super::evidence::{CallSpecRow, RequestRow, UseRow};
use super::gate::{self, BrokenRule};
use super::input::JoinCheckInput;
use super::join_check::JoinCheck;
use super::mutation::{MutationBinding, MutationKind, MutationReady};
use super::normal::{Digests, NormalResult, Normalized, normalize};
use crate::failure::FailureClass;
use std::collections::BTreeSet;

/// A turn's evidence, normalised once at the head of the chain.
#[derive(Debug)]
struct RawTurn {
    normal: Normalized,
    constraints: Constraints,
}

/// A turn that is bound to its policies (`HARNESS-TYPESTATE 3.1`).
#[derive(Debug)]
#[must_use = "a turn that is not walked to its end changes nothing"]
pub struct CallSpec(Box<RawTurn>);

/// A turn whose requested tool calls are known.
#[derive(Debug)]
#[must_use = "a turn that is not walked to its end changes nothing"]
pub struct ToolRequests(Box<RawTurn>);

/// A turn whose tool calls' ends are known.
#[derive(Debug)]
#[must_use = "a turn that is not walked to its end changes nothing"]
pub struct ToolResults(Box<RawTurn>);

/// A turn of which it is known the outcome of every result.
#[derive(Debug)]
#[must_use = "a turn that is not joined changes nothing"]
pub struct ToolUse(Box<RawTurn>);

/// A turn that is closed over its evidence (`HARNESS-TYPESTATE 5`).
///
/// Not yet a right to change anything: that is [`JoinClosed::admit`]'s to give.
#[derive(Debug)]
#[must_use = "a closed turn changes nothing until it is admitted"]
pub struct JoinClosed(Box<RawTurn>);

impl CallSpec {
    /// Brings evidence into its normal form and begins the chain.
    ///
    /// # Errors
    ///
    /// Evidence that cannot be read ([`normalize`]). This is not a verdict:
    /// what can be read is judged later, all at once.
    pub fn bind(input: &JoinCheckInput) -> Result<Self, EvidenceError> {
        Ok(Self(Box::new(RawTurn {
            normal: normalize(input.evidence.clone())?,
            constraints: input.constraints.clone(),
        })))
    }

    /// Returns what the turn is bound to.
    pub fn call_spec(&self) -> &CallSpecRow {
        &self.0.normal.call_spec
    }

    /// Continues to the requested calls.
    pub fn requests(self) -> ToolRequests {
        ToolRequests(self.0)
    }
}

impl ToolRequests {
    /// Returns the requested calls, by id.
    pub fn rows(&self) -> &[RequestRow] {
        &self.0.normal.tool_requests
    }

    /// Continues to their ends.
    pub fn results(self) -> ToolResults {
        ToolResults(self.0)
    }
}

impl ToolResults {
    /// Returns the ends of calls, by id.
    pub fn rows(&self) -> &[NormalResult] {
        &self.0.normal.tool_results
    }

    /// Continues to their outcomes.
    pub fn tool_use(self) -> ToolUse {
        ToolUse(self.0)
    }
}

impl ToolUse {
    /// Returns the dispositions, by id.
    pub fn rows(&self) -> &[UseRow] {
        &self.0.normal.tool_use
    }

    /// Returns the whole turn in normal form, for the record of a refusal.
    pub fn normalized(&self) -> &Normalized {
        &self.0.normal
    }

    /// Returns the turn's report: the same judgement, which mints nothing.
    pub fn report(&self) -> JoinCheck {
        JoinCheck::of(self.0.normal.clone(), &self.0.constraints)
    }

    /// Returns every rule that the turn breaks, with the places.
    pub fn explain(&self) -> Vec<BrokenRule> {
        gate::explain(&self.0.normal, &self.0.constraints)
    }

    /// Closes the join, if nothing keeps it open.
    ///
    /// # Errors
    ///
    /// The state itself, with every class that keeps the join open.
    pub fn join(self) -> Result<JoinClosed, Refused<Self>> {
        let classes = gate::join_classes(&self.0.normal, &self.0.constraints);
        if classes.is_empty() {
            Ok(JoinClosed(self.0))
        } else {
            Err(Refused::new(self, classes))
        }
    }
}

impl JoinClosed {
    /// Returns the turn in normal form.
    pub fn normalized(&self) -> &Normalized {
        &self.0.normal
    }

    /// Returns the turn's ten digests.
    pub fn digests(&self) -> &Digests {
        &self.0.normal.digests
    }

    /// Admits one change of one kind to the issue of one step
    /// (`HARNESS-TYPESTATE 6`, `TOOL-CALLING-HARNESS-TYPESTATE 4.6`).
    ///
    /// # Errors
    ///
    /// The state itself, with every class that refuses the change: another
    /// policy than the active one, a missing claim, no linkage to this step's
    /// witnesses, incomplete use evidence, decomposition or handoff that
    /// nothing constrains and, for [`Close`](super::mutation::Close), no
    /// verification that passed.
    pub fn admit<C: MutationKind>(
        self,
        binding: &MutationBinding,
    ) -> Result<MutationReady<C>, Refused<Self>> {
        let classes = gate::admission_classes(
            &self.0.normal,
            &self.0.constraints,
            binding,
            gate::AdmissionDemand {
                claim: C::CLAIM,
                verification: C::NEEDS_VERIFICATION,
            },
        );
        if classes.is_empty() {
            Ok(MutationReady::mint(&self.0.normal, binding))
        } else {
            Err(Refused::new(self, classes))
        }
    }
}

/// A step of the chain that was not taken: the state as it was, and all classes.
#[derive(Debug, thiserror::Error)]
#[error("the turn is refused: {}", list(.classes))]
pub struct Refused<S> {
    state: S,
    classes: BTreeSet<FailureClass>,
}

impl<S> Refused<S> {
    fn new(state: S, classes: BTreeSet<FailureClass>) -> Self {
        Self { state, classes }
    }

    /// Returns the state that was refused.
    pub const fn state(&self) -> &S {
        &self.state
    }

    /// Returns every class, sorted; never empty.
    pub const fn classes(&self) -> &BTreeSet<FailureClass> {
        &self.classes
    }

    /// Gives the state back.
    pub fn into_state(self) -> S {
        self.state
    }

    /// Gives the state and its classes back.
    pub fn into_parts(self) -> (S, BTreeSet<FailureClass>) {
        (self.state, self.classes)
    }
}

fn list(classes: &BTreeSet<FailureClass>) -> String {
    let names: Vec<_> = classes.iter().map(|class| class.as_str()).collect();
    names.join(", ")
}

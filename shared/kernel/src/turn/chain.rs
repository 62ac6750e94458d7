//! The chain as types (`HARNESS-TYPESTATE 2`).
//!
//! A state cannot be made, copied or skipped: each has private fields and
//! comes from the one before, which it uses up.

use super::constraints::Constraints;
use super::error::EvidenceError;
use super::gate::{self, JoinPart};
use super::input::JoinCheckInput;
use super::join_check::JoinCheck;
use super::mutation::{MutationBinding, MutationKind, MutationReady};
use super::normal::{Normalized, normalize};
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

impl RawTurn {
    fn is_satisfied(&self, part: JoinPart) -> bool {
        gate::is_satisfied(&self.normal, &self.constraints, part)
    }

    fn join_classes(&self) -> BTreeSet<FailureClass> {
        gate::join_classes(&self.normal, &self.constraints)
    }
}

/// A turn whose requested tool calls are within its policies.
#[derive(Debug)]
#[must_use = "a turn that is not walked to its end changes nothing"]
pub struct ToolRequests(Box<RawTurn>);

/// A turn that has one typed result of each requested tool call, and no other.
#[derive(Debug)]
#[must_use = "a turn that is not walked to its end changes nothing"]
pub struct ToolResults(Box<RawTurn>);

/// A turn that has a disposition of each result, and no other.
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
    #[cfg(test)]
    pub(crate) fn call_spec(&self) -> &super::evidence::CallSpecRow {
        &self.0.normal.call_spec
    }

    /// Returns the turn's report: the same judgement, which mints nothing.
    pub fn report(&self) -> JoinCheck {
        JoinCheck::of(self.0.normal.clone(), &self.0.constraints)
    }

    /// Continues to the requested calls.
    ///
    /// # Errors
    ///
    /// The state itself, with every class that keeps the join open, where a request
    /// is not within the policies that the turn is bound to.
    pub fn requests(self) -> Result<ToolRequests, Refused<Self>> {
        match self.0.is_satisfied(JoinPart::Requests) {
            true => Ok(ToolRequests(self.0)),
            false => Err(Refused::open(self, |state| &state.0)),
        }
    }

    /// Continues to the closed join, through all states between.
    ///
    /// # Errors
    ///
    /// Every class that keeps the join open, whichever state is refused.
    pub fn joined(self) -> Result<JoinClosed, BTreeSet<FailureClass>> {
        let requests = self.requests().map_err(Refused::into_classes)?;
        let results = requests.results().map_err(Refused::into_classes)?;
        let uses = results.tool_use().map_err(Refused::into_classes)?;
        uses.join().map_err(Refused::into_classes)
    }

    /// Continues to the right for one change of one kind.
    ///
    /// # Errors
    ///
    /// Every class of the state that is refused.
    pub fn admitted<C: MutationKind>(
        self,
        binding: &MutationBinding,
    ) -> Result<MutationReady<C>, BTreeSet<FailureClass>> {
        let joined = self.joined()?;
        joined.admit(binding).map_err(Refused::into_classes)
    }
}

impl ToolRequests {
    /// Returns the requested calls, by id.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[super::evidence::RequestRow] {
        &self.0.normal.tool_requests
    }

    /// Continues to their ends.
    ///
    /// # Errors
    ///
    /// The state itself, with every class that keeps the join open, where requests
    /// and results do not match or an error lacks its type.
    pub fn results(self) -> Result<ToolResults, Refused<Self>> {
        match self.0.is_satisfied(JoinPart::Results) {
            true => Ok(ToolResults(self.0)),
            false => Err(Refused::open(self, |state| &state.0)),
        }
    }
}

impl ToolResults {
    /// Returns the ends of calls, by id.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[super::normal::NormalResult] {
        &self.0.normal.tool_results
    }

    /// Continues to their outcomes.
    ///
    /// # Errors
    ///
    /// The state itself, with every class that keeps the join open, where results
    /// and uses do not match.
    pub fn tool_use(self) -> Result<ToolUse, Refused<Self>> {
        match self.0.is_satisfied(JoinPart::Use) {
            true => Ok(ToolUse(self.0)),
            false => Err(Refused::open(self, |state| &state.0)),
        }
    }
}

impl ToolUse {
    /// Returns the dispositions, by id.
    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[super::evidence::UseRow] {
        &self.0.normal.tool_use
    }

    /// Closes the join, if nothing else keeps it open.
    ///
    /// # Errors
    ///
    /// The state itself, with every class that keeps the join open.
    pub fn join(self) -> Result<JoinClosed, Refused<Self>> {
        match self.0.is_satisfied(JoinPart::Closure) {
            true => Ok(JoinClosed(self.0)),
            false => Err(Refused::open(self, |state| &state.0)),
        }
    }
}

impl JoinClosed {
    /// Returns the turn in normal form.
    pub fn normalized(&self) -> &Normalized {
        &self.0.normal
    }

    /// Returns the turn's ten digests.
    #[cfg(test)]
    pub(crate) fn digests(&self) -> &super::normal::Digests {
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

    /// All classes of the join, whichever state is refused.
    fn open(state: S, raw: fn(&S) -> &RawTurn) -> Self {
        let classes = raw(&state).join_classes();
        Self { state, classes }
    }

    /// Returns the state that was refused.
    pub const fn state(&self) -> &S {
        &self.state
    }

    /// Returns every class, sorted; never empty.
    #[cfg(test)]
    pub(crate) const fn classes(&self) -> &BTreeSet<FailureClass> {
        &self.classes
    }

    /// Returns the state.
    pub fn into_state(self) -> S {
        self.state
    }

    /// Returns the classes alone.
    pub(super) fn into_classes(self) -> BTreeSet<FailureClass> {
        self.classes
    }
}

fn list(classes: &BTreeSet<FailureClass>) -> String {
    let names: Vec<_> = classes.iter().map(|class| class.as_str()).collect();
    names.join(", ")
}

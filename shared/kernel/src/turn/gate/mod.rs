//! The gate: which failure classes a turn has (`HARNESS-TYPESTATE 5`, `6`,
//! `8`; `TOOL-CALLING-HARNESS-TYPESTATE 4`, `7`).
//!
//! A table of small rules. Every rule is asked, whatever the others say, so
//! that a person sees everything at once. The rules read facts alone and
//! nothing outside their arguments; each says where a turn breaks it, one
//! place after the other, so that a verdict costs the first place only.

mod breach;
mod caller;
mod context;
mod coordination;
mod discovery;
mod governance;
mod handoff;
mod mutation;
mod promotion;
mod protocol;
mod runtime;
mod tool;
mod transport;

use super::constraints::Constraints;
use super::mutation::MutationBinding;
use super::normal::Normalized;
use crate::failure::FailureClass;
pub use breach::Breach;
use breach::Breaches;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Returns every class that keeps the join from being closed.
pub fn join_classes(turn: &Normalized, constraints: &Constraints) -> BTreeSet<FailureClass> {
    Case::unbound(turn, constraints).classes(&[Stage::Join])
}

/// Returns whether a turn satisfies the rules of one state of the chain.
pub(super) fn is_satisfied(turn: &Normalized, constraints: &Constraints, part: JoinPart) -> bool {
    let case = Case::unbound(turn, constraints);
    let mut rules = rules().filter(|rule| rule.stage == Stage::Join && rule.part == part);
    rules.all(|rule| (rule.breaches)(&case).next().is_none())
}

/// Returns every class that concerns MutationReady and is not the join's own,
/// as far as it can be determined without knowing the step.
///
/// Witness linkage is asked for, but of any step; the step's own policy, claims
/// and verification are asked by
/// [`JoinClosed::admit`](super::chain::JoinClosed::admit).
pub fn mutation_classes(turn: &Normalized, constraints: &Constraints) -> BTreeSet<FailureClass> {
    Case::unbound(turn, constraints).classes(&[Stage::Mutation, Stage::AnyStep])
}

/// Returns every class that keeps a turn from changing the issue of a step.
pub(super) fn admission_classes(
    turn: &Normalized,
    constraints: &Constraints,
    binding: &MutationBinding,
    demand: AdmissionDemand,
) -> BTreeSet<FailureClass> {
    let case = Case {
        turn,
        constraints,
        step: Some(Step { binding, demand }),
    };
    case.classes(&[Stage::Mutation, Stage::ThisStep])
}

/// Returns every rule that a turn breaks, with the places where it does.
///
/// As [`join_classes`] and [`mutation_classes`] together: without a step.
pub fn explain(turn: &Normalized, constraints: &Constraints) -> Vec<BrokenRule> {
    let case = Case::unbound(turn, constraints);
    rules()
        .filter(|rule| rule.stage != Stage::ThisStep)
        .filter_map(|rule| rule.broken_by(&case))
        .collect()
}

/// A rule that a turn breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrokenRule {
    /// The class.
    pub class: FailureClass,
    /// The rule's own name: its module and function in this crate.
    pub rule: String,
    /// What it keeps the turn from.
    pub stage: Stage,
    /// Whether the class merely follows from another one.
    pub derived: bool,
    /// What would satisfy the rule.
    pub asks: &'static str,
    /// The first places where it is broken, at most `PLACES`.
    pub breaches: Vec<Breach>,
    /// How many more places there are.
    pub more: usize,
}

/// The most places of one rule that are reported one by one.
pub(crate) const PLACES: usize = 20;

/// What a rule keeps a turn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From JoinClosed.
    Join,
    /// From MutationReady, with or without a step.
    Mutation,
    /// From MutationReady, where no step is known.
    AnyStep,
    /// From MutationReady, for one step and one kind of change.
    ThisStep,
}

/// Which state of the chain a rule of [`Stage::Join`] is checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JoinPart {
    /// `ToolRequests`: each request by itself, and the requests beside each other.
    Requests,
    /// `ToolResults`: the results against the requests.
    Results,
    /// `ToolUse`: the uses against the results.
    Use,
    /// `JoinClosed`: everything else that the join rests on.
    Closure,
}

/// A rule's documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleNote {
    /// The class.
    pub class: FailureClass,
    /// The rule's own name.
    pub rule: String,
    /// What it keeps the turn from.
    pub stage: Stage,
    /// Whether the class merely follows from another one.
    pub derived: bool,
    /// The condition that would satisfy the rule.
    pub asks: &'static str,
    /// The slices of `TOOL-CALLING-HARNESS-TYPESTATE 8` that it belongs to.
    pub slices: &'static [u8],
}

/// Returns a note of every rule that [`explain`] asks: those of the join, and those of a
/// change where no step is known.
pub fn judged_notes() -> Vec<RuleNote> {
    let mut notes = notes();
    notes.retain(|note| note.stage != Stage::ThisStep);
    notes
}

/// Returns a note of every rule, in the order of the table.
pub fn notes() -> Vec<RuleNote> {
    rules()
        .map(|rule| RuleNote {
            class: rule.class,
            rule: rule.name(),
            stage: rule.stage,
            derived: rule.derived,
            asks: rule.asks,
            slices: rule.slices,
        })
        .collect()
}

/// What a kind of change demands of its admission.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdmissionDemand {
    pub(super) claim: &'static str,
    pub(super) verification: bool,
}

/// A step whose issue is to be changed.
#[derive(Clone, Copy, Debug)]
struct Step<'a> {
    binding: &'a MutationBinding,
    demand: AdmissionDemand,
}

/// The turn and the facts that rules read.
#[derive(Clone, Copy, Debug)]
struct Case<'a> {
    turn: &'a Normalized,
    constraints: &'a Constraints,
    step: Option<Step<'a>>,
}

impl<'a> Case<'a> {
    const fn unbound(turn: &'a Normalized, constraints: &'a Constraints) -> Self {
        Self {
            turn,
            constraints,
            step: None,
        }
    }

    fn classes(&self, stages: &[Stage]) -> BTreeSet<FailureClass> {
        rules()
            .filter(|rule| stages.contains(&rule.stage))
            .filter(|rule| (rule.breaches)(self).next().is_some())
            .map(|rule| rule.class)
            .collect()
    }
}

/// One rule: its class, and where a turn breaks it.
struct Rule {
    class: FailureClass,
    stage: Stage,
    part: JoinPart,
    derived: bool,
    module: &'static str,
    function: &'static str,
    slices: &'static [u8],
    asks: &'static str,
    breaches: for<'a> fn(&Case<'a>) -> Breaches<'a>,
}

impl Rule {
    fn name(&self) -> String {
        let module = self.module.rsplit("::").next().unwrap_or(self.module);
        format!("{module}::{}", self.function)
    }

    fn broken_by(&self, case: &Case<'_>) -> Option<BrokenRule> {
        let mut places = (self.breaches)(case);
        let breaches: Vec<Breach> = places.by_ref().take(PLACES).collect();
        (!breaches.is_empty()).then(|| BrokenRule {
            class: self.class,
            rule: self.name(),
            stage: self.stage,
            derived: self.derived,
            asks: self.asks,
            breaches,
            more: places.count(),
        })
    }
}

/// Makes one rule of a table: class, stage, slices, function, what it asks. A rule
/// that `ToolRequests`, `ToolResults` or `ToolUse` is checked for has `Join: Requests`
/// and so on as its stage.
macro_rules! rule {
    ($class:ident, $stage:ident, $rest:tt, $($function:ident)+, $asks:literal) => {
        rule!($class, $stage: Closure, $rest, $($function)+, $asks)
    };
    ($class:ident, $stage:ident: $part:ident, [$($slice:literal),*], $function:ident, $asks:literal) => {
        $crate::turn::gate::Rule {
            class: $crate::failure::FailureClass::$class,
            stage: $crate::turn::gate::Stage::$stage,
            part: $crate::turn::gate::JoinPart::$part,
            derived: false,
            module: module_path!(),
            function: stringify!($function),
            slices: &[$($slice),*],
            asks: $asks,
            breaches: $function,
        }
    };
    ($class:ident, $stage:ident: $part:ident, $rest:tt, derived $function:ident, $asks:literal) => {
        $crate::turn::gate::Rule {
            derived: true,
            ..rule!($class, $stage: $part, $rest, $function, $asks)
        }
    };
}
use rule;

/// Returns every rule.
fn rules() -> impl Iterator<Item = &'static Rule> {
    [
        tool::RULES,
        discovery::RULES,
        caller::RULES,
        transport::RULES,
        protocol::RULES,
        runtime::RULES,
        context::RULES,
        coordination::RULES,
        handoff::RULES,
        governance::RULES,
        promotion::RULES,
        mutation::RULES,
    ]
    .into_iter()
    .flatten()
}

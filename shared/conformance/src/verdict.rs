//! What the gate reports about an input.

use super::difference::listed;
use super::document::Input;
use premath_kernel::failure::FailureClass;
use premath_kernel::turn::{BrokenRule, EvidenceError, JoinCheck, explain, join_check};
use std::collections::BTreeSet;
use std::error::Error;

/// The gate's verdict on an input, with the rules that it rests on.
#[derive(Debug)]
pub(super) struct RuleVerdict {
    pub(super) check: JoinCheck,
    broken: Vec<BrokenRule>,
}

impl RuleVerdict {
    /// Judges an input.
    ///
    /// # Errors
    ///
    /// What the join check's command reports about an input that it cannot
    /// read.
    pub(super) fn of(input: &Input) -> Result<Self, String> {
        let judged = || -> Result<Self, EvidenceError> {
            let input = input.parse()?.input;
            let check = join_check(&input)?;
            let broken = explain(&check.normalized, &input.constraints);
            Ok(Self { check, broken })
        };
        judged().map_err(|error| chain(&error))
    }

    /// Returns the classes that follow from no other one.
    pub(super) fn roots(&self) -> BTreeSet<FailureClass> {
        let roots = self.broken.iter().filter(|rule| !rule.derived);
        roots.map(|rule| rule.class).collect()
    }

    /// Returns the names of the rules that the turn breaks.
    pub(super) fn rules(&self) -> BTreeSet<String> {
        self.broken.iter().map(|rule| rule.rule.clone()).collect()
    }

    /// Returns the verdict as a person reads it.
    pub(super) fn describe(&self) -> String {
        format!(
            "a verdict, with the classes {} and, of a change, {}",
            listed(&self.check.failure_classes),
            listed(&self.check.mutation_failure_classes)
        )
    }
}

/// Returns an error with all its causes, as the command prints it.
fn chain(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", chain(cause)),
        None => error.to_string(),
    }
}

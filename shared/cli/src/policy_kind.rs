//! Which of the two policies a command is about.

use clap::ValueEnum;
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::{retry, turn};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A kind of policy artifact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PolicyKind {
    /// Which tool calls agents may make
    #[default]
    Turn,
    /// What follows a failure
    Retry,
}

impl PolicyKind {
    /// Every kind.
    const ALL: [Self; 2] = [Self::Turn, Self::Retry];

    /// Returns its name in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn policy",
            Self::Retry => "retry policy",
        }
    }

    /// Returns the usual place of an artifact, from the repository root.
    pub(crate) const fn place(self) -> &'static str {
        match self {
            Self::Turn => turn::POLICY_PLACE,
            Self::Retry => retry::POLICY_PLACE,
        }
    }

    /// Returns the artifact of a repository that has none of its own.
    pub(crate) const fn embedded_text(self) -> &'static str {
        match self {
            Self::Turn => turn::TurnPolicy::embedded_text(),
            Self::Retry => retry::RetryPolicy::embedded_text(),
        }
    }

    /// Returns the kind that an artifact states.
    pub(crate) fn stated(document: &Value) -> Option<Self> {
        let stated = document.get("policyKind")?.as_str()?;
        Self::ALL.into_iter().find(|kind| kind.word() == stated)
    }

    /// Returns the word in an artifact.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Turn => turn::POLICY_KIND,
            Self::Retry => retry::POLICY_KIND,
        }
    }

    /// Returns the class of an artifact that cannot be read.
    pub(crate) const fn unreadable(self) -> FailureClass {
        match self {
            Self::Turn => FailureClass::TurnPolicyInvalid,
            Self::Retry => FailureClass::RetryPolicyInvalid,
        }
    }

    /// Returns the field that holds the rules.
    pub(crate) const fn rules_field(self) -> &'static str {
        match self {
            Self::Turn => "tools",
            Self::Retry => "rules",
        }
    }
}

//! Settings that are one of a few words.

use super::values::one_of;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// What happens after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnFailure {
    /// Other issues are worked on.
    Continue,
    /// The batch ends.
    Stop,
}

impl<'de> Deserialize<'de> for OnFailure {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let words = [("continue", Self::Continue), ("stop", Self::Stop)];
        one_of(from, &words, "`continue` or `stop`")
    }
}

/// What happens to an attempt without changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnNoChange {
    /// It may close its issue.
    Allow,
    /// The attempt fails.
    #[default]
    Refuse,
}

impl OnNoChange {
    /// The words of the setting.
    pub(super) const WORDS: [(&'static str, Self); 2] =
        [("allow", Self::Allow), ("refuse", Self::Refuse)];
    /// The words, as an error names them.
    pub(super) const EXPECTED: &'static str = "`allow` or `refuse`";
}

impl<'de> Deserialize<'de> for OnNoChange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        one_of(from, &Self::WORDS, Self::EXPECTED)
    }
}

/// What happens to the verification commands of issues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum IssueChecksRule {
    /// Those that an operator wrote are run.
    #[default]
    Run,
    /// None is run.
    Ignore,
}

impl<'de> Deserialize<'de> for IssueChecksRule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let words = [("run", Self::Run), ("ignore", Self::Ignore)];
        one_of(from, &words, "`run` or `ignore`")
    }
}

/// Whether the verify command runs before the first attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum StartupRule {
    /// It runs on the base, and must pass.
    #[default]
    Run,
    /// It does not run.
    Off,
}

impl StartupRule {
    /// The words of the setting.
    pub(super) const WORDS: [(&'static str, Self); 2] = [("run", Self::Run), ("off", Self::Off)];
    /// The words, as an error names them.
    pub(super) const EXPECTED: &'static str = "`run` or `off`";
}

impl<'de> Deserialize<'de> for StartupRule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        one_of(from, &Self::WORDS, Self::EXPECTED)
    }
}

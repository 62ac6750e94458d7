//! The four kinds of vectors.

use serde::Serialize;

/// What a vector asks of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Suite {
    /// That it is accepted, with no failure class of either kind.
    Golden,
    /// That it has exactly the classes it names, of which one is the root.
    Adversarial,
    /// That two spellings of it are one turn.
    Invariance,
    /// That it is refused as an input.
    Refusal,
}

impl Suite {
    /// Every suite, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::Golden,
        Self::Adversarial,
        Self::Invariance,
        Self::Refusal,
    ];

    /// Returns the name of its folder.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Golden => "golden",
            Self::Adversarial => "adversarial",
            Self::Invariance => "invariance",
            Self::Refusal => "refusal",
        }
    }

    /// Returns the suite of a vector by its id, as in `golden/closed`.
    pub(super) fn of_id(id: &str) -> Option<Self> {
        let (folder, name) = id.split_once('/')?;
        let suite = Self::ALL.iter().find(|suite| suite.as_str() == folder)?;
        (!name.is_empty()).then_some(*suite)
    }
}

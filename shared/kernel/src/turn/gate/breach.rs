//! A place where a turn breaks a rule.

use schemars::JsonSchema;
use serde::Serialize;

/// A place where a turn breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Breach {
    /// Where, as in `toolResults[call-7]`: rows are named by their key.
    pub at: String,
    /// What is there, or does not.
    pub found: String,
}

/// The places where a turn breaks a rule, found one after the other.
pub(super) type Breaches<'a> = Box<dyn Iterator<Item = Breach> + 'a>;

impl Breach {
    pub(super) fn new(at: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            found: found.into(),
        }
    }

    /// Names a row of a list by its key.
    pub(super) fn row(list: &str, key: &str, found: impl Into<String>) -> Self {
        Self::new(format!("{list}[{key}]"), found)
    }
}

/// Returns no breach.
pub(super) fn none<'a>() -> Breaches<'a> {
    Box::new(std::iter::empty())
}

/// Returns one breach where a condition holds.
pub(super) fn when<'a>(
    broken: bool,
    at: &'static str,
    found: impl FnOnce() -> String + 'a,
) -> Breaches<'a> {
    Box::new(broken.then(|| Breach::new(at, found())).into_iter())
}

/// Returns the breaches of an iterator.
pub(super) fn each<'a>(breaches: impl Iterator<Item = Breach> + 'a) -> Breaches<'a> {
    Box::new(breaches)
}

/// Returns a text between backticks, or `nothing` where there is none.
pub(super) fn quoted(text: Option<&str>) -> String {
    text.map_or_else(|| "nothing".to_owned(), |text| format!("`{text}`"))
}

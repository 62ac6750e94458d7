//! What a batch that began now would do: the renderers of
//! [`BatchPlan`], for `premath plan` and
//! `harness-coordinator --dry-run`.

mod text;

pub use text::lines;

use premath_kernel::json::canonical::value_of;
use premath_kernel::json::plain::plain_json;
use premath_kernel::record::plan::BatchPlan;

/// The action of the document.
pub const ACTION: &str = "plan";

/// Returns the plan as one JSON document.
pub fn document(plan: &BatchPlan) -> String {
    let mut document = value_of(plan);
    document["action"] = ACTION.into();
    plain_json(&format!("{document:#}")).into_owned()
}

#[cfg(test)]
mod tests;

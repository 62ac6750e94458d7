//! What a step's work amounts to.

use super::landing::AdvancedLanding;
use premath_kernel::json::id::IssueId;
use premath_kernel::policy::governing::SensitiveChanges;

/// What a step's work amounts to, as far as it came.
#[derive(Debug, Default)]
pub(super) struct WorkDone {
    /// What the work changed, sorted.
    pub(super) changed_paths: Vec<String>,
    /// What of it a person should look at first.
    pub(super) sensitive: SensitiveChanges,
    /// The commit that holds it; none where nothing changed.
    pub(super) commit: Option<String>,
    /// The landing of the work.
    pub(super) landing: Option<AdvancedLanding>,
    /// The issues that were filed.
    pub(super) discovered: Vec<IssueId>,
}

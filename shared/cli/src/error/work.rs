//! Why the work of an attempt is not shown.

use premath_kernel::json::id::StepId;

/// The work of an attempt cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    /// An attempt kept nothing that could be compared.
    #[error("attempt {0} left no commit and no salvage branch")]
    Nothing(StepId),
    /// An attempt kept only what git cannot hold.
    #[error("attempt {step_id} left no commit and no salvage branch: what it left is in {folder}")]
    Aside {
        /// The attempt's step.
        step_id: StepId,
        /// The folder.
        folder: String,
    },
    /// What an attempt kept is gone.
    #[error("cannot show what attempt {step_id} changed: {detail}")]
    Gone {
        /// The attempt's step.
        step_id: StepId,
        /// What is gone.
        detail: String,
    },
}

impl WorkError {
    /// Returns what a person can do.
    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            Self::Nothing(_) => {
                "read what it printed with `premath logs ISSUE`, and how it ended with `premath \
                 why ISSUE`"
            }
            Self::Aside { .. } => "look at the files there: they are not compared",
            Self::Gone { .. } => "read how it ended with `premath issue show ISSUE`",
        }
    }
}

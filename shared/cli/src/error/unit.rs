//! Why units of systemd are not written or removed.

/// Units cannot be written or removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnitError {
    /// A step's command tried to.
    #[error("cannot install a service inside a step: only an operator may")]
    InsideStep,
    /// A unit is not as it was written.
    #[error("{path} was written or changed by a person")]
    Changed {
        /// The unit.
        path: String,
    },
    /// A unit runs batches of another repository.
    #[error("{path} belongs to another repository")]
    OfAnother {
        /// The unit.
        path: String,
    },
}

impl UnitError {
    /// Returns what a person can do.
    pub(crate) const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::InsideStep => None,
            Self::Changed { .. } => Some(
                "put changes into a drop-in with `systemctl --user edit`, or overwrite the unit \
                 with --force",
            ),
            Self::OfAnother { .. } => {
                Some("give the units of this one another name with --name NAME")
            }
        }
    }
}

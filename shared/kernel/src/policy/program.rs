//! What a batch does about a program of a command that lanes do not have.

/// Why lanes do not have a file of the main worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// It is not committed.
    Uncommitted,
    /// Git ignores it. A build may make it in lanes too.
    Ignored,
}

/// What an absent program means for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramVerdict {
    /// A setup makes it, as far as can be known.
    Accept,
    /// A setup or a build may make it.
    Warn,
    /// No command makes it.
    Refuse,
}

/// Decides by why it is absent, and by whether a command sets lanes up.
pub const fn verdict(absence: Absence, has_setup: bool) -> ProgramVerdict {
    match (absence, has_setup) {
        (Absence::Ignored, true) => ProgramVerdict::Accept,
        (Absence::Ignored, false) | (Absence::Uncommitted, true) => ProgramVerdict::Warn,
        (Absence::Uncommitted, false) => ProgramVerdict::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_that_no_command_makes_is_refused() {
        for (absence, has_setup, expected) in [
            (Absence::Uncommitted, false, ProgramVerdict::Refuse),
            (Absence::Uncommitted, true, ProgramVerdict::Warn),
            (Absence::Ignored, false, ProgramVerdict::Warn),
            (Absence::Ignored, true, ProgramVerdict::Accept),
        ] {
            assert_eq!(verdict(absence, has_setup), expected);
        }
    }
}

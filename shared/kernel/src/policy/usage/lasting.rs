//! What must hold twice before it counts.

/// Whether something holds in two checks in a row. A process that begins or ends
/// does not show its files for a moment; what is hidden on purpose stays hidden,
/// or is seen by the next check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lasting {
    was: bool,
}

impl Lasting {
    /// Takes the next check; returns whether it holds in this one and held in the
    /// one before.
    pub const fn still(&mut self, is: bool) -> bool {
        std::mem::replace(&mut self.was, is) && is
    }

    /// Returns whether it held in the last check.
    pub const fn was(self) -> bool {
        self.was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_for_a_moment_is_not_charged() {
        let mut hides = Lasting::default();
        let answers = [true, false, true, true, true, false].map(|is| hides.still(is));
        assert_eq!(answers, [false, false, false, true, true, false]);
        assert!(!hides.was());
    }
}

//! On how many states of the target a step's work is verified, and why.

/// On how many states work is verified that assume that other work lands, in all of
/// its repair rounds. Later ones wait until all the work ahead has landed and passed
/// its check, or has failed.
pub(super) const ASSUMED_MAX: usize = 6;

/// On how many states work is verified that assume nothing: one, and another one
/// where a landing was reserved before.
pub(super) const FIRM_MAX: usize = 2;

/// How often work is taken back with other work before it waits for the checks of
/// all that is ahead of it.
pub(super) const TAKEN_BACK_MAX: usize = 3;

/// How often others may move the target before its work lands, until it is given up
/// as being moved repeatedly. From the first time on no other harness can, unless a
/// reserved landing comes in between.
const MOVES_MAX: usize = 8;

/// On how many states work is verified after it passed.
pub(super) const STATES_AFTER_PASS: usize = ASSUMED_MAX + FIRM_MAX + MOVES_MAX;

/// On how many states work was verified, and what it was verified again for.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerifiedStates {
    /// In earlier repair rounds.
    earlier: usize,
    before_pass: usize,
    after_pass: usize,
    has_passed: bool,
    taken_back: usize,
    moves: usize,
}

impl VerifiedStates {
    /// Returns what work has after repair rounds in which it was verified on so many
    /// states.
    pub fn after_repair(earlier: usize) -> Self {
        Self {
            earlier,
            ..Self::default()
        }
    }

    /// Takes in that a verification begins on another state.
    pub const fn begin(&mut self) {
        match self.has_passed {
            false => self.before_pass += 1,
            true => self.after_pass += 1,
        }
    }

    /// Takes in that a verification passed.
    pub const fn passed(&mut self) {
        self.has_passed = true;
    }

    /// Takes in that others had moved the target when the work was to land; `false`
    /// where that happened too often. It does not count where the work `rides` on the
    /// verification of other work: it may also be that it has no commit of its own.
    pub const fn moved(&mut self, rides: bool) -> bool {
        if !rides {
            self.moves += 1;
        }
        self.moves <= MOVES_MAX
    }

    /// Returns whether a verification passed.
    pub const fn has_passed(&self) -> bool {
        self.has_passed
    }

    /// Takes in that the work was taken back with other work.
    pub const fn taken_back(&mut self) {
        self.taken_back += 1;
    }

    /// Returns whether the next verification may assume that other work lands.
    pub fn may_assume(&self) -> bool {
        let before = self.earlier + self.before_pass;
        before.max(self.after_pass) < ASSUMED_MAX && self.taken_back < TAKEN_BACK_MAX
    }

    /// Returns on how many states the work was verified before it passed.
    pub const fn before_pass(&self) -> usize {
        self.before_pass
    }

    /// Returns whether work was verified again no more often than other work of its
    /// queue and moves by others explain.
    #[cfg(test)]
    pub(super) fn are_bounded(&self) -> bool {
        let most = ASSUMED_MAX + FIRM_MAX + self.moves;
        self.before_pass.max(self.after_pass) <= most && self.taken_back <= TAKEN_BACK_MAX
    }

    /// Returns whether work was taken back as often as it may be.
    #[cfg(test)]
    pub(super) const fn is_taken_back_most(&self) -> bool {
        self.taken_back == TAKEN_BACK_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_assumes_nothing_after_six_states_in_all_repair_rounds_together() {
        let mut states = VerifiedStates::after_repair(4);
        states.begin();
        assert!(states.may_assume());
        states.begin();
        assert!(!states.may_assume());
        assert_eq!(states.before_pass(), 2);
        // Those after it passed are counted by themselves.
        let mut states = VerifiedStates::default();
        for _ in 0..5 {
            states.begin();
        }
        states.passed();
        for left in (0..6).rev() {
            states.begin();
            assert_eq!(states.may_assume(), left > 0);
        }
    }

    #[test]
    fn work_that_was_taken_back_three_times_assumes_nothing() {
        let mut states = VerifiedStates::default();
        for left in (0..3).rev() {
            states.taken_back();
            assert_eq!(states.may_assume(), left > 0);
        }
    }

    #[test]
    fn the_ninth_move_of_the_target_is_one_too_many() {
        let mut states = VerifiedStates::default();
        assert!((0..8).all(|_| states.moved(false)));
        assert!(states.moved(true));
        assert!(!states.moved(false));
    }
}

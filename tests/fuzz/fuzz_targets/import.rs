//! Any files that a step leaves are taken in or refused: nothing panics, no
//! link is followed out of the worktree, and no tree holds an entry that a
//! checkout must not meet.

#![no_main]

mod ground;
mod step;
mod tree;

use ground::Ground;
use libfuzzer_sys::fuzz_target;
use premath_worktree::tree::Ignored;
use std::collections::BTreeSet;

fuzz_target!(|bytes: &[u8]| {
    let ground = Ground::new();
    step::run(&ground.worktree(), bytes);

    let base = ground.base();
    let _ = ground.lane.changes();
    let _ = ground.lane.nested_repository(&base.commit);
    let state = ground.lane.state_on(&base.commit);
    if let Ok(kept) = ground.lane.keep_content(&base.commit) {
        tree::is_fit(&ground.repository(), &kept);
        let state = state.expect("what is taken has a state");
        assert_eq!(state.tree, kept, "what is stored is what was looked at");
        let again = ground.lane.keep_content(&base.commit).ok();
        assert_eq!(again, Some(kept), "a second look finds the same");
    }
    ground.outside_is_untouched();

    // The way back for the next step.
    let reset = ground.lane.reset(&base, &Ignored::Go(BTreeSet::new()));
    if reset.is_ok() {
        ground.lane.must_be_clean().expect("what is reset is clean");
    }
    ground.outside_is_untouched();
});

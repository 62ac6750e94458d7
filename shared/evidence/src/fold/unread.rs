//! Results that the model has not read yet.

use crate::json::MAX_NAME_BYTES;
use std::collections::HashMap;
use std::sync::Arc;

/// Who a result is given to, or a round; as in [`Speaker`](crate::Speaker).
type Name = Option<Arc<str>>;

/// Results by who they were given to.
#[derive(Debug, Default)]
pub(super) struct Unread {
    by_agent: OfCaller,
    by_caller: HashMap<Arc<str>, OfCaller>,
}

/// Results that were given to one caller.
#[derive(Debug, Default)]
struct OfCaller {
    /// Each with the round that asked for it, and the place of its call.
    results: Vec<(Name, u32)>,
    /// The round that spoke last.
    round: Name,
    /// How many of the first results are of that round.
    own: usize,
}

impl Unread {
    /// Returns what a result costs in bytes, with its caller where that is new.
    /// Of lists and maps half may be room for more.
    pub(super) fn cost(&self, caller: &Name) -> usize {
        const RESULT: usize = 2 * size_of::<(Name, u32)>();
        const CALLER: usize = 2 * size_of::<(Arc<str>, OfCaller)>() + 4 * RESULT + MAX_NAME_BYTES;
        match caller {
            Some(caller) if !self.by_caller.contains_key(caller) => RESULT + CALLER,
            _ => RESULT,
        }
    }

    pub(super) fn retained_bytes(&self) -> usize {
        let callers = self.by_caller.values();
        let held = callers.chain([&self.by_agent]).map(|one| {
            let round = one.round.as_ref().map_or(0, |round| round.len());
            one.results.capacity() * size_of::<(Name, u32)>() + round
        });
        self.by_caller.capacity() * size_of::<(Arc<str>, OfCaller)>() + held.sum::<usize>()
    }

    /// Takes up a result.
    pub(super) fn push(&mut self, caller: Name, round: Name, place: u32) {
        let of_caller = match caller {
            None => &mut self.by_agent,
            Some(caller) => self.by_caller.entry(caller).or_default(),
        };
        of_caller.results.push((round, place));
    }

    /// The model speaks in a round, and has read every result but those that
    /// the same round asked for: gives their places.
    pub(super) fn read_by(&mut self, caller: &Name, round: &Name, mut each: impl FnMut(usize)) {
        let unread = match caller {
            None => Some(&mut self.by_agent),
            Some(caller) => self.by_caller.get_mut(caller),
        };
        let Some(unread) = unread else { return };
        if unread.round != *round {
            unread.round.clone_from(round);
            unread.own = 0;
        }
        let is_read = |(asked_in, _): &mut (Name, u32)| asked_in.is_none() || asked_in != round;
        for (_, place) in unread.results.extract_if(unread.own.., is_read) {
            each(place as usize);
        }
        unread.own = unread.results.len();
    }
}

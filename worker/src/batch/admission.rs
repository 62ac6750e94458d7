//! Which lanes get a claim now: those that nothing holds back, for which there
//! is work.

use super::{Batch, BatchError};
use premath_kernel::issue::lease;
use premath_kernel::policy::breaker::Passage;
use premath_kernel::policy::provider::Seat;
use premath_kernel::policy::room::{Room, Shortage};
use premath_memory::{Claimed, StoreError, clock};
use std::time::Duration;

/// How soon to look again if the time of recovery is unknown.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What lanes that are idle got.
#[derive(Debug, Default)]
pub struct Admission {
    /// A claim for each worker that got one, in the workers' order.
    pub claims: Vec<Option<Claimed>>,
    /// Whether there is work for a worker that it must wait for.
    pub held: Vec<bool>,
    /// The worker that is to find out whether the verification passes without
    /// any work.
    pub asks: Option<usize>,
    /// When it is worth to look again, where a worker is held.
    pub look_at: Option<jiff::Timestamp>,
    /// What there is too little of on the machine.
    pub short: Option<Shortage>,
}

impl Batch {
    /// Claims for the workers that may begin a step now; says for which others
    /// there would be work.
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub fn turn_out(&self, workers: &[String]) -> Result<Admission, BatchError> {
        let short = self.settings.bounds.room.shortage(&self.room());
        let mut admission = Admission {
            claims: workers.iter().map(|_| None).collect(),
            held: vec![false; workers.len()],
            asks: None,
            look_at: None,
            short,
        };
        let now = clock::now().wall;
        let passage = self.breaker().passage(now);
        let closed = short.is_some() || !matches!(passage, Passage::All | Passage::One);
        let mut left: Vec<usize> = (0..workers.len()).collect();
        while !closed && !left.is_empty() {
            let seated = self.seated(workers, &left, passage == Passage::One);
            if seated.is_empty() {
                break;
            }
            left.retain(|index| !seated.iter().any(|(taken, _)| taken == index));
            let names: Vec<String> = seated.iter().map(|(i, _)| workers[*i].clone()).collect();
            let claims = self.claim_next(&names)?;
            let mut dispatched = false;
            for ((index, seat), claim) in seated.into_iter().zip(claims) {
                if claim.is_some() {
                    self.providers.take(&workers[index], seat);
                    self.breaker().take(&workers[index]);
                    dispatched = true;
                }
                admission.claims[index] = claim;
            }
            if dispatched && passage == Passage::One {
                break;
            }
        }
        for index in left {
            let worker = &workers[index];
            if !self.has_work_for(worker)? {
                continue;
            }
            admission.held[index] = true;
            if passage == Passage::Baseline && short.is_none() && admission.asks.is_none() {
                self.breaker().ask(worker);
                admission.asks = Some(index);
            }
            let look_at = if short.is_some() {
                now.saturating_add(LOOK_AGAIN).ok()
            } else if let Passage::NoneUntil(until) = passage {
                Some(until)
            } else if matches!(passage, Passage::All | Passage::One) {
                self.providers.next(worker)
            } else {
                None
            };
            admission.look_at = look_at.into_iter().chain(admission.look_at).min();
        }
        Ok(admission)
    }

    /// Returns the workers that a provider is free for, with their seats: one
    /// of them where only one step is let through.
    fn seated(&self, workers: &[String], left: &[usize], one: bool) -> Vec<(usize, Seat)> {
        let names: Vec<&str> = left.iter().map(|index| workers[*index].as_str()).collect();
        let seats = self.providers.seats(&names);
        let seated = left.iter().copied().zip(seats);
        let seated = seated.filter_map(|(index, seat)| Some((index, seat?)));
        seated.take(if one { 1 } else { usize::MAX }).collect()
    }

    /// Looks at what is free on the machine.
    pub fn room(&self) -> Room {
        super::room::look(&self.settings.roots.repository)
    }

    /// Returns whether a batch of which nothing runs has waited for room for as
    /// long as it waits.
    pub fn is_out_of_patience(&self, short: Option<&Shortage>, runs: bool) -> bool {
        let lasts = self.room_wait.lasts(short, runs);
        short.is_some() && !runs && lasts >= self.settings.bounds.room.patience
    }

    /// Returns whether a worker would get a claim now.
    fn has_work_for(&self, worker: &str) -> Result<bool, StoreError> {
        let left_out = self.left_out();
        let wish = self.wish(worker);
        let seen = clock::observe();
        self.memory.view(|view| {
            view.ready().chain(view.leased()).any(|row| {
                self.settings.selection.admits(&row.issue)
                    && !left_out.contains(&*row.issue.id)
                    && lease::claimable(&row.issue, &wish, &seen)
            })
        })
    }
}

//! How long whole batches of a kind take, compared with the least possible time, and
//! that none charges a neighbour.

use super::{Batch, End, Issue, Kind, Numbers};
use std::collections::BTreeMap;

const NIGHT: Kind = Kind {
    issues: 24,
    lanes: 8,
    spare: 0,
    slots: 8,
    speculation: 19,
    batch: 1,
    work: (0, 50),
    verify: (2_000, 2_000),
    check: 0,
    red: 0,
    bad: 0,
    conflicting: 0,
    retrying: false,
    cut: 0,
    moved: 0,
    reserving: 0,
    priorities: 1,
};

/// The mean of the time with landing over the time without, in percent, and the
/// mean number of verifications of an issue, in percent.
fn mean(kind: Kind, seeds: u64) -> (u64, u64) {
    let (mut ratios, mut verifications) = (0, 0);
    for seed in 0..seeds {
        let mut batch = Batch::new(kind, seed);
        let took = batch.run();
        ratios += took * 100 / batch.without_landing();
        verifications += batch.verifications as u64 * 100 / kind.issues as u64;
    }
    (ratios / seeds, verifications / seeds)
}

#[test]
fn green_work_lands_as_fast_as_it_is_verified_once_each() {
    let (ratio, verifications) = mean(NIGHT, 200);
    assert_eq!(verifications, 100);
    assert!(ratio <= 103, "{ratio} %");
}

#[test]
fn checks_run_at_once() {
    let checked = Kind {
        check: 2_000,
        ..NIGHT
    };
    let (ratio, verifications) = mean(checked, 200);
    assert_eq!(verifications, 100);
    // Issues close in the order in which they landed.
    assert!(ratio <= 110, "{ratio} %");
    let serial = Kind {
        speculation: 0,
        ..checked
    };
    let (ratio, _) = mean(serial, 20);
    assert!(ratio >= 600, "{ratio} %");
}

#[test]
fn checks_share_the_slots_of_verifications() {
    let kind = Kind {
        check: 2_000,
        slots: 2,
        ..NIGHT
    };
    let (ratio, verifications) = mean(kind, 20);
    assert_eq!(verifications, 100);
    // Two slots for what eight lanes could do.
    assert!((300..=420).contains(&ratio), "{ratio} %");
    mean(Kind { slots: 1, ..kind }, 20);
}

#[test]
fn without_speculation_each_landing_waits_for_its_own_verification() {
    let serial = Kind {
        speculation: 0,
        ..NIGHT
    };
    let (ratio, verifications) = mean(serial, 20);
    assert_eq!(verifications, 100);
    assert!(ratio >= 700, "{ratio} %");
}

/// Work and verification that take as long as each other.
const LONG_WORK: Kind = Kind {
    issues: 48,
    work: (2_000, 2_000),
    ..NIGHT
};

#[test]
fn lanes_with_slots_of_their_own_work_while_work_is_verified() {
    let (in_lanes, _) = mean(LONG_WORK, 20);
    let (beside, verifications) = mean(
        Kind {
            spare: 8,
            ..LONG_WORK
        },
        20,
    );
    assert_eq!(verifications, 100);
    assert!(in_lanes >= 98, "{in_lanes} %");
    // Half, and the last verification, which nothing runs beside.
    assert!(beside <= 60, "{beside} %");
}

#[test]
fn fewer_slots_than_lanes_bound_the_batch_by_its_verifications() {
    let narrow = Kind {
        slots: 2,
        spare: 2,
        ..LONG_WORK
    };
    let (ratio, verifications) = mean(narrow, 20);
    assert_eq!(verifications, 100);
    // 48 verifications of 2 s in two slots, beside 48 of 4 s in eight lanes.
    assert!((200..=215).contains(&ratio), "{ratio} %");
}

#[test]
fn a_tenth_of_red_work_costs_less_than_twice_the_time() {
    let (ratio, verifications) = mean(Kind { red: 10, ..NIGHT }, 200);
    assert!(ratio <= 165, "{ratio} %");
    assert!(verifications <= 145, "{verifications} %");
}

#[test]
fn a_tenth_of_conflicting_work_delays_only_what_it_conflicts_with() {
    let conflicting = Kind {
        conflicting: 10,
        ..NIGHT
    };
    let (ratio, verifications) = mean(conflicting, 200);
    // Work that conflicts is not verified, so less than the whole may be enough.
    assert!(ratio <= 100, "{ratio} %");
    assert!(verifications <= 92, "{verifications} %");
}

/// Returns the mean of the time with landing, and of the least possible time, over the
/// time of the same work without conflicts and landing, in percent.
fn beside_the_least(kind: Kind, seeds: u64) -> (u64, u64) {
    let (mut took, mut least) = (0, 0);
    for seed in 0..seeds {
        let mut batch = Batch::new(kind, seed);
        let alone = batch.without_landing();
        took += batch.run() * 100 / alone;
        least += at_least(&batch) * 100 / alone;
    }
    (took / seeds, least / seeds)
}

#[test]
fn a_tenth_of_conflicting_work_that_is_done_again_is_beside_its_bound() {
    let conflicting = Kind {
        conflicting: 10,
        retrying: true,
        ..NIGHT
    };
    let (took, least) = beside_the_least(conflicting, 200);
    assert!(took <= 150 && least >= 98, "{took} % and {least} %");
    let long = Kind {
        work: (300_000, 600_000),
        verify: (120_000, 120_000),
        spare: 8,
        ..conflicting
    };
    let (took, least) = beside_the_least(long, 200);
    assert!(took <= 124 && least >= 75, "{took} % and {least} %");
}

/// All work is done at once, and one verification runs at a time.
const CROWD: Kind = Kind {
    lanes: 24,
    slots: 1,
    batch: 4,
    work: (10, 10),
    ..NIGHT
};

#[test]
fn green_work_is_verified_once_for_each_run() {
    let mut batch = Batch::new(CROWD, 0);
    batch.run();
    // The first one finds no other, and 23 are left.
    assert_eq!(batch.verifications, 1 + 6);
    let (_, one_by_one) = mean(Kind { batch: 1, ..CROWD }, 1);
    assert_eq!(one_by_one, 100);
}

#[test]
fn one_red_work_costs_its_run_a_search_in_halves() {
    for red in 0..24 {
        let mut batch = Batch::new(CROWD, 0);
        batch.issues[red].is_red = true;
        batch.run();
        assert_eq!(batch.ends[&red], End::Red);
        let landed = batch.ends.values().filter(|end| **end == End::Landed);
        assert_eq!(landed.count(), 23);
        // Its run, two halves, two of one each, and the runs behind it again,
        // which are other ones by then.
        assert!(batch.verifications <= 7 + 6, "{}", batch.verifications);
    }
}

/// Returns what a batch takes at least, however its work is queued: the work that
/// landed or was red was done in a lane and verified in a slot, one after the other,
/// and what landed was checked in a slot.
fn at_least(batch: &Batch) -> u64 {
    let judged = batch.ends.iter();
    // For each its work, and what was done in a slot.
    let judged: Vec<(u64, u64)> = judged
        .filter(|(_, end)| matches!(end, End::Landed | End::Red))
        .map(|(issue, end)| {
            let judged = &batch.issues[*issue];
            let check = u64::from(*end == End::Landed) * judged.check;
            let attempts = 1 + u64::from(batch.retried.contains(issue));
            (attempts * judged.work, judged.verify + check)
        })
        .collect();
    let work: u64 = judged.iter().map(|(work, _)| work).sum();
    let in_slots: u64 = judged.iter().map(|(_, in_slots)| in_slots).sum();
    let longest = judged.iter().map(|(work, in_slots)| work + in_slots).max();
    // Work that is verified is in a worktree, and at most all lanes work at once.
    let (lanes, all) = (batch.kind.lanes as u64, batch.lanes.len() as u64);
    let bounds = [
        longest.unwrap_or(0),
        work / lanes,
        in_slots / batch.kind.slots as u64,
        (work + in_slots) / all,
    ];
    bounds.into_iter().max().unwrap_or(0)
}

/// How long random batches took over what they take at least, in percent.
#[derive(Default)]
struct BesideTheLeast {
    ratios: u64,
    batches: u64,
}

impl BesideTheLeast {
    fn take(&mut self, took: u64, batch: &Batch) {
        let least = at_least(batch);
        if least > 0 {
            assert!(took >= least, "{took} ms, and at least {least} ms");
            self.ratios += took * 100 / least;
            self.batches += 1;
        }
    }

    fn mean(&self) -> u64 {
        self.ratios / self.batches
    }
}

#[test]
fn no_batch_charges_a_neighbour_or_lands_an_unverified_tree() {
    let mut ends = BTreeMap::new();
    let (mut refused, mut firm, mut taken_back) = (0, 0, 0);
    let [mut queued, mut serial, mut reserved] = [(); 3].map(|()| BesideTheLeast::default());
    for seed in 0..10_000 {
        let mut numbers = Numbers(seed ^ 0xA5A5);
        let mut ranks = Numbers(seed ^ 0x5A5A);
        let kind = Kind {
            issues: 1 + numbers.below(30) as usize,
            lanes: 1 + numbers.below(8) as usize,
            spare: numbers.below(5) as usize,
            slots: 1 + numbers.below(8) as usize,
            speculation: numbers.below(10) as usize,
            work: (0, 1 + numbers.below(3_000)),
            verify: (1, 1 + numbers.below(3_000)),
            check: numbers.below(2) * (1 + numbers.below(3_000)),
            red: numbers.below(40),
            bad: numbers.below(30),
            conflicting: numbers.below(40),
            retrying: ranks.below(2) == 1,
            cut: numbers.below(10),
            moved: numbers.below(10),
            batch: 1 + numbers.below(5) as usize,
            reserving: ranks.below(2) * ranks.below(30),
            priorities: 1 + ranks.below(3),
        };
        let mut batch = Batch::new(kind, seed);
        let took = batch.run();
        let reserves = kind.reserving > 0 || kind.retrying;
        match (kind.batch, reserves, kind.speculation) {
            (1, false, 0) => serial.take(took, &batch),
            (1, false, _) => queued.take(took, &batch),
            // All others wait for the work that has the reservation.
            (1, _, _) => reserved.take(took, &batch),
            // Several may share a verification.
            _ => {}
        }
        refused += batch.refused;
        let states = || batch.states.values();
        firm += states().filter(|states| !states.may_assume()).count();
        taken_back += states()
            .filter(|states| states.is_taken_back_most())
            .count();
        for (issue, end) in batch.ends {
            *ends.entry(format!("{end:?}")).or_insert(0) += 1;
            let Issue { is_red, is_bad, .. } = batch.issues[issue];
            assert!(end != End::Landed || !is_red, "red work landed");
            assert!(end != End::Landed || !is_bad, "bad work landed");
            let is_there = matches!(end, End::Landed | End::Stayed);
            assert_eq!(batch.target.0.contains(&issue), is_there);
        }
    }
    // Each rule was reached.
    assert!(refused > 0 && firm > 0 && taken_back > 0);
    assert_eq!(ends.len(), 6, "{ends:?}");
    let [queued, serial, reserved] = [queued, serial, reserved].map(|kind| kind.mean());
    assert!(queued <= 176, "{queued} %");
    assert!((230..=250).contains(&serial), "{serial} %");
    assert!(reserved <= 212, "{reserved} %");
}

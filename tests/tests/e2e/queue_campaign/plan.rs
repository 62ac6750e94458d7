//! The issues of the campaign: what each one does, and the outcomes that it may
//! have.

use premath_tests::Dice;

/// The issues are the same in every run.
const SEED: u64 = 14;

/// What the work of an issue does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It passes on every tree.
    Good,
    /// Every tree that contains it fails.
    Red,
    /// It changes a file that one other issue changes too, from the same base.
    Pair,
    /// It changes a file that two other issues change too, from the same base.
    Trio,
    /// It passes without the work of one other issue, and fails with it.
    Clash,
    /// Its first verification fails, without a class.
    Flaky,
    /// Its first verification fails, with a class that is tried again.
    Named,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Red => "red",
            Self::Pair => "pair",
            Self::Trio => "trio",
            Self::Clash => "clash",
            Self::Flaky => "flaky",
            Self::Named => "named",
        }
    }

    /// How many issues depend on each other's work.
    const fn group(self) -> u64 {
        match self {
            Self::Pair | Self::Clash => 2,
            Self::Trio => 3,
            Self::Good | Self::Red | Self::Flaky | Self::Named => 1,
        }
    }

    /// Returns whether an issue may end with this status and these failures,
    /// which are the ones that used up an attempt.
    pub(super) fn may_end(self, status: &str, charged: &[&str]) -> bool {
        match (self, status) {
            (Self::Good, "closed") => charged.is_empty(),
            (Self::Red, "blocked") => matches!(charged, ["check_failed"]),
            // The landing of the last attempt is reserved.
            (Self::Pair | Self::Trio, "closed") => matches!(charged, [] | ["landing_conflict"]),
            (Self::Clash, "closed") => matches!(charged, [] | ["landing_check_failed"]),
            (Self::Clash, "blocked") => matches!(charged, ["check_failed"]),
            // It is repeated on the same tree.
            (Self::Flaky, "closed") => charged.is_empty(),
            (Self::Named, "closed") => matches!(charged, [] | ["flaky_execution"]),
            _ => false,
        }
    }
}

/// An issue of the campaign.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    /// `q-<number>-<kind>-<group>`: the commands read all of it.
    pub(super) id: String,
    pub(super) kind: Kind,
    pub(super) group: usize,
}

/// Returns so many issues in an order by chance: 15 % are red, 10 % conflict, 5 %
/// clash, and 5 % are flaky. The members of a group follow each other.
pub(super) fn plan(total: u64) -> Vec<Planned> {
    let of = |percent: u64| total * percent / 100;
    let trios = of(10) / 10;
    let flaky = of(5).max(1);
    let counted = [
        (Kind::Red, of(15)),
        (Kind::Trio, trios),
        (Kind::Pair, (of(10) - 3 * trios).div_ceil(2)),
        (Kind::Clash, of(5).div_ceil(2)),
        (Kind::Flaky, flaky / 2),
        (Kind::Named, flaky - flaky / 2),
    ];
    let taken: u64 = counted.iter().map(|(kind, n)| kind.group() * n).sum();
    let all = counted.into_iter().chain([(Kind::Good, total - taken)]);
    let mut groups: Vec<Kind> = all
        .flat_map(|(kind, count)| (0..count).map(move |_| kind))
        .collect();
    let mut dice = Dice::new(SEED);
    for last in (1..groups.len()).rev() {
        groups.swap(last, below(&mut dice, last + 1));
    }
    let mut planned = Vec::new();
    for (group, kind) in groups.into_iter().enumerate() {
        for _ in 0..kind.group() {
            let id = format!("q-{:03}-{}-{group}", planned.len(), kind.name());
            planned.push(Planned { id, kind, group });
        }
    }
    planned
}

/// Returns a number below a bound.
pub(super) fn below(dice: &mut Dice, bound: usize) -> usize {
    usize::try_from(dice.below(bound as u64)).unwrap()
}

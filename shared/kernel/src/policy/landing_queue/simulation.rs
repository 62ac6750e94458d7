//! Whole batches over the queue, in simulated time: lanes that work, verify and
//! land, with work that is red, that conflicts, that is cut off, and a target
//! that others move.

mod kinds;

use super::{CheckEnd, CheckStart, LandingQueue, Part, QueueBounds, QueueStep, Ticket};
use crate::json::id::IssueId;
use crate::policy::verified_states::VerifiedStates;
use std::collections::{BTreeMap, BTreeSet};

/// A sequence of numbers that a seed determines (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }
}

/// Returns the id of an issue. Some have more digits than others.
fn id_of(issue: usize) -> IssueId {
    format!("bd-{issue}").into()
}

/// What a batch is made of.
#[derive(Clone, Copy, Debug)]
struct Kind {
    issues: usize,
    /// How many issues are worked on at once.
    lanes: usize,
    /// The further worktrees: a lane continues in one while its last work is in
    /// the queue.
    spare: usize,
    slots: usize,
    speculation: usize,
    /// How many issues may be verified as one.
    batch: usize,
    /// The longest work and verification, in milliseconds.
    work: (u64, u64),
    verify: (u64, u64),
    /// The longest check after a landing; 0 is none.
    check: u64,
    red: u64,
    /// The chance that the check fails on what contains an issue's work.
    bad: u64,
    conflicting: u64,
    /// Whether work that conflicts is done once more, with the landing reserved.
    retrying: bool,
    /// The chance that a place is given up, or the target is moved, in percent
    /// of the landings.
    cut: u64,
    moved: u64,
    /// The chance that an issue reserves the next landing before its work.
    reserving: u64,
    /// How many priorities the issues have.
    priorities: u64,
}

#[derive(Debug)]
struct Issue {
    priority: i64,
    reserves: bool,
    work: u64,
    verify: u64,
    check: u64,
    is_red: bool,
    is_bad: bool,
    /// Whether its verification fails where bad work is in the tree.
    is_touchy: bool,
    conflicts: BTreeSet<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Lane {
    Idle,
    /// It waits for the reservation of its second attempt.
    Retrying(usize),
    Working(usize, u64),
    Queued(usize, Ticket),
    Verifying(usize, Ticket, u64),
    CheckDue(usize, Ticket),
    Checking(usize, Ticket, u64),
    Checked(usize, Ticket),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Landed,
    Red,
    Bad,
    Conflict,
    Cut,
    /// It is on the target, and its issue did not close.
    Stayed,
}

/// A tree: the issues whose work it contains, and how often others moved the
/// target before it.
type Tree = (BTreeSet<usize>, u64);

struct Batch {
    kind: Kind,
    numbers: Numbers,
    issues: Vec<Issue>,
    lanes: Vec<Lane>,
    queue: LandingQueue,
    holders: BTreeMap<Ticket, usize>,
    /// The tree that each place verifies or verified last, or would land as.
    trees: BTreeMap<usize, Tree>,
    /// The work whose tree is verified with work behind it.
    riding: BTreeSet<usize>,
    passed: BTreeSet<usize>,
    target: Tree,
    /// What landed, the oldest first, with the tree of its commit.
    history: Vec<(usize, Tree)>,
    /// The issues whose landings are checked, in the order in which they landed.
    unchecked: Vec<usize>,
    /// Those that lose their lease when they have to wait for their close.
    leaving: BTreeSet<usize>,
    /// Those whose check failed.
    failing: BTreeSet<usize>,
    ends: BTreeMap<usize, End>,
    verifications: usize,
    /// How often work was verified on another state, by what is charged for it.
    states: BTreeMap<usize, VerifiedStates>,
    /// How often a reservation was refused.
    refused: usize,
    /// The issues whose work was done once more after a conflict.
    retried: BTreeSet<usize>,
    now: u64,
}

impl Batch {
    fn new(kind: Kind, seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let mut ranks = Numbers(!seed);
        let mut issues: Vec<Issue> = (0..kind.issues)
            .map(|_| Issue {
                priority: i64::try_from(ranks.below(kind.priorities)).unwrap(),
                reserves: ranks.percent(kind.reserving),
                work: kind.work.0 + numbers.below(kind.work.1 - kind.work.0 + 1),
                verify: kind.verify.0 + numbers.below(kind.verify.1 - kind.verify.0 + 1),
                check: kind.check.min(1 + numbers.below(kind.check)),
                is_red: numbers.percent(kind.red),
                is_bad: kind.check > 0 && numbers.percent(kind.bad),
                is_touchy: numbers.percent(kind.bad),
                conflicts: BTreeSet::new(),
            })
            .collect();
        for one in 1..kind.issues {
            if numbers.percent(kind.conflicting) {
                // With one that is worked on at about the same time.
                let back = 1 + numbers.below(kind.lanes.min(one) as u64) as usize;
                issues[one].conflicts.insert(one - back);
                issues[one - back].conflicts.insert(one);
            }
        }
        let mut leaving: BTreeSet<usize> = (0..kind.issues).collect();
        leaving.retain(|_| kind.batch > 1 && numbers.percent(kind.cut));
        Self {
            kind,
            numbers,
            issues,
            lanes: vec![Lane::Idle; kind.lanes + kind.spare],
            queue: LandingQueue::new(QueueBounds {
                speculation: kind.speculation,
                slots: kind.slots,
                batch: kind.batch,
            }),
            holders: BTreeMap::new(),
            trees: BTreeMap::new(),
            riding: BTreeSet::new(),
            passed: BTreeSet::new(),
            target: Tree::default(),
            history: Vec::new(),
            unchecked: Vec::new(),
            leaving,
            failing: BTreeSet::new(),
            ends: BTreeMap::new(),
            verifications: 0,
            states: BTreeMap::new(),
            refused: 0,
            retried: BTreeSet::new(),
            now: 0,
        }
    }

    /// Runs the batch to its end; returns how long it took.
    fn run(&mut self) -> u64 {
        let mut begun = 0;
        loop {
            while (0..self.lanes.len()).any(|lane| self.advance(lane, &mut begun)) {}
            let at = self.lanes.iter().filter_map(|lane| match lane {
                Lane::Working(_, until)
                | Lane::Verifying(_, _, until)
                | Lane::Checking(_, _, until) => Some(*until),
                Lane::Idle
                | Lane::Retrying(..)
                | Lane::Queued(..)
                | Lane::CheckDue(..)
                | Lane::Checked(..) => None,
            });
            match at.min() {
                Some(next) => self.now = next,
                None => break,
            }
        }
        assert_eq!(self.ends.len(), self.kind.issues, "an issue never ended");
        self.now
    }

    /// Lets a lane do what it can now; returns whether it did something.
    fn advance(&mut self, lane: usize, begun: &mut usize) -> bool {
        match self.lanes[lane].clone() {
            Lane::Idle if *begun < self.kind.issues && self.working() < self.kind.lanes => {
                if self.issues[*begun].reserves && !self.queue.reserve(&id_of(*begun)) {
                    self.refused += 1;
                    return false;
                }
                let until = self.now + self.issues[*begun].work;
                self.lanes[lane] = Lane::Working(*begun, until);
                *begun += 1;
                true
            }
            Lane::Retrying(issue)
                if self.working() < self.kind.lanes
                    && self.queue.reserve(&id_of(issue))
                    && !self.queue.owes_any_landing() =>
            {
                // It is done on what has landed; what lands later may conflict again.
                let landed = &self.target.0;
                self.issues[issue]
                    .conflicts
                    .retain(|other| !landed.contains(other));
                self.lanes[lane] = Lane::Working(issue, self.now + self.issues[issue].work);
                true
            }
            Lane::Working(issue, until) if until <= self.now => {
                self.join(lane, issue);
                true
            }
            Lane::CheckDue(issue, ticket) => self.start_check(lane, issue, ticket),
            Lane::Checking(issue, ticket, until)
                if until <= self.now || self.queue.is_superseded(ticket) =>
            {
                self.end_check(lane, issue, ticket);
                true
            }
            Lane::Checked(issue, ticket) => self.settle(lane, issue, ticket),
            Lane::Verifying(issue, ticket, _) if self.queue.is_superseded(ticket) => {
                self.lanes[lane] = Lane::Queued(issue, ticket);
                true
            }
            Lane::Verifying(issue, ticket, until) if until <= self.now => {
                let is_red = self.is_red(&self.trees[&issue].0);
                let counts = if is_red {
                    self.queue.failed(ticket)
                } else {
                    self.passed.insert(issue);
                    self.states.entry(issue).or_default().passed();
                    self.queue.passed(ticket)
                };
                assert!(counts);
                self.lanes[lane] = Lane::Queued(issue, ticket);
                true
            }
            Lane::Queued(issue, ticket) => self.take_turn(lane, issue, ticket),
            _ => false,
        }
    }

    fn working(&self) -> usize {
        let is_working = |lane: &&Lane| matches!(lane, Lane::Working(..));
        self.lanes.iter().filter(is_working).count()
    }

    fn join(&mut self, lane: usize, issue: usize) {
        let priority = self.issues[issue].priority;
        let ticket = self.queue.join(priority, &id_of(issue));
        self.holders.insert(ticket, issue);
        self.lanes[lane] = Lane::Queued(issue, ticket);
    }

    /// Returns whether a verification fails on the work of these issues.
    fn is_red(&self, tree: &BTreeSet<usize>) -> bool {
        let issues = || tree.iter().map(|one| &self.issues[*one]);
        let has_bad = issues().any(|one| one.is_bad);
        issues().any(|one| one.is_red || (one.is_touchy && !one.is_bad && has_bad))
    }

    /// Asserts that an issue's work fails by itself, on work that has closed.
    fn assert_charged(&self, issue: usize) {
        let mut tree = self.trees[&issue].0.clone();
        assert!(self.is_red(&tree));
        tree.remove(&issue);
        assert!(!self.is_red(&tree), "{issue} is charged for another");
        assert!(!self.riding.contains(&issue), "{issue} was not verified");
        let unchecked = self.unchecked.iter().any(|one| tree.contains(one));
        assert!(
            !unchecked,
            "{issue} is charged on work that is yet to be checked"
        );
    }

    fn start_check(&mut self, lane: usize, issue: usize, ticket: Ticket) -> bool {
        self.lanes[lane] = match self.queue.start_check(ticket) {
            CheckStart::Waits => return false,
            CheckStart::Ends => Lane::Checked(issue, ticket),
            CheckStart::Begins => {
                let until = self.now + self.issues[issue].check;
                Lane::Checking(issue, ticket, until)
            }
        };
        self.assert_slots();
        true
    }

    /// Asserts that no more runs than there are slots.
    fn assert_slots(&self) {
        let runs = |lane: &&Lane| match lane {
            Lane::Verifying(_, ticket, _) => !self.queue.is_superseded(*ticket),
            Lane::Checking(issue, ..) => self.unchecked.contains(issue),
            _ => false,
        };
        assert!(self.lanes.iter().filter(runs).count() <= self.kind.slots);
    }

    fn end_check(&mut self, lane: usize, issue: usize, ticket: Ticket) {
        let passed = !self.trees[&issue]
            .0
            .iter()
            .any(|one| self.issues[*one].is_bad);
        let counts = self.queue.checked(ticket, passed);
        if counts && !passed {
            self.failing.insert(issue);
        }
        assert_eq!(counts, self.unchecked.contains(&issue));
        self.lanes[lane] = Lane::Checked(issue, ticket);
        if counts && self.numbers.percent(self.kind.cut) {
            self.take_back(issue, ticket);
            self.end(lane, issue, ticket, End::Cut);
        }
    }

    fn settle(&mut self, lane: usize, issue: usize, ticket: Ticket) -> bool {
        match self.queue.next_check(ticket) {
            // It may lose its lease while it waits.
            None if self.leaving.remove(&issue) => {
                self.take_back(issue, ticket);
                self.end(lane, issue, ticket, End::Cut);
            }
            None => return false,
            Some(CheckEnd::MayClose) => {
                assert!(self.queue.closing(ticket));
                let at = self.unchecked.iter().position(|one| *one == issue);
                let before = self.unchecked[..at.unwrap()].to_vec();
                assert!(before.iter().all(|one| self.riding.contains(one)));
                self.unchecked.remove(at.unwrap());
                let tree = &self.trees[&issue].0;
                assert!(!tree.iter().any(|one| self.issues[*one].is_bad));
                self.assert_verified(issue);
                match self.kind.batch > 1 && self.numbers.percent(self.kind.cut) {
                    true => self.stay(lane, issue, ticket),
                    false => self.end(lane, issue, ticket, End::Landed),
                }
            }
            Some(CheckEnd::Leave) => {
                self.unchecked.retain(|one| *one != issue);
                self.stay(lane, issue, ticket);
            }
            Some(CheckEnd::Withdraw) => {
                self.take_back(issue, ticket);
                self.join_again(lane, issue, ticket);
            }
            Some(CheckEnd::TakeBack) => {
                assert!(self.issues[issue].is_bad, "{issue} is charged for another");
                self.take_back(issue, ticket);
                self.end(lane, issue, ticket, End::Bad);
            }
            Some(CheckEnd::LandAgain) => {
                self.join_again(lane, issue, ticket);
            }
        }
        true
    }

    /// Leaves work on the target whose issue could not close; the next attempt
    /// closes it.
    fn stay(&mut self, lane: usize, issue: usize, ticket: Ticket) {
        assert!(self.queue.stayed(ticket));
        self.holders.remove(&ticket);
        self.queue.release(&id_of(issue));
        assert_eq!(self.ends.insert(issue, End::Stayed), None);
        self.lanes[lane] = Lane::Idle;
    }

    fn join_again(&mut self, lane: usize, issue: usize, ticket: Ticket) {
        assert!(!self.target.0.contains(&issue));
        self.holders.remove(&ticket);
        self.riding.remove(&issue);
        self.states.entry(issue).or_default().taken_back();
        self.join(lane, issue);
        if let Lane::Queued(_, ticket) = self.lanes[lane] {
            self.queue.limit(ticket, Part::Single);
        }
    }

    /// Asserts that a commit of the target that contains the issue's work is a
    /// tree that passed, with nothing but its own run in between.
    fn assert_verified(&self, issue: usize) {
        let at = self.history.iter().position(|(one, _)| *one == issue);
        let above = &self.history[at.unwrap()..];
        let verified = above.iter().find(|(one, _)| !self.riding.contains(one));
        let (leader, tree) = verified.expect("a run without a leader");
        assert!(self.passed.contains(leader) && self.trees[leader] == *tree);
        assert!(self.riding.contains(&issue) || *leader == issue);
    }

    /// Takes the work of an issue off the target, with all that landed on top.
    fn take_back(&mut self, issue: usize, ticket: Ticket) {
        assert!(self.queue.may_be_taken_back(ticket));
        let tickets = self.queue.landings_from(ticket);
        let holders: Vec<usize> = tickets.iter().map(|one| self.holders[one]).collect();
        let at = self.unchecked.iter().position(|one| *one == holders[0]);
        let gone = self.unchecked.split_off(at.unwrap());
        assert_eq!(gone, holders);
        assert!(gone.contains(&issue));
        self.target.0.retain(|one| !gone.contains(one));
        self.history.retain(|(one, _)| !gone.contains(one));
        self.failing.retain(|one| !gone.contains(one));
        self.queue.taken_back(ticket);
    }

    fn take_turn(&mut self, lane: usize, issue: usize, ticket: Ticket) -> bool {
        let may_assume = self.states.entry(issue).or_default().may_assume();
        if !may_assume && self.queue.assume_nothing(ticket) {
            return true;
        }
        match self.queue.next(ticket) {
            QueueStep::Wait => return false,
            QueueStep::Try(ahead) => self.try_on(lane, issue, ticket, &ahead),
            QueueStep::Charged => {
                self.assert_charged(issue);
                self.end(lane, issue, ticket, End::Red);
            }
            QueueStep::Land => self.land(lane, issue, ticket),
        }
        true
    }

    fn try_on(&mut self, lane: usize, issue: usize, ticket: Ticket, ahead: &[Ticket]) {
        let mut tree = self.target.clone();
        tree.0
            .extend(ahead.iter().map(|ticket| self.holders[ticket]));
        let conflicts = &self.issues[issue].conflicts;
        if !conflicts.is_disjoint(&tree.0) {
            if self.queue.is_settled(ahead) {
                assert!(!conflicts.is_disjoint(&self.target.0));
                assert!(self.unchecked.is_empty());
                self.conflict(lane, issue, ticket);
            } else {
                assert!(self.queue.conflicted(ticket, ahead));
            }
            return;
        }
        tree.0.insert(issue);
        assert!(self.queue.started(ticket, ahead));
        self.trees.insert(issue, tree);
        self.passed.remove(&issue);
        if self.queue.is_riding(ticket) {
            self.riding.insert(issue);
            return;
        }
        self.riding.remove(&issue);
        self.verifications += 1;
        let states = self.states.entry(issue).or_default();
        states.begin();
        assert!(states.are_bounded(), "{states:?}");
        let until = self.now + self.issues[issue].verify;
        self.lanes[lane] = Lane::Verifying(issue, ticket, until);
        self.assert_slots();
    }

    /// Ends the attempt. The next one begins with what it conflicted with, and nothing
    /// lands while it works.
    fn conflict(&mut self, lane: usize, issue: usize, ticket: Ticket) {
        if !self.kind.retrying {
            return self.end(lane, issue, ticket, End::Conflict);
        }
        assert!(self.retried.insert(issue), "{issue} conflicts again");
        self.queue.left(ticket);
        self.holders.remove(&ticket);
        self.lanes[lane] = Lane::Retrying(issue);
    }

    fn land(&mut self, lane: usize, issue: usize, ticket: Ticket) {
        if self.numbers.percent(self.kind.cut) {
            return self.end(lane, issue, ticket, End::Cut);
        }
        if self.numbers.percent(self.kind.moved) {
            self.target.1 += 1;
        }
        let mut would_be = self.target.clone();
        would_be.0.insert(issue);
        if self.trees[&issue] != would_be {
            assert!(self.kind.moved > 0, "an assumption broke without a cause");
            let rides = self.riding.contains(&issue);
            assert!(self.states.entry(issue).or_default().moved(rides));
            return self.queue.moved();
        }
        let rides = self.riding.contains(&issue);
        let verified = match rides {
            true => self.holders[&self.queue.leader(ticket).unwrap()],
            false => issue,
        };
        assert!(self.passed.contains(&verified), "an unverified tree lands");
        assert!(self.trees[&verified].0.contains(&issue));
        assert!(
            self.failing.is_empty(),
            "work lands on what failed its check"
        );
        self.history.push((issue, would_be.clone()));
        self.target = would_be;
        if self.kind.check == 0 && self.kind.batch == 1 {
            self.assert_verified(issue);
            return self.end(lane, issue, ticket, End::Landed);
        }
        self.unchecked.push(issue);
        if rides {
            self.queue.advanced_riding(ticket);
            self.lanes[lane] = Lane::Checked(issue, ticket);
            return;
        }
        self.queue.advanced(ticket);
        if self.kind.check == 0 {
            assert!(self.queue.checked(ticket, true));
            self.lanes[lane] = Lane::Checked(issue, ticket);
            return;
        }
        self.lanes[lane] = Lane::CheckDue(issue, ticket);
    }

    fn end(&mut self, lane: usize, issue: usize, ticket: Ticket, end: End) {
        match end {
            End::Landed if self.kind.check > 0 || self.kind.batch > 1 => {
                assert!(self.queue.settled(ticket));
            }
            End::Landed => self.queue.landed(ticket),
            End::Red | End::Bad | End::Conflict | End::Cut | End::Stayed => {
                self.queue.left(ticket);
            }
        }
        self.holders.remove(&ticket);
        self.queue.release(&id_of(issue));
        assert_eq!(self.ends.insert(issue, end), None);
        self.lanes[lane] = Lane::Idle;
    }

    /// Returns how long the batch takes where no work waits for other work.
    fn without_landing(&self) -> u64 {
        let mut free = vec![0; self.kind.lanes];
        for issue in &self.issues {
            let first = free.iter_mut().min().unwrap();
            *first += issue.work + issue.verify + issue.check;
        }
        free.into_iter().max().unwrap()
    }
}

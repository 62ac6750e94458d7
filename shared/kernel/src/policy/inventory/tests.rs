mod files;

use super::*;
use crate::policy::landing::LandingRecord;
use proptest::prelude::*;
use std::collections::BTreeMap;

const TARGET: &str = "harness/integration";

fn now() -> Timestamp {
    "2026-03-25T10:00:00Z".parse().unwrap()
}

fn days_ago(days: i64) -> Timestamp {
    now() - jiff::SignedDuration::from_hours(days * 24)
}

fn terms() -> Terms {
    Terms::at(now())
}

fn with_salvage() -> Terms {
    Terms {
        salvage: true,
        ..terms()
    }
}

fn issue(status: &str) -> IssueFacts {
    IssueFacts {
        status: status.to_owned(),
        is_closed: status == "closed",
        has_landed: status == "closed",
        ..IssueFacts::default()
    }
}

fn known(issues: &[(&str, IssueFacts)]) -> KnownFacts {
    KnownFacts {
        issues: issues
            .iter()
            .map(|(id, facts)| ((*id).into(), facts.clone()))
            .collect(),
        is_whole: true,
        targets: BTreeMap::from([(TARGET.to_owned(), Some("c0ffee".to_owned()))]),
        ..KnownFacts::default()
    }
}

fn step(held_by: Option<&str>) -> Branch {
    Branch {
        name: "harness/a/1".to_owned(),
        role: Role::Step {
            issue: "a".into(),
            generation: 1,
        },
        tip: "c1".to_owned(),
        at: days_ago(20),
        checked_out: None,
        held_by: held_by.map(str::to_owned),
    }
}

fn worktree(name: &str) -> Worktree {
    Worktree {
        name: Some(name.to_owned()),
        path: PathBuf::from("/r").join(name),
        is_there: true,
        locked: None,
        head: Head::Detached("c0ffee".to_owned()),
        returns_to: None,
        lane: LaneLockState::Free,
        is_provisioned: true,
        changes: Some(0),
        step: None,
        session_fault: None,
        loses: None,
    }
}

fn branches(branches: Vec<Branch>) -> Findings {
    Findings {
        branches,
        ..Findings::default()
    }
}

/// The standing of the one item of a kind.
#[track_caller]
fn standing(found: &Findings, known: &KnownFacts, terms: &Terms, kind: Kind) -> Standing {
    let items = account(found, known, terms);
    let mut of_kind = items.iter().filter(|item| item.kind == kind);
    let item = of_kind.next().unwrap();
    assert!(of_kind.next().is_none());
    assert_eq!(item.thing.is_some(), item.standing == Standing::Removable);
    item.standing
}

#[test]
fn a_steps_branch_is_judged_by_its_issue_and_by_what_holds_its_commits() {
    use Standing::{Finding, Kept, Removable};
    let unlanded = IssueFacts {
        has_landed: false,
        ..issue("closed")
    };
    for (facts, holder, plain, salvaging) in [
        (Some(issue("closed")), Some(TARGET), Removable, Removable),
        (Some(issue("closed")), Some("main"), Removable, Removable),
        (Some(issue("closed")), None, Finding, Removable),
        (Some(unlanded.clone()), Some("main"), Removable, Removable),
        (Some(unlanded), None, Kept, Kept),
        (Some(issue("open")), Some(TARGET), Removable, Removable),
        (Some(issue("open")), Some("main"), Kept, Kept),
        (Some(issue("blocked")), None, Kept, Kept),
        (None, Some("main"), Removable, Removable),
        (None, None, Finding, Removable),
    ] {
        let issues: Vec<_> = facts.iter().map(|facts| ("a", facts.clone())).collect();
        let found = branches(vec![step(holder)]);
        for (terms, expected) in [(terms(), plain), (with_salvage(), salvaging)] {
            let actual = standing(&found, &known(&issues), &terms, Kind::StepBranch);
            assert_eq!(actual, expected, "{facts:?} {holder:?} {}", terms.salvage);
        }
    }
}

#[test]
fn what_lives_or_will_be_taken_up_keeps_a_steps_branch() {
    let is = |found: &Findings, known: &KnownFacts| {
        let everything = Terms {
            older_than: Duration::ZERO,
            ..with_salvage()
        };
        standing(found, known, &everything, Kind::StepBranch)
    };
    let facts = known(&[("a", issue("in_progress"))]);
    let found = branches(vec![step(Some(TARGET))]);
    assert_eq!(is(&found, &facts), Standing::Removable);

    let mut leased = facts.clone();
    let lease = |generation| IssueFacts {
        lease: LeaseLook::Live(generation),
        ..issue("in_progress")
    };
    leased.issues.insert("a".into(), lease(1));
    assert_eq!(is(&found, &leased), Standing::InUse);
    leased.issues.insert("a".into(), lease(2));
    assert_eq!(is(&found, &leased), Standing::Removable);

    for (lives, expected) in [(true, Standing::InUse), (false, Standing::Removable)] {
        let mut batch = facts.clone();
        let id = "hb1".to_owned();
        batch.batches.push(UnendedBatch {
            id: id.into(),
            lives,
        });
        assert_eq!(is(&found, &batch), expected);
    }

    let mut cut = found.clone();
    cut.worktrees.push(Worktree {
        step: Some(CutStep {
            step_id: "w.a.1".into(),
            issue: "a".into(),
            generation: 1,
        }),
        ..worktree("l1")
    });
    assert_eq!(is(&cut, &facts), Standing::Kept);

    let mut landing = found.clone();
    landing.landing_holder = Some("pid 1".to_owned());
    assert_eq!(is(&landing, &facts), Standing::InUse);

    let mut half = facts;
    half.is_whole = false;
    half.issues.clear();
    assert_eq!(is(&branches(vec![step(None)]), &half), Standing::Kept);
}

#[test]
fn a_branch_is_checked_out_unless_its_worktree_goes() {
    let mut branch = step(Some(TARGET));
    branch.checked_out = Some(CheckedOut {
        worktree: Some("l1".to_owned()),
        path: "/r/l1".into(),
    });
    let facts = known(&[("a", issue("closed"))]);
    for (is_there, locked, expected) in [
        (true, None, Standing::InUse),
        (false, Some(String::new()), Standing::InUse),
        (false, None, Standing::Removable),
    ] {
        let mut found = branches(vec![branch.clone()]);
        found.worktrees.push(Worktree {
            is_there,
            locked,
            ..worktree("l1")
        });
        let actual = standing(&found, &facts, &terms(), Kind::StepBranch);
        assert_eq!(actual, expected);
    }
}

#[test]
fn a_mark_goes_with_the_row_of_its_closed_issue() {
    let by_step = IssueFacts {
        is_closed_by_step: true,
        ..issue("closed")
    };
    let unrecorded = IssueFacts {
        unrecorded: Some("w.a.1".to_owned()),
        ..by_step.clone()
    };
    for (facts, holder, expected) in [
        (Some(issue("closed")), None, Standing::Removable),
        (Some(by_step), Some(TARGET), Standing::Removable),
        // An operator closed it, and its landing may be unchecked.
        (Some(issue("closed")), Some(TARGET), Standing::Kept),
        (Some(unrecorded), Some(TARGET), Standing::Kept),
        (Some(issue("open")), Some(TARGET), Standing::Kept),
        (Some(issue("open")), None, Standing::Kept),
        (None, Some("main"), Standing::Removable),
        (None, None, Standing::Finding),
    ] {
        let issues: Vec<_> = facts.iter().map(|facts| ("a", facts.clone())).collect();
        let found = Findings {
            marks: vec![Mark {
                name: "refs/harness/landing/a/1".to_owned(),
                issue: Some("a".into()),
                tip: "c1".to_owned(),
                held_by: holder.map(str::to_owned),
            }],
            ..Findings::default()
        };
        let actual = standing(&found, &known(&issues), &terms(), Kind::Mark);
        assert_eq!(actual, expected, "{facts:?} {holder:?}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
fn each_state_of_a_worktree_is_distinguished() {
    use Standing::{Finding, InOrder, InUse, Kept, Removable};
    let lane = worktree("l1");
    let gone = Worktree {
        is_there: false,
        ..lane.clone()
    };
    let cut = CutStep {
        step_id: "w.a.1".into(),
        issue: "a".into(),
        generation: 1,
    };
    let states = [
        (lane.clone(), InOrder),
        (
            Worktree {
                lane: LaneLockState::Held("pid 1".to_owned()),
                ..gone.clone()
            },
            InUse,
        ),
        (gone.clone(), Removable),
        (
            Worktree {
                locked: Some("why".to_owned()),
                ..gone.clone()
            },
            Kept,
        ),
        (
            Worktree {
                loses: Some(Loss::Salvage),
                ..gone.clone()
            },
            Kept,
        ),
        (
            Worktree {
                loses: Some(Loss::Commits),
                ..gone.clone()
            },
            Finding,
        ),
        (Worktree { name: None, ..gone }, Finding),
        (
            Worktree {
                head: Head::Unreadable("?".to_owned()),
                ..lane.clone()
            },
            Finding,
        ),
        (
            Worktree {
                head: Head::Unborn,
                ..lane.clone()
            },
            Finding,
        ),
        (
            Worktree {
                session_fault: Some("?".to_owned()),
                ..lane.clone()
            },
            Finding,
        ),
        (
            Worktree {
                step: Some(cut),
                changes: Some(3),
                ..lane.clone()
            },
            Kept,
        ),
        (
            Worktree {
                changes: Some(3),
                ..lane.clone()
            },
            Finding,
        ),
        (
            Worktree {
                changes: Some(3),
                is_provisioned: false,
                ..lane.clone()
            },
            Kept,
        ),
        (
            Worktree {
                head: Head::Unborn,
                is_provisioned: false,
                lane: LaneLockState::Never,
                ..lane
            },
            InOrder,
        ),
    ];
    for (state, expected) in states {
        let found = Findings {
            worktrees: vec![state.clone()],
            ..Findings::default()
        };
        let actual = standing(&found, &known(&[]), &terms(), Kind::Worktree);
        assert_eq!(actual, expected, "{state:?}");
    }
}

#[test]
fn a_lock_is_left_to_git_for_a_while() {
    let minutes = |minutes: i64| now() - jiff::SignedDuration::from_mins(minutes);
    for (at, is_shared, expected) in [
        (minutes(0), false, Standing::InUse),
        (minutes(1), false, Standing::Removable),
        (minutes(59), true, Standing::InUse),
        (minutes(60), true, Standing::Removable),
        // A clock that went back.
        (minutes(-5), false, Standing::InUse),
    ] {
        let found = Findings {
            locks: vec![GitLockFile {
                path: "/r/.git/refs/harness/x.lock".into(),
                at,
                is_shared,
            }],
            ..Findings::default()
        };
        let actual = standing(&found, &known(&[]), &terms(), Kind::Lock);
        assert_eq!(actual, expected, "{at} {is_shared}");
    }
}

#[test]
fn closed_is_landed_or_named() {
    let landed = |issue: &str, place| LandedCommit {
        issue: issue.into(),
        record: LandingRecord {
            target: TARGET.to_owned(),
            commit: "c1".to_owned(),
        },
        place,
    };
    let target = |places: &[LandedPlace], tip: Option<&str>| {
        let mut facts = known(&[]);
        let tip = tip.map(str::to_owned);
        facts.targets.insert(TARGET.to_owned(), tip);
        let landings = places.iter().zip(["a", "b"]);
        let found = Findings {
            landings: landings.map(|(place, id)| landed(id, *place)).collect(),
            ..Findings::default()
        };
        let items = account(&found, &facts, &terms());
        let missing = items.iter().filter(|item| item.kind == Kind::Issue);
        assert!(
            missing
                .clone()
                .all(|item| item.standing == Standing::Finding)
        );
        let target = items.iter().find(|item| item.kind == Kind::Target);
        (missing.count(), target.unwrap().standing)
    };
    use LandedPlace::{Head, Missing, Target};
    assert_eq!(target(&[Target, Target], Some("c")), (0, Standing::InOrder));
    assert_eq!(
        target(&[Target, Missing], Some("c")),
        (1, Standing::InOrder)
    );
    assert_eq!(target(&[Head, Head], None), (0, Standing::Kept));
    assert_eq!(target(&[Head, Missing], None), (1, Standing::Finding));
}

#[test]
fn what_a_resumable_batch_left_is_not_a_fault() {
    let facts = IssueFacts {
        lease: LeaseLook::Over("w".to_owned()),
        unrecorded: Some("w.a.1".to_owned()),
        ..issue("in_progress")
    };
    for (batches, expected) in [
        (&[][..], Standing::Finding),
        (&[false], Standing::Kept),
        (&[false, true], Standing::InUse),
    ] {
        let mut known = known(&[("a", facts.clone())]);
        known.batches = batches
            .iter()
            .map(|lives| UnendedBatch {
                id: "hb1".into(),
                lives: *lives,
            })
            .collect();
        let items = account(&Findings::default(), &known, &terms());
        let issues: Vec<_> = items
            .iter()
            .filter(|item| item.kind == Kind::Issue)
            .map(|item| item.standing)
            .collect();
        assert_eq!(issues, [expected, expected]);
    }
}

fn any_role() -> impl Strategy<Value = Role> {
    prop_oneof![
        Just(Role::Target),
        Just(Role::Salvage),
        Just(Role::Moved),
        Just(Role::Other),
        (prop::sample::select(vec!["a", "b", "c"]), 1u64..3).prop_map(|(issue, generation)| {
            Role::Step {
                issue: issue.into(),
                generation,
            }
        }),
    ]
}

prop_compose! {
    fn any_branch()(
        role in any_role(), held in any::<bool>(), out in any::<bool>(), days in 0i64..40
    ) -> Branch {
        Branch {
            role,
            at: days_ago(days),
            held_by: held.then(|| TARGET.to_owned()),
            checked_out: out.then(|| CheckedOut { worktree: None, path: "/r".into() }),
            ..step(None)
        }
    }
}

proptest! {
    /// The laws of a clean-up over branches, whatever the issues are.
    #[test]
    fn no_commit_is_lost_and_nothing_in_use_is_taken(
        branch in any_branch(),
        status in prop::sample::select(vec!["open", "blocked", "in_progress", "closed"]),
        salvage: bool,
        lives: bool,
    ) {
        let mut facts = known(&[("a", issue(status)), ("b", issue("closed"))]);
        facts.batches.push(UnendedBatch { id: "hb1".into(), lives });
        let terms = Terms { salvage, older_than: Duration::ZERO, ..terms() };
        let items = account(&branches(vec![branch.clone()]), &facts, &terms);
        let goes = items.iter().any(|item| item.standing == Standing::Removable);
        prop_assert!(!goes || !lives);
        prop_assert!(!goes || branch.checked_out.is_none());
        prop_assert!(!goes || salvage || branch.held_by.is_some());
        prop_assert!(!goes || !matches!(branch.role, Role::Target | Role::Other));
    }
}

#[test]
fn a_checkout_without_a_lane_goes_where_lanes_go_and_nothing_runs() {
    use Standing::{InUse, Kept, Removable};
    let held = || LaneLockState::Held("pid 1".to_owned());
    for (lanes, lane, expected) in [
        (false, LaneLockState::Free, Kept),
        (true, LaneLockState::Free, Removable),
        (true, held(), InUse),
    ] {
        let found = Findings {
            checkouts: vec![LeftCheckout {
                path: "/r-verify/l2".into(),
                bytes: 7,
            }],
            worktrees: vec![Worktree {
                lane,
                ..worktree("l1")
            }],
            ..Findings::default()
        };
        let terms = Terms { lanes, ..terms() };
        let actual = standing(&found, &known(&[]), &terms, Kind::Checkout);
        assert_eq!(actual, expected, "{lanes}");
    }
}

//! Output, files that were left and images.

use super::*;

fn output(step: &str, days: i64, bytes: u64) -> StepOutput {
    StepOutput {
        step: step.into(),
        files: vec![format!("/r/artifacts/streams/{step}.work.stdout").into()],
        at: days_ago(days),
        bytes,
    }
}

fn removable(items: &[InventoryItem]) -> Vec<&str> {
    items
        .iter()
        .filter(|item| item.standing == Standing::Removable)
        .map(|item| item.name.as_str())
        .collect()
}

#[test]
fn output_goes_by_age_the_oldest_first_while_there_is_too_much() {
    let found = Findings {
        outputs: vec![
            output("w.a.1", 15, 10),
            output("w.b.1", 30, 10),
            output("w.c.1", 20, 10),
            output("w.d.1", 13, 10),
        ],
        ..Findings::default()
    };
    let facts = known(&[]);
    for (excess, expected) in [
        (None, &["w.a.1", "w.b.1", "w.c.1"][..]),
        (Some(0), &[]),
        (Some(1), &["w.b.1"]),
        (Some(11), &["w.b.1", "w.c.1"]),
        (Some(99), &["w.a.1", "w.b.1", "w.c.1"]),
    ] {
        let terms = Terms { excess, ..terms() };
        assert_eq!(removable(&account(&found, &facts, &terms)), expected);
    }
    // What only grows old is not a finding.
    let items = account(&found, &facts, &terms());
    assert!(!items.iter().any(InventoryItem::is_finding));
}

#[test]
fn output_of_a_step_that_runs_stays_whatever_its_age() {
    let leased = IssueFacts {
        lease: LeaseLook::Live(1),
        ..issue("in_progress")
    };
    let found = Findings {
        outputs: vec![output("w.a%2Fb.1", 30, 1), output("w.a%2Fb.11", 30, 1)],
        ..Findings::default()
    };
    let items = account(&found, &known(&[("a/b", leased)]), &terms());
    assert_eq!(removable(&items), ["w.a%2Fb.11"]);
}

#[test]
fn files_go_by_age_and_never_while_their_maker_runs() {
    let file = |path: &str, kind, days| LeftFile {
        path: path.into(),
        kind,
        at: days_ago(days),
        bytes: 1,
    };
    let dead = LeftKind::Temporary { maker_lives: false };
    let found = Findings {
        files: vec![
            file("/1", LeftKind::Torn, 14),
            file("/2", LeftKind::Torn, 13),
            file("/3", dead, 14),
            file("/4", dead, 13),
            file("/5", LeftKind::Temporary { maker_lives: true }, 99),
            file("/6", LeftKind::Step { under_way: true }, 99),
            file("/7", LeftKind::Step { under_way: false }, 99),
        ],
        salvage: vec![SalvageFolder {
            path: "/8".into(),
            at: days_ago(14),
            bytes: 5,
        }],
        ..Findings::default()
    };
    let items = account(&found, &known(&[]), &terms());
    assert_eq!(removable(&items), ["/1", "/3", "/7"]);
    let items = account(&found, &known(&[]), &with_salvage());
    assert_eq!(removable(&items), ["/8", "/1", "/3", "/7"]);
    assert_eq!(excess(100, 90, &items), 5);
    assert_eq!(excess(10, 90, &items), 0);
}

#[test]
fn an_image_goes_once_it_was_not_used_for_long() {
    use Standing::{InUse, Kept, Removable};
    for (is_used, days, expected) in [(false, 13, Kept), (false, 15, Removable), (true, 15, InUse)]
    {
        let image = CachedImage {
            id: "a".repeat(64),
            folders: vec!["/c/premath/images/a".into()],
            lock: "/c/premath/images/a.flock".into(),
            at: days_ago(days),
            bytes: 7,
            is_used,
        };
        let found = Findings {
            images: vec![image],
            ..Findings::default()
        };
        let actual = standing(&found, &known(&[]), &terms(), Kind::Image);
        assert_eq!(actual, expected, "{is_used} {days}");
        let items = account(&found, &known(&[]), &terms());
        assert!(items.iter().all(|item| !item.is_finding()));
    }
}

//! Changes made outside a transaction are found, and nothing else is.

use super::*;
use crate::issues::{ForeignKind, ForeignRow, ForeignSelection, OutsideChange};
use premath_kernel::authority::OperatorOverride;
use std::io::Write;

fn append(scratch: &Scratch, text: &str) {
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&scratch.path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Has a memory look, and returns what it found.
fn found(memory: &IssueMemory) -> Vec<OutsideChange> {
    memory.check_seal().unwrap();
    memory.take_outside_changes()
}

fn counts(change: &OutsideChange) -> (usize, usize, usize) {
    (change.added, change.altered, change.removed)
}

#[test]
fn transactions_of_several_processes_are_not_changes_from_outside() {
    let scratch = Scratch::new(&rows(3));
    let (one, two) = (scratch.open(), scratch.open());
    assert!(found(&one).is_empty());
    claim_one(&one, "a").unwrap();
    claim_one(&two, "b").unwrap();
    claim_one(&one, "c").unwrap();
    assert!(one.compact(CompactionRule::Now).unwrap());
    assert!(found(&two).is_empty());
    assert!(found(&one).is_empty());
    assert!(found(&scratch.open()).is_empty());
}

#[test]
fn a_row_that_was_appended_is_found_at_the_next_transaction_and_named_once() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    claim_one(&memory, "a").unwrap();
    append(
        &scratch,
        "{\"id\":\"new\",\"title\":\"t\"}\n{\"id\":\"x-0001\",\"title\":\"other\"}\n",
    );
    // A read without the lock takes the rows in and reports nothing yet.
    assert!(memory.view(|view| view.row("new").is_some()).unwrap());
    assert!(memory.take_outside_changes().is_empty());
    claim_one(&memory, "b").unwrap();
    let changes = memory.take_outside_changes();
    assert_eq!(changes.len(), 1);
    assert_eq!(counts(&changes[0]), (1, 1, 0), "{changes:?}");
    assert_eq!(changes[0].issues, ["new", "x-0001"]);
    assert!(
        changes[0]
            .describe()
            .contains("1 added, 1 changed, 0 removed (new, x-0001)")
    );
    claim_one(&memory, "c").unwrap();
    assert!(memory.take_outside_changes().is_empty());
}

#[test]
fn rows_that_were_rewritten_or_cut_off_are_found() {
    let scratch = Scratch::new(&rows(3));
    let memory = scratch.open();
    assert!(found(&memory).is_empty());
    let text = scratch.text();
    fs::write(
        &scratch.path,
        text.replace("x-0001\",\"title\":\"t\"", "x-0001\",\"title\":\"T\""),
    )
    .unwrap();
    let changes = found(&memory);
    assert_eq!(counts(&changes[0]), (0, 1, 0));
    let last = scratch
        .text()
        .lines()
        .take(1)
        .map(|l| format!("{l}\n"))
        .collect::<String>();
    fs::write(&scratch.path, last).unwrap();
    let changes = found(&memory);
    assert_eq!(counts(&changes[0]), (0, 0, 2));
    assert_eq!((changes.len(), changes[0].number), (1, 2));
}

#[test]
fn a_row_that_was_rewritten_in_place_is_found_also_where_its_time_was_put_back() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    claim_one(&memory, "a").unwrap();
    let before = fs::metadata(&scratch.path).unwrap().modified().unwrap();
    let text = scratch.text().replace("\"title\":\"t\"", "\"title\":\"T\"");
    fs::write(&scratch.path, text).unwrap();
    let file = fs::File::options().write(true).open(&scratch.path).unwrap();
    file.set_modified(before).unwrap();
    let changes = found(&memory);
    assert_eq!(counts(&changes[0]), (0, 2, 0), "{changes:?}");
}

#[test]
fn a_copy_or_a_touch_that_leaves_the_rows_is_not_a_change() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    claim_one(&memory, "a").unwrap();
    let text = scratch.text();
    let copy = scratch.path.with_extension("copy");
    fs::write(&copy, format!("# a comment\n{text}")).unwrap();
    fs::rename(&copy, &scratch.path).unwrap();
    assert!(found(&memory).is_empty());
    claim_one(&memory, "b").unwrap();
    assert!(memory.take_outside_changes().is_empty());
}

#[test]
fn what_another_process_found_is_reported_by_this_one_too() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    assert!(found(&memory).is_empty());
    append(&scratch, "{\"id\":\"new\",\"title\":\"t\"}\n");
    // It takes the rows over as they are, and the seal with it.
    claim_one(&scratch.open(), "b").unwrap();
    let changes = found(&memory);
    assert_eq!(changes.len(), 1);
    assert_eq!(counts(&changes[0]), (1, 0, 0));
    // Who comes later has nothing to do with it.
    assert!(found(&scratch.open()).is_empty());
}

#[test]
fn a_seal_that_was_removed_or_spoilt_is_as_this_process_left_it() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    assert!(found(&memory).is_empty());
    let seal = scratch.path.with_file_name("issues.jsonl.seal");
    for (number, spoil) in [None, Some("nonsense")].into_iter().enumerate() {
        append(
            &scratch,
            &format!("{{\"id\":\"new-{number}\",\"title\":\"t\"}}\n"),
        );
        match spoil {
            None => fs::remove_file(&seal).unwrap(),
            Some(text) => fs::write(&seal, text).unwrap(),
        }
        let changes = found(&memory);
        assert_eq!(counts(&changes[0]), (1, 0, 0));
        assert_eq!(changes[0].number, number as u64 + 1);
    }
}

#[test]
fn an_append_that_was_cut_before_its_end_was_sealed_is_not_a_change() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    claim_one(&memory, "a").unwrap();
    let seal = scratch.path.with_file_name("issues.jsonl.seal");
    // What is there between the append and the end of its transaction, and what
    // was there before the append.
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&seal).unwrap()).unwrap();
    record["file"] = serde_json::Value::Null;
    let ended = record.clone();
    for other in ["before", "after"] {
        let mut begun = ended.clone();
        begun[other] = "00".repeat(32).into();
        fs::write(&seal, begun.to_string()).unwrap();
        assert!(found(&scratch.open()).is_empty(), "{other}");
        assert!(found(&memory).is_empty(), "{other}");
    }
}

fn operator(reason: Option<&str>) -> OperatorOverride {
    #[expect(clippy::disallowed_methods, reason = "the test is the operator")]
    OperatorOverride::new("op", reason.map(str::to_owned))
}

fn foreign(memory: &IssueMemory) -> Vec<(String, String)> {
    let rows = memory.foreign_rows();
    rows.iter()
        .map(|row| (row.issue_id.to_string(), row.summary()))
        .collect()
}

fn accept(memory: &IssueMemory, ids: &[&str]) -> Result<Vec<ForeignRow>, ChangeError> {
    let ids = ids.iter().map(|id| (*id).into()).collect();
    memory.accept_foreign(
        &operator(Some("mine")),
        &ForeignSelection::Issues(ids),
        |_| Ok(()),
    )
}

/// Attack 16: an edited row, and then any transaction.
#[test]
fn an_edited_row_is_reported_through_every_transaction_until_it_is_accepted() {
    let scratch = Scratch::new(&rows(3));
    claim_one(&scratch.open(), "a").unwrap();
    let text = scratch.text().replace(
        "\"x-0002\",\"title\":\"t\"",
        "\"x-0002\",\"title\":\"T\",\"status\":\"closed\"",
    );
    fs::write(&scratch.path, text).unwrap();
    append(&scratch, "{\"id\":\"new\",\"title\":\"t\"}\n");
    // A process of its own makes the next transaction, and others follow.
    claim_one(&scratch.open(), "b").unwrap();
    let expected = [
        ("new".to_owned(), "added".to_owned()),
        (
            "x-0002".to_owned(),
            "altered: status, title; closed without evidence".to_owned(),
        ),
    ];
    for _ in 0..3 {
        let memory = scratch.open();
        assert!(memory.compact(CompactionRule::Now).is_ok());
        memory.check_seal().unwrap();
        assert_eq!(foreign(&memory), expected);
    }
    let memory = scratch.open();
    // A transaction over the row itself does not take it off the list.
    let edit = IssueChange::Update {
        id: "new".to_owned(),
        edit: IssueEdit {
            title: Some("other".to_owned()),
            ..IssueEdit::default()
        },
    };
    memory.operate(operator(None), edit).unwrap();
    assert_eq!(foreign(&memory), expected);
    assert!(accept(&memory, &["x-0000"]).is_err());
    assert!(
        memory
            .accept_foreign(&operator(None), &ForeignSelection::All, |_| Ok::<
                _,
                ChangeError,
            >(
                ()
            ))
            .is_err()
    );
    let accepted = accept(&memory, &["x-0002"]).unwrap();
    assert_eq!(accepted[0].fields, ["status", "title"]);
    let other = scratch.open();
    other.check_seal().unwrap();
    assert_eq!(foreign(&other), expected[..1]);
    accept(&other, &["new"]).unwrap();
    memory.check_seal().unwrap();
    assert!(foreign(&memory).is_empty());
    assert!(!scratch.path.with_file_name("issues.jsonl.foreign").exists());
}

#[test]
fn an_acceptance_that_cannot_be_recorded_accepts_nothing() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    claim_one(&memory, "a").unwrap();
    append(&scratch, "{\"id\":\"new\",\"title\":\"t\"}\n");
    let failed = memory.accept_foreign(&operator(Some("r")), &ForeignSelection::All, |_| {
        Err(ChangeError::Invalid("no room".to_owned()))
    });
    assert!(failed.is_err());
    let memory = scratch.open();
    memory.check_seal().unwrap();
    assert_eq!(memory.foreign_rows().len(), 1);
}

#[test]
fn a_row_that_is_put_back_needs_no_acceptance() {
    let scratch = Scratch::new(&rows(2));
    claim_one(&scratch.open(), "a").unwrap();
    let before = scratch.text();
    fs::write(&scratch.path, before.replace("x-0001", "y-0001")).unwrap();
    let memory = scratch.open();
    memory.check_seal().unwrap();
    let kinds: Vec<_> = memory.foreign_rows().iter().map(|row| row.kind).collect();
    assert_eq!(kinds, [ForeignKind::Removed, ForeignKind::Added]);
    fs::write(&scratch.path, before).unwrap();
    let memory = scratch.open();
    memory.check_seal().unwrap();
    assert!(memory.foreign_rows().is_empty());
}

#[test]
fn a_list_or_seal_that_is_gone_hides_nothing_from_another_process() {
    for gone in ["issues.jsonl.foreign", "issues.jsonl.seal"] {
        let scratch = Scratch::new(&rows(2));
        claim_one(&scratch.open(), "a").unwrap();
        append(&scratch, "{\"id\":\"new\",\"title\":\"t\"}\n");
        if gone.ends_with("foreign") {
            scratch.open().check_seal().unwrap();
        }
        fs::remove_file(scratch.path.with_file_name(gone)).unwrap();
        let memory = scratch.open();
        memory.check_seal().unwrap();
        assert_eq!(memory.foreign_rows().len(), 1, "{gone}");
    }
}

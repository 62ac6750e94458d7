//! Real trackers: everything that can close is closed, and nothing else
//! changes.

use premath_tests::{Scratch, skipped, workspace};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A row's fields as they are written.
type RowFields = BTreeMap<String, Box<RawValue>>;

/// What a batch may change of a row that it closes.
const CHANGES: [&str; 8] = [
    "status",
    "assignee",
    "lease",
    "lease_generation",
    "closed_by_step",
    "mutation_refs",
    "updated_at",
    "closed_at",
];

fn lines(text: &[u8]) -> Vec<(String, RowFields)> {
    std::str::from_utf8(text)
        .unwrap()
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| {
            let fields: RowFields = serde_json::from_str(line).unwrap();
            let id = serde_json::from_str(fields["id"].get()).unwrap();
            (id, fields)
        })
        .collect()
}

fn text(fields: &RowFields, name: &str) -> String {
    fields.get(name).map_or_else(String::new, |raw| {
        serde_json::from_str(raw.get()).unwrap_or_default()
    })
}

struct Worked {
    scratch: Scratch,
    before: BTreeMap<String, RowFields>,
    after: Vec<(String, RowFields)>,
    closed: BTreeSet<String>,
}

/// Runs a batch on a tracker until nothing is ready.
fn work_through(tracker: &[u8]) -> Worked {
    let scratch = Scratch::new(4);
    scratch.write_issues(tracker);
    scratch
        .batch("true", "true")
        .args(["--issue-types", "all", "--assignee", "any"])
        .end()
        .exits(0);
    let before: BTreeMap<String, RowFields> = lines(tracker).into_iter().collect();
    let after = lines(&scratch.issue_bytes());
    let closed = after
        .iter()
        .filter(|(id, fields)| {
            text(fields, "status") == "closed" && text(&before[id], "status") != "closed"
        })
        .map(|(id, _)| id.clone())
        .collect();
    Worked {
        scratch,
        before,
        after,
        closed,
    }
}

impl Worked {
    /// The file is compacted and sorted: one row an issue, none lost.
    fn is_compact(&self) {
        let ids: Vec<&String> = self.after.iter().map(|(id, _)| id).collect();
        let expected: Vec<&String> = self.before.keys().collect();
        assert_eq!(ids, expected);
    }

    /// Row for row and field for field, as it was written.
    fn changed_nothing_else(&self) {
        let raw = |fields: &RowFields, name: &str| fields.get(name).map(|raw| raw.get().to_owned());
        for (id, now) in &self.after {
            let before = &self.before[id];
            let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
            for name in names {
                if self.closed.contains(id) && CHANGES.contains(&name.as_str()) {
                    continue;
                }
                assert_eq!(raw(before, name), raw(now, name), "{name} of {id}");
            }
        }
    }

    /// Each closed issue has one `completed` row with a lease witness, which it
    /// names, and which its dependencies' rows are before.
    fn is_recorded_once(&self) {
        let steps = self.scratch.steps();
        let mut at: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, row) in steps.iter().enumerate() {
            assert_eq!(row["resultClass"], "completed", "{row}");
            let id = row["issueId"].as_str().unwrap();
            assert!(at.insert(id, index).is_none(), "two rows of {id}");
            let prefix = "lease://handoff/";
            let witnesses = row["witnessRefs"].as_array().unwrap();
            let leases = witnesses
                .iter()
                .filter(|witness| witness.as_str().unwrap().starts_with(prefix));
            assert_eq!(leases.count(), 1, "{row}");
        }
        let recorded: BTreeSet<String> = at.keys().map(|id| (*id).to_owned()).collect();
        assert_eq!(recorded, self.closed);
        for (id, fields) in &self.after {
            let Some(index) = at.get(id.as_str()) else {
                continue;
            };
            assert_eq!(
                text(fields, "closed_by_step"),
                steps[*index]["stepId"].as_str().unwrap()
            );
            assert!(!fields.contains_key("lease"), "{id} has a lease");
            let edges: Vec<Value> = fields
                .get("dependencies")
                .map(|raw| serde_json::from_str(raw.get()).unwrap())
                .unwrap_or_default();
            for edge in edges {
                let Some(target) = at.get(edge["depends_on_id"].as_str().unwrap()) else {
                    continue;
                };
                match edge["type"].as_str().unwrap() {
                    "blocks" | "conditional-blocks" | "waits-for" => {
                        assert!(target < index, "{id} was closed before its blocker: {edge}");
                    }
                    "parent-child" => {
                        assert!(index < target, "{id} was closed after its parent: {edge}");
                    }
                    _ => {}
                }
            }
        }
    }

    fn open(&self) -> Vec<&str> {
        self.after
            .iter()
            .filter(|(_, fields)| text(fields, "status") == "open")
            .map(|(id, _)| id.as_str())
            .collect()
    }

    fn checked(&self) {
        self.is_compact();
        self.changed_nothing_else();
        self.is_recorded_once();
        self.scratch.no_process_left();
        assert_eq!(self.scratch.leftovers(), [""; 0]);
    }
}

#[test]
fn a_small_tracker_is_worked_through_and_nothing_else_is_changed() {
    let text = fs::read(workspace().join("tests/data/tracker.jsonl")).unwrap();
    let worked = work_through(&text);
    worked.checked();
    assert_eq!(worked.open(), ["tk-gate"], "its blocker is missing");
    assert_eq!(worked.closed.len(), 12);
}

#[test]
fn a_real_tracker_is_worked_through_and_nothing_else_is_changed() {
    let path = workspace().join("../shared/data/beads-issues.jsonl");
    let Ok(text) = fs::read(&path) else {
        return skipped(
            "the real tracker of 2,458 rows",
            &format!("{} is not there", path.display()),
        );
    };
    let worked = work_through(&text);
    worked.checked();
    assert_eq!(worked.closed.len(), 89);
    assert_eq!(worked.open().len(), 1);
    assert_eq!(worked.after.len(), 2458);
}

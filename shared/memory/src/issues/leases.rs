//! The leases that stand, in the orders in which they end, so that a claim
//! does not look at every one of them to find those that are over.

use crate::row::IssueRow;
use jiff::Timestamp;
use premath_kernel::issue::Holder;
use premath_kernel::issue::Status;
use premath_kernel::issue::lease::{Life, Observation};
use premath_kernel::json::time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Issues in progress under a lease: those that a claim may take over.
#[derive(Debug, Default)]
pub(super) struct Leases {
    entries: BTreeMap<Arc<str>, Entry>,
    /// Times on the wall clock that can be read.
    by_expiry: BTreeSet<(Timestamp, Arc<str>)>,
    /// Of leases with a holder, on its CLOCK_BOOTTIME.
    by_deadline: BTreeSet<(u64, Arc<str>)>,
    by_holder: BTreeMap<Process, Held>,
}

/// Where a lease is in the orders.
#[derive(Debug)]
struct Entry {
    expires_at: Option<Timestamp>,
    holder: Option<(u64, Process)>,
}

/// What tells one process from another.
type Process = (Box<str>, Box<str>, Option<Box<str>>, u32, u64);

/// The leases that one process holds.
#[derive(Debug)]
struct Held {
    holder: Holder,
    issues: BTreeSet<Arc<str>>,
}

impl Leases {
    /// Takes over an issue's new row.
    pub(super) fn enter(&mut self, row: &IssueRow) {
        let issue = &row.issue;
        self.leave(&issue.id);
        let Some(lease) = &issue.lease else { return };
        if issue.status != Status::InProgress {
            return;
        }
        let expires_at = time::parse(&lease.expires_at);
        if let Some(at) = expires_at {
            self.by_expiry.insert((at, issue.id.clone()));
        }
        let holder = lease.holder.as_ref().map(|holder| {
            let process = process_of(holder);
            self.by_deadline
                .insert((holder.deadline_ms, issue.id.clone()));
            self.by_holder
                .entry(process.clone())
                .or_insert_with(|| Held {
                    holder: holder.clone(),
                    issues: BTreeSet::new(),
                })
                .issues
                .insert(issue.id.clone());
            (holder.deadline_ms, process)
        });
        self.entries
            .insert(issue.id.clone(), Entry { expires_at, holder });
    }

    fn leave(&mut self, id: &Arc<str>) {
        let Some(entry) = self.entries.remove(id) else {
            return;
        };
        if let Some(at) = entry.expires_at {
            self.by_expiry.remove(&(at, id.clone()));
        }
        if let Some((deadline_ms, process)) = entry.holder {
            self.by_deadline.remove(&(deadline_ms, id.clone()));
            if let Some(held) = self.by_holder.get_mut(&process) {
                held.issues.remove(id);
                if held.issues.is_empty() {
                    self.by_holder.remove(&process);
                }
            }
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns all of them, by id.
    pub(super) fn ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.entries.keys()
    }

    /// Returns those that may be over, every stale one among them: past their
    /// time by either clock, or of a process that is dead.
    pub(super) fn maybe_over(&self, seen: &Observation<'_>) -> BTreeSet<&Arc<str>> {
        let expired = self
            .by_expiry
            .iter()
            .take_while(|(at, _)| *at <= seen.moment.wall)
            .map(|(_, id)| id);
        let past_deadline = self
            .by_deadline
            .iter()
            .take_while(|(at, _)| *at <= seen.moment.boot_ms)
            .map(|(_, id)| id);
        // Asked once a process, not once a lease.
        let of_dead = self
            .by_holder
            .values()
            .filter(|held| *held.holder.boot_id == *seen.boot_id)
            .filter(|held| (seen.life)(&held.holder) == Life::Dead)
            .flat_map(|held| &held.issues);
        expired.chain(past_deadline).chain(of_dead).collect()
    }
}

fn process_of(holder: &Holder) -> Process {
    (
        holder.host.clone(),
        holder.boot_id.clone(),
        holder.pid_ns.clone(),
        holder.pid,
        holder.started,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::issue::lease::{LeaseState, state};
    use premath_kernel::json::time::Moment;

    /// Every combination of expiry, holder, deadline and life.
    fn rows() -> Vec<IssueRow> {
        let mut rows = Vec::new();
        for expires_at in ["2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z", "soon"] {
            for (boot, pid) in [("", 0), ("here", 1), ("here", 2), ("elsewhere", 2)] {
                for deadline_ms in [10, 1_000] {
                    let holder = if boot.is_empty() {
                        String::new()
                    } else {
                        format!(
                            r#","holder":{{"host":"h","boot_id":"{boot}","pid":{pid},"started":7,"deadline_ms":{deadline_ms}}}"#
                        )
                    };
                    let id = rows.len();
                    let text = format!(
                        r#"{{"id":"i{id:02}","status":"in_progress","assignee":"w","lease":{{"lease_id":"l","owner":"w","expires_at":"{expires_at}"{holder}}}}}"#
                    );
                    rows.push(IssueRow::parse(&text).unwrap());
                }
            }
        }
        rows
    }

    #[test]
    fn every_stale_lease_is_among_those_that_may_be_over() {
        let rows = rows();
        let mut leases = Leases::default();
        rows.iter().for_each(|row| leases.enter(row));
        let life = |holder: &Holder| match holder.pid {
            1 => Life::Alive,
            _ => Life::Dead,
        };
        for boot_ms in [5, 500, 5_000] {
            for wall in [
                "2025-12-31T00:00:00Z",
                "2026-01-02T00:00:00Z",
                "2026-02-01T00:00:00Z",
            ] {
                let seen = Observation {
                    moment: Moment {
                        wall: time::parse(wall).unwrap(),
                        boot_ms,
                    },
                    boot_id: "here",
                    life: &life,
                };
                let over = leases.maybe_over(&seen);
                for row in &rows {
                    if state(Some(&row.issue), &seen) == LeaseState::Stale {
                        assert!(over.contains(&row.issue.id), "{}", row.text);
                    }
                }
            }
        }
    }

    #[test]
    fn a_lease_that_ends_leaves_nothing_behind() {
        let mut leases = Leases::default();
        for row in rows() {
            leases.enter(&row);
            leases.enter(&row);
        }
        assert_eq!(leases.ids().count(), rows().len());
        for row in rows() {
            let text = row.text.replace("in_progress", "closed");
            leases.enter(&IssueRow::parse(&text).unwrap());
        }
        assert!(leases.by_expiry.is_empty() && leases.by_deadline.is_empty());
        assert!(leases.by_holder.is_empty() && leases.entries.is_empty());
    }
}

//! What issue memory and trajectory say: lines, leases, rows, batches, and
//! the guarantee that closed is landed.

use super::found::{LandedPlace, LeaseLook};
use super::{InventoryItem, Kind, Scene, Standing};
use crate::failure::FailureClass;
use crate::policy::target_sync::{Course, apart};
use std::collections::BTreeMap;

pub(super) fn items(scene: &Scene<'_>) -> Vec<InventoryItem> {
    let mut items = lines(scene);
    items.extend(cut(scene));
    items.extend(batches(scene));
    items.extend(foreign(scene));
    items.extend(issues(scene));
    items.extend(landings(scene));
    items.extend(diverged_targets(scene));
    items
}

fn lines(scene: &Scene<'_>) -> Vec<InventoryItem> {
    let lines = scene.known.unreadable.iter();
    lines
        .map(|line| {
            let item =
                InventoryItem::new(Kind::Memory, &line.place, Standing::Finding, &line.detail);
            if line.is_issue {
                item.class(FailureClass::IssueMemoryCorrupt).advice(
                    "repair the line, or write the readable rows into a new file with `premath \
                     doctor --repair-into FILE`",
                )
            } else {
                item.class(FailureClass::TrajectoryCorrupt)
                    .advice("repair or remove the line; nothing is written until then")
            }
        })
        .collect()
}

/// The next writer puts such a line aside, so that nothing else hangs on it.
fn cut<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = InventoryItem> + use<'a> {
    scene.known.cut.iter().map(|place| {
        let reason = "the last line is incomplete and was skipped";
        InventoryItem::new(Kind::Torn, place, Standing::Finding, reason)
            .advice("the next write moves it to a separate file")
    })
}

fn batches(scene: &Scene<'_>) -> Vec<InventoryItem> {
    let batches = scene.known.batches.iter();
    batches
        .map(|batch| {
            if batch.lives {
                InventoryItem::new(
                    Kind::Batch,
                    batch.id.as_str(),
                    Standing::InUse,
                    "its coordinator runs",
                )
            } else {
                let reason = "its coordinator is gone; the same command resumes it";
                InventoryItem::new(Kind::Batch, batch.id.as_str(), Standing::Kept, reason)
            }
        })
        .collect()
}

/// Rows that changed outside a transaction, until the operator accepts them.
fn foreign<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = InventoryItem> + use<'a> {
    scene.known.foreign.iter().map(|change| {
        let reason = format!(
            "changed outside a transaction ({}), first seen {}",
            change.summary, change.first_seen
        );
        let (name, which) = match &*change.issue {
            "" => ("the issue store", "--all"),
            id => (id, id),
        };
        InventoryItem::new(Kind::Issue, name, Standing::Finding, reason)
            .class(FailureClass::MemoryChangedOutside)
            .advice(format!(
                "accept it with `premath issue accept-changes {which} --override-reason TEXT`"
            ))
    })
}

/// Leases that are over, and closes without a row. What a batch that will be
/// resumed left is not a fault: it takes both up.
fn issues(scene: &Scene<'_>) -> Vec<InventoryItem> {
    let is_running = scene.known.batches.iter().any(|batch| !batch.lives);
    let standing = if scene.live().is_some() {
        Standing::InUse
    } else if is_running {
        Standing::Kept
    } else {
        Standing::Finding
    };
    let mut items = Vec::new();
    for (id, issue) in &scene.known.issues {
        if let LeaseLook::Over(owner) = &issue.lease {
            let reason = format!("{}, but the lease of {owner} is over", issue.status);
            items.push(
                InventoryItem::new(Kind::Issue, id.as_str(), standing, reason)
                    .advice(format!(
                        "the next run reclaims it; reopen it with `premath issue update {id} \
                         --status open`"
                    ))
                    .class(FailureClass::LeaseStale),
            );
        }
        if let Some(step) = &issue.unrecorded {
            let reason = format!("{}, but {step} has no trajectory row", issue.status);
            items.push(
                InventoryItem::new(Kind::Issue, id.as_str(), standing, reason)
                    .advice("the next run writes it"),
            );
        }
    }
    items
}

/// Every issue that closed by landing has its commit on its target.
fn landings(scene: &Scene<'_>) -> Vec<InventoryItem> {
    let mut items = Vec::new();
    let mut held: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for landed in &scene.found.landings {
        let target = landed.record.target.as_str();
        let (on, all) = held.entry(target).or_default();
        *all += 1;
        if landed.place == LandedPlace::Missing {
            let commit: String = landed.record.commit.chars().take(10).collect();
            let reason = format!("closed, but its commit {commit} is not on {target}");
            items.push(
                InventoryItem::new(
                    Kind::Issue,
                    landed.issue.as_str(),
                    Standing::Finding,
                    reason,
                )
                .advice(format!(
                    "merge {commit} into it, or reopen the issue with `premath issue update {} \
                     --status open`",
                    landed.issue
                )),
            );
        } else {
            *on += 1;
        }
    }
    for (target, tip) in &scene.known.targets {
        let (on, all) = held.get(target.as_str()).copied().unwrap_or_default();
        let which = if on == 1 {
            "1 closed issue is".to_owned()
        } else {
            format!("{on} closed issues are")
        };
        let short = |tip: &str| tip.chars().take(10).collect::<String>();
        let item = match tip {
            Some(tip) => InventoryItem::new(
                Kind::Target,
                target,
                Standing::InOrder,
                format!("{which} on it, {}", short(tip)),
            ),
            None if on == all => InventoryItem::new(
                Kind::Target,
                target,
                Standing::Kept,
                format!("the branch is gone; {which} in the main worktree's HEAD"),
            ),
            None => InventoryItem::new(
                Kind::Target,
                target,
                Standing::Finding,
                "the branch is gone".to_owned(),
            )
            .class(FailureClass::LandingTargetUnusable),
        };
        items.push(item);
    }
    items
}

/// Targets that diverged from the main worktree's branch. One whose work was
/// merged completely follows when a batch begins.
fn diverged_targets(scene: &Scene<'_>) -> impl Iterator<Item = InventoryItem> {
    let states = scene.found.target_states.iter();
    let apart_now = states.filter(|state| state.distance.course() == Course::Apart);
    apart_now.map(|state| {
        let reason = apart(&state.from, state.distance.lacks);
        InventoryItem::new(Kind::Target, &state.target, Standing::Kept, reason)
    })
}

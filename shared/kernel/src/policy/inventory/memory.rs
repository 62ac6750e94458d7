//! What issue memory and trajectory say: lines, leases, rows, batches, and
//! the guarantee that closed is landed.

use super::found::{LeaseLook, Place};
use super::{Item, Kind, Scene, Standing};
use crate::failure::FailureClass;
use crate::policy::outset::{Course, apart};
use std::collections::BTreeMap;

pub(super) fn items(scene: &Scene<'_>) -> Vec<Item> {
    let mut items = lines(scene);
    items.extend(cut(scene));
    items.extend(batches(scene));
    items.extend(foreign(scene));
    items.extend(issues(scene));
    items.extend(landings(scene));
    items.extend(stands(scene));
    items
}

fn lines(scene: &Scene<'_>) -> Vec<Item> {
    let lines = scene.known.unreadable.iter();
    lines
        .map(|line| {
            let item = Item::new(Kind::Memory, &line.place, Standing::Finding, &line.detail);
            if line.is_issue {
                item.class(FailureClass::IssueMemoryCorrupt).advice(
                    "mend the line, or write the rows that can be read into a new file with \
                     `premath doctor --repair-into FILE`",
                )
            } else {
                item.class(FailureClass::TrajectoryCorrupt)
                    .advice("mend the line, or take it out; nothing is written until then")
            }
        })
        .collect()
}

/// The next writer puts such a line aside, so that nothing else hangs on it.
fn cut<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = Item> + use<'a> {
    scene.known.cut.iter().map(|place| {
        let reason = "the last line is cut, and not read";
        Item::new(Kind::Torn, place, Standing::Finding, reason)
            .advice("the next write puts it in a file beside")
    })
}

fn batches(scene: &Scene<'_>) -> Vec<Item> {
    let batches = scene.known.batches.iter();
    batches
        .map(|batch| {
            if batch.lives {
                Item::new(
                    Kind::Batch,
                    &batch.id,
                    Standing::InUse,
                    "its coordinator runs",
                )
            } else {
                let reason = "its coordinator is gone; the same command goes on with it";
                Item::new(Kind::Batch, &batch.id, Standing::Kept, reason)
            }
        })
        .collect()
}

/// Rows that came by no transaction, until the operator accepts them.
fn foreign<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = Item> + use<'a> {
    scene.known.foreign.iter().map(|change| {
        let reason = format!(
            "changed outside of a transaction ({}), first seen {}",
            change.summary, change.first_seen
        );
        let (name, which) = match &*change.issue {
            "" => ("issue memory", "--all"),
            id => (id, id),
        };
        Item::new(Kind::Issue, name, Standing::Finding, reason)
            .class(FailureClass::MemoryChangedOutside)
            .advice(format!(
                "`premath issue accept-changes {which} --override-reason TEXT` accepts it"
            ))
    })
}

/// Leases that are over, and closes without a row. What a batch that will be
/// resumed left is no fault: it takes both up.
fn issues(scene: &Scene<'_>) -> Vec<Item> {
    let goes_on = scene.known.batches.iter().any(|batch| !batch.lives);
    let standing = if scene.live().is_some() {
        Standing::InUse
    } else if goes_on {
        Standing::Kept
    } else {
        Standing::Finding
    };
    let mut items = Vec::new();
    for (id, issue) in &scene.known.issues {
        if let LeaseLook::Over(owner) = &issue.lease {
            let reason = format!("{}, but the lease of {owner} is over", issue.status);
            items.push(
                Item::new(Kind::Issue, id, standing, reason)
                    .advice(format!(
                        "the next run takes it over; `premath issue update {id} --status open` \
                         gives it back"
                    ))
                    .class(FailureClass::LeaseStale),
            );
        }
        if let Some(step) = &issue.unrecorded {
            let reason = format!("{}, and {step} has no row in the trajectory", issue.status);
            items.push(
                Item::new(Kind::Issue, id, standing, reason).advice("the next run writes it"),
            );
        }
    }
    items
}

/// Every issue that closed by landing has its commit on its target.
fn landings(scene: &Scene<'_>) -> Vec<Item> {
    let mut items = Vec::new();
    let mut held: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for landed in &scene.found.landings {
        let target = landed.record.target.as_str();
        let (on, all) = held.entry(target).or_default();
        *all += 1;
        if landed.place == Place::Missing {
            let commit: String = landed.record.commit.chars().take(10).collect();
            let reason = format!("closed, but its commit {commit} is not on {target}");
            items.push(
                Item::new(Kind::Issue, &landed.issue, Standing::Finding, reason).advice(format!(
                    "bring {commit} there, or give the issue back: `premath issue update {} \
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
            Some(tip) => Item::new(
                Kind::Target,
                target,
                Standing::InOrder,
                format!("{which} on it, {}", short(tip)),
            ),
            None if on == all => Item::new(
                Kind::Target,
                target,
                Standing::Kept,
                format!("the branch is gone; {which} in the main worktree's HEAD"),
            ),
            None => Item::new(
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

/// Targets that went on by themselves while people went on without them. One
/// whose work was taken over whole follows when a batch begins.
fn stands(scene: &Scene<'_>) -> impl Iterator<Item = Item> {
    let stands = scene.found.stands.iter();
    let apart_now = stands.filter(|stand| stand.distance.course() == Course::Apart);
    apart_now.map(|stand| {
        let reason = apart(&stand.from, stand.distance.lacks);
        Item::new(Kind::Target, &stand.target, Standing::Kept, reason)
    })
}

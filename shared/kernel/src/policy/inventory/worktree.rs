//! Worktrees.

use super::found::{Head, LaneLockState, Loss, Worktree};
use super::{InventoryItem, Kind, Scene, Standing, Thing};
use crate::failure::FailureClass;

pub(super) fn items(scene: &Scene<'_>) -> Vec<InventoryItem> {
    let worktrees = scene.found.worktrees.iter();
    worktrees.map(|found| worktree(scene, found)).collect()
}

fn worktree(scene: &Scene<'_>, found: &Worktree) -> InventoryItem {
    let name = found.path.display().to_string();
    let item =
        |standing, reason: String| InventoryItem::new(Kind::Worktree, &name, standing, reason);
    if let LaneLockState::Held(by) = &found.lane {
        return item(Standing::InUse, format!("a lane works in it ({by})"));
    }
    if !found.is_there {
        return missing(scene, found, &item);
    }
    if let Head::Unreadable(detail) = &found.head {
        return item(Standing::Finding, format!("cannot read its HEAD: {detail}"))
            .advice(
                "repair it with `git worktree repair`, or remove it with `git worktree remove \
                --force`",
            )
            .class(FailureClass::WorktreeInvalid);
    }
    let is_lane = found.is_provisioned || found.lane != LaneLockState::Never;
    if !is_lane {
        return item(Standing::InOrder, format!("no lane, {}", place(found)));
    }
    if found.head == Head::Unborn {
        return item(Standing::Finding, "its HEAD has no commit".to_owned())
            .advice("check a commit out with `git switch --detach`")
            .class(FailureClass::WorktreeInvalid);
    }
    if let Some(fault) = &found.session_fault {
        return item(
            Standing::Finding,
            format!("its session cannot be read: {fault}"),
        )
        .advice("no lane starts here until that file is repaired or removed")
        .class(FailureClass::ProjectionInvalid);
    }
    if let Some(step) = &found.step {
        let reason = format!("{} was interrupted; the next run recovers it", step.step_id);
        return item(Standing::Kept, reason);
    }
    match found.changes {
        Some(0) if goes(scene, found) => item(
            Standing::Removable,
            format!("a free lane, {}", place(found)),
        )
        .thing(Thing::Lane(found.path.clone())),
        None | Some(0) => item(Standing::InOrder, format!("a free lane, {}", place(found))),
        Some(count) => {
            let paths = if count == 1 { "path" } else { "paths" };
            let reason = format!("{count} changed {paths} not made by a step");
            let advice = "no lane starts here: commit or stash them";
            // In a worktree of their own people may work between two batches.
            if found.is_provisioned {
                item(Standing::Finding, reason)
                    .advice(advice)
                    .class(FailureClass::WorktreeDirty)
            } else {
                item(Standing::Kept, reason).advice(advice)
            }
        }
    }
}

/// Returns whether a free lane without changes is one that a clean-up was asked to
/// remove.
fn goes(scene: &Scene<'_>, found: &Worktree) -> bool {
    let is_ours = found.is_provisioned && found.locked.is_none();
    scene.terms.lanes && is_ours && scene.live().is_none()
}

fn missing(
    scene: &Scene<'_>,
    found: &Worktree,
    item: &dyn Fn(Standing, String) -> InventoryItem,
) -> InventoryItem {
    let gone = "its folder is gone";
    if let Some(reason) = &found.locked {
        let why = if reason.is_empty() {
            String::new()
        } else {
            format!(" ({reason})")
        };
        return item(Standing::Kept, format!("{gone}, and it is locked{why}"))
            .advice("if the folder does not return, unlock it with `git worktree unlock`");
    }
    if let Some(live) = scene.live() {
        return item(Standing::Kept, format!("{gone}; {live}"));
    }
    match (found.loses, &found.name) {
        (Some(Loss::Salvage), _) => item(
            Standing::Kept,
            format!("{gone}; its git folder holds salvage"),
        ),
        (Some(Loss::Commits), _) => item(
            Standing::Finding,
            format!("{gone}; its HEAD has commits that no other ref contains"),
        )
        .advice("create a branch on them, then run `premath clean`")
        .class(FailureClass::WorktreeInvalid),
        (None, None) => {
            item(Standing::Finding, gone.to_owned()).class(FailureClass::WorktreeInvalid)
        }
        (None, Some(name)) => item(Standing::Removable, gone.to_owned())
            .class(FailureClass::WorktreeInvalid)
            .thing(Thing::Registration(name.clone())),
    }
}

fn place(found: &Worktree) -> String {
    let head = match &found.head {
        Head::Branch(branch) => format!("on {branch}"),
        Head::Detached(commit) => {
            let short: String = commit.chars().take(10).collect();
            format!("detached at {short}")
        }
        Head::Unborn => "without a commit yet".to_owned(),
        Head::Unreadable(detail) => detail.clone(),
    };
    match &found.locked {
        Some(reason) if reason.is_empty() => format!("{head}, locked"),
        Some(reason) => format!("{head}, locked ({reason})"),
        None => head,
    }
}

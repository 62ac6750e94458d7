//! Worktrees.

use super::found::{Head, Lane, Loss, Worktree};
use super::{Item, Kind, Scene, Standing, Thing};
use crate::failure::FailureClass;

pub(super) fn items(scene: &Scene<'_>) -> Vec<Item> {
    let worktrees = scene.found.worktrees.iter();
    worktrees.map(|found| worktree(scene, found)).collect()
}

fn worktree(scene: &Scene<'_>, found: &Worktree) -> Item {
    let name = found.path.display().to_string();
    let item = |standing, reason: String| Item::new(Kind::Worktree, &name, standing, reason);
    if let Lane::Held(by) = &found.lane {
        return item(Standing::InUse, format!("a lane works in it ({by})"));
    }
    if !found.is_there {
        return missing(scene, found, &item);
    }
    if let Head::Unreadable(detail) = &found.head {
        return item(
            Standing::Finding,
            format!("its HEAD cannot be read: {detail}"),
        )
        .advice("`git worktree repair`, or take it away with `git worktree remove --force`")
        .class(FailureClass::WorktreeInvalid);
    }
    let is_lane = found.is_provisioned || found.lane != Lane::Never;
    if !is_lane {
        return item(Standing::InOrder, format!("no lane, {}", place(found)));
    }
    if found.head == Head::Unborn {
        return item(Standing::Finding, "its HEAD has no commit".to_owned())
            .advice("put it on a commit: `git switch --detach`")
            .class(FailureClass::WorktreeInvalid);
    }
    if let Some(fault) = &found.session_fault {
        return item(
            Standing::Finding,
            format!("its session cannot be read: {fault}"),
        )
        .advice("no lane begins here until that file is mended or taken away")
        .class(FailureClass::ProjectionInvalid);
    }
    if let Some(step) = &found.step {
        let reason = format!("{} was cut; the next run takes it up", step.step_id);
        return item(Standing::Kept, reason);
    }
    match found.changes {
        None | Some(0) => item(Standing::InOrder, format!("a free lane, {}", place(found))),
        Some(count) => {
            let paths = if count == 1 { "path" } else { "paths" };
            let reason = format!("{count} changed {paths} that no step left");
            let advice = "no lane begins over them: commit them, or put them away";
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

fn missing(scene: &Scene<'_>, found: &Worktree, item: &dyn Fn(Standing, String) -> Item) -> Item {
    let gone = "its folder is gone";
    if let Some(reason) = &found.locked {
        let why = if reason.is_empty() {
            String::new()
        } else {
            format!(" ({reason})")
        };
        return item(Standing::Kept, format!("{gone}, and it is locked{why}"))
            .advice("`git worktree unlock` it where the folder does not come back");
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
            format!("{gone}; its HEAD holds commits that nothing else does"),
        )
        .advice("put a branch on them, then `premath clean`")
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

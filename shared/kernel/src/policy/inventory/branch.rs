//! Branches and marks.

use super::found::{Branch, LeaseLook, Mark};
use super::{InventoryItem, Kind, Role, Scene, Standing, Thing};
use crate::json::id::IssueId;
use std::collections::BTreeSet;

const SALVAGE: &str = "`premath clean --salvage` removes it once it is old";

/// Accounts for branches and marks, after the worktrees: a branch is not
/// checked out by a registration that goes.
pub(super) fn items(scene: &Scene<'_>, worktrees: &[InventoryItem]) -> Vec<InventoryItem> {
    let going: BTreeSet<&str> = worktrees
        .iter()
        .filter_map(|item| match &item.thing {
            Some(Thing::Registration(name)) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let branches = scene.found.branches.iter();
    branches
        .filter_map(|found| branch(scene, found, &going))
        .chain(scene.found.marks.iter().map(|found| mark(scene, found)))
        .collect()
}

fn branch(scene: &Scene<'_>, found: &Branch, going: &BTreeSet<&str>) -> Option<InventoryItem> {
    let out = found.checked_out.as_ref().filter(|out| {
        let name = out.worktree.as_deref();
        !name.is_some_and(|name| going.contains(name))
    });
    let kind = match found.role {
        // What landed there tells more of it.
        Role::Target => return None,
        Role::Step { .. } => Kind::StepBranch,
        Role::Salvage | Role::Moved => Kind::SalvageBranch,
        Role::Other => Kind::Branch,
    };
    let item = |standing, reason: String| InventoryItem::new(kind, &found.name, standing, reason);
    let item = match (&found.role, out) {
        (Role::Other, _) => item(Standing::Kept, "not created by the harness".to_owned()),
        (_, Some(out)) => item(
            Standing::InUse,
            format!("checked out in {}", out.path.display()),
        ),
        (Role::Step { issue, generation }, None) => step(scene, found, issue, *generation),
        (role, None) => {
            let what = if *role == Role::Moved {
                "a user's branch that blocked a lane"
            } else {
                "saved work of a step"
            };
            let standing = scene.salvage(found.at);
            let reason = format!("{what}, {}", scene.terms.days(found.at));
            item(standing, reason).advice(SALVAGE)
        }
    };
    Some(item.thing(Thing::Branch {
        name: found.name.clone(),
        tip: found.tip.clone(),
    }))
}

fn step(scene: &Scene<'_>, found: &Branch, id: &str, generation: u64) -> InventoryItem {
    let item = |standing, reason: String| {
        InventoryItem::new(Kind::StepBranch, &found.name, standing, reason)
    };
    let issue = scene.known.issues.get(id);
    if let Some(live) = scene.live() {
        return item(Standing::InUse, live.to_owned());
    }
    if let Some(LeaseLook::Live(leased)) = issue.map(|issue| &issue.lease)
        && *leased == generation
    {
        return item(Standing::InUse, format!("{id} is in progress"));
    }
    if scene.cut.contains(&(IssueId::from(id), generation)) {
        let reason = "its step was interrupted; the next run recovers it";
        return item(Standing::Kept, reason.to_owned());
    }
    let status = issue.map_or("no issue", |issue| &issue.status);
    // An issue that is not over keeps its branch until its work has landed.
    let is_over = issue.is_none_or(|issue| issue.is_closed);
    if let Some(holder) = &found.held_by
        && (is_over || scene.known.targets.contains_key(holder))
    {
        let reason = match issue {
            Some(_) => format!("{id} is {status}, and {holder} holds all of its commits"),
            None => format!("{holder} holds all of its commits"),
        };
        return item(Standing::Removable, reason);
    }
    match issue {
        None if !scene.known.is_whole => item(
            Standing::Kept,
            "issue store cannot be read completely".to_owned(),
        ),
        Some(issue) if !issue.is_closed => item(
            Standing::Kept,
            format!("{id} is {status}: its work is kept"),
        ),
        Some(issue) if !issue.has_landed => item(
            Standing::Kept,
            format!("{id} is {status} but not landed: its work is here to be merged"),
        ),
        _ => {
            let reason = match issue {
                Some(_) => format!("{id} is {status} with other work; nothing else holds this"),
                None => format!("no issue {id}, and no other ref contains its commits"),
            };
            if scene.terms.salvage && scene.terms.is_old(found.at) {
                return item(Standing::Removable, reason);
            }
            item(Standing::Finding, reason).advice(format!("merge it or delete it; {SALVAGE}"))
        }
    }
}

fn mark(scene: &Scene<'_>, found: &Mark) -> InventoryItem {
    let item =
        |standing, reason: String| InventoryItem::new(Kind::Mark, &found.name, standing, reason);
    let facts = found
        .issue
        .as_ref()
        .and_then(|id| Some((id, scene.known.issues.get(id)?)));
    let holder = found.held_by.as_ref();
    if let Some(live) = scene.live() {
        return item(Standing::InUse, live.to_owned());
    }
    let item = match (facts, holder) {
        (Some((id, issue)), Some(holder)) if issue.is_closed && !issue.is_closed_by_step => item(
            Standing::Kept,
            format!(
                "{holder} holds work of {id}, which no step closed: where landings are checked, \
                 the next batch takes it back"
            ),
        ),
        (Some((id, issue)), _) if issue.is_closed && issue.unrecorded.is_none() => item(
            Standing::Removable,
            format!("{id} is {} and its row is written", issue.status),
        ),
        (Some((id, issue)), _) if issue.is_closed => item(
            Standing::Kept,
            format!("the next run writes the row of {id} from it"),
        ),
        (Some((id, issue)), Some(holder)) => item(
            Standing::Kept,
            format!(
                "{holder} holds the work of {id}, which is {}: the next attempt closes it",
                issue.status
            ),
        ),
        (Some((id, issue)), None) => item(
            Standing::Kept,
            format!("{id} is {}: its landing was interrupted", issue.status),
        ),
        (None, _) if !scene.known.is_whole => item(
            Standing::Kept,
            "issue store cannot be read completely".to_owned(),
        ),
        (None, Some(holder)) => item(
            Standing::Removable,
            format!("no such issue, and {holder} contains its commit"),
        ),
        (None, None) => item(
            Standing::Finding,
            "no such issue, and no other ref contains its commit".to_owned(),
        )
        .advice("inspect the commit, then delete the ref with `git update-ref -d`"),
    };
    item.thing(Thing::Mark {
        name: found.name.clone(),
        tip: found.tip.clone(),
    })
}

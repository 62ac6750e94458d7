//! Lock files, salvage folders, left files, step output, images and checkouts.

use super::found::{
    CachedImage, GitLockFile, LeaseLook, LeftCheckout, LeftFile, LeftKind, SalvageFolder,
    StepOutput,
};
use super::{InventoryItem, Kind, Scene, Standing, Thing};
use crate::json::token;
use std::time::Duration;

/// How long git may hold a lock of a name that the harness alone uses: it is
/// done in an instant.
const LOCK: Duration = Duration::from_secs(60);
/// The same where a person's git may wait for an editor.
const SHARED_LOCK: Duration = Duration::from_secs(3_600);
/// How fresh output must be to be left alone while anything runs.
const FRESH: Duration = Duration::from_secs(86_400);

pub(super) fn items(scene: &Scene<'_>) -> Vec<InventoryItem> {
    let found = scene.found;
    let locks = found.locks.iter().map(|found| lock(scene, found));
    let salvage = found.salvage.iter().map(|found| salvage(scene, found));
    let files = found.files.iter().map(|found| file(scene, found));
    let landing = found.landing_holder.iter().map(|by| {
        let reason = format!("a step lands ({by})");
        InventoryItem::new(Kind::Lock, "landing", Standing::InUse, reason)
    });
    locks
        .chain(landing)
        .chain(salvage)
        .chain(files)
        .chain(outputs(scene))
        .chain(found.images.iter().map(|found| image(scene, found)))
        .chain(found.checkouts.iter().map(|found| checkout(scene, found)))
        .collect()
}

fn lock(scene: &Scene<'_>, found: &GitLockFile) -> InventoryItem {
    let name = found.path.display().to_string();
    let item = |standing, reason: String| InventoryItem::new(Kind::Lock, &name, standing, reason);
    let patience = if found.is_shared { SHARED_LOCK } else { LOCK };
    if let Some(live) = scene.live() {
        return item(Standing::InUse, live.to_owned());
    }
    if scene.terms.age(found.at) < patience {
        return item(Standing::InUse, "git may hold it".to_owned());
    }
    let reason = format!("stale, {}", scene.terms.days(found.at));
    item(Standing::Removable, reason).thing(Thing::Lock(found.clone()))
}

fn salvage(scene: &Scene<'_>, found: &SalvageFolder) -> InventoryItem {
    let reason = format!(
        "saved files of a step that git cannot store, {}",
        scene.terms.days(found.at)
    );
    InventoryItem::new(
        Kind::SalvageFolder,
        found.path.display().to_string(),
        scene.salvage(found.at),
        reason,
    )
    .advice("`premath clean --salvage` removes it once it is old")
    .bytes(found.bytes)
    .thing(Thing::Salvage(found.path.clone()))
}

fn file(scene: &Scene<'_>, found: &LeftFile) -> InventoryItem {
    let name = found.path.display().to_string();
    let days = scene.terms.days(found.at);
    let by_age = if scene.terms.is_old(found.at) {
        Standing::Removable
    } else {
        Standing::Kept
    };
    let (kind, standing, reason) = match found.kind {
        LeftKind::Torn => {
            let reason = format!("an incomplete line, {days}");
            (Kind::Torn, by_age, reason)
        }
        LeftKind::Temporary { maker_lives: true } => {
            let reason = "its writer is running".to_owned();
            (Kind::Temporary, Standing::InUse, reason)
        }
        LeftKind::Temporary { maker_lives: false } => {
            let reason = format!("incomplete, its writer is gone, {days}");
            (Kind::Temporary, by_age, reason)
        }
        LeftKind::Step { under_way: true } => {
            let reason = "files of a running step".to_owned();
            (Kind::Temporary, Standing::InUse, reason)
        }
        LeftKind::Step { under_way: false } => {
            let reason = format!("files of a finished step, {days}");
            (Kind::Temporary, by_age, reason)
        }
    };
    InventoryItem::new(kind, name, standing, reason)
        .bytes(found.bytes)
        .thing(Thing::Files(vec![found.path.clone()]))
}

fn image(scene: &Scene<'_>, found: &CachedImage) -> InventoryItem {
    let ago = scene.terms.days(found.at).replace(" old", " ago");
    let (standing, reason) = if found.is_used {
        (Standing::InUse, "a batch uses it".to_owned())
    } else if scene.terms.is_old(found.at) {
        let reason = format!("files of a container image, last used {ago}");
        (Standing::Removable, reason)
    } else {
        (Standing::Kept, format!("last used {ago}"))
    };
    InventoryItem::new(Kind::Image, &found.id, standing, reason)
        .bytes(found.bytes)
        .thing(Thing::Image {
            folders: found.folders.clone(),
            lock: found.lock.clone(),
        })
}

/// Accounts for a checkout that no lane of the repository has: it goes where free
/// lanes go.
fn checkout(scene: &Scene<'_>, found: &LeftCheckout) -> InventoryItem {
    let what = "a checkout for verification that no lane of this repository has";
    let (standing, reason) = match scene.live() {
        Some(live) => (Standing::InUse, live.to_owned()),
        None if scene.terms.lanes => (Standing::Removable, what.to_owned()),
        None => {
            let reason = format!("{what}; `premath clean --lanes` removes it");
            (Standing::Kept, reason)
        }
    };
    let name = found.path.display().to_string();
    InventoryItem::new(Kind::Checkout, name, standing, reason)
        .bytes(found.bytes)
        .thing(Thing::Checkout(found.path.clone()))
}

/// Accounts for step output: what is old goes, the oldest first, as long as
/// there is an excess where one is given.
fn outputs(scene: &Scene<'_>) -> Vec<InventoryItem> {
    let mut sorted: Vec<&StepOutput> = scene.found.outputs.iter().collect();
    sorted.sort_by(|a, b| (a.at, &a.step).cmp(&(b.at, &b.step)));
    let running: Vec<String> = scene
        .known
        .issues
        .iter()
        .filter_map(|(id, issue)| match issue.lease {
            LeaseLook::Live(generation) => Some(format!(".{}.{generation}", token::encode(id))),
            LeaseLook::None | LeaseLook::Over(_) => None,
        })
        .collect();
    let mut gone = 0;
    let mut items = Vec::new();
    for found in sorted {
        let days = scene.terms.days(found.at);
        let is_live = running.iter().any(|end| found.step.ends_with(end.as_str()))
            || (scene.live().is_some() && scene.terms.age(found.at) < FRESH);
        let enough = scene.terms.excess.is_some_and(|excess| gone >= excess);
        let (standing, reason) = if is_live {
            (Standing::InUse, "its step may run".to_owned())
        } else if !scene.terms.is_old(found.at) {
            (Standing::Kept, days)
        } else if enough {
            (Standing::Kept, format!("{days}; within the budget"))
        } else {
            gone += found.bytes;
            (Standing::Removable, format!("output of a step, {days}"))
        };
        items.push(
            InventoryItem::new(Kind::StepOutput, &found.step, standing, reason)
                .bytes(found.bytes)
                .thing(Thing::Files(found.files.clone())),
        );
    }
    items
}

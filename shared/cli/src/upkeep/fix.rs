//! `premath doctor --fix`: the safe repairs.

use super::survey::Survey;
use crate::error::CliError;
use crate::operator;
use crate::status::is_running;
use premath_kernel::policy::health::{
    self, CONTROL_SOCKET_LEFT, FILES_NOT_IGNORED, HealthFinding, LIVE_FILE_INVALID,
    PRIVATE_PLACE_OPEN,
};
use premath_kernel::policy::inventory::{InventoryItem, Thing};
use premath_memory::live::LiveFolder;
use premath_memory::upkeep;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// What a repair did.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Repaired {
    /// The finding's check.
    pub(super) id: String,
    /// What it was about.
    pub(super) subject: String,
    /// Why it is left as it is; absent where it was repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left: Option<String>,
}

/// Repairs what can be repaired safely; returns what was done about each such finding.
pub(super) fn fix(
    survey: &mut Survey,
    items: &[InventoryItem],
    findings: &[HealthFinding],
) -> Result<Vec<Repaired>, CliError> {
    if operator::is_inside_step() {
        return Err(CliError::CleanInsideStep);
    }
    let batches = LiveFolder::of(&survey.roots).read()?;
    let runs = batches.iter().any(is_running);
    let mut done = Vec::new();
    for finding in findings.iter().filter(|finding| finding.fixable) {
        let path = Path::new(&finding.subject);
        let result = match &*finding.id {
            id if id == PRIVATE_PLACE_OPEN.id => upkeep::close_place(path),
            id if id == FILES_NOT_IGNORED.id => upkeep::hide_files(&survey.roots),
            id if id == CONTROL_SOCKET_LEFT.id => upkeep::remove_socket(&survey.roots, path),
            id if id == LIVE_FILE_INVALID.id && !runs => upkeep::remove_live(&survey.roots, path),
            id if id == LIVE_FILE_INVALID.id => {
                done.push(repaired(finding, Some(RUNS.to_owned())));
                continue;
            }
            _ => continue,
        };
        let left = result.err().map(|error| CliError::from(error).chain());
        done.push(repaired(finding, left));
    }
    inventory(survey, items, runs, &mut done)?;
    Ok(done)
}

/// Why something is left while a batch runs.
const RUNS: &str = "a batch runs";

/// Removes what the inventory says that nothing needs.
fn inventory(
    survey: &mut Survey,
    items: &[InventoryItem],
    runs: bool,
    done: &mut Vec<Repaired>,
) -> Result<(), CliError> {
    let removable = items.iter().filter_map(|item| {
        let finding = health::of_item(item).filter(|finding| finding.fixable)?;
        Some((finding, item.thing.as_ref()?))
    });
    let mut removable: Vec<(HealthFinding, &Thing)> = removable.collect();
    // A branch that is checked out there goes only after it.
    removable.sort_by_key(|(_, thing)| !matches!(thing, Thing::Registration(_)));
    if removable.is_empty() {
        return Ok(());
    }
    let held = match (runs, survey.whole()) {
        (true, _) => Err(RUNS.to_owned()),
        (false, Err(error)) => Err(error.chain()),
        (false, Ok(())) => survey.hold_lanes().map_err(|error| error.chain()),
    };
    for (finding, thing) in removable {
        let left = match &held {
            Err(why) => Some(why.clone()),
            Ok(_) => {
                let removed = survey.inventory.remove(thing);
                removed.err().map(|error| CliError::from(error).chain())
            }
        };
        done.push(repaired(&finding, left));
    }
    Ok(())
}

fn repaired(finding: &HealthFinding, left: Option<String>) -> Repaired {
    Repaired {
        id: finding.id.clone(),
        subject: finding.subject.clone(),
        left,
    }
}

//! `premath doctor`, `premath clean` and `premath uninstall`: whether what the
//! harness has in a repository is accounted for, what nothing needs any more, and
//! the removal of all of it.

mod clean;
mod doctor;
mod fix;
mod health;
mod survey;
mod uninstall;

use crate::terminal::plain;
use premath_kernel::policy::inventory::InventoryItem;
use std::borrow::Cow;
use std::path::Path;

pub(crate) use clean::{CleanAnswer, CleanArgs};
pub(crate) use doctor::{DoctorAnswer, DoctorArgs};
pub(crate) use uninstall::{UninstallAnswer, UninstallArgs};

/// Returns an item's name for a person: a path within the repository is shown
/// from there.
fn name<'a>(item: &'a InventoryItem, repository: &Path) -> Cow<'a, str> {
    let within = Path::new(&item.name).strip_prefix(repository);
    match within.ok().and_then(Path::to_str) {
        Some(within) if !within.is_empty() => plain(within),
        _ => plain(&item.name),
    }
}

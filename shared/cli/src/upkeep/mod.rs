//! `premath doctor` and `premath clean`: whether what the harness has in a
//! repository is accounted for, and what nothing needs any more.

mod clean;
mod doctor;
mod fix;
mod health;
mod survey;

use crate::terminal::plain;
use premath_kernel::policy::inventory::InventoryItem;
use std::borrow::Cow;
use std::path::Path;

pub(crate) use clean::{CleanAnswer, CleanArgs};
pub(crate) use doctor::{DoctorAnswer, DoctorArgs};

/// Returns an item's name for a person: a path within the repository is shown
/// from there.
fn name<'a>(item: &'a InventoryItem, repository: &Path) -> Cow<'a, str> {
    let within = Path::new(&item.name).strip_prefix(repository);
    match within.ok().and_then(Path::to_str) {
        Some(within) if !within.is_empty() => plain(within),
        _ => plain(&item.name),
    }
}

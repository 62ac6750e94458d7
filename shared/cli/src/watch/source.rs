//! How the batches are, read for the live view.

use crate::error::CliError;
use crate::paths;
use crate::status::{queue, status};
use premath_kernel::json::time::Moment;
use premath_kernel::record::live::{LiveQueue, StoreStamp};
use premath_memory::live::store_stamp;
use premath_memory::roots::MemoryRoots;
use premath_view::status::StatusView;

/// The batches of a repository, and the issues as they were counted last: a store
/// that did not change is not counted again.
#[derive(Debug)]
pub(super) struct Source {
    roots: MemoryRoots,
    counted: Option<(Option<StoreStamp>, LiveQueue)>,
}

impl Source {
    pub(super) fn of(roots: &MemoryRoots) -> Self {
        Self {
            roots: roots.clone(),
            counted: None,
        }
    }

    /// Looks.
    pub(super) fn look(&mut self, now: Moment) -> Result<StatusView, CliError> {
        let stamp = store_stamp(&self.roots.issues);
        let counted = &mut self.counted;
        status(&self.roots, now, |roots, last| match counted {
            Some((of, queue)) if *of == stamp => Ok(queue.clone()),
            _ => {
                let found = queue(roots, last, || paths::open(&roots.issues, false))?;
                *counted = Some((stamp, found.clone()));
                Ok(found)
            }
        })
    }
}

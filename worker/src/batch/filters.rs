//! The git filters of the repository, as of when the first lane boots: before
//! any step.

use super::Batch;
use premath_worktree::tree::{FilterDefinitions, FilterError};
use std::sync::{Arc, OnceLock};

type Found = Result<Option<Arc<FilterDefinitions>>, Arc<FilterError>>;

/// What one lane finds out for all.
#[derive(Debug, Default)]
pub(super) struct SharedFilters(OnceLock<Found>);

impl Batch {
    /// Returns the filters that files of the repository go through.
    pub(crate) fn filters(&self) -> Found {
        let repository = &self.settings.roots.repository;
        let find = || match FilterDefinitions::find(repository) {
            Ok(found) => Ok(found.map(Arc::new)),
            Err(error) => Err(Arc::new(error)),
        };
        self.filters.0.get_or_init(find).clone()
    }
}

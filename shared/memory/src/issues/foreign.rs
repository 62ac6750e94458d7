//! Rows that changed outside a transaction: looked at, and accepted by the
//! operator.

use super::IssueMemory;
use super::seal::{ForeignRow, ForeignSelection};
use crate::clock;
use crate::error::{ChangeError, StoreError};
use crate::journal::Tail;
use premath_kernel::authority::OperatorOverride;

impl IssueMemory {
    /// Returns the rows that changed outside a transaction and that the
    /// operator has not accepted, as of this process's last transaction, by id.
    pub fn foreign_rows(&self) -> Vec<ForeignRow> {
        self.state().seal.foreign()
    }

    /// Looks for rows that changed outside a transaction, and writes nothing;
    /// returns those that are not accepted, by id. Issue memory that no
    /// transaction ever sealed has none.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn look_for_foreign_rows(&self) -> Result<Vec<ForeignRow>, StoreError> {
        if !self.state().seal.is_there() {
            return Ok(Vec::new());
        }
        let _held = self.lock.acquire(self.lock_wait)?;
        let mut state = self.state();
        state.refresh(Tail::Peek)?;
        state.check_seal(clock::now().wall);
        Ok(state.seal.foreign())
    }

    /// Accepts rows that changed outside a transaction, as they are now.
    /// `record` is called with them under the lock; where it fails, nothing is
    /// accepted.
    ///
    /// # Errors
    ///
    /// [`ChangeError::Invalid`] where the authority has no reason or a named
    /// issue has no foreign row, [`ChangeError::Store`], or the error of
    /// `record`.
    pub fn accept_foreign<E: From<ChangeError>>(
        &self,
        authority: &OperatorOverride,
        which: &ForeignSelection,
        record: impl FnOnce(&[ForeignRow]) -> Result<(), E>,
    ) -> Result<Vec<ForeignRow>, E> {
        if authority.reason().is_none() {
            let detail = "accepting changes requires a reason".to_owned();
            return Err(ChangeError::Invalid(detail).into());
        }
        let store = |error: StoreError| ChangeError::Store(error);
        let _held = self.lock.acquire(self.lock_wait).map_err(store)?;
        let mut state = self.state();
        state.refresh(Tail::Repair).map_err(store)?;
        state.check_seal(clock::now().wall);
        let sum = state.seal.sum();
        let accepted = match state.seal.named(which) {
            Ok(accepted) => accepted,
            Err(missing) => {
                state.end_seal(sum);
                return Err(ChangeError::Invalid(format!(
                    "nothing to accept on {}: no row changed outside a transaction",
                    missing.join(", ")
                ))
                .into());
            }
        };
        if !accepted.is_empty() {
            record(&accepted)?;
            state.seal.accept(&accepted).map_err(store)?;
        }
        state.end_seal(sum);
        Ok(accepted)
    }
}

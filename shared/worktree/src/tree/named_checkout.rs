//! Files of a tree that are written by their names.

use super::{Tree, TreeError};
use git2::build::CheckoutBuilder;
use std::path::Path;

/// How many files one checkout names: libgit2 compares each of its files with
/// each of the names.
pub(super) const NAMED_MAX: usize = 500;

impl Tree {
    /// Writes those files of a tree that are named, whatever is there, and no
    /// others: a checkout without names would write what a sparse checkout
    /// leaves out.
    pub(super) fn check_out(
        &self,
        target: &git2::Tree<'_>,
        names: &[&Path],
        adjust: impl Fn(&mut CheckoutBuilder<'_>),
    ) -> Result<(), TreeError> {
        for names in names.chunks(NAMED_MAX) {
            let mut checkout = CheckoutBuilder::new();
            checkout.force().disable_pathspec_match(true);
            adjust(&mut checkout);
            for name in names {
                checkout.path(name);
            }
            self.repository
                .checkout_tree(target.as_object(), Some(&mut checkout))
                .map_err(self.failed("check the base out"))?;
        }
        Ok(())
    }
}

//! What differs from HEAD, as a person reads it.

use super::scan::Scan;
use super::{Tree, TreeError};
use premath_kernel::json::plain::listed;
use std::collections::BTreeSet;
use std::time::Instant;

impl Tree {
    /// Returns the paths that differ from HEAD, sorted; ours are skipped.
    ///
    /// Nested repositories count, with a slash at the end; other worktrees of
    /// this repository do not, wherever they are. A name that is not UTF-8 is
    /// shown with replacement characters.
    ///
    /// # Errors
    ///
    /// [`TreeError`].
    pub fn changes(&self) -> Result<Vec<String>, TreeError> {
        let tree = self.head_tree()?;
        Ok(names(&self.scan(&tree)?))
    }

    /// Does the same. Where nothing differs in a worktree of the harness's own,
    /// the times of files are written as by [`Tree::settle_index`], and it is
    /// known for a moment that the lane is clean.
    ///
    /// # Errors
    ///
    /// As [`Tree::changes`].
    pub fn settled_changes(&self) -> Result<Vec<String>, TreeError> {
        let tree = self.head_tree()?;
        let scan = self.scan(&tree)?;
        if self.is_disposable() && scan.is_clean() {
            self.settle_same(&tree, &scan);
            self.clean.set(Some((tree.id(), Instant::now())));
        }
        Ok(names(&scan))
    }

    /// Makes sure that nothing differs from HEAD.
    ///
    /// # Errors
    ///
    /// [`TreeError`], naming what does.
    pub fn must_be_clean(&self) -> Result<(), TreeError> {
        let left = self.changes()?;
        if left.is_empty() {
            return Ok(());
        }
        let detail = format!("still changed: {}", listed(&left));
        Err(self.error("go back to the step's base", detail))
    }

    /// Writes the times of files into the index where it does not have them, as
    /// in a worktree that was just made: every look would read those files
    /// again. Where it does not work, as under a lock, nothing is lost.
    pub fn settle_index(&self) {
        if self.is_known_clean() {
            return;
        }
        let settled = || {
            let tree = self.head_tree()?;
            let scan = self.scan(&tree)?;
            if scan.is_clean() {
                self.settle_same(&tree, &scan);
            }
            Ok::<(), TreeError>(())
        };
        if let Err(error) = settled() {
            tracing::debug!(%error, "the worktree was not looked at");
        }
    }

    /// Writes the times of files that are otherwise as in the index.
    fn settle_same(&self, tree: &git2::Tree<'_>, scan: &Scan) {
        if !scan.same.is_empty()
            && let Err(error) = self.settle(tree, &scan.same)
        {
            tracing::debug!(%error, "the times of files were not written to the index");
        }
    }
}

/// Names what differs.
fn names(scan: &Scan) -> Vec<String> {
    let show = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let files = scan.paths.iter().map(|path| show(path));
    let folders = scan.nested.iter().chain(&scan.unfit);
    let folders = folders.map(|path| show(path) + "/");
    let paths: BTreeSet<String> = files.chain(folders).collect();
    paths.into_iter().collect()
}

//! After a failure: what the step left is kept on branches, and the lane goes
//! back to where the step started.

use super::aside::Aside;
use super::beneath::path;
use super::commit::message;
use super::{Base, CommitText, Tree, TreeError};
use git2::{Commit, ErrorCode, Oid};
use jiff::Timestamp;
use premath_kernel::json::token;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

/// How many folders, one in the other, are opened up that a step shut. What lies deeper is
/// put aside as it is.
const OPENINGS_MAX: usize = 8;

/// Where what a step left is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvage {
    /// Branches: HEAD with everything uncommitted, then the lane's own branch
    /// where that holds other commits.
    pub branches: Vec<String>,
    /// A folder with what git cannot hold: nested repositories, files that
    /// cannot be read, what conflicted with a file of the base.
    pub folder: Option<PathBuf>,
}

impl Salvage {
    fn is_empty(&self) -> bool {
        self.branches.is_empty() && self.folder.is_none()
    }
}

impl fmt::Display for Salvage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.branches.join(", "))?;
        match &self.folder {
            Some(folder) if self.branches.is_empty() => write!(f, "{}", folder.display()),
            Some(folder) => write!(f, ", {}", folder.display()),
            None => Ok(()),
        }
    }
}

impl Tree {
    /// Keeps what a step left, commits and uncommitted changes, on
    /// `harness/salvage/<issue>/<generation>`, and puts branch and tree back to
    /// the base; returns where it is kept, or `None` where the step left
    /// nothing.
    ///
    /// Ignored files stay, and so do branches that the step made. `since` is
    /// when the step began: in a main worktree, where a person's git may run,
    /// only locks that are younger count as left behind by the step.
    ///
    /// # Errors
    ///
    /// [`TreeError`]; where the branch cannot be moved, no file was touched.
    pub fn take_back(
        &self,
        base: &Base,
        generation: u64,
        text: &CommitText<'_>,
        since: Option<Timestamp>,
    ) -> Result<Option<Salvage>, TreeError> {
        let commit = self.find_commit(&base.commit)?;
        self.forget_look();
        self.clear_locks(base.branch.as_deref(), since);
        self.repair_index()?;
        let mut aside = Aside::new(self, text.issue_id, generation)?;
        let kept = self.keep(base, &commit, generation, text);
        let done = kept.and_then(|(branches, refused)| {
            self.restore(base, &commit, &refused, &mut aside)?;
            Ok(branches)
        });
        self.blobs.borrow_mut().clear();
        self.reread_index();
        let salvage = Salvage {
            branches: done?,
            folder: aside.used(),
        };
        Ok((!salvage.is_empty()).then_some(salvage))
    }

    /// Makes the branches; returns them and what git cannot take.
    fn keep(
        &self,
        base: &Base,
        origin: &Commit<'_>,
        generation: u64,
        text: &CommitText<'_>,
    ) -> Result<(Vec<String>, BTreeSet<Vec<u8>>), TreeError> {
        // A step may leave a HEAD without a commit, or one that cannot be read.
        let head = self.head().ok().and_then(|head| {
            let tree = head.tree().ok()?;
            Some((head, tree))
        });
        let (from, tree) = match head {
            Some(found) => found,
            None => {
                let tree = origin.tree().map_err(self.failed("read the tree"))?;
                (origin.clone(), tree)
            }
        };
        let look = || {
            let scan = self.scan(&tree)?;
            self.content(&tree, &scan, true)
        };
        let mut content = look()?;
        for _ in 0..OPENINGS_MAX {
            if !self.open_refused(&content.refused)? {
                break;
            }
            content = look()?;
        }
        let mut tips = Vec::new();
        if content.tree == tree.id() {
            tips.push(from.id());
        } else {
            let tree = self
                .repository
                .find_tree(content.tree)
                .map_err(self.failed("read the tree"))?;
            let author = self.signature()?;
            let message = format!("salvage of {}", message(text));
            let tip = self
                .repository
                .commit(None, &author, &author, &message, &tree, &[&from])
                .map_err(self.failed("commit the salvage"))?;
            tips.push(tip);
        }
        if let Some(branch) = &base.branch {
            let tip = self.repository.find_reference(branch);
            tips.extend(tip.and_then(|tip| tip.peel_to_commit()).map(|tip| tip.id()));
        }
        let mut branches = Vec::new();
        let mut held = vec![origin.id()];
        for tip in tips {
            let mut is_held = false;
            for holder in &held {
                is_held |= self.continues_from(*holder, tip)?;
            }
            if !is_held {
                branches.push(self.salvage_branch(text.issue_id, generation, tip)?);
                held.push(tip);
            }
        }
        Ok((branches, content.refused))
    }

    /// Gives the owner the rights to what could not be read, where that is all that keeps
    /// it from being saved: a step may have taken them. Returns whether any was given.
    fn open_refused(&self, refused: &BTreeSet<Vec<u8>>) -> Result<bool, TreeError> {
        let root = self.beneath()?;
        let mut is_any = false;
        for name in refused {
            // What cannot be opened up is put aside as it is.
            is_any |= root.open_up(path(name)).unwrap_or(false);
        }
        Ok(is_any)
    }

    /// Makes a branch; one of that name with other content stays, and the new
    /// one gets a number.
    fn salvage_branch(
        &self,
        issue_id: &str,
        generation: u64,
        tip: Oid,
    ) -> Result<String, TreeError> {
        let part = format!("{}/{generation}", token::encode_branch(issue_id));
        // A branch `harness` leaves no room for one below it.
        let stems = [
            format!("harness/salvage/{part}"),
            format!("harness-salvage/{part}"),
        ];
        let mut refused = None;
        for stem in stems {
            let mut name = stem.clone();
            for number in 2_u32.. {
                let reference = format!("refs/heads/{name}");
                let made = match self.repository.refname_to_id(&reference) {
                    Ok(old) if self.is_same(old, tip) => return Ok(name),
                    Ok(_) => None,
                    Err(_) => {
                        Some(
                            self.repository
                                .reference(&reference, tip, false, "premath: salvage"),
                        )
                    }
                };
                match made {
                    Some(Ok(_)) => return Ok(name),
                    // A lock that a killed harness left on that name.
                    Some(Err(error)) if error.code() == ErrorCode::Locked => {}
                    Some(Err(error)) => {
                        refused = Some(error);
                        break;
                    }
                    None => {}
                }
                name = format!("{stem}.{number}");
            }
        }
        let error = refused.unwrap_or_else(|| git2::Error::from_str("no name is free"));
        Err(self.failed("make the salvage branch")(error))
    }

    /// Returns whether two commits hold the same, made at whatever time.
    fn is_same(&self, one: Oid, other: Oid) -> bool {
        let content = |id: Oid| {
            let commit = self.repository.find_commit(id).ok()?;
            let parents: Vec<Oid> = commit.parent_ids().collect();
            Some((commit.tree_id(), parents))
        };
        one == other || content(one).is_some_and(|one| Some(one) == content(other))
    }
}

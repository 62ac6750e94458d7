//! The worktrees that a batch is asked to work in: a person's own, or lanes that are
//! made for it. Nothing is made here.

use crate::settings::{CrewFlags, FileSettings};
use premath_worktree::provision;
use premath_worktree::tree::Worktrees;
use std::path::{Path, PathBuf};

/// What there is to say where a batch has no lanes.
pub const NO_LANES_HINT: &str = "create lanes with --lanes 2 or count under [worktrees] in \
                                 harness.toml, or name your own with --worktree, \
                                 PREMATH_WORKTREES or worktrees under [coordinator]";

/// The worktrees of lanes, as flags, environment and file say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneChoice {
    /// These of a person's, not checked yet.
    Named(Vec<PathBuf>),
    /// So many, made in a folder.
    Made {
        /// How many.
        count: usize,
        /// The folder that they are made in.
        root: PathBuf,
    },
}

/// A worktree of a lane that may be yet to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanePlace {
    /// The worktree.
    pub worktree: PathBuf,
    /// Whether it is there.
    pub exists: bool,
}

impl LaneChoice {
    /// Returns which worktrees are asked for.
    pub fn of(crew: &CrewFlags, file: &FileSettings, repository: &Path) -> Self {
        let named = match crew.lanes {
            Some(_) => Vec::new(),
            None => named(&crew.worktree, &file.coordinator.worktrees, repository),
        };
        match crew.lanes.map(usize::from).or(file.worktrees.count) {
            Some(count) if named.is_empty() => Self::Made {
                count,
                root: root(file, repository),
            },
            _ => Self::Named(named),
        }
    }

    /// Returns the worktrees as they are, those that are yet to be made with them.
    ///
    /// # Errors
    ///
    /// Why there are none, or one cannot be used, for a person.
    pub fn places(self, repository: &Path) -> Result<Vec<LanePlace>, String> {
        let place = |worktree, exists| LanePlace { worktree, exists };
        Ok(match self {
            Self::Named(named) => {
                let checked = checked(named, repository)?.into_iter();
                checked.map(|worktree| place(worktree, true)).collect()
            }
            Self::Made { count, root } => {
                let root = provision::place(&root);
                let lanes = (1..=count).map(|number| root.join(provision::lane_name(number)));
                lanes
                    .map(|lane| match std::fs::canonicalize(&lane) {
                        Ok(worktree) => place(worktree, true),
                        Err(_) => place(lane, false),
                    })
                    .collect()
            }
        })
    }

    /// Returns the worktrees that are there.
    pub fn there(self, repository: &Path) -> Vec<PathBuf> {
        let places = self.places(repository).unwrap_or_default().into_iter();
        let there = places.filter(|place| place.exists);
        there.map(|place| place.worktree).collect()
    }
}

/// The folder of the lanes that are made.
fn root(file: &FileSettings, repository: &Path) -> PathBuf {
    let name = repository.file_name().unwrap_or_default();
    let root = file.worktrees.root.as_deref().unwrap_or("../{repo}-lanes");
    repository.join(root.replace("{repo}", &name.to_string_lossy()))
}

/// The worktrees that were named: by flags, environment, or `harness.toml`.
fn named(given: &[PathBuf], configured: &[PathBuf], repository: &Path) -> Vec<PathBuf> {
    let variable = std::env::var("PREMATH_WORKTREES").unwrap_or_default();
    if !given.is_empty() {
        given.to_vec()
    } else if !variable.trim().is_empty() {
        variable
            .split(',')
            .map(str::trim)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
            .collect()
    } else {
        configured
            .iter()
            .map(|path| repository.join(path))
            .collect()
    }
}

/// Returns worktrees made absolute and sorted: each once, each of this repository.
///
/// # Errors
///
/// Why there are none, or one cannot be used, for a person.
pub fn checked(named: Vec<PathBuf>, repository: &Path) -> Result<Vec<PathBuf>, String> {
    if named.is_empty() {
        return Err("no worktree to work in".to_owned());
    }
    let of_repository = Worktrees::of(repository);
    let mut all = Vec::new();
    for path in named {
        let full = std::fs::canonicalize(&path)
            .map_err(|error| format!("worktree {}: {error}", path.display()))?;
        if !of_repository.as_ref().is_ok_and(|own| own.has(&full)) {
            return Err(format!(
                "worktree {} is not one of the repository {}",
                path.display(),
                repository.display()
            ));
        }
        all.push(full);
    }
    all.sort();
    if let Some(twice) = all.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("worktree {} is named twice", twice[0].display()));
    }
    Ok(all)
}

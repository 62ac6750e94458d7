//! Where things live (`contracts.md` 6, HARNESS-RUNTIME 3.1).
//!
//! Issue memory, trajectory and `artifacts/` belong to the repository root:
//! the main worktree, whichever worktree a command runs in. Session and
//! feature ledger belong to the worktree of their worker.

use crate::artifact;
use crate::error::StoreError;
use crate::untrusted::{UntrustedError, UntrustedFolder};
use git2::Repository;
use premath_kernel::json::canonical::sha256_hex;
use premath_kernel::json::token;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The canonical roots of a repository's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRoots {
    /// The repository root: the main worktree.
    pub repository: PathBuf,
    /// `.premath/issues.jsonl`.
    pub issues: PathBuf,
    /// `.premath/harness_trajectory.jsonl`.
    pub trajectory: PathBuf,
    /// `artifacts/ciwitness`.
    pub witnesses: PathBuf,
    /// `artifacts/streams`.
    pub streams: PathBuf,
    /// `artifacts/reports`.
    pub reports: PathBuf,
    /// `artifacts/observation/latest.json`.
    pub observation: PathBuf,
}

impl MemoryRoots {
    /// Finds the roots from any folder of a repository.
    ///
    /// Where there is no repository, the folder itself is the root.
    ///
    /// # Errors
    ///
    /// [`StoreError::Repository`] where a repository is there and cannot be read.
    pub fn discover(folder: &Path) -> Result<Self, StoreError> {
        let folder = absolute(folder)?;
        Ok(Self::at(&main_worktree(&folder)?.unwrap_or(folder)))
    }

    /// Names the roots below a repository root.
    pub fn at(repository: &Path) -> Self {
        let premath = repository.join(".premath");
        let artifacts = repository.join("artifacts");
        Self {
            repository: repository.to_path_buf(),
            issues: premath.join("issues.jsonl"),
            trajectory: premath.join("harness_trajectory.jsonl"),
            witnesses: artifacts.join("ciwitness"),
            streams: artifacts.join("streams"),
            reports: artifacts.join("reports"),
            observation: artifacts.join("observation").join("latest.json"),
        }
    }

    /// Removes what killed processes left half-written, and makes sure that
    /// the folders are there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn prepare(&self) -> Result<(), StoreError> {
        for folder in [
            self.issues.parent(),
            self.trajectory.parent(),
            Some(&*self.witnesses),
        ] {
            let Some(folder) = folder else { continue };
            std::fs::create_dir_all(folder).map_err(StoreError::io("make", folder))?;
            artifact::sweep(folder)?;
        }
        Ok(())
    }
}

/// Where in a worktree a step's files are.
const STEP: &str = ".premath/step";

/// The files of a worker in its worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRoots {
    /// `.premath/harness_session.json`.
    pub session: PathBuf,
    /// `.premath/harness_feature_ledger.json`.
    pub ledger: PathBuf,
    /// `.premath/step`: what a running step's commands read and leave.
    pub step: PathBuf,
}

impl LaneRoots {
    /// Names the files below a worktree.
    pub fn at(worktree: &Path) -> Self {
        let premath = worktree.join(".premath");
        Self {
            session: premath.join("harness_session.json"),
            ledger: premath.join("harness_feature_ledger.json"),
            step: premath.join("step"),
        }
    }

    /// Makes the folder and removes what killed processes left half-written.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn prepare(&self) -> Result<(), StoreError> {
        let Some(folder) = self.session.parent() else {
            return Ok(());
        };
        // One that exists before the first step belongs to the user.
        if std::fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_symlink()) {
            let cause = std::io::Error::other("it is a symlink; a lane needs its own folder");
            return Err(StoreError::io("use", folder)(cause));
        }
        self.secure()?;
        artifact::sweep(folder)
    }

    /// Returns the worktree.
    pub fn worktree(&self) -> &Path {
        let premath = self.step.parent().unwrap_or(Path::new("."));
        premath.parent().unwrap_or(Path::new("."))
    }

    /// Opens the folder of a running step's files, and makes it where it is
    /// missing.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`].
    pub fn step_folder(&self) -> Result<UntrustedFolder, UntrustedError> {
        UntrustedFolder::make(self.worktree(), Path::new(STEP))
    }

    /// Removes the folder of a step's files.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`].
    pub fn remove_step_folder(&self) -> Result<(), UntrustedError> {
        let parent = Path::new(STEP).parent().unwrap_or(Path::new(""));
        let name = Path::new(STEP).file_name().and_then(|name| name.to_str());
        UntrustedFolder::make(self.worktree(), parent)?.remove(name.unwrap_or_default())
    }

    /// Makes sure that the folders are folders that can be written: a link that
    /// a command put in their place would lead our files elsewhere, and one
    /// that its owner may not enter would stop the lane.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn secure(&self) -> Result<(), StoreError> {
        self.step_folder()?;
        Ok(())
    }
}

/// What the harness keeps of a lane in the main worktree, where no step sees
/// it: `.premath/lanes/<lane>-<digest>/`. The files in the lane's worktree are published
/// copies that are never read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneState {
    /// The folder.
    pub folder: PathBuf,
    /// The session.
    pub session: PathBuf,
    /// The feature ledger.
    pub ledger: PathBuf,
    /// The git folder that a step works with; a step writes it.
    pub step_git: PathBuf,
    /// The git folder that a verification's commands see; they write it.
    pub verification_git: PathBuf,
    /// The git folder of the checkout for verifications, which no command sees.
    pub checkout_git: PathBuf,
    /// What the last setup of the lane rested on.
    pub setup: PathBuf,
    /// What the last setup of the checkout rested on.
    pub checkout_setup: PathBuf,
    /// Is there while no command of a step wrote the checkout.
    pub checkout_untouched: PathBuf,
    /// Ignored files of a person's own worktree that are never part of the work.
    pub own_files: PathBuf,
    /// The files of the checkout for verifications, beside the repository.
    pub checkout: PathBuf,
    /// What one verification changes of them, where it does not write them.
    pub changes: PathBuf,
}

impl LaneState {
    /// Names the files of a lane.
    pub fn at(repository: &Path, worktree: &Path) -> Self {
        Self::named(repository, &lane_name(worktree))
    }

    /// Names the files of a lane by its name, as [`lane_name`] returns it.
    pub fn named(repository: &Path, name: &str) -> Self {
        let folder = repository.join(".premath").join("lanes").join(name);
        let beside = verifications(repository);
        Self {
            session: folder.join("harness_session.json"),
            ledger: folder.join("harness_feature_ledger.json"),
            step_git: folder.join("step.git"),
            verification_git: folder.join("verification.git"),
            checkout_git: folder.join("checkout.git"),
            setup: folder.join("setup"),
            checkout_setup: folder.join("checkout-setup"),
            checkout_untouched: folder.join("checkout-untouched"),
            own_files: folder.join("own-files"),
            changes: beside.join(format!("{name}.changes")),
            checkout: beside.join(name),
            folder,
        }
    }

    /// Makes the folder, readable by its owner alone, and removes what killed
    /// processes left half-written.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn prepare(&self) -> Result<(), StoreError> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(StoreError::io("make", &self.folder))?;
        artifact::sweep(&self.folder)
    }

    /// Removes the folder of a lane that is no more.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn remove(&self) -> Result<(), StoreError> {
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::io("remove", &self.folder)(error))
            }
            _ => Ok(()),
        }
    }
}

/// The build state of the operator's base, which the verifications of all lanes
/// begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmRoots {
    /// What it is of, in the main worktree, where no step sees it.
    pub record: PathBuf,
    /// The files, beside the repository.
    pub layer: PathBuf,
    /// Where commands see the checkout, in every lane.
    pub at: PathBuf,
}

impl WarmRoots {
    /// Names the files of a repository.
    pub fn at(repository: &Path) -> Self {
        let beside = verifications(repository);
        // No lane has one of these names.
        let lanes = repository.join(".premath").join("lanes");
        Self {
            record: lanes.join(".warm").join("record.json"),
            layer: beside.join("warm"),
            at: beside.join("checkout"),
        }
    }

    /// Makes the folders, that of the record readable by its owner alone.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn prepare(&self) -> Result<(), StoreError> {
        use std::os::unix::fs::DirBuilderExt;
        let folder = self.record.parent().unwrap_or(&self.record);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(StoreError::io("make", folder))?;
        std::fs::create_dir_all(&self.at).map_err(StoreError::io("make", &self.at))
    }

    /// Removes the record, so that what it is of is made again.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`].
    pub fn forget(&self) -> Result<(), StoreError> {
        artifact::remove(&self.record)
    }
}

/// Names the folder of all checkouts for verifications.
pub fn verifications(repository: &Path) -> PathBuf {
    let name = repository.file_name().unwrap_or_default().to_string_lossy();
    repository.with_file_name(format!("{name}-verify"))
}

/// Names a lane by its worktree: after its folder, and apart from every other.
pub fn lane_name(worktree: &Path) -> String {
    let name = worktree.file_name().unwrap_or_default().to_string_lossy();
    let digest = sha256_hex(worktree.as_os_str().as_encoded_bytes());
    let name: String = token::token(&name, "lane").chars().take(40).collect();
    format!("{name}-{}", &digest[..12])
}

/// Returns whether a name is of the form that [`lane_name`] returns.
pub fn is_lane_name(name: &str) -> bool {
    let is_digest = |digest: &str| {
        let mut bytes = digest.bytes();
        digest.len() == 12 && bytes.all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    name.rsplit_once('-')
        .is_some_and(|(lane, digest)| !lane.is_empty() && is_digest(digest))
}

/// Returns the main worktree of the repository that a folder is in; `None`
/// where it is in none.
///
/// # Errors
///
/// [`StoreError::Repository`] where a repository is there and cannot be read,
/// or has no worktree.
pub fn main_worktree(folder: &Path) -> Result<Option<PathBuf>, StoreError> {
    MainWorktrees::default().of(folder)
}

/// Returns the git folder that all worktrees of a repository share.
///
/// # Errors
///
/// [`StoreError::Repository`] where the repository cannot be read.
pub(crate) fn common_folder(repository: &Path) -> Result<PathBuf, StoreError> {
    Ok(open(repository)?.commondir().to_path_buf())
}

/// Returns the folders of all worktrees of a folder's repository, the main one
/// first; the folder itself where there is no repository.
///
/// # Errors
///
/// [`StoreError::Repository`] where the repository cannot be read.
pub fn worktree_folders(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let Some(main) = main_worktree(folder)? else {
        return Ok(vec![folder.to_path_buf()]);
    };
    let repository = open(&main)?;
    let names = repository.worktrees().map_err(|e| refused(&main, &e))?;
    let linked = names.iter().flatten().flatten();
    let linked = linked.filter_map(|name| repository.find_worktree(name).ok());
    let linked: Vec<PathBuf> = linked.map(|found| found.path().to_path_buf()).collect();
    Ok(std::iter::once(main).chain(linked).collect())
}

/// Refuses a repository whose git folder is not in its main worktree and does not name
/// it (`git init --separate-git-dir`): git and libgit2 take the folder above the git folder
/// for it.
///
/// # Errors
///
/// [`StoreError::Repository`], with the setting that names it.
pub fn refuse_git_folder_apart(folder: &Path) -> Result<(), StoreError> {
    let Some(root) = main_worktree(folder)? else {
        return Ok(());
    };
    let found = Repository::discover(folder).map_err(|e| refused(folder, &e))?;
    let common = found.commondir();
    match Repository::open(&root).is_ok_and(|found| found.commondir() == common) {
        true => Ok(()),
        false => Err(StoreError::Repository {
            path: folder.to_path_buf(),
            detail: format!(
                "the git folder {} is not in the main worktree; name that to git with `git \
                 config core.worktree FOLDER`",
                common.display()
            ),
        }),
    }
}

/// Returns whether the repository of a folder has a commit to begin at.
///
/// # Errors
///
/// [`StoreError::Repository`] where it cannot be read.
pub fn has_commit(folder: &Path) -> Result<bool, StoreError> {
    let repository = Repository::discover(folder).map_err(|e| refused(folder, &e))?;
    match repository.head() {
        Ok(_) => Ok(true),
        Err(error) if error.code() == git2::ErrorCode::UnbornBranch => Ok(false),
        Err(error) => Err(refused(folder, &error)),
    }
}

/// The main worktrees of repositories, by the git folder that all worktrees of
/// one share: each is looked for once.
#[derive(Debug, Default)]
pub(crate) struct MainWorktrees(BTreeMap<PathBuf, PathBuf>);

impl MainWorktrees {
    /// Answers as [`main_worktree`] does.
    ///
    /// # Errors
    ///
    /// As [`main_worktree`].
    pub(crate) fn of(&mut self, folder: &Path) -> Result<Option<PathBuf>, StoreError> {
        let repository = match Repository::discover(folder) {
            Ok(repository) => repository,
            Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(None),
            Err(error) => return Err(refused(folder, &error)),
        };
        let common = repository.commondir();
        if let Some(known) = self.0.get(common) {
            return Ok(Some(known.clone()));
        }
        let main = Repository::open(common).map_err(|e| refused(folder, &e))?;
        let Some(root) = main.workdir() else {
            let detail = "the repository is bare, and the harness keeps its files in the main \
                          worktree; use a clone that has one";
            return Err(StoreError::Repository {
                path: folder.to_path_buf(),
                detail: detail.to_owned(),
            });
        };
        let root = absolute(root)?;
        self.0.insert(common.to_path_buf(), root.clone());
        Ok(Some(root))
    }
}

/// Returns the root of the worktree that a folder is in, linked or main;
/// `None` where it is in no repository.
///
/// # Errors
///
/// [`StoreError::Repository`] where a repository is there and cannot be read,
/// or has no worktree.
pub fn worktree_root(folder: &Path) -> Result<Option<PathBuf>, StoreError> {
    match Repository::discover(folder) {
        Ok(repository) => match repository.workdir() {
            Some(root) => absolute(root).map(Some),
            None => Err(StoreError::Repository {
                path: folder.to_path_buf(),
                detail: "the repository is bare: it has no worktree".to_owned(),
            }),
        },
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(refused(folder, &error)),
    }
}

pub(crate) fn open(worktree: &Path) -> Result<Repository, StoreError> {
    Repository::open(worktree).map_err(|error| refused(worktree, &error))
}

fn refused(path: &Path, error: &git2::Error) -> StoreError {
    StoreError::Repository {
        path: path.to_path_buf(),
        detail: error.message().to_owned(),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::fs::canonicalize(path).map_err(StoreError::io("find", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ignored::exclude_from_status;

    #[test]
    fn a_linked_worktree_has_the_memory_of_the_main_one() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("main");
        let repository = Repository::init(&main).unwrap();
        let signature = git2::Signature::now("t", "t@localhost").unwrap();
        let tree = repository.treebuilder(None).unwrap().write().unwrap();
        let tree = repository.find_tree(tree).unwrap();
        repository
            .commit(Some("HEAD"), &signature, &signature, "first", &tree, &[])
            .unwrap();
        let lane = folder.path().join("lane");
        repository.worktree("lane", &lane, None).unwrap();
        let main = main.canonicalize().unwrap();
        assert_eq!(
            MemoryRoots::discover(&lane).unwrap(),
            MemoryRoots::at(&main)
        );
        let mut mains = MainWorktrees::default();
        for folder in [&main, &lane, &main] {
            assert_eq!(mains.of(folder).unwrap().as_ref(), Some(&main));
        }
        assert_eq!(mains.0.len(), 1);
        let below = lane.join("below");
        std::fs::create_dir(&below).unwrap();
        assert_eq!(
            worktree_root(&below).unwrap(),
            Some(lane.canonicalize().unwrap())
        );
        assert!(exclude_from_status(&lane).unwrap());
        assert!(!exclude_from_status(&main).unwrap());
        let text = std::fs::read_to_string(main.join(".git/info/exclude")).unwrap();
        assert_eq!(text.matches("/.premath/step/").count(), 1);
        let files = main.join("artifacts/ciwitness");
        std::fs::create_dir_all(&files).unwrap();
        std::fs::write(files.join("worker.1.bd-1.1.work.json"), "{}").unwrap();
        let repository = Repository::open(&main).unwrap();
        let statuses = repository.statuses(None).unwrap();
        let new = statuses.iter().filter(|entry| entry.status().is_wt_new());
        assert_eq!(new.count(), 0);
    }

    #[test]
    fn a_git_folder_elsewhere_is_refused_unless_it_names_the_worktree() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["gits", "main"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let git = Repository::init_bare(at("gits/main.git")).unwrap();
        git.config().unwrap().set_bool("core.bare", false).unwrap();
        let link = format!("gitdir: {}\n", at("gits/main.git").display());
        std::fs::write(at("main/.git"), link).unwrap();
        let refused = refuse_git_folder_apart(&at("main")).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("git config core.worktree"), "{refused}");
        let named = at("main").display().to_string();
        git.config()
            .unwrap()
            .set_str("core.worktree", &named)
            .unwrap();
        refuse_git_folder_apart(&at("main")).unwrap();
        assert_eq!(main_worktree(&at("main")).unwrap(), Some(at("main")));
        // Without a repository there is nothing to refuse.
        refuse_git_folder_apart(&at("gits")).unwrap();
    }

    #[test]
    fn the_name_of_a_lane_is_distinguished_from_other_names() {
        let name = lane_name(Path::new("/r-lanes/lane-01"));
        assert!(is_lane_name(&name), "{name}");
        let changes = format!("{name}.changes");
        let no_digest = ["lane-01", "warm", "checkout", "-0123456789ab"];
        for other in no_digest.into_iter().chain([&*changes]) {
            assert!(!is_lane_name(other), "{other}");
        }
    }

    #[test]
    fn without_a_repository_the_folder_is_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        assert_eq!(worktree_root(&root).unwrap(), None);
        assert_eq!(
            MemoryRoots::discover(&root).unwrap(),
            MemoryRoots::at(&root)
        );
    }
}

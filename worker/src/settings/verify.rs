//! `[verify]`: what a verification has beside the tree that it judges.

use super::SettingsError;
use super::file::{ConfigError, wrong};
use super::keys::VerifyKeys;
use super::program::Places;
use super::rules::StartupRule;
use super::values::{Natural, flag_word};
use premath_kernel::policy::landing::{DEFAULT_FLAKY_RERUNS, FLAKY_RERUNS_MAX};
use premath_memory::untrusted::UntrustedFolder;
use premath_worktree::tree::Tree;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a provided file.
const FILE_MAX: u64 = 1 << 20;
/// The most files that are provided.
const FILES_MAX: usize = 64;

/// The `[verify]` table.
#[derive(Clone, Debug, Default)]
pub(super) struct VerifyTable {
    provide: Vec<String>,
    warm: Option<bool>,
    flaky_reruns: Option<usize>,
    startup: Option<StartupRule>,
    slots: Option<usize>,
}

/// A file of the operator's checkout that git does not track, such as `.env`,
/// and that every verification has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provided {
    /// Its path from the root of the repository.
    pub path: PathBuf,
    /// Its bytes when the batch began: no step can change them.
    pub content: Arc<[u8]>,
}

impl VerifyTable {
    /// Takes the keys of the file.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Line`] for more files than are read, and for more
    /// repetitions than there are names for.
    pub(super) fn of(keys: VerifyKeys, places: &Places) -> Result<Self, ConfigError> {
        let provide = keys.provide.unwrap_or_default().0;
        if provide.len() > FILES_MAX {
            let detail = format!("`provide` names at most {FILES_MAX} files");
            return Err(wrong(places, "verify.provide", detail));
        }
        let flaky_reruns = keys.flaky_reruns.map(Natural::count);
        if let Some(reruns) = flaky_reruns.filter(|count| *count > FLAKY_RERUNS_MAX) {
            let detail = format!("`flaky_reruns` is {reruns}: expected 0 to {FLAKY_RERUNS_MAX}");
            return Err(wrong(places, "verify.flaky_reruns", detail));
        }
        Ok(Self {
            provide,
            warm: keys.warm,
            flaky_reruns,
            startup: keys.startup,
            slots: keys.slots.map(Natural::count),
        })
    }

    /// Returns how often a verify command that fails is repeated.
    pub(super) fn flaky_reruns(&self) -> usize {
        self.flaky_reruns.unwrap_or(DEFAULT_FLAKY_RERUNS)
    }

    /// Returns whether the verify command runs on the base before the first step.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Value`] for an unknown word of the flag.
    pub(super) fn verifies_base(&self, flag: Option<&str>) -> Result<bool, SettingsError> {
        let rule = match flag {
            None => self.startup.unwrap_or_default(),
            Some(word) => flag_word(
                "--startup",
                word,
                &StartupRule::WORDS,
                StartupRule::EXPECTED,
            )?,
        };
        Ok(rule == StartupRule::Run)
    }

    /// Returns how many verifications run at once beside the lanes, where that
    /// is set.
    pub(super) const fn slots(&self) -> Option<usize> {
        self.slots
    }

    /// Returns whether verifications begin with the build state of the base.
    pub(super) fn warm(&self) -> bool {
        self.warm.unwrap_or(true)
    }

    /// Reads the provided files.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with file and line, for a path that leaves the
    /// repository and for a file that is missing, too large, not regular or
    /// tracked by git.
    pub(super) fn provided(
        &self,
        places: &Places,
        repository: &Path,
    ) -> Result<Vec<Provided>, SettingsError> {
        let refused = |detail: String| match places.get("verify.provide") {
            Some((path, line)) => SettingsError::Config(ConfigError::Line {
                path: path.clone(),
                line: *line,
                detail,
            }),
            None => SettingsError::Value {
                name: "`provide` of [verify]",
                detail,
            },
        };
        let base = OperatorBase::of(repository);
        let mut provided: Vec<Provided> = Vec::new();
        for text in &self.provide {
            let path = Path::new(text.trim());
            let name = path.file_name().and_then(|name| name.to_str());
            let (true, Some(name)) = (is_plain(path), name) else {
                let detail = format!(
                    "`provide` names `{text}`: expected a file's path from the repository root, without `..` and outside `.git`"
                );
                return Err(refused(detail));
            };
            if let Some(tracked) = base.as_ref().and_then(|base| base.tracked_at(path)) {
                let tracked = tracked.display();
                let detail = format!(
                    "`provide` names `{text}`: expected a file that git does not track, but {tracked} is tracked"
                );
                return Err(refused(detail));
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            let read =
                UntrustedFolder::open(repository, folder).and_then(|at| at.read(name, FILE_MAX));
            let content = match read {
                Ok(Some(content)) => content,
                Ok(None) => return Err(refused(format!("`provide` names `{text}`: no such file"))),
                Err(error) => {
                    let why = premath_memory::cause::chain(&error);
                    return Err(refused(format!("`provide` names `{text}`: {why}")));
                }
            };
            if provided.iter().all(|file| file.path != path) {
                provided.push(Provided {
                    path: path.to_path_buf(),
                    content: content.into(),
                });
            }
        }
        provided.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(provided)
    }
}

/// The commit that the operator has checked out.
struct OperatorBase {
    tree: Tree,
    commit: String,
}

impl OperatorBase {
    /// Finds it; `None` where there is no repository or no commit, which is
    /// reported where it is needed.
    fn of(repository: &Path) -> Option<Self> {
        let tree = Tree::open(repository).ok()?;
        let commit = tree.base().ok()?.commit;
        Some(Self { tree, commit })
    }

    fn tracked_at<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        tracked_at(&self.tree, &self.commit, path)
    }
}

/// Returns what a commit tracks at a path, or in the place of a folder above
/// it: no file can be provided there.
pub(crate) fn tracked_at<'a>(tree: &Tree, commit: &str, path: &'a Path) -> Option<&'a Path> {
    let above = path.ancestors();
    let mut above = above.filter(|above| !above.as_os_str().is_empty());
    above.find(|above| tree.holds(commit, &above.to_string_lossy()))
}

/// Returns whether a path has names alone, and none that is git's.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| match part {
        Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use crate::settings::FileSettings;
    use std::fs;
    use std::path::Path;

    #[test]
    fn build_state_is_used_where_nothing_else_is_configured() {
        let parse = |text: &str| FileSettings::parse(text, Path::new("h.toml"));
        let warm = |text: &str| parse(text).unwrap().verify.warm();
        assert!(warm("") && !warm("[verify]\nwarm = false\n"));
        let error = parse("[verify]\nwarm = \"no\"\n").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("h.toml:2: `warm`: invalid type: string"),
            "{error}"
        );
    }

    #[test]
    fn repetitions_of_a_failed_verification_are_bounded() {
        let parse = |text: &str| FileSettings::parse(text, Path::new("h.toml"));
        let reruns = |text: &str| parse(text).unwrap().verify.flaky_reruns();
        assert_eq!(reruns(""), 1);
        assert_eq!(reruns("[verify]\nflaky_reruns = 0\n"), 0);
        assert_eq!(
            parse("[verify]\nflaky_reruns = 4\n")
                .unwrap_err()
                .to_string(),
            "h.toml:2: `flaky_reruns` is 4: expected 0 to 3"
        );
    }

    fn refusal(text: &str, root: &Path) -> String {
        let file = FileSettings::parse(text, Path::new("h.toml")).unwrap();
        let error = file.verify.provided(&file.places, root).unwrap_err();
        error.to_string()
    }

    #[test]
    fn provided_files_are_read_once_and_sorted() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("app")).unwrap();
        fs::write(root.path().join("app/.env"), "B=2").unwrap();
        fs::write(root.path().join(".env"), "A=1").unwrap();
        let text = "[verify]\nprovide = [\"app/.env\", \".env\", \".env\"]\n";
        let file = FileSettings::parse(text, Path::new("h.toml")).unwrap();
        let provided = file.verify.provided(&file.places, root.path()).unwrap();
        let found: Vec<_> = provided
            .iter()
            .map(|file| (file.path.to_str().unwrap(), &file.content[..]))
            .collect();
        assert_eq!(found, [(".env", &b"A=1"[..]), ("app/.env", b"B=2")]);
    }

    #[test]
    fn a_path_that_leaves_the_repository_is_refused_with_its_line() {
        let root = tempfile::tempdir().unwrap();
        for path in ["../secret", "/etc/passwd", ".git/config", "a/.GIT/x", ""] {
            let said = refusal(
                &format!("\n[verify]\nprovide = [\"{path}\"]\n"),
                root.path(),
            );
            assert!(said.starts_with("h.toml:3: `provide` names"), "{said}");
        }
    }

    #[test]
    fn a_missing_file_and_a_link_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let text = "[verify]\nprovide = [\".env\"]\n";
        assert_eq!(
            refusal(text, root.path()),
            "h.toml:2: `provide` names `.env`: no such file"
        );
        std::os::unix::fs::symlink("/etc/passwd", root.path().join(".env")).unwrap();
        let said = refusal(text, root.path());
        assert!(said.contains("a link, not a regular file"), "{said}");
    }

    #[test]
    fn a_tracked_path_is_refused_with_its_line() {
        let root = tempfile::tempdir().unwrap();
        let git = git2::Repository::init(root.path()).unwrap();
        fs::create_dir(root.path().join("conf")).unwrap();
        for file in [".env", "conf/a", "file"] {
            fs::write(root.path().join(file), "A=1").unwrap();
        }
        std::os::unix::fs::symlink("conf", root.path().join("link")).unwrap();
        let mut index = git.index().unwrap();
        for file in ["conf/a", "file", "link"] {
            index.add_path(Path::new(file)).unwrap();
        }
        let tree = git.find_tree(index.write_tree().unwrap()).unwrap();
        let who = git2::Signature::now("u", "u@example.com").unwrap();
        git.commit(Some("HEAD"), &who, &who, "base", &tree, &[])
            .unwrap();
        for (path, tracked) in [
            ("conf/a", "conf/a"),
            ("file/.env", "file"),
            ("link/.env", "link"),
        ] {
            let text = format!("[verify]\nprovide = [\".env\", \"{path}\"]\n");
            let said = refusal(&text, root.path());
            assert!(said.starts_with("h.toml:2: `provide` names"), "{said}");
            assert!(
                said.ends_with(&format!("but {tracked} is tracked")),
                "{said}"
            );
        }
    }
}

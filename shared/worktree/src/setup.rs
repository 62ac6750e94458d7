//! How a repository's git is set up, as far as it matters to a batch.

use git2::{Config, Repository};
use premath_kernel::policy::health::{GitFacts, RemoteState};
use std::path::{Path, PathBuf};

/// Settings by which the files of a lane differ from what is committed, and the
/// value that does it.
const UNUSUAL: [(&str, bool); 3] = [
    ("core.autocrlf", true),
    ("core.fileMode", false),
    ("core.sparseCheckout", true),
];

/// Looks at the set-up of a repository; `None` where it cannot be opened.
pub fn look(repository: &Path) -> Option<GitFacts> {
    let git = Repository::open(repository).ok()?;
    let config = git.config().ok()?;
    let is_set = |name| {
        let value = config.get_string(name);
        value.is_ok_and(|value| !value.trim().is_empty())
    };
    let has_commit = git.head().and_then(|head| head.peel_to_commit()).is_ok();
    Some(GitFacts {
        has_commit,
        has_author: is_set("user.name") && is_set("user.email"),
        unusual: unusual(&config),
    })
}

fn unusual(config: &Config) -> Vec<String> {
    let set = UNUSUAL.iter().filter(|(name, value)| {
        let found = config.get_bool(name);
        found.is_ok_and(|found| found == *value)
    });
    set.map(|(name, value)| format!("{name} = {value}"))
        .collect()
}

/// Looks at a remote of a repository; one that is not on this machine is not
/// asked.
pub fn remote(repository: &Path, name: &str) -> RemoteState {
    let Ok(git) = Repository::open(repository) else {
        return RemoteState::Missing;
    };
    let Ok(remote) = git.find_remote(name) else {
        return RemoteState::Missing;
    };
    let url = remote.pushurl().ok().flatten().map(str::to_owned);
    let url = url.or_else(|| remote.url().ok().map(str::to_owned));
    let Some(folder) = url.and_then(|url| local(repository, &url)) else {
        return RemoteState::Usable;
    };
    match Repository::open(folder) {
        Ok(_) => RemoteState::Usable,
        Err(_) => RemoteState::Unreachable,
    }
}

/// Returns the folder that an address names on this machine.
fn local(repository: &Path, url: &str) -> Option<PathBuf> {
    if let Some(path) = url.strip_prefix("file://") {
        return Some(PathBuf::from(path));
    }
    let is_elsewhere = url.contains("://") || url.split('/').next()?.contains(':');
    (!is_elsewhere).then(|| repository.join(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_folder_only_where_it_names_one() {
        let root = Path::new("/r");
        let folder = |url| local(root, url);
        assert_eq!(folder("/a/b"), Some("/a/b".into()));
        assert_eq!(folder("../b"), Some("/r/../b".into()));
        assert_eq!(folder("file:///a"), Some("/a".into()));
        for url in ["https://h/a", "ssh://h/a", "git@h:a/b", "h:a"] {
            assert_eq!(folder(url), None, "{url}");
        }
    }

    #[test]
    fn remotes_and_settings_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path().join("r")).unwrap();
        let root = git.workdir().unwrap().to_path_buf();
        assert_eq!(remote(&root, "origin"), RemoteState::Missing);
        git.remote("origin", "../bare").unwrap();
        assert_eq!(remote(&root, "origin"), RemoteState::Unreachable);
        Repository::init_bare(folder.path().join("bare")).unwrap();
        assert_eq!(remote(&root, "origin"), RemoteState::Usable);
        git.remote("far", "https://localhost/x").unwrap();
        assert_eq!(remote(&root, "far"), RemoteState::Usable);
        let mut config = git.config().unwrap();
        config.set_bool("core.autocrlf", true).unwrap();
        let facts = look(&root).unwrap();
        assert!(!facts.has_commit);
        assert_eq!(facts.unusual, ["core.autocrlf = true"]);
    }
}

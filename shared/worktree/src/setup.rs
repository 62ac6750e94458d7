//! How a repository's git is set up, as far as it matters to a batch.

use crate::landing::next_base_in;
use git2::{Config, Oid, Repository};
use premath_kernel::policy::health::{GitFacts, RemoteState};
use std::path::{Path, PathBuf};

/// Settings by which the files of a lane differ from what is committed, and the
/// value that does it.
const UNUSUAL: [(&str, bool); 2] = [("core.autocrlf", true), ("core.fileMode", false)];

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

/// A remote that the landing target is pushed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushRemote {
    /// It is not configured, or a folder: what is known about it.
    Known(RemoteState),
    /// It is on another machine, or a program is to reach it.
    Elsewhere,
}

/// Looks at the remote of pushes of a target; one that is not on this machine is not
/// asked.
pub fn push_remote(repository: &Path, name: &str, target: &str) -> PushRemote {
    let Ok(git) = Repository::open(repository) else {
        return PushRemote::Known(RemoteState::Missing);
    };
    let Ok(remote) = git.find_remote(name) else {
        return PushRemote::Known(RemoteState::Missing);
    };
    let url = remote.pushurl().ok().flatten().map(str::to_owned);
    let url = url.or_else(|| remote.url().ok().map(str::to_owned));
    let Some(folder) = url.and_then(|url| local(repository, &url)) else {
        return PushRemote::Elsewhere;
    };
    let Ok(there) = Repository::open(folder) else {
        return PushRemote::Known(RemoteState::NoRepository);
    };
    let reference = there.find_reference(&format!("refs/heads/{target}"));
    let commit = reference.and_then(|reference| reference.peel_to_commit());
    PushRemote::Known(match commit {
        Ok(commit) => push_of(repository, target, &commit.id().to_string()),
        Err(_) => RemoteState::Usable,
    })
}

/// Compares what a batch that begins now would push with the commit that the remote's
/// branch is at.
pub fn push_of(repository: &Path, target: &str, there: &str) -> RemoteState {
    let compare = || {
        let git = Repository::open(repository).ok()?;
        let here = next_base_in(&git, Some(target))?;
        let there = Oid::from_str(there).ok()?;
        // Commits that are only there have no object here.
        let Ok((_, lacks)) = git.graph_ahead_behind(here, there) else {
            return Some(RemoteState::Diverged(None));
        };
        Some(match lacks {
            0 => RemoteState::Usable,
            lacks => RemoteState::Diverged(Some(lacks)),
        })
    };
    compare().unwrap_or(RemoteState::Usable)
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
        let state = |name| push_remote(&root, name, "t");
        assert_eq!(state("origin"), PushRemote::Known(RemoteState::Missing));
        git.remote("origin", "../bare").unwrap();
        let known = PushRemote::Known(RemoteState::NoRepository);
        assert_eq!(state("origin"), known);
        Repository::init_bare(folder.path().join("bare")).unwrap();
        assert_eq!(state("origin"), PushRemote::Known(RemoteState::Usable));
        git.remote("far", "https://localhost/x").unwrap();
        assert_eq!(state("far"), PushRemote::Elsewhere);
        let mut config = git.config().unwrap();
        config.set_bool("core.autocrlf", true).unwrap();
        let facts = look(&root).unwrap();
        assert!(!facts.has_commit);
        assert_eq!(facts.unusual, ["core.autocrlf = true"]);
    }

    /// Makes a commit of an empty tree on a branch.
    fn commit(git: &Repository, branch: &str, parents: &[Oid]) -> Oid {
        let who = git2::Signature::now("t", "t@localhost").unwrap();
        let tree = git.treebuilder(None).unwrap().write().unwrap();
        let tree = git.find_tree(tree).unwrap();
        let parents: Vec<_> = parents
            .iter()
            .map(|parent| git.find_commit(*parent).unwrap())
            .collect();
        let parents: Vec<_> = parents.iter().collect();
        let text = format!("{branch} {}", parents.len());
        let made = git
            .commit(None, &who, &who, &text, &tree, &parents)
            .unwrap();
        let name = format!("refs/heads/{branch}");
        git.reference(&name, made, true, "test").unwrap();
        made
    }

    #[test]
    fn a_push_is_refused_where_the_remote_has_commits_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        options.initial_head("main");
        let git = Repository::init_opts(folder.path(), &options).unwrap();
        let root = git.workdir().unwrap().to_path_buf();
        let of = |there: Oid| push_of(&root, "t", &there.to_string());
        let first = commit(&git, "main", &[]);
        // The target is yet to be made from HEAD.
        assert_eq!(of(first), RemoteState::Usable);
        let landed = commit(&git, "t", &[first]);
        assert_eq!(of(first), RemoteState::Usable);
        assert_eq!(of(landed), RemoteState::Usable);
        let theirs = commit(&git, "theirs", &[first]);
        let theirs = commit(&git, "theirs", &[theirs]);
        assert_eq!(of(theirs), RemoteState::Diverged(Some(2)));
        let unknown = Oid::from_str(&"1".repeat(40)).unwrap();
        assert_eq!(of(unknown), RemoteState::Diverged(None));
        // A target that the main worktree's HEAD has merged follows it.
        commit(&git, "main", &[landed, theirs]);
        assert_eq!(of(theirs), RemoteState::Usable);
    }
}

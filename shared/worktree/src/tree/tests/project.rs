//! What a project asks of git.

use super::super::git_settings::AutoCrlf;
use super::lane::Lane;
use super::*;
use std::os::unix::fs::MetadataExt as _;

#[test]
fn only_the_ledger_of_ours_may_be_tracked() {
    let lane = Lane::new();
    assert!(lane.tree.tracked_ours().unwrap().is_empty());
    assert!(lane.tree.tracks(Path::new(".premath/issues.jsonl")));
    assert!(!lane.tree.tracks(Path::new("nothing")));
    let repository = &lane.tree.repository;
    let blob = repository.blob(b"x").unwrap();
    let mut update = git2::build::TreeUpdateBuilder::new();
    for path in ["artifacts/in/x", ".premath/config"] {
        update.upsert(path, blob, git2::FileMode::Blob);
    }
    commit(&lane, |tree| {
        update.create_updated(repository, tree).unwrap()
    });
    assert_eq!(
        lane.tree.tracked_ours().unwrap(),
        [".premath/config", "artifacts/in/x"]
    );
}

#[test]
fn a_submodule_is_seen() {
    let lane = Lane::new();
    assert!(!lane.tree.submodules().unwrap());
    let repository = &lane.tree.repository;
    let id = lane.tree.head().unwrap().id();
    let mut update = git2::build::TreeUpdateBuilder::new();
    update.upsert("vendor/sub", id, git2::FileMode::Commit);
    commit(&lane, |tree| {
        update.create_updated(repository, tree).unwrap()
    });
    assert!(lane.tree.submodules().unwrap());
}

#[test]
fn a_filter_counts_where_it_is_both_configured_and_named() {
    let lane = Lane::new();
    lane.write(
        "deep/.gitattributes",
        "# filter=no\n*.bin filter=crypt -text\n",
    );
    lane.tree.commit(&TEXT).unwrap().unwrap();
    assert_eq!(lane.tree.external_filters().unwrap(), None);
    let mut config = lane.tree.repository.config().unwrap();
    config.set_str("filter.other.clean", "x").unwrap();
    assert_eq!(lane.tree.external_filters().unwrap(), None);
    config.set_str("filter.crypt.process", "crypt").unwrap();
    let found = lane.tree.external_filters().unwrap();
    assert_eq!(found.as_deref(), Some("crypt"));
}

#[test]
fn a_setting_counts_from_the_next_command_on() {
    let (_scratch, tree) = Scratch::new();
    assert!(tree.settings().file_mode);
    let mut config = tree.repository.config().unwrap();
    config.set_bool("core.fileMode", false).unwrap();
    config.set_str("core.autocrlf", "Input").unwrap();
    config.set_str("core.eol", "CRLF").unwrap();
    assert!(tree.settings().file_mode);
    tree.before_command();
    let settings = tree.settings();
    assert!(!settings.file_mode && settings.is_eol_crlf);
    assert_eq!(settings.line_ends, AutoCrlf::Input);
    config.set_str("core.autocrlf", "on").unwrap();
    tree.before_command();
    assert_eq!(tree.settings().line_ends, AutoCrlf::On);
}

#[test]
fn a_steps_git_folder_serves_the_next_step_on_another_branch() {
    let lane = Lane::new();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("step.git");
    let on = |branch: &str| Base {
        branch: Some(format!("refs/heads/harness/{branch}")),
        ..lane.base.clone()
    };
    let mut git = lane.tree.private_git(&at, &on("a/1"), false).unwrap();
    let inode = fs::metadata(&at).unwrap().ino();
    for branch in ["b/12", "c/1", "a/1/x"] {
        git = lane
            .tree
            .private_git_again(git, &on(branch), false)
            .unwrap();
        assert_eq!(fs::metadata(&at).unwrap().ino(), inode);
        let seen = Repository::open_bare(&at).unwrap();
        let head = seen.head().unwrap();
        assert_eq!(head.name().ok(), on(branch).branch.as_deref());
        assert_eq!(head.target().unwrap().to_string(), lane.base.commit);
        assert_eq!(seen.branches(None).unwrap().count(), 1);
    }
    // A commit of the step makes the branch a file: the folder is made again.
    let seen = Repository::open_bare(&at).unwrap();
    let head = seen.head().unwrap();
    let name = head.name().unwrap();
    seen.reference(name, head.target().unwrap(), true, "moved")
        .unwrap();
    assert_eq!(lane.tree.private_git_again(git, &on("d/1"), false), None);
}

#[test]
fn a_worktree_knows_what_it_is() {
    let lane = Lane::new();
    assert!(!lane.tree.is_main());
    assert!(lane.tree.git_folder().ends_with("worktrees/lane"));
    let (scratch, tree) = Scratch::new();
    assert!(tree.is_main());
    let git = fs::canonicalize(scratch.folder.path().join(".git")).unwrap();
    assert_eq!(fs::canonicalize(tree.git_folder()).unwrap(), git);
}

fn commit(lane: &Lane, make: impl FnOnce(&git2::Tree<'_>) -> Oid) {
    let repository = &lane.tree.repository;
    let parent = lane.tree.head().unwrap();
    let id = make(&parent.tree().unwrap());
    let content = repository.find_tree(id).unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    repository
        .commit(Some("HEAD"), &author, &author, "x", &content, &[&parent])
        .unwrap();
}

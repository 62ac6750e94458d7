//! Ignored files of a person's own worktree.

use super::lane::Lane;
use super::*;

fn lane_with_secret() -> Lane {
    let mut lane = Lane::new();
    let at = lane.at("");
    fs::create_dir_all(at.join("target")).unwrap();
    fs::write(at.join("target/.env"), "SECRET=1").unwrap();
    let own = lane.tree.ignored_files().unwrap();
    lane.tree.keep_out(own);
    lane
}

fn files_of_commit(lane: &Lane) -> String {
    let text = CommitText::default();
    let commit = lane.tree.commit(&text).unwrap().unwrap();
    lane.tree
        .changed_since(&lane.base.commit, &lane.tree.tree_of(&commit).unwrap())
        .unwrap()
        .join(" ")
}

#[test]
fn an_ignored_file_is_not_committed_when_a_step_changes_the_rules() {
    let lane = lane_with_secret();
    fs::write(lane.at(".gitignore"), "").unwrap();
    fs::write(lane.at("new"), "x").unwrap();
    assert_eq!(files_of_commit(&lane), ".gitignore new");
}

#[test]
fn an_ignored_file_is_not_committed_when_a_step_stages_it() {
    let lane = lane_with_secret();
    let mut index = lane.tree.repository.index().unwrap();
    index.add_path(Path::new("target/.env")).unwrap();
    index.write().unwrap();
    fs::write(lane.at("new"), "x").unwrap();
    assert_eq!(files_of_commit(&lane), "new");
}

#[test]
fn an_ignored_file_survives_a_reset_after_a_step_changed_the_rules() {
    let lane = lane_with_secret();
    fs::write(lane.at(".gitignore"), "").unwrap();
    fs::create_dir(lane.at("target/.git")).unwrap();
    fs::write(lane.at("target/.git/HEAD"), "ref: refs/heads/x\n").unwrap();
    lane.tree.reset(&lane.base, &Ignored::Stay).unwrap();
    let secret = fs::read_to_string(lane.at("target/.env")).unwrap();
    assert_eq!(secret, "SECRET=1");
    assert_eq!(
        fs::read_to_string(lane.at(".gitignore")).unwrap(),
        "target/\n"
    );
}

#[test]
fn paths_are_read_as_they_were_written() {
    let lane = lane_with_secret();
    let own = lane.tree.ignored_files().unwrap();
    assert_eq!(own, OwnFiles::from_bytes(&own.to_bytes()));
    let old = OwnFiles::from_bytes(b".env\0a/b\0");
    let paths: Vec<_> = old.paths().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(paths, [".env", "a/b"]);
}

#[test]
fn a_file_that_a_step_moves_is_neither_committed_nor_deleted() {
    let lane = lane_with_secret();
    fs::rename(lane.at("target"), lane.at("d/moved")).unwrap();
    fs::write(lane.at(".gitignore"), "").unwrap();
    fs::write(lane.at("d/new"), "x").unwrap();
    assert_eq!(files_of_commit(&lane), ".gitignore d/new");
    lane.tree.reset(&lane.base, &Ignored::Stay).unwrap();
    let secret = fs::read_to_string(lane.at("d/moved/.env")).unwrap();
    assert_eq!(secret, "SECRET=1");
    assert!(!lane.at("d/new").exists());
}

#[test]
fn a_repository_that_a_step_moves_a_file_into_is_not_deleted() {
    let lane = lane_with_secret();
    fs::create_dir_all(lane.at("new/.git")).unwrap();
    fs::rename(lane.at("target"), lane.at("new/moved")).unwrap();
    let error = lane.tree.reset(&lane.base, &Ignored::Stay).unwrap_err();
    assert!(error.detail.contains("ignored files"), "{error}");
    assert!(lane.at("new/moved/.env").exists());
}

/// Commits a file at a path on top of the base, from the main worktree.
fn commit_with(lane: &Lane, at: &str, text: &str) -> Base {
    let blob = lane.main.blob(text.as_bytes()).unwrap();
    let parent = lane.main.head().unwrap().peel_to_commit().unwrap();
    let mut update = git2::build::TreeUpdateBuilder::new();
    update.upsert(at, blob, git2::FileMode::Blob);
    let tree = update
        .create_updated(&lane.main, &parent.tree().unwrap())
        .unwrap();
    let tree = lane.main.find_tree(tree).unwrap();
    let author = Signature::now("t", "t@localhost").unwrap();
    let commit = lane
        .main
        .commit(None, &author, &author, "c", &tree, &[&parent])
        .unwrap();
    Base {
        commit: commit.to_string(),
        branch: None,
    }
}

#[test]
fn a_worktree_does_not_move_to_a_commit_that_replaces_an_ignored_file() {
    let lane = lane_with_secret();
    for (at, text) in [("target/.env", "FORGED"), ("target", "FORGED")] {
        let base = commit_with(&lane, at, text);
        for moved in [
            lane.tree.start_at(&base, "i", 1),
            lane.tree.reset(&base, &Ignored::Stay),
        ] {
            let error = moved.unwrap_err();
            assert!(error.detail.starts_with("target"), "{at}: {error}");
        }
        assert_eq!(lane.tree.base().unwrap(), lane.base, "{at}");
        let secret = fs::read_to_string(lane.at("target/.env")).unwrap();
        assert_eq!(secret, "SECRET=1", "{at}");
    }
    let base = commit_with(&lane, "target/other", "x");
    lane.tree.start_at(&base, "i", 1).unwrap();
    let secret = fs::read_to_string(lane.at("target/.env")).unwrap();
    assert_eq!(secret, "SECRET=1");
    assert!(lane.at("target/other").is_file());
}

#[test]
fn secrets_are_found_in_ignored_folders_and_behind_links() {
    let mut lane = Lane::new();
    let rules = "target/\n.env*\nprivate/\n.npmrc\n";
    fs::write(lane.at(".gitignore"), rules).unwrap();
    for at in [
        "target/.env",
        "target/CACHEDIR.TAG",
        ".env.d/x/.env",
        ".env.venv/pyvenv.cfg",
        "private/deep/.netrc",
        "private/node_modules/p/.npmrc",
        "private/real",
        "d/.npmrc",
        "d/not.env",
    ] {
        let at = lane.at(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, "SECRET=1").unwrap();
    }
    for (link, to) in [
        (".env.local", "private/real"),
        (".env.tracked", "a.txt"),
        (".env.out", "/etc/passwd"),
    ] {
        std::os::unix::fs::symlink(to, lane.at(link)).unwrap();
    }
    let own = lane.tree.ignored_files().unwrap();
    lane.tree.keep_out(own);
    let secrets = lane.tree.kept_out().secrets();
    let secrets: Vec<_> = secrets.map(|path| path.to_str().unwrap()).collect();
    let expected = [".env.d", "d/.npmrc", "private/deep/.netrc", "private/real"];
    assert_eq!(secrets, expected);
}

#[test]
fn a_second_name_of_an_ignored_file_does_not_stay() {
    let mut lane = Lane::new();
    let rules = fs::read_to_string(lane.at(".gitignore")).unwrap() + ".env\n";
    fs::write(lane.main.path().join("info/exclude"), rules).unwrap();
    fs::write(lane.at(".env"), "SECRET=1").unwrap();
    let own = lane.tree.ignored_files().unwrap();
    lane.tree.keep_out(own);
    let tracked = fs::read_to_string(lane.at("a.txt")).unwrap();
    fs::remove_file(lane.at("a.txt")).unwrap();
    for name in ["a.txt", "CLAUDE.local.md"] {
        fs::hard_link(lane.at(".env"), lane.at(name)).unwrap();
    }
    fs::write(lane.at("new"), "x").unwrap();
    assert_eq!(files_of_commit(&lane), "new");
    lane.tree.reset(&lane.base, &Ignored::Stay).unwrap();
    assert_eq!(fs::read_to_string(lane.at("a.txt")).unwrap(), tracked);
    assert!(!lane.at("CLAUDE.local.md").exists());
    assert_eq!(fs::read_to_string(lane.at(".env")).unwrap(), "SECRET=1");
}

#[test]
fn a_file_that_a_step_moves_over_tracked_ones_goes_back() {
    let lane = lane_with_secret();
    let tracked: Vec<_> = ["a.txt", "d"]
        .into_iter()
        .map(|name| lane.at(name))
        .collect();
    let text = fs::read_to_string(&tracked[0]).unwrap();
    for (number, tracked) in tracked.iter().enumerate() {
        let is_folder = tracked.is_dir();
        match is_folder {
            true => fs::remove_dir_all(tracked).unwrap(),
            false => fs::remove_file(tracked).unwrap(),
        }
        fs::rename(lane.at("target"), tracked).unwrap();
        fs::write(tracked.join("forged"), "x").unwrap();
        lane.tree.reset(&lane.base, &Ignored::Stay).unwrap();
        let secret = fs::read_to_string(lane.at("target/.env")).unwrap();
        assert_eq!(secret, "SECRET=1", "{number}");
        assert!(!tracked.join("forged").exists());
        assert_eq!(tracked.is_dir(), is_folder);
    }
    assert_eq!(fs::read_to_string(&tracked[0]).unwrap(), text);
}

#[test]
fn a_file_that_a_step_moved_stays_a_persons_own_in_the_next_batch() {
    let mut lane = lane_with_secret();
    fs::rename(lane.at("target"), lane.at("d/moved")).unwrap();
    lane.tree.reset(&lane.base, &Ignored::Stay).unwrap();
    let own = lane.tree.ignored_files().unwrap();
    lane.tree.keep_out(own);
    fs::write(lane.at("new"), "x").unwrap();
    assert_eq!(files_of_commit(&lane), "new");
    lane.tree.reset(&lane.base, &Ignored::Stay).unwrap();
    let secret = fs::read_to_string(lane.at("d/moved/.env")).unwrap();
    assert_eq!(secret, "SECRET=1");
}

#[test]
fn a_step_cannot_hide_a_secret_from_the_next_search() {
    let hidden = |lane: &Lane| {
        let secrets = lane.tree.kept_out().secrets();
        let names = secrets.map(|path| path.display().to_string());
        names.collect::<Vec<String>>()
    };
    let mut lane = lane_with_secret();
    assert_eq!(hidden(&lane), ["target/.env"]);
    fs::write(lane.at("target/CACHEDIR.TAG"), "x").unwrap();
    // As the next batch does: it reads the record, and looks again.
    let record = lane.tree.kept_out().to_bytes();
    lane.tree.keep_out(OwnFiles::from_bytes(&record));
    let own = lane.tree.ignored_files().unwrap();
    lane.tree.keep_out(own);
    assert_eq!(hidden(&lane), ["target/.env"]);
    // A person moved it away.
    fs::remove_file(lane.at("target/.env")).unwrap();
    let own = lane.tree.ignored_files().unwrap();
    lane.tree.keep_out(own);
    assert!(hidden(&lane).is_empty());
}

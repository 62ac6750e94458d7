//! Ignored files of a person's own worktree.

use super::hostile::Lane;
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
    let own = lane.tree.kept_out();
    assert_eq!(own, &OwnFiles::from_bytes(&own.to_bytes()));
    assert_eq!(
        own.secrets().count(),
        0,
        "the outermost ignored path is target"
    );
    let own = OwnFiles::from_bytes(b".env.local\0app/.env\0app/x.env\0.npmrc\0");
    let secrets: Vec<_> = own.secrets().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(secrets, [".env.local", ".npmrc", "app/.env"]);
}

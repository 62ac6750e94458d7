//! Attack 1: the record of a worktree names a folder of the user's, and the
//! harness removes it as a worktree too many.

use crate::ground::Ground;

attacks! {
    the_record_names_the_users_repository,
    the_record_names_another_repository,
    the_record_names_the_home,
    the_record_is_of_a_lane_too_many,
    the_git_file_names_the_users_git_folder,
    the_git_file_is_a_link_to_the_users_git_folder,
    the_git_folder_of_a_lane_is_the_users,
}

/// Points every record that the step can write at a git folder.
fn points_at(ground: &mut Ground, git: &str) {
    let script = format!(
        r#"for at in $(gits); do
  echo "{git}" > "$at/gitdir"
  touch "$at/premath-provisioned"
done"#
    );
    ground.hostile("h", &script);
}

fn the_record_names_the_users_repository(ground: &mut Ground) {
    points_at(ground, "$ROOT/.git");
    ground.nights();
    let is_there = ground.path("repo/.git/HEAD").exists()
        && ground.path("repo/README.md").exists()
        && ground.path("repo/ignored/cache.txt").exists();
    ground.harm(!is_there, "the user's repository is deleted");
}

fn the_record_names_another_repository(ground: &mut Ground) {
    ground.write("home/project/kept.txt", "kept\n");
    let project = ground.path("home/project").display().to_string();
    ground.git(&["init", "-q", &project]);
    ground.git(&["-C", &project, "add", "-A"]);
    ground.git(&["-C", &project, "commit", "-qm", "mine"]);
    points_at(ground, "$USERHOME/project/.git");
    ground.nights();
    let is_there = ground.path("home/project/kept.txt").exists();
    ground.harm(!is_there, "another repository of the user is deleted");
}

fn the_record_names_the_home(ground: &mut Ground) {
    points_at(ground, "$USERHOME/.git");
    ground.nights();
    let is_there = ground.path("home/.profile").exists();
    ground.harm(!is_there, "the home is deleted");
}

/// The step makes a record of its own, marked as the harness's.
fn the_record_is_of_a_lane_too_many(ground: &mut Ground) {
    let script = r#"for common in $(commons); do
  made=$common/worktrees/premath-lane-77
  mkdir -p "$made" && echo "$ROOT/.git" > "$made/gitdir" && echo ../.. > "$made/commondir"
  git rev-parse HEAD > "$made/HEAD"; touch "$made/premath-provisioned"
done
for at in $(gits); do cp -r "$at" "$at/../premath-lane-78"; echo "$ROOT/.git" > "$at/../premath-lane-78/gitdir"; done"#;
    ground.hostile("h", script);
    ground.nights();
    let is_there = ground.path("repo/.git/HEAD").exists();
    ground.harm(!is_there, "the user's repository is deleted");
}

fn the_git_file_names_the_users_git_folder(ground: &mut Ground) {
    let script = r#"echo wrong > src/base.txt; rm -f .git; echo "gitdir: $ROOT/.git" > .git"#;
    ground.hostile("h", script);
    ground.nights();
}

fn the_git_file_is_a_link_to_the_users_git_folder(ground: &mut Ground) {
    let script = r#"echo wrong > src/base.txt; rm -f .git; ln -s "$ROOT/.git" .git"#;
    ground.hostile("h", script);
    ground.nights();
}

/// Everything in the lane's git folder leads to the same name in the user's.
fn the_git_folder_of_a_lane_is_the_users(ground: &mut Ground) {
    let script = r#"echo wrong > src/base.txt
for at in $(gits); do
  echo "$ROOT/.git" > "$at/commondir"
  for name in HEAD index logs ORIG_HEAD; do put "$at/$name" "$ROOT/.git/$name"; done
done"#;
    ground.hostile("h", script);
    ground.nights();
}

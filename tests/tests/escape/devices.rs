//! Attack 13: a pipe or an endless device in the place of a file that the
//! harness reads.

use crate::ground::Ground;

attacks! {
    a_pipe_is_the_outbox,
    a_pipe_is_a_file_of_the_git_folder,
    a_pipe_is_the_index,
    a_pipe_is_the_branch,
    a_pipe_is_a_file_that_git_reads_in_the_lane,
    a_pipe_is_the_session,
    a_pipe_is_the_git_file,
    an_endless_file_is_the_outbox,
    an_endless_file_is_a_file_of_the_git_folder,
    an_endless_file_is_a_file_that_git_reads_in_the_lane,
    an_endless_file_is_the_session,
}

fn pipes(ground: &mut Ground, id: &str, files: &str) {
    let script = format!(
        r#"echo x > src/{id}.txt
for file in {files}; do mkdir -p "${{file%/*}}"; rm -rf "$file"; mkfifo "$file"; done"#
    );
    ground.hostile(id, &script);
}

fn endless(ground: &mut Ground, id: &str, files: &str) {
    let script =
        format!("echo x > src/{id}.txt\nfor file in {files}; do put \"$file\" /dev/zero; done");
    ground.hostile(id, &script);
}

fn a_pipe_is_the_outbox(ground: &mut Ground) {
    pipes(ground, "h", "\"$PREMATH_OUTBOX\"");
    pipes(
        ground,
        "i",
        "./.premath/step/evidence.json ./.premath/step/prompt.md",
    );
    ground.nights();
}

fn a_pipe_is_a_file_of_the_git_folder(ground: &mut Ground) {
    pipes(ground, "h", "$(gits | sed s,$,/HEAD,)");
    pipes(
        ground,
        "i",
        "$(gits | sed s,$,/commondir,) $(gits | sed s,$,/gitdir,)",
    );
    pipes(
        ground,
        "j",
        "$(gits | sed s,$,/logs/HEAD,) $(gits | sed s,$,/premath-lane.flock,)",
    );
    ground.nights();
}

fn a_pipe_is_the_index(ground: &mut Ground) {
    pipes(ground, "h", "$(gits | sed s,$,/index,)");
    ground.nights();
}

fn a_pipe_is_the_branch(ground: &mut Ground) {
    pipes(ground, "h", "$(commons | sed s,$,/$B,)");
    pipes(ground, "i", "$(commons | sed s,$,/logs/$B,)");
    ground.nights();
}

fn a_pipe_is_a_file_that_git_reads_in_the_lane(ground: &mut Ground) {
    pipes(ground, "h", "./.gitignore ./src/.gitignore");
    pipes(ground, "i", "./.gitattributes ./src/.gitattributes");
    pipes(ground, "j", "./src/base.txt ./README.md");
    ground.nights();
}

fn a_pipe_is_the_session(ground: &mut Ground) {
    pipes(ground, "h", "\"$PREMATH_HARNESS_SESSION_PATH\"");
    pipes(ground, "i", "./.premath/harness_feature_ledger.json");
    ground.nights();
}

fn a_pipe_is_the_git_file(ground: &mut Ground) {
    pipes(ground, "h", "./.git");
    ground.nights();
}

fn an_endless_file_is_the_outbox(ground: &mut Ground) {
    endless(
        ground,
        "h",
        "\"$PREMATH_OUTBOX\" ./.premath/step/evidence.json",
    );
    ground.nights();
}

fn an_endless_file_is_a_file_of_the_git_folder(ground: &mut Ground) {
    endless(ground, "h", "$(gits | sed s,$,/HEAD,)");
    endless(
        ground,
        "i",
        "$(gits | sed s,$,/index,) $(gits | sed s,$,/commondir,)",
    );
    endless(
        ground,
        "j",
        "$(commons | sed s,$,/$B,) $(commons | sed s,$,/logs/$B,)",
    );
    ground.nights();
}

fn an_endless_file_is_a_file_that_git_reads_in_the_lane(ground: &mut Ground) {
    endless(ground, "h", "./.gitignore ./.gitattributes");
    endless(ground, "i", "./.git");
    ground.nights();
}

fn an_endless_file_is_the_session(ground: &mut Ground) {
    endless(
        ground,
        "h",
        "./.premath/harness_session.json ./.premath/harness_feature_ledger.json",
    );
    ground.nights();
}

//! Attack 2: a link in the place of a file that the harness writes.

use crate::ground::Ground;

attacks! {
    the_branchs_log_is_a_link_to_a_profile,
    the_log_of_head_is_a_link_to_issue_memory,
    the_lanes_lock_is_a_link_to_issue_memory,
    the_salvage_folder_is_a_link_to_a_folder_of_the_users,
    the_steps_folder_is_a_link,
    the_files_of_the_step_are_links,
    the_session_is_a_link_to_a_profile,
    the_lanes_state_is_a_link_to_issue_memory,
    files_of_the_git_folder_are_links,
    the_branchs_folder_is_a_link_to_the_home,
    folders_of_the_lane_are_links,
    files_of_the_lane_are_hard_links,
    the_lanes_temporary_folder_is_a_link,
}

/// The harness writes the title into the log of the branch.
fn the_branchs_log_is_a_link_to_a_profile(ground: &mut Ground) {
    let script = r#"echo x > src/h.txt
for c in $(commons); do put "$c/logs/$B" "$USERHOME/.profile"; done
printf '{"title":"x; touch ~/pwned #"}\n' >> "$PREMATH_OUTBOX""#;
    ground.titled("h", "x; touch ~/pwned #", script);
    ground.nights();
}

fn the_log_of_head_is_a_link_to_issue_memory(ground: &mut Ground) {
    let script = r#"echo x > src/h.txt
for at in $(gits); do put "$at/logs/HEAD" "$ROOT/.premath/issues.jsonl"; done"#;
    ground.hostile("h", script);
    ground.nights();
}

fn the_lanes_lock_is_a_link_to_issue_memory(ground: &mut Ground) {
    let script = r#"for at in $(gits); do
  put "$at/premath-lane.flock" "$ROOT/.premath/issues.jsonl"
done"#;
    ground.hostile("h", script);
    ground.nights();
}

/// `premath clean --salvage` removes `<issue>/<generation>` below it.
fn the_salvage_folder_is_a_link_to_a_folder_of_the_users(ground: &mut Ground) {
    ground.write("outside/photos/2026/one.txt", "kept\n");
    let script = r#"for at in $(gits) $(commons); do put "$at/premath-salvage" "$FOLDER/outside"; done
put .premath/premath-salvage "$FOLDER/outside""#;
    ground.hostile("h", script);
    ground.nights();
    ground.premath(&["clean", "--salvage", "--older-than", "0s"]);
    let is_there = ground.path("outside/photos/2026/one.txt").exists();
    ground.harm(
        !is_there,
        "`premath clean --salvage` emptied a folder of the user's",
    );
}

fn the_steps_folder_is_a_link(ground: &mut Ground) {
    let script = r#"put .premath/step "$FOLDER/outside""#;
    ground.hostile("h", script);
    ground.nights();
}

fn the_files_of_the_step_are_links(ground: &mut Ground) {
    let script = r#"for name in issue.json prompt.md evidence.json outbox.jsonl; do
  put ".premath/step/$name" "$USERHOME/.profile"
done"#;
    ground.hostile("h", script);
    ground.nights();
}

fn the_session_is_a_link_to_a_profile(ground: &mut Ground) {
    let script = r#"put .premath/harness_session.json "$USERHOME/.profile"
put .premath/harness_feature_ledger.json "$ROOT/.premath/issues.jsonl""#;
    ground.hostile("h", script);
    ground.nights();
}

fn the_lanes_state_is_a_link_to_issue_memory(ground: &mut Ground) {
    ground.hostile("h", r#"put .premath "$ROOT/.premath""#);
    ground.hostile("i", r#"put .premath "$FOLDER/outside""#);
    ground.nights();
    let leaked = ground.read("repo/.premath/harness_session.json");
    ground.harm(
        !leaked.is_empty(),
        "a lane's session is in the user's checkout",
    );
}

fn files_of_the_git_folder_are_links(ground: &mut Ground) {
    let names = [
        "HEAD",
        "index",
        "ORIG_HEAD",
        "PREMATH_HOME",
        "HEAD.premath",
        "premath-setup",
        "premath-provisioned",
        "locked",
    ];
    for (number, name) in names.into_iter().enumerate() {
        let script = format!(
            r#"echo x > src/base.txt
for at in $(gits); do
  [ {name} != HEAD.premath ] || echo garbage > "$at/HEAD"
  put "$at/{name}" "$USERHOME/.profile"
done"#
        );
        ground.hostile(&format!("h{number}"), &script);
    }
    ground.nights();
}

fn the_branchs_folder_is_a_link_to_the_home(ground: &mut Ground) {
    let script = r#"echo x > src/h.txt
for c in $(commons); do
  put "$c/${B%/*}" "$USERHOME"
  put "$c/logs/${B%/*}" "$USERHOME"
done"#;
    ground.hostile("h", script);
    let script = r#"echo x > src/i.txt
for c in $(commons); do put "$c/$B" "$USERHOME/.profile"; put "$c/$B.lock" "$USERHOME/.profile"; done"#;
    ground.hostile("i", script);
    ground.nights();
}

/// A file of the lane below a link is a file of the user's.
fn folders_of_the_lane_are_links(ground: &mut Ground) {
    ground.write("outside/base.txt", "kept\n");
    let script = r#"rm -rf src; ln -s "$FOLDER/outside" src"#;
    ground.hostile("h", script);
    let script = r#"rm -rf src; ln -s "$FOLDER/outside" src; g add -A; g commit -qm linked"#;
    ground.hostile("i", script);
    let script = r#"mkdir -p artifacts; put artifacts/streams "$FOLDER/outside"
put ignored "$FOLDER/outside""#;
    ground.hostile("j", script);
    ground.nights();
}

fn files_of_the_lane_are_hard_links(ground: &mut Ground) {
    let script = r#"rm -f src/base.txt README.md
ln "$ROOT/src/base.txt" src/base.txt || echo x > src/base.txt
ln "$USERHOME/.profile" README.md || echo x > README.md
rm -f .premath/harness_session.json
ln "$ROOT/.premath/issues.jsonl" .premath/harness_session.json || :"#;
    ground.hostile("h", script);
    ground.nights();
}

fn the_lanes_temporary_folder_is_a_link(ground: &mut Ground) {
    ground.hostile(
        "h",
        r#"rm -rf "$TMPDIR"; ln -s "$FOLDER/outside" "$TMPDIR""#,
    );
    ground.hostile(
        "i",
        r#"ln -s "$FOLDER/outside" "$TMPDIR/out"; ln -s / "$TMPDIR/all""#,
    );
    ground.nights();
}

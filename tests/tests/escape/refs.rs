//! Attack 6: a branch of the step's is a branch of the user's, or the record of
//! where the step began is forged.

use crate::ground::Ground;
use premath_tests::{PATIENCE, until};
use rustix::process::Signal;
use std::fs;

attacks! {
    the_branch_is_a_link_to_main,
    the_branch_is_a_symbolic_reference,
    the_worktree_is_on_a_branch_of_the_users,
    a_forged_base_moves_no_branch_of_the_users,
    a_forged_base_does_not_move_the_target,
    a_lock_of_a_reference_is_left,
}

fn the_branch_is_a_link_to_main(ground: &mut Ground) {
    let script = r#"echo x > src/h.txt
for c in $(commons); do put "$c/$B" "$c/refs/heads/main"; done"#;
    ground.hostile("h", script);
    let script = r#"echo x > src/i.txt; g add -A; g commit -qm own
for c in $(commons); do put "$c/${B%/*}" "$c/refs/heads"; done"#;
    ground.hostile("i", script);
    ground.nights();
}

fn the_branch_is_a_symbolic_reference(ground: &mut Ground) {
    for (id, to) in [
        ("h", "refs/heads/main"),
        ("i", "refs/heads/harness/integration"),
    ] {
        let script = format!(
            "echo x > src/{id}.txt\nfor c in $(commons); do echo 'ref: {to}' > \"$c/$B\"; done"
        );
        ground.hostile(id, &script);
    }
    ground.nights();
}

fn the_worktree_is_on_a_branch_of_the_users(ground: &mut Ground) {
    let script = r#"echo wrong > src/base.txt
for at in $(gits); do
  echo 'ref: refs/heads/main' > "$at/HEAD"; echo 'ref: refs/heads/main' > "$at/PREMATH_HOME"
done"#;
    ground.hostile("h", script);
    let script = r#"echo wrong > src/base.txt
g checkout -q main || g symbolic-ref HEAD refs/heads/main; g commit -qam own; g reset -q --hard HEAD~1"#;
    ground.hostile("i", script);
    ground.nights();
}

fn a_forged_base_moves_no_branch_of_the_users(ground: &mut Ground) {
    forged_base(ground, "refs/heads/main");
}

fn a_forged_base_does_not_move_the_target(ground: &mut Ground) {
    forged_base(ground, "refs/heads/harness/integration");
}

/// The session says where a step that was cut began, and what its branch was.
fn forged_base(ground: &mut Ground, branch: &str) {
    let first = ground.git(&["rev-list", "--max-parents=0", "HEAD"]);
    let script = format!(
        r#"echo wrong > src/base.txt
for file in .premath/harness_session.json "$PREMATH_HARNESS_SESSION_PATH"; do
  sed -E -i 's|("base_?[cC]ommit": *)"[0-9a-f]+"|\1"{}"|; s|refs/heads/harness/h[^"]*|{branch}|g' "$file"
done
for at in $(gits); do echo 'ref: {branch}' > "$at/HEAD"; echo 'ref: {branch}' > "$at/PREMATH_HOME"; done
echo 'attack: the end'; touch forged; sleep 10"#,
        first.trim()
    );
    ground.hostile("h1", &script).hostile("h2", &script);
    ground.night_killed_at(|ground| {
        let lane = |name: &str| ground.path("repo-lanes").join(name).join("forged");
        fs::exists(lane("lane-01")).unwrap() && fs::exists(lane("lane-02")).unwrap()
    });
    ground.night();
}

fn a_lock_of_a_reference_is_left(ground: &mut Ground) {
    let script = r#"echo x > src/h.txt
for c in $(commons); do
  for name in "$B" refs/heads/harness/integration refs/heads/main packed-refs HEAD config; do
    mkdir -p "$c/${name%/*}"; touch "$c/$name.lock"
  done
done
for at in $(gits); do touch "$at/index.lock" "$at/HEAD.lock"; done"#;
    ground.hostile("h", script);
    ground.nights();
}

impl Ground {
    /// Runs a night and kills the harness at a moment; what it left is looked
    /// at after the next night.
    fn night_killed_at(&mut self, moment: impl Fn(&Self) -> bool) {
        self.begins();
        let mut running = self.harness().start();
        let found = until(PATIENCE / 4, || {
            (moment(self) || running.is_over()).then_some(())
        });
        self.harm(found.is_none(), "the moment to kill the harness never came");
        if !running.is_over() {
            running.signal(Signal::KILL);
        }
        running.wait();
        self.is_cut();
    }
}

//! Attack 3: the lane's git folder leads to a repository of the step's own,
//! whose configuration runs programs, in the harness or in the user's shell.

use crate::ground::{Ground, TARGET};
use std::path::Path;

attacks! {
    a_bare_repository_does_not_land,
    a_push_runs_a_hook_of_the_steps,
    commands_of_git_run_a_monitor_of_the_steps,
    a_status_in_a_lane_runs_nothing_of_the_steps,
    a_nested_repository_runs_nothing,
}

/// A repository of the step's own whose configuration runs a program at every
/// turn, that writes where the step itself cannot.
const EVIL: &str = r#"E=$LANE/ignored/evil; mkdir -p "$LANE/ignored"
git clone -q --bare "$ROOT" "$E" 2>/dev/null || git init -q --bare "$E"
printf '#!/bin/sh\necho ran >> "%s/outside/ran"\nexit 0\n' "$FOLDER" > "$E/run"; chmod +x "$E/run"
for hook in pre-push post-checkout post-commit pre-commit reference-transaction post-index-change post-rewrite; do
  mkdir -p "$E/hooks"; cp "$E/run" "$E/hooks/$hook"
done
for key in core.fsmonitor core.sshCommand core.pager core.editor diff.external gpg.program credential.helper core.askPass uploadpack.packObjectsHook; do
  git config -f "$E/config" "$key" "$E/run"
done
git config -f "$E/config" filter.evil.smudge "$E/run"
git config -f "$E/config" filter.evil.clean "$E/run"
git config -f "$E/config" filter.evil.process "$E/run"
git config -f "$E/config" remote.origin.url "$FOLDER/remote.git"
git config -f "$E/config" core.bare false
cp "$E/config" "$E/config.worktree"; git config -f "$E/config" extensions.worktreeConfig true
echo '* filter=evil' > "$E/info/attributes"; mkdir -p "$E/worktrees"
"#;

fn remote(ground: &Ground) -> String {
    let remote = ground.path("remote.git").display().to_string();
    ground.git(&["init", "-q", "--bare", &remote]);
    ground.git(&["remote", "add", "origin", &remote]);
    remote
}

fn a_push_runs_a_hook_of_the_steps(ground: &mut Ground) {
    let remote = remote(ground);
    ground.settings("[landing]\npush = \"origin\"\n");
    let script = format!(
        "{EVIL}echo x > src/h.txt\nfor at in $(gits); do echo \"$E\" > \"$at/commondir\"; done"
    );
    ground.hostile("h", &script);
    ground.nights();
    let pushed = ground.git(&["ls-remote", &remote, TARGET]);
    let tip = ground.git(&["rev-parse", TARGET]);
    ground.harm(!pushed.starts_with(tip.trim()), "the target was not pushed");
}

fn commands_of_git_run_a_monitor_of_the_steps(ground: &mut Ground) {
    for (id, last) in [
        ("h", r#"rm -f .git; echo "gitdir: $E" > .git"#),
        ("i", r#"rm -f .git; cp -r "$E" .git"#),
        (
            "j",
            r#"for at in $(gits); do cp "$E/config" "$at/config.worktree"; cp "$E/config" "$at/config"; done"#,
        ),
        (
            "k",
            r#"for c in $(commons); do cp "$E/config" "$c/config"; cp "$E"/hooks/* "$c/hooks/"; done"#,
        ),
    ] {
        ground.hostile(id, &format!("{EVIL}echo x > src/{id}.txt\n{last}"));
    }
    ground.nights();
}

/// The user looks at a lane in the morning, by hand or by a prompt or editor
/// that does.
fn a_status_in_a_lane_runs_nothing_of_the_steps(ground: &mut Ground) {
    let scripts = [
        r#"for at in $(gits); do echo "$E" > "$at/commondir"; done"#,
        r#"rm -f .git; echo "gitdir: $E" > .git"#,
    ];
    for (number, last) in scripts.into_iter().enumerate() {
        ground.hostile(&format!("h{number}"), &format!("{EVIL}{last}"));
    }
    ground.night();
    for lane in ["lane-01", "lane-02"] {
        let place = ground.path("repo-lanes").join(lane);
        if place.is_dir() {
            for command in ["status", "diff", "log -1", "fetch"] {
                let run = ground.run(Path::new("git")).within(&place);
                run.args(command.split(' ')).end();
            }
        }
    }
    let ran = ground.read("outside/ran");
    ground.harm(!ran.is_empty(), "git in a lane ran a program of the step's");
}

fn a_nested_repository_runs_nothing(ground: &mut Ground) {
    let script = format!(
        r#"{EVIL}mkdir -p src/inner; git init -q src/inner; cp "$E/config" src/inner/.git/config
cp "$E"/hooks/* src/inner/.git/hooks/ 2>/dev/null; echo x > src/inner/x
printf '[submodule "inner"]\n\tpath = src/inner\n\turl = ext::sh -c "touch %s/outside/ran"\n\tupdate = !touch %s/outside/ran\n' "$FOLDER" "$FOLDER" > .gitmodules
g add -A 2>/dev/null; g commit -qm nested || :"#
    );
    ground.hostile("h", &script);
    ground.nights();
}

/// Git obeys the settings of a folder that looks like a repository.
fn a_bare_repository_does_not_land(ground: &mut Ground) {
    let script = r#"for at in src/bare .; do mkdir -p $at/objects/info $at/refs/heads
echo 'ref: refs/heads/main' > $at/HEAD; echo x > $at/objects/info/x; echo x > $at/refs/heads/x
printf '[core]\n\tbare = true\n\tfsmonitor = touch %s/outside/ran\n' "$FOLDER" > $at/config; done"#;
    ground.hostile("h", script);
    ground.nights();
    for name in ["src/bare/HEAD", "HEAD"] {
        let landed = ground.landed(name);
        ground.harm(landed.is_some(), format!("{name} landed"));
    }
}

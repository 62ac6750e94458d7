//! Any hostile step at all: random operations on files, on git and on
//! processes. Afterwards everything of the user's is byte for byte as it was,
//! but for what a landing is meant to change.

use crate::ground::{Ground, Mode};
use premath_tests::{Dice, Length};

attacks! {
    no_hostile_step_changes_anything,
}

/// How many steps a repository has to bear.
const STEPS: u64 = 20;

/// What is attacked: a shell word, which may be several paths.
const PLACES: [&str; 36] = [
    "$(gits | sed s,$,/HEAD,)",
    "$(gits | sed s,$,/index,)",
    "$(gits | sed s,$,/gitdir,)",
    "$(gits | sed s,$,/commondir,)",
    "$(gits | sed s,$,/ORIG_HEAD,)",
    "$(gits | sed s,$,/PREMATH_HOME,)",
    "$(gits | sed s,$,/logs/HEAD,)",
    "$(gits | sed s,$,/config.worktree,)",
    "$(gits | sed s,$,/premath-lane.flock,)",
    "$(gits | sed s,$,/premath-provisioned,)",
    "$(gits | sed s,$,/premath-salvage,)",
    "$(gits | sed s,$,/premath-setup,)",
    "$(gits | sed s,$,/locked,)",
    "$(gits)",
    "$(commons | sed s,$,/$B,)",
    "$(commons | sed s,$,/${B%/*},)",
    "$(commons | sed s,$,/logs/$B,)",
    "$(commons | sed s,$,/logs/${B%/*},)",
    "$(commons | sed s,$,/objects/info/alternates,)",
    "$(commons | sed s,$,/objects/info/commit-graph,)",
    "$(commons | sed s,$,/objects/pack,)",
    "$(commons | sed s,$,/packed-refs,)",
    "$(commons | sed s,$,/config,)",
    "$(commons | sed s,$,/hooks/post-checkout,)",
    "./.git",
    "./.gitignore",
    "./.gitattributes",
    "./src",
    "./src/base.txt",
    "./.premath",
    "./.premath/harness_session.json",
    "./.premath/harness_feature_ledger.json",
    "./.premath/step",
    "$PREMATH_OUTBOX",
    "./.premath/step/evidence.json",
    "$TMPDIR",
];

/// What a link leads to.
const GOALS: [&str; 10] = [
    "$USERHOME/.profile",
    "$USERHOME",
    "$ROOT/.premath/issues.jsonl",
    "$ROOT/.git",
    "$ROOT/.git/refs/heads/main",
    "$ROOT",
    "$FOLDER/outside",
    "$FOLDER/outside/kept.txt",
    "/dev/zero",
    "/",
];

/// What is done to a place `$at`; `$goal` is where a link leads to.
const FILES: [&str; 13] = [
    r#"put "$at" "$goal""#,
    r#"rm -rf "$at"; ln "$goal" "$at""#,
    r#"rm -rf "$at""#,
    r#"rm -rf "$at"; mkfifo "$at""#,
    r#"rm -rf "$at"; mkdir -p "$at/deep/er""#,
    r#"rm -rf "$at"; : > "$at""#,
    r#"rm -rf "$at"; head -c 3000 /dev/urandom > "$at""#,
    r#"echo "$goal" > "$at""#,
    r#"echo "gitdir: $goal" > "$at""#,
    r#"echo "ref: refs/heads/main" > "$at""#,
    r#"echo evil >> "$at""#,
    r#"mv "$at" "$at.moved""#,
    r#"cp "$ROOT/src/base.txt" "$at""#,
];

/// What Landlock cannot refuse, and the batch reports.
const PERMISSIONS: &str = r#"chmod 000 "$at""#;

/// What is done with git.
const GIT: [&str; 18] = [
    "g add -A; g commit -qm own",
    "g checkout -q main || g symbolic-ref HEAD refs/heads/main",
    "g update-ref refs/heads/main HEAD~0",
    "g branch -f harness/integration HEAD; g branch -D main",
    "g tag -f forged; g tag -f -a -m x v1",
    "g reset -q --hard HEAD~1",
    "g stash -q -u",
    "g config core.fsmonitor \"touch $FOLDER/outside/ran\"; g config core.hooksPath \"$LANE/src\"",
    "g worktree add -q -f ../evil HEAD; g worktree prune; g worktree remove --force \"$ROOT\"",
    "g gc -q --prune=now",
    "g reflog expire --expire=now --all",
    "g replace -f HEAD HEAD~1; g notes add -f -m evil",
    "g push -q --force \"$ROOT\" HEAD:refs/heads/main HEAD:refs/heads/evil",
    "g update-index --assume-unchanged src/base.txt; echo evil > src/base.txt",
    "g rm -rqf --cached .; g commit -qm nothing",
    "g submodule add -q \"$ROOT\" sub; g commit -qam sub",
    "g commit -q --allow-empty -m orphan; g checkout -q --orphan lost; g commit -q --allow-empty -m lost",
    "g remote add evil \"$ROOT\"; g fetch -q evil '+refs/heads/*:refs/heads/*'",
];

/// What is done with processes.
const PROCESSES: [&str; 8] = [
    "setsid sleep 300 > /dev/null 2>&1 < /dev/null &",
    "( setsid env -i sh -c 'sleep 1; while :; do echo evil > \"$0/src/evil.txt\"; sleep 1; done' \"$LANE\" > /dev/null 2>&1 & ) &",
    "kill -KILL \"${PREMATH_SUPERVISOR%.*}\"",
    "kill -TERM \"$PPID\"",
    "premath issue update n1-1 --status closed --override-reason evil",
    "printf '{\"title\":\"again\",\"priority\":-9}\\n' >> \"$PREMATH_OUTBOX\"",
    "head -c 3000000 /dev/urandom | base64",
    "trap '' TERM; echo \"usage_limit: resets at 99999999999\" >&2",
];

fn pick<'a>(dice: &mut Dice, of: &[&'a str]) -> &'a str {
    of[usize::try_from(dice.below(of.len() as u64)).unwrap()]
}

fn on_files(dice: &mut Dice, done: &str) -> String {
    let (place, goal) = (pick(dice, &PLACES), pick(dice, &GOALS));
    // The step itself would wait at a pipe that it made before.
    format!("goal={goal}; for at in {place}; do [ -p \"$at\" ] || {{ {done}; }}; done")
}

/// One operation of any kind.
fn operation(dice: &mut Dice, mode: Mode) -> String {
    match dice.below(20) {
        0 if mode != Mode::Landlock => on_files(dice, PERMISSIONS),
        0..=11 => {
            let done = pick(dice, &FILES);
            on_files(dice, done)
        }
        12..=17 => pick(dice, &GIT).to_owned(),
        _ => pick(dice, &PROCESSES).to_owned(),
    }
}

/// A hostile step: an edit, then one to four operations.
fn step(dice: &mut Dice, mode: Mode, id: &str) -> String {
    let count = 1 + dice.below(4);
    let mut script = format!("echo {id} > src/{id}.txt\n");
    for _ in 0..count {
        script.push_str(&format!("{}\n", operation(dice, mode)));
    }
    script
}

/// One repository that bears the hostile steps of a seed for a night, and an
/// honest night.
fn bears(ground: &mut Ground, seed: u64) {
    let mut dice = Dice::new(seed);
    ground.limits_steps_to(10);
    for number in 1..=STEPS {
        let id = format!("h{number}");
        let script = step(&mut dice, ground.mode(), &id);
        ground.hostile(&id, &script).may_be_cut();
    }
    ground.nights();
    ground.notes(&format!("PREMATH_TESTS_SEED={seed}"));
}

/// In the long form every repository is tried, whatever the ones before it
/// found; each has a seed of its own, by which it is tried alone.
fn no_hostile_step_changes_anything(ground: &mut Ground) {
    let length = Length::asked("the property over 2,000 hostile steps");
    let repositories = length.pick(1, 2_000 / STEPS);
    let first = Dice::from_environment().seed();
    bears(ground, first);
    for number in 1..repositories {
        let mut next = Ground::new(ground.mode());
        bears(&mut next, first.wrapping_add(number));
        for finding in next.findings() {
            ground.harm(true, format!("repository {number}: {finding}"));
        }
    }
}

//! Attack 15: what one step uses up is missing for every other lane.

use crate::ground::{Ground, Mode, is_alone};
use premath_tests::skipped;

attacks! {
    a_fork_bomb_costs_its_own_step_alone,
    a_memory_hog_is_ended,
    a_disk_filler_is_ended,
    an_endless_sparse_file_is_not_read,
    sparse_files_are_not_written_out,
    a_flood_of_output_is_bounded,
    a_tree_that_grows_without_end_is_not_checked_out,
    a_lock_of_the_harnesss_is_not_held,
    what_the_kernel_counts_for_the_user_is_left_to_others,
    folders_without_end_leave_nothing_behind,
}

/// Bounds of a step.
const LIMITS: &str = "[limits]\nmemory = \"512MiB\"\nprocesses = 256\ndisk = \"30MiB\"\n";

/// The user may have 900 processes, as many machines set it.
fn a_fork_bomb_costs_its_own_step_alone(ground: &mut Ground) {
    let is_there = premath_tests::command("prlimit").arg("--version").output();
    if is_there.is_err() {
        return skipped("a fork bomb", "prlimit is not installed");
    }
    if !is_alone(ground.user(), "a fork bomb") {
        return;
    }
    // A shell ends where it cannot fork; this process does not.
    let script = r#"python3 - <<'END'
import os, time
end = time.monotonic() + 6
while time.monotonic() < end:
    try:
        if os.fork() == 0:
            os.setsid()
            time.sleep(6)
            os._exit(0)
    except OSError:
        time.sleep(0.01)
END"#;
    ground.hostile("h", script).may_be_cut();
    ground.honest_work_takes(1);
    ground.settings(LIMITS);
    for _ in 0..2 {
        ground.night_of(|ground| {
            ground.harness_behind(|run| run.args(["prlimit", "--nproc=900:900", "--"]))
        });
    }
}

fn a_memory_hog_is_ended(ground: &mut Ground) {
    let script = "head -c 1500000000 /dev/zero | tail -c 1400000000 | wc -c && echo hogged";
    ground.hostile("h", script).may_be_cut();
    ground.settings(LIMITS);
    ground.nights();
    let hogged = ground.output("h").lines().any(|line| line == "hogged");
    ground.harm(hogged, "a step took 1.4 GB of memory");
}

fn a_disk_filler_is_ended(ground: &mut Ground) {
    let script = r#"mkdir -p ignored; for at in src/big ignored/big "$TMPDIR/big"; do
  head -c 200000000 /dev/urandom > "$at" && echo "filled $at"
done"#;
    ground.hostile("h", script).may_be_cut();
    ground.settings(LIMITS);
    ground.nights();
    let said = ground.output("h");
    let filled: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("filled"))
        .collect();
    ground.harm(!filled.is_empty(), format!("a step {filled:?} with 200 MB"));
    let mut used = premath_tests::command("du");
    used.arg("-sm").arg(ground.path("repo/.git"));
    let used = String::from_utf8_lossy(&used.output().unwrap().stdout).into_owned();
    let megabytes: u64 = used
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .parse()
        .unwrap();
    ground.harm(
        megabytes > 100,
        format!("the user's git folder takes {megabytes} MB"),
    );
}

fn an_endless_sparse_file_is_not_read(ground: &mut Ground) {
    ground.hostile(
        "h",
        "truncate -s 900G src/sparse.bin || truncate -s 15T src/sparse.bin",
    );
    ground.hostile("i", r#"truncate -s 900G "$PREMATH_OUTBOX""#);
    ground.nights();
}

/// Each is within the bound of a file, and none uses the disk.
fn sparse_files_are_not_written_out(ground: &mut Ground) {
    let script = "for n in 1 2 3 4 5 6 7 8 9; do truncate -s 29M src/sparse$n; done";
    ground.hostile("h", script);
    ground.settings(LIMITS);
    ground.nights();
    let last = "harness/integration:src/sparse9";
    let landed = ground.try_git(&["rev-parse", "-q", "--verify", last]);
    ground.harm(
        landed.code == Some(0),
        "261 MB landed under a bound of 30 MiB",
    );
}

fn a_flood_of_output_is_bounded(ground: &mut Ground) {
    ground
        .hostile(
            "h",
            "yes flood | head -c 300000000; yes flood | head -c 300000000 >&2",
        )
        .may_be_cut();
    ground.nights();
    let bytes = ground.output("h").len();
    ground.harm(
        bytes > 40_000_000,
        format!("{bytes} bytes of output are kept"),
    );
}

/// Seven trees of ten entries each name the next: ten million files from a
/// kilobyte.
fn a_tree_that_grows_without_end_is_not_checked_out(ground: &mut Ground) {
    let script = r#"blob=$(echo x | git hash-object -w --stdin); kind="100644 blob"; id=$blob
for level in 1 2 3 4 5 6 7; do
  id=$(for n in 0 1 2 3 4 5 6 7 8 9; do printf '%s %s\tn%s\n' "$kind" "$id" $n; done | git mktree)
  kind="040000 tree"
done
tree=$( { git ls-tree HEAD; printf '040000 tree %s\tbomb\n' "$id"; } | git mktree)
commit=$(g commit-tree -p HEAD -m bomb "$tree"); g update-ref HEAD "$commit" || :"#;
    ground.hostile("h", script);
    ground.nights();
    let landed = ground.try_git(&["rev-parse", "-q", "--verify", "harness/integration:bomb"]);
    ground.harm(landed.code == Some(0), "ten million files landed");
}

/// A descriptor that cannot write takes a lock all the same.
fn a_lock_of_the_harnesss_is_not_held(ground: &mut Ground) {
    let script = r#"for file in $(find "$ROOT/.premath" "$ROOT/.git" "$ROOT/artifacts" "$ROOT"-lanes -name '*lock' 2>/dev/null) "$ROOT/.premath/issues.jsonl"; do
  premath-probe flock "$file" 300 > /dev/null 2>&1 < /dev/null &
done; sleep 5; echo 'attack: the end'; sleep 10"#;
    ground.hostile("h", script);
    ground.honest_work_takes(1);
    ground.night();
    // The hostile step takes longer than the honest ones together.
    let issues = ground.issues();
    let time = |id: &str, key: &str| {
        let row = issues.get(id);
        row.and_then(|row| row[key].as_str())
            .unwrap_or("never")
            .to_owned()
    };
    let is_late = time("n1-3", "closed_at") > time("h", "updated_at");
    ground.harm(is_late, "honest work waited for a lock that a step held");
    ground.night();
}

/// The user's programs may have 128 instances of inotify together, and all
/// programs of the machine 3,072 terminals.
fn what_the_kernel_counts_for_the_user_is_left_to_others(ground: &mut Ground) {
    if ground.mode() == Mode::Landlock {
        return;
    }
    let script = r#"python3 - <<'END'
import ctypes, os
libc = ctypes.CDLL(None)
watches = 0
while watches < 100 and libc.inotify_init() >= 0:
    watches += 1
terminals = 0
try:
    while terminals < 400:
        os.open("/dev/ptmx", os.O_RDWR)
        terminals += 1
except OSError:
    pass
print("took", watches, terminals)
END"#;
    ground.hostile("h", script);
    ground.nights();
    let said = ground.output("h");
    let took = said.lines().find_map(|line| line.strip_prefix("took "));
    let is_little = |text: &str| {
        let numbers = text.split(' ').map(|number| number.parse::<u32>());
        let [Ok(watches), Ok(terminals)] = numbers.collect::<Vec<_>>()[..] else {
            return false;
        };
        watches < 64 && terminals < 300
    };
    ground.harm(
        !took.is_some_and(is_little),
        format!("a step took {took:?}"),
    );
}

/// The check of every night finds what is left in shared folders.
fn folders_without_end_leave_nothing_behind(ground: &mut Ground) {
    let script = r#"python3 - <<'END'
import os
for top in (os.environ["TMPDIR"], "ignored"):
    os.makedirs(top, exist_ok=True)
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
END"#;
    ground.hostile("h", script);
    ground.nights();
}

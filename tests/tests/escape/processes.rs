//! Attack 7: signals to processes that are none of the step's, and processes
//! that outlive it.

use crate::ground::{Ground, TARGET};

attacks! {
    every_process_of_the_user_is_killed,
    every_process_of_the_user_is_stopped,
    a_daemon_writes_into_later_steps,
    a_daemon_outlives_a_harness_that_its_step_killed,
    a_child_holds_the_output_open,
    a_step_ignores_the_request_to_end,
}

/// Signals every process of this test's that it sees, but its own shell.
fn signals(ground: &mut Ground, signal: &str) {
    ground.bystander();
    let script = format!(
        r#"for at in /proc/[0-9]*; do
  pid=${{at#/proc/}}; [ "$pid" != $$ ] || continue
  if tr '\0' '\n' 2>/dev/null < "$at/environ" | grep -qF "$FOLDER" ||
     tr '\0' '\n' 2>/dev/null < "$at/cmdline" | grep -qF "$FOLDER"; then kill -{signal} "$pid"; fi
done; kill -{signal} "${{PREMATH_SUPERVISOR%.*}}" "$PPID""#
    );
    ground.hostile("h", &script).may_be_cut();
    ground.nights();
}

fn every_process_of_the_user_is_killed(ground: &mut Ground) {
    signals(ground, "KILL");
}

fn every_process_of_the_user_is_stopped(ground: &mut Ground) {
    signals(ground, "STOP");
}

/// It leaves its session, its parents, its environment and its folder.
fn a_daemon_writes_into_later_steps(ground: &mut Ground) {
    let script = r#"cat > "$TMPDIR/daemon" <<END
cd /
i=0; while [ \$i -lt 400 ]; do
  for lane in "$LANE" "$ROOT"-lanes/*; do echo evil > "\$lane/src/evil-$PREMATH_ISSUE_ID.txt"; done
  i=\$((i+1)); sleep 0.01
done
END
cp "$TMPDIR/daemon" ignored-daemon; mkdir -p ignored; mv ignored-daemon ignored/daemon
( setsid env -i PATH="$PATH" sh "$LANE/ignored/daemon" > /dev/null 2>&1 < /dev/null & ) &
( trap '' HUP TERM INT; env -i PATH="$PATH" setsid setsid sh "$LANE/ignored/daemon" > /dev/null 2>&1 < /dev/null & ) &
echo x > src/h.txt"#;
    ground.hostile("h", script).hostile("i", script);
    ground.nights();
    wrote_into_own_work_alone(ground);
}

/// The step stops its supervisor, kills the coordinator above it, then the
/// supervisor; the user starts the batch again. The daemon waits for the next
/// step of each lane, by the session that the harness publishes there.
fn a_daemon_outlives_a_harness_that_its_step_killed(ground: &mut Ground) {
    let script = r#"[ "$PREMATH_LEASE_GENERATION" = 1 ] || exit 0
supervisor=${PREMATH_SUPERVISOR%.*}
above=$(cut -d ' ' -f 4 "/proc/$supervisor/stat")
daemon() {
  trap '' HUP TERM INT; cd /; i=0; last=; while [ $i -lt 400 ]; do
    id=$(grep -o 'n[12]-[123]' "$1/.premath/harness_session.json" | head -n 1)
    if [ "$id" != "$last" ]; then sleep 0.3; echo evil > "$1/src/evil-h.txt"; last=$id; fi
    i=$((i+1)); sleep 0.1
  done
}
for lane in "$ROOT-lanes/lane-01" "$ROOT-lanes/lane-02"; do
  daemon "$lane" > /dev/null 2>&1 < /dev/null &
done
kill -STOP "$supervisor"
case $above in ''|0|1) ;; *) kill -KILL "$above" ;; esac
kill -KILL "$supervisor"; :"#;
    ground.honest_work_takes(1);
    ground.hostile("h", script).may_be_cut();
    ground.begins();
    ground.harness().end();
    ground.is_cut();
    ground.night();
    wrote_into_own_work_alone(ground);
}

/// What a daemon writes while its own step runs is that step's work.
fn wrote_into_own_work_alone(ground: &mut Ground) {
    let log = ["log", "--format=issue %s", "--name-only", TARGET];
    let log = ground.try_git(&log).stdout;
    let mut issue = "";
    for line in log.lines() {
        issue = line.strip_prefix("issue ").unwrap_or(issue);
        let Some(daemon) = line.strip_prefix("src/evil-") else {
            continue;
        };
        let own = daemon.trim_end_matches(".txt");
        let is_own = issue.starts_with(&format!("{own}:"));
        ground.harm(!is_own, format!("the daemon of {own} wrote into `{issue}`"));
    }
}

fn a_child_holds_the_output_open(ground: &mut Ground) {
    ground.hostile("h", "setsid sleep 300 & setsid sh -c 'sleep 300' & :");
    ground.nights();
}

fn a_step_ignores_the_request_to_end(ground: &mut Ground) {
    let script = r#"trap '' TERM INT HUP QUIT; echo "attack: the end"
setsid sh -c "trap '' TERM INT HUP; sleep 300; sleep 300" &
while :; do sleep 300; done"#;
    ground.limits_steps_to(10);
    ground.hostile("h", script);
    ground.nights();
}

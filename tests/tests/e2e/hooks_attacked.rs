//! Attacks on the hooks of an agent, by the steps themselves: none of them closes
//! an issue, and each has its class. The agent is a program that plays Codex and
//! continues where a hook fails, as the real agents do.

use crate::agents::modes;
use crate::hooks::{HEAD, work_witness};
use premath_tests::{PATIENCE, Scratch, binaries, issue};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// What attacks need beside [`HEAD`]: the parts of the hook's command, a call
/// that is announced and runs, and one that is denied and runs.
const PARTS: &str = r#"
parts() { program=$1; door=$2; }
eval "parts $hook"
honest() { send "$(event PreToolUse "$1" ls)"; ran "$2" "/bin/sh -c ls"; send "$(event PostToolUse "$1" ls)"; }
denied() { send "$(event PreToolUse "$1" 'git push')"; ran "$2" "/bin/sh -c 'git push'"; }
"#;

/// One attack: the issue, what its agent does, the class by which it is refused,
/// and how many events reach the journal.
struct Attack {
    id: &'static str,
    body: &'static str,
    class: &'static str,
    events: u64,
}

const ATTACKS: [Attack; 7] = [
    // Events that still arrive show that nothing was replaced.
    Attack {
        id: "replaced",
        body: r#"for at in "$door" "$(dirname "$door")"; do
  mv "$at" "$at.old"; rm -rf "$at"; ln -sf "$SHARED/none" "$at"; echo > "$at"
done 2> /dev/null
begin; prompt; denied c1 item_0; end"#,
        class: "denied_call_ran",
        events: 2,
    },
    // Copies of the program that answer nothing, wherever one is looked for.
    Attack {
        id: "fake",
        body: r#"printf '#!/bin/sh\nexit 0\n' > premath-hook; chmod +x premath-hook; cp premath-hook premath
cp premath-hook "$program" 2> /dev/null; ln -sf "$PWD/premath-hook" "$program" 2> /dev/null
PATH=$PWD:$PATH; export PATH
begin; prompt; denied c1 item_0; rm premath premath-hook; end"#,
        class: "denied_call_ran",
        events: 2,
    },
    // An event as long as one may be, which is none.
    Attack {
        id: "flooded",
        body: r#"begin; prompt; honest c1 item_0; "$PROBE" flood "$door"; honest c2 item_1; end"#,
        class: "hook_channel_invalid",
        events: 6,
    },
    // The agent lets a call run whose hook was killed, as real agents do.
    Attack {
        id: "killed",
        body: r#"mkfifo "$TMPDIR/in"; begin; prompt
sh -c "exec $hook" < "$TMPDIR/in" & victim=$!
exec 3> "$TMPDIR/in"; kill -9 $victim; wait $victim; exec 3>&-
ran item_0 "/bin/sh -c ls"; send "$(event PostToolUse c1 ls)"; end"#,
        class: "hook_call_missing",
        events: 2,
    },
    Attack {
        id: "killed-after",
        body: r#"mkfifo "$TMPDIR/in"; begin; prompt; send "$(event PreToolUse c1 ls)"
ran item_0 "/bin/sh -c ls"; sh -c "exec $hook" < "$TMPDIR/in" & victim=$!
exec 3> "$TMPDIR/in"; kill -9 $victim; wait $victim; exec 3>&-; end"#,
        class: "hook_call_missing",
        events: 2,
    },
    // The agent does not wait for a hook that is late.
    Attack {
        id: "stopped",
        body: r#"mkfifo "$TMPDIR/in"; begin; prompt
sh -c "exec $hook" < "$TMPDIR/in" > /dev/null & victim=$!
exec 3> "$TMPDIR/in"; kill -STOP $victim; event PreToolUse c1 ls >&3; exec 3>&-
ran item_0 "/bin/sh -c ls"; send "$(event PostToolUse c1 ls)"
kill -CONT $victim; wait $victim; end"#,
        class: "hook_channel_invalid",
        events: 3,
    },
    // Its program fails, and the agent takes that for consent.
    Attack {
        id: "unreachable",
        body: r#"begin; prompt
event PreToolUse c1 ls | "$program" "$TMPDIR/none" > /dev/null 2>&1; echo $? > "$SHARED/code"
ran item_0 "/bin/sh -c ls"; end"#,
        class: "hook_call_missing",
        events: 1,
    },
];

/// Runs a batch whose agent does what a text says for an issue.
fn played(mode: &str, lanes: usize, bodies: &[(&str, &str)]) -> (Scratch, Vec<Value>) {
    let rows: Vec<Value> = bodies.iter().map(|(id, _)| issue(id)).collect();
    let scratch = Scratch::with_issues(lanes, &rows);
    let settings =
        "[breaker]\nfailures = 0\n[backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let cases = bodies
        .iter()
        .map(|(id, body)| format!("{id})\n{body}\n;;\n"));
    let cases: String = cases.collect();
    let shared = scratch.home().display().to_string();
    let probe = env!("CARGO_BIN_EXE_premath-probe");
    let program = format!(
        "{HEAD}SHARED='{shared}' PROBE='{probe}'\n{PARTS}case $PREMATH_ISSUE_ID in\n{cases}esac\n"
    );
    let programs = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = programs.path().join("codex");
    fs::write(&file, program).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", programs.path().display());
    let mut run = scratch
        .run(&binaries().coordinator)
        .args(["--json", "--override-reason", "test", "--landing", "none"])
        .args(["--agent", "codex", "--verify-cmd", "true"])
        .args(["--startup", "off", "--sandbox", mode])
        .env("PATH", path);
    for lane in &scratch.lanes {
        run = run.arg("--worktree").arg(lane);
    }
    let ended = run.start().wait_within(PATIENCE * 2);
    let events = ended.events();
    (scratch, events)
}

/// Returns the classes of every step of an issue.
fn classes(events: &[Value], id: &str) -> Vec<String> {
    let steps = events.iter();
    let steps = steps.filter(|event| event["event"] == "step.ended" && event["issueId"] == id);
    let classes = steps.flat_map(|step| step["failureClasses"].as_array().unwrap());
    let classes = classes.map(|class| class.as_str().unwrap().to_owned());
    classes.collect()
}

#[test]
fn an_attack_of_the_step_on_its_hooks_closes_nothing() {
    for mode in modes("an attack on hooks") {
        let bodies = ATTACKS.map(|attack| (attack.id, attack.body));
        let (scratch, events) = played(mode, 2, &bodies);
        for Attack {
            id,
            class,
            events: count,
            ..
        } in &ATTACKS
        {
            let found = classes(&events, id);
            let hooks = &work_witness(&scratch, id)["hooks"];
            assert!(
                found.iter().any(|one| one == class),
                "{mode}, {id}: {found:?} {hooks}"
            );
            assert_eq!(hooks["events"], *count, "{mode}, {id}: {hooks}");
            assert_ne!(scratch.issue(id)["status"], "closed", "{mode}, {id}");
        }
        let code = fs::read_to_string(scratch.home().join("code")).unwrap();
        assert_eq!(code.trim(), "2", "a hook that fails denies");
    }
}

/// An agent that hands what opens its hooks to everyone, and waits.
const LEAKS: &str = r#"begin; prompt; honest c1 item_0
cp "$door" "$SHARED/door" 2> /dev/null; printf '%s' "$door" > "$SHARED/place"
mkfifo "$SHARED/met" 2> /dev/null; cat "$SHARED/met" > /dev/null; end"#;

/// An agent in another lane that speaks to those hooks.
const SPEAKS: &str = r#"begin; prompt; honest c1 item_0
until [ -p "$SHARED/met" ]; do :; done
other=$(cat "$SHARED/place"); [ -e "$other" ] || other=$SHARED/door
SAYS
echo over > "$SHARED/met"; end"#;

/// Without its token, or by the path of a socket that it does not see.
const WITHOUT_TOKEN: &str = r#"
ports=$(awk '$4 == "0A" && $2 ~ /^0100007F:/ { print $2 }' /proc/net/tcp | cut -d: -f2)
own=$(cut -d' ' -f1 "$door" 2> /dev/null)
set --; for port in $ports; do port=$(printf '%d' "0x$port"); [ "$port" = "$own" ] || set -- "$@" "$port"; done
"$PROBE" guess "$@" && echo "$#" > "$SHARED/said"
"#;

/// With the token that the other lane handed out.
const WITH_TOKEN: &str =
    r#"event PreToolUse c9 id | "$program" "$SHARED/door" > /dev/null; echo $? > "$SHARED/said""#;

#[test]
fn a_step_does_not_speak_for_another_lane() {
    for mode in modes("an attack on the hooks of another lane") {
        for (says, is_heard) in [(WITHOUT_TOKEN, false), (WITH_TOKEN, mode == "landlock")] {
            let speaks = SPEAKS.replace("SAYS", says);
            let (scratch, events) = played(mode, 2, &[("leaks", LEAKS), ("speaks", &speaks)]);
            let found = classes(&events, "leaks");
            let said = fs::read_to_string(scratch.home().join("said")).unwrap();
            let said: u64 = said.trim().parse().unwrap();
            // In a network of its own it finds no port; the program denies without one.
            match (is_heard, says == WITHOUT_TOKEN) {
                (true, _) => assert_eq!(said, 0, "{mode}: the event is taken"),
                (false, true) => assert!(said > 0 || mode == "namespaces", "no port was tried"),
                (false, false) => assert_eq!(said, 2, "{mode}"),
            }
            // What is forged in another lane has no counterpart there.
            let expected: &[&str] = match is_heard {
                true => &["hook_call_unaccounted"],
                false => &[],
            };
            for class in expected {
                assert!(found.iter().any(|one| one == class), "{mode}: {found:?}");
            }
            assert_eq!(found.is_empty(), expected.is_empty(), "{mode}: {found:?}");
            let hooks = &work_witness(&scratch, "leaks")["hooks"];
            assert_eq!(
                hooks["events"],
                json!(3 + u64::from(is_heard)),
                "{mode}: {hooks}"
            );
            assert_eq!(
                scratch.issue("leaks")["status"] == "closed",
                !is_heard,
                "{mode}"
            );
        }
    }
}

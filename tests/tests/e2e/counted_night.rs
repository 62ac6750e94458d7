//! A night whose agents are denied calls and mend their work, as often as the titles of
//! its issues say: the report counts neither more nor less.

use crate::hooks::HEAD;
use premath_tests::{Dice, Length, NO_STARTUP, PATIENCE, Scratch, binaries, issue};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const LANES: usize = 8;

/// A program that plays Codex. Its issue's title has three numbers: how often it pushes,
/// how often it publishes, and in how many rounds its work is wrong.
const BODY: &str = r#"
round=$HOME/$PREMATH_STEP_ID; n=$(cat "$round" 2> /dev/null || echo 0); echo $((n+1)) > "$round"
set -- $PREMATH_ISSUE_TITLE
begin; prompt; send "$(event PreToolUse l$n ls)"; ran item_0 "/bin/sh -c ls"
send "$(event PostToolUse l$n ls)"
many() { i=0; while [ $i -lt "$1" ]; do i=$((i+1)); send "$(event PreToolUse "$2$i" "$3")"; done; }
[ "$n" -gt 0 ] || { many "$1" push 'git push'; many "$2" publish 'npm publish'; }
if [ "$n" -ge "$3" ]; then echo right; else echo "wrong $n"; fi > "$PREMATH_ISSUE_ID.txt"
end
"#;

const VERIFY: &str = "grep -q right \"$PREMATH_ISSUE_ID.txt\" || { echo it is wrong; exit 1; }";

/// How often work is wrong that is never mended.
const NEVER: u64 = 9;

/// The rounds in which an agent may mend its work.
const ROUNDS: u64 = 2;

/// What one issue of the night does.
#[derive(Clone, Copy, Debug)]
struct Deeds {
    pushes: u64,
    publishes: u64,
    wrong: u64,
}

impl Deeds {
    fn thrown(dice: &mut Dice) -> Self {
        Self {
            pushes: dice.below(4).saturating_sub(1),
            publishes: dice.below(3).saturating_sub(1),
            wrong: [0, 0, 0, 1, 1, 2, NEVER][usize::try_from(dice.below(7)).unwrap()],
        }
    }

    fn title(self) -> String {
        format!("{} {} {}", self.pushes, self.publishes, self.wrong)
    }

    /// The rounds in which it mended its work, or tried to.
    fn rounds(self) -> u64 {
        self.wrong.min(ROUNDS)
    }

    fn is_closed(self) -> bool {
        self.wrong <= ROUNDS
    }
}

fn night(scratch: &Scratch) -> Value {
    let programs = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = programs.path().join("codex");
    fs::write(&program, format!("{HEAD}{BODY}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let settings = format!("[worktrees]\ncount = {LANES}\n");
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let ended = scratch
        .run(&binaries().coordinator)
        .args(["--json", "--override-reason", "test", "--agent", "codex"])
        .args(["--verify-cmd", VERIFY])
        .args(NO_STARTUP)
        .env("PATH", format!("{}:{path}", programs.path().display()))
        .start()
        .wait_within(PATIENCE * 10);
    scratch.no_process_left();
    let events = ended.events();
    events.last().unwrap().clone()
}

#[test]
fn what_is_denied_and_mended_is_counted_as_it_was_scripted() {
    let issues = Length::asked("a night of 300 issues with denials").pick(24, 300);
    let mut dice = Dice::from_environment();
    let seed = dice.seed();
    let script: BTreeMap<String, Deeds> = (0..issues)
        .map(|number| (format!("n-{number:03}"), Deeds::thrown(&mut dice)))
        .collect();
    let rows: Vec<Value> = script
        .iter()
        .map(|(id, deeds)| {
            let mut row = issue(id);
            row["title"] = json!(deeds.title());
            row
        })
        .collect();
    let scratch = Scratch::with_issues(0, &rows);
    let summary = night(&scratch);
    let report = scratch.premath(["report", "--json"]).end().exits(0).json();
    let all = || script.values();
    let count = |is: &dyn Fn(&Deeds) -> bool| all().filter(|deeds| is(deeds)).count();
    let sum = |of: &dyn Fn(&Deeds) -> u64| all().map(of).sum::<u64>();
    let denied = [
        ("no_publish", sum(&|deeds| deeds.publishes)),
        ("no_push", sum(&|deeds| deeds.pushes)),
    ];
    let expected = json!({
        "issues": issues, "attempts": issues, "retried": 0,
        "closed": count(&|deeds| deeds.is_closed()),
        "failed": count(&|deeds| !deeds.is_closed()),
        "repaired": count(&|deeds| deeds.wrong > 0),
        "repairRounds": sum(&|deeds| deeds.rounds()),
        "denials": denied[0].1 + denied[1].1,
    });
    for (name, count) in expected.as_object().unwrap() {
        assert_eq!(report["totals"][name], *count, "seed {seed}: {name}");
    }
    let closes = &report["totals"]["closes"];
    assert_eq!(*closes, summary["closes"], "seed {seed}");
    let after_repair = count(&|deeds| deeds.wrong > 0 && deeds.is_closed());
    assert_eq!(closes["afterRepair"], after_repair, "seed {seed}");
    by_rule(&report, &summary, denied, seed);
    by_issue(&report, &script, seed);
}

/// The denials of each rule, in the report and in the account of the batch.
fn by_rule(report: &Value, summary: &Value, denied: [(&str, u64); 2], seed: u64) {
    let listed = report["denials"].as_array().unwrap();
    for (rule, count) in denied {
        let found = listed.iter().find(|denial| denial["ruleId"] == rule);
        let found = found.map_or(0, |denial| denial["calls"].as_u64().unwrap());
        assert_eq!(found, count, "seed {seed}: {rule} in {listed:#?}");
        let told = summary["providers"][0]["denials"][rule].as_u64();
        assert_eq!(told.unwrap_or(0), count, "seed {seed}: {rule}");
    }
}

/// The denials and rounds of each issue.
fn by_issue(report: &Value, script: &BTreeMap<String, Deeds>, seed: u64) {
    let of = |name: &str| report[name].as_array().unwrap().clone();
    let mut found = 0;
    for reported in of("closed").iter().chain(&of("failed")) {
        let deeds = script[reported["issueId"].as_str().unwrap()];
        let counts = (&reported["denials"], &reported["repairRounds"]);
        let expected = (
            &json!(deeds.pushes + deeds.publishes),
            &json!(deeds.rounds()),
        );
        assert_eq!(counts, expected, "seed {seed}: {deeds:?} {reported}");
        found += 1;
    }
    assert_eq!(found, script.len(), "seed {seed}");
}

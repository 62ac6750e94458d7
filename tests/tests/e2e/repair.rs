//! Work that fails its verification is mended by its agent in the same session,
//! within the same attempt.

use crate::agents::{batch_with, modes, reaches_alone};
use crate::hooks::HEAD;
use crate::turn_demands::govern;
use premath_evidence::Agent;
use premath_kernel::policy::retry::RetryPolicy;
use premath_tests::agents::{Installed, Profile, missing};
use premath_tests::model::{Journal, ModelServer, Played as PlayedAs, Scripts};
use premath_tests::{PATIENCE, Run, Scratch, binaries, issue, skipped, workspace};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A round of a program that plays Codex: it writes down that it ran, calls a
/// command, and continues as `work` says.
const ROUND: &str = r#"
case " $* " in *" resume s -"*) round=2 ;; *) round=1 ;; esac
begin; prompt; send "$(event PreToolUse c$round ls)"; ran item_0 "/bin/sh -c ls"
send "$(event PostToolUse c$round ls)"
"#;

/// Mends its work when it is shown what failed, if its home is still there.
const MENDS: &str = r#"
if [ $round = 1 ]; then
    echo wrong > a.txt; echo kept > "$HOME/session"
elif grep -q "a.txt is wrong" "$PREMATH_PROMPT_FILE" && [ -e "$HOME/session" ]; then
    echo right > a.txt
fi
end
"#;

/// Never mends it.
const STUBBORN: &str = "echo wrong >> a.txt; end\n";

/// The verification, which says what is wrong.
const VERIFY: &str = "grep -q right a.txt || { echo a.txt is wrong; exit 1; }";

/// A batch with one issue, whose agent plays Codex.
struct Played {
    scratch: Scratch,
    _programs: tempfile::TempDir,
    run: Run,
}

impl Played {
    fn new(body: &str, landing: bool) -> Self {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        let mut played = Self::of(scratch, body, VERIFY);
        played.run = played.run.arg("--worktree").arg(&played.scratch.lanes[0]);
        if !landing {
            played.run = played.run.args(["--landing", "none"]);
        }
        played
    }

    fn of(scratch: Scratch, body: &str, verify: &str) -> Self {
        let programs = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let program = programs.path().join("codex");
        fs::write(&program, format!("{HEAD}{ROUND}{body}")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", programs.path().display());
        let run = scratch
            .run(&binaries().coordinator)
            .args(["--json", "--override-reason", "test", "--agent", "codex"])
            .args(["--verify-cmd", verify, "--startup", "off"])
            .env("PATH", path);
        Self {
            scratch,
            _programs: programs,
            run,
        }
    }

    /// Runs the batch to its end; returns the row of the issue's only step.
    fn row(self) -> (Scratch, Value) {
        let (scratch, rows) = self.rows();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        (scratch, rows[0].clone())
    }

    /// Runs the batch to its end; returns the rows of the issue's steps.
    fn rows(self) -> (Scratch, Vec<Value>) {
        let ended = self.run.start().wait_within(PATIENCE);
        let rows = self.scratch.steps_of("a");
        assert!(!rows.is_empty(), "{}{}", ended.stdout, ended.stderr);
        (self.scratch, rows)
    }
}

/// Returns a file of the issue's first step.
fn file(scratch: &Scratch, folder: &str, row: &Value, end: &str) -> PathBuf {
    let step = row["stepId"].as_str().unwrap();
    let folder = scratch.root.join("artifacts").join(folder);
    folder.join(format!("{step}.{end}"))
}

fn document(scratch: &Scratch, row: &Value, phase: &str) -> Value {
    let file = file(scratch, "ciwitness", row, &format!("{phase}.json"));
    serde_json::from_slice(&fs::read(&file).expect(phase)).unwrap()
}

#[test]
fn work_that_fails_is_mended_in_the_same_session() {
    for landing in [false, true] {
        let (scratch, row) = Played::new(MENDS, landing).row();
        assert_eq!(scratch.issue("a")["status"], "closed", "{row}");
        assert_eq!(row["generation"], 1);
        assert_eq!(row["failureClasses"], Value::Null);
        assert_eq!(row["agent"]["repairRounds"], 1);
        assert_eq!(row["agent"]["calls"], 2);
        assert_eq!(row["verification"]["class"], "passed");
        // Codex reports the totals of its session.
        assert_eq!(row["agent"]["tokens"]["input"], 1);
        let prompt = file(&scratch, "streams", &row, "work-2.prompt");
        let prompt = fs::read_to_string(prompt).unwrap();
        assert!(prompt.contains("check_failed"), "{prompt}");
        let second = document(&scratch, &row, "work-2");
        assert_eq!(second["hooks"]["calls"], 1);
        assert_eq!(
            second["before"]["tree"],
            document(&scratch, &row, "work")["after"]["tree"]
        );
        let turn = document(&scratch, &row, "turn");
        let evidence = &turn["input"]["evidence"];
        assert_eq!(
            evidence["callSpec"]["executionPattern"],
            "evaluator_optimizer"
        );
        let results = evidence["toolResults"].as_array().unwrap();
        let ends: Vec<(&str, &str)> = results
            .iter()
            .map(|result| {
                let id = result["toolCallId"].as_str().unwrap();
                let phase = id.split_once('/').unwrap().1;
                (phase, result["status"].as_str().unwrap())
            })
            .collect();
        for expected in [
            ("work", "ok"),
            ("work/item_0", "ok"),
            ("verify", "error"),
            ("work-2", "ok"),
            ("work-2/item_0", "ok"),
            ("verify-3", "ok"),
        ] {
            assert!(ends.contains(&expected), "{expected:?}: {ends:?}");
        }
        let report = fs::read_to_string(report(&scratch)).unwrap();
        let closes = "closed: 0 at the first pass, 1 after repair, 0 after retry";
        assert!(report.contains(closes), "{report}");
        assert_eq!(scratch.leftovers(), [""; 0]);
    }
}

/// Each round of an agent makes a folder, which only one can have at a time. The
/// work of `b` ends a while after the work of `a` has failed.
const ALONE: &str = r#"
mkdir "LOCK" || touch "LOCK.two"
if [ $round = 1 ]; then
    echo wrong > $PREMATH_ISSUE_ID.txt
    [ $PREMATH_ISSUE_ID = a ] || { until [ -e "LOCK.red" ]; do sleep 0.01; done; sleep 1; }
else
    echo right > $PREMATH_ISSUE_ID.txt
fi
rmdir "LOCK"; end
"#;

#[test]
fn agents_that_mend_their_work_count_among_the_lanes() {
    let scratch = Scratch::with_issues(0, &["a", "b"].map(issue));
    fs::write(scratch.root.join("harness.toml"), "[verify]\nslots = 1\n").unwrap();
    let lock = scratch.home().join("lock").display().to_string();
    let verify = "grep -q right $PREMATH_ISSUE_ID.txt || { touch LOCK.red; exit 1; }";
    let texts = [ALONE, verify].map(|text| text.replace("LOCK", &lock));
    let mut played = Played::of(scratch, &texts[0], &texts[1]);
    played.run = played.run.args(["--lanes", "1"]);
    let (scratch, _) = played.row();
    for id in ["a", "b"] {
        let steps = scratch.steps_of(id);
        assert_eq!(scratch.issue(id)["status"], "closed", "{steps:#?}");
        assert_eq!(steps[0]["agent"]["repairRounds"], 1, "{steps:#?}");
    }
    // The second lane is a spare worktree.
    assert_eq!(scratch.steps_of("b")[0]["workerId"], "worker.2");
    assert!(!fs::exists(format!("{lock}.two")).unwrap());
    assert_eq!(scratch.leftovers(), [""; 0]);
}

/// Three issues write the same file. The first one lands when the work of all is
/// done, and the others conflict. Each is then right in its second round.
const CONFLICTS: &str = r#"
id=$PREMATH_ISSUE_ID
if ! [ -e "SEEN-$id" ]; then echo $id > same.txt; touch "SEEN-$id"
elif [ $round = 1 ]; then echo wrong > $id.txt
else echo right > $id.txt
fi
end
"#;

/// The verification takes long enough for the lane to take up its next issue.
const VERIFY_CONFLICTS: &str = r#"id=$PREMATH_ISSUE_ID
if [ $id = a ]; then until [ -e SEEN-b ] && [ -e SEEN-c ]; do sleep 0.01; done; exit 0; fi
if grep -q wrong $id.txt; then sleep 1; exit 1; fi"#;

#[test]
fn an_agent_whose_work_lands_next_mends_it_before_attempts_that_wait_for_its_landing() {
    let scratch = Scratch::with_issues(0, &["a", "b", "c"].map(issue));
    let settings = "[verify]\nslots = 2\n[backoff]\nfixed_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let seen = scratch.home().join("seen").display().to_string();
    let texts = [CONFLICTS, VERIFY_CONFLICTS].map(|text| text.replace("SEEN", &seen));
    let mut played = Played::of(scratch, &texts[0], &texts[1]);
    played.run = played.run.args(["--lanes", "1"]);
    let (scratch, _) = played.row();
    for id in ["b", "c"] {
        let steps = scratch.steps_of(id);
        assert_eq!(scratch.issue(id)["status"], "closed", "{steps:#?}");
        assert_eq!(steps[0]["failureClasses"], json!(["landing_conflict"]));
        assert_eq!(steps[1]["agent"]["repairRounds"], 1, "{steps:#?}");
    }
    assert_eq!(scratch.leftovers(), [""; 0]);
}

/// Returns the report of the only batch.
fn report(scratch: &Scratch) -> PathBuf {
    let reports = scratch
        .premath(["report", "--list", "--json"])
        .end()
        .exits(0);
    let kept = reports.json();
    PathBuf::from(kept["items"][0]["path"].as_str().unwrap())
}

#[test]
fn an_agent_that_never_mends_its_work_uses_exactly_its_rounds() {
    for (rounds, runs) in [(None, 3), (Some(0), 1), (Some(4), 5)] {
        let played = Played::new(STUBBORN, true);
        if let Some(rounds) = rounds {
            govern(&played.scratch, |policy| {
                policy["stop"]["repairRounds"] = json!(rounds);
            });
        }
        let (scratch, row) = played.row();
        assert_ne!(scratch.issue("a")["status"], "closed");
        assert_eq!(row["failureClasses"], json!(["check_failed"]), "{row}");
        let name = |run| match run {
            1 => "work.json".to_owned(),
            run => format!("work-{run}.json"),
        };
        let has_run = |run| file(&scratch, "ciwitness", &row, &name(run)).exists();
        assert!((1..=runs).all(has_run) && !has_run(runs + 1), "{rounds:?}");
        let expected = (runs > 1).then_some(runs - 1);
        assert_eq!(row["agent"]["repairRounds"].as_i64(), expected);
    }
}

/// What a session that is resumed has: its home. It works right there alone.
const REMEMBERS: &str = r#"
if [ $round = 1 ]; then
    echo wrong > a.txt; echo kept > "$HOME/session"
elif grep -q "Your last attempt" "$PREMATH_PROMPT_FILE" && [ -e "$HOME/session" ]; then
    [ -e a.txt ] || echo right > a.txt
fi
end
"#;

#[test]
fn a_retry_resumes_the_session_of_the_attempt_before() {
    for mode in modes("a retry in the same session") {
        for resume in [true, false] {
            retried(mode, resume);
        }
    }
}

fn retried(mode: &str, resume: bool) {
    let played = Played::new(REMEMBERS, true);
    let scratch = &played.scratch;
    govern(scratch, |policy| policy["stop"]["repairRounds"] = json!(0));
    retries(scratch, "check_failed", 2);
    let settings = format!("[agent]\nresume = {resume}\n[sandbox]\nmode = \"{mode}\"\n");
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let (scratch, steps) = played.rows();
    assert_eq!(steps.len(), 2, "{steps:#?}");
    assert_eq!(steps[0]["agent"]["resumed"], Value::Null);
    let (status, resumed) = match resume {
        true => ("closed", json!(true)),
        false => ("blocked", Value::Null),
    };
    assert_eq!(scratch.issue("a")["status"], status, "{mode}");
    assert_eq!(steps[1]["agent"]["resumed"], resumed, "{mode}");
    assert_eq!(scratch.leftovers(), [""; 0]);
}

/// Writes a retry policy that gives a class so many attempts.
fn retries(scratch: &Scratch, class: &str, attempts: u64) {
    let default = workspace().join("shared/kernel/src/policy/retry_policy_default.json");
    let mut policy: Value = serde_json::from_slice(&fs::read(default).unwrap()).unwrap();
    let rules = policy["rules"].as_array_mut().unwrap();
    for rule in rules.iter_mut() {
        let classes = rule["failureClasses"].as_array_mut().unwrap();
        classes.retain(|one| one != class);
    }
    let rule = json!({"ruleId": "test", "failureClasses": [class], "maxAttempts": attempts,
        "backoffClass": "none", "escalationAction": "mark_blocked"});
    rules.insert(0, rule);
    let digest = RetryPolicy::digest(policy.to_string().as_bytes()).unwrap();
    policy["policyDigest"] = digest.into();
    let file = scratch
        .root
        .join("policies/control/harness-retry-policy-v1.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, policy.to_string()).unwrap();
}

/// The turns of a model that does its work wrong, and mends it in its second
/// round; the other one never does.
fn scripts() -> Value {
    let write = |text: &str| json!({"shell": format!("echo {text} >> src/$PREMATH_ISSUE_ID.txt")});
    let wrong = json!({"answer": {"text": "I work.", "calls": [write("wrong")]}});
    let right = json!({"answer": {
        "text": "I mend it.",
        "calls": [write("right")],
        "shown": "it is not right yet",
    }});
    let done = json!({"answer": {"text": "Done."}});
    json!({
        "mends": [&wrong, &done, &right, &done],
        "stubborn": [&wrong, &done],
    })
}

/// Runs a real agent on an issue that it mends, and on one that it never does.
fn mends(agent: Agent) {
    let Some(installed) = Installed::find(agent) else {
        return skipped("repair by a real agent", &missing(agent));
    };
    for mode in modes("repair by a real agent") {
        mends_in(mode, agent, &installed);
    }
}

fn mends_in(mode: &str, agent: Agent, installed: &Installed) {
    let rows = ["mends", "stubborn"].map(|id| {
        let mut row = issue(id);
        row["title"] = json!(format!("Do what is asked, play:{id}:{id}"));
        row
    });
    let scratch = Scratch::with_issues(1, &rows);
    let folder = scratch.folder().join("scripts");
    fs::create_dir_all(&folder).unwrap();
    for (name, turns) in scripts().as_object().unwrap() {
        let script = json!({"about": name, "turns": turns});
        fs::write(folder.join(format!("{name}.json")), script.to_string()).unwrap();
    }
    let scripts = Scripts::of_folder(&folder).unwrap();
    let server = ModelServer::start(scripts, Journal::default(), None).unwrap();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let profile = Profile::set_up(installed, home.path(), &server.url());
    let verify = "grep right src/$PREMATH_ISSUE_ID.txt || { echo it is not right yet; exit 1; }";
    let run = batch_with(&scratch, installed, &profile, verify).args(["--sandbox", mode]);
    if mode != "landlock" {
        reaches_alone(&scratch, &server);
    }
    let ended = run.start().wait_within(PATIENCE * 3);
    for (id, status, class, rounds) in [
        ("mends", "closed", "passed", 1),
        ("stubborn", "blocked", "check_failed", 2),
    ] {
        let steps = scratch.steps_of(id);
        assert_eq!(steps.len(), 1, "{}", ended.stderr);
        let row = &steps[0];
        assert_eq!(
            scratch.issue(id)["status"],
            status,
            "{row}\n{}",
            ended.stderr
        );
        assert_eq!(row["verification"]["class"], class, "{row}");
        assert_eq!(row["agent"]["repairRounds"], rounds, "{row}");
        let sessions: Vec<Value> = ["work", "work-2"]
            .map(|phase| document(&scratch, row, phase)["agent"]["sessionId"].clone())
            .to_vec();
        assert_eq!(sessions[0], sessions[1]);
        // What the agent reports that it used is what the server counted.
        let turns = server.turns();
        let own = turns.iter().filter(|turn| turn.conversation == id);
        let spent: u64 = own
            .filter(|turn| agent != Agent::OpenCode || turn.played != PlayedAs::Aside)
            .filter_map(|turn| turn.spent)
            .map(|spent| spent.input)
            .sum();
        assert_eq!(row["agent"]["tokens"]["input"], spent, "{row}");
    }
    assert_eq!(scratch.leftovers(), [""; 0]);
}

#[test]
fn claude_mends_its_work() {
    mends(Agent::Claude);
}

#[test]
fn codex_mends_its_work() {
    mends(Agent::Codex);
}

#[test]
fn gemini_mends_its_work() {
    mends(Agent::Gemini);
}

#[test]
fn opencode_mends_its_work() {
    mends(Agent::OpenCode);
}

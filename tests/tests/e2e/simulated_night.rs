//! A night in a minute: many issues, eight lanes, two providers in turn, of the
//! issues three in ten misbehave, and twice a provider refuses for a while. The
//! report of each issue matches its script, and one of the providers has a price.

use crate::landing::every_close_is_on_the_target;
use crate::misbehaviour::expected::{End, Expected, expected};
use crate::misbehaviour::{VERIFY, command_line, may_write_limits, titled};
use premath_evidence::Agent;
use premath_tests::agents::CLAUDE_COST_NANO_USD;
use premath_tests::scripted::{Misbehaviour, ScriptedTask};
use premath_tests::{Dice, Ended, Length, NO_STARTUP, Scratch, binaries};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

const PROVIDERS: [Agent; 2] = [Agent::Claude, Agent::Codex];

const LANES: &str = "8";

/// Of a hundred issues so many misbehave.
const MISBEHAVING: u64 = 30;

/// How long a night may take until it is given up.
const PATIENCE: Duration = Duration::from_secs(900);

/// What an issue of the night may do, and whether only at first. Both agents
/// can report all of it, with the same outcome.
const MISDEEDS: [(Misbehaviour, bool); 20] = [
    (Misbehaviour::Crash(0), true),
    (Misbehaviour::Crash(0), false),
    (Misbehaviour::Crash(2), true),
    (Misbehaviour::Crash(4), false),
    (Misbehaviour::Kill(3), true),
    (Misbehaviour::HangStart, true),
    (Misbehaviour::HangTool, true),
    (Misbehaviour::HangThink, true),
    (Misbehaviour::HangAfter, false),
    (Misbehaviour::Orphan, false),
    (Misbehaviour::Missing, true),
    (Misbehaviour::Duplicate, false),
    (Misbehaviour::Truncated, true),
    (Misbehaviour::Garbage, false),
    (Misbehaviour::NoTerminal, true),
    (Misbehaviour::Failed, false),
    (Misbehaviour::Huge, true),
    (Misbehaviour::Sleepers, false),
    (Misbehaviour::WrongClaim, false),
    (Misbehaviour::WrongWork, false),
];

/// The outcome of an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IssueOutcome {
    status: &'static str,
    ending: &'static str,
    attempts: u64,
    /// The classes of each attempt, in their order.
    classes: Vec<Vec<String>>,
}

impl IssueOutcome {
    /// The outcome of a script: a fault at the first attempt or at all of them.
    fn of(misbehaviour: Misbehaviour, once: bool) -> Self {
        let [wanted, other] = PROVIDERS.map(|agent| expected(misbehaviour, agent));
        assert_eq!(
            wanted.classes, other.classes,
            "{misbehaviour} depends on the agent"
        );
        let Expected { end, attempts, .. } = wanted;
        let (end, attempts) = match once && end != End::Closed {
            true => (End::Closed, 2),
            false => (end, attempts),
        };
        let (status, ending) = match end {
            End::Closed => ("closed", "closed"),
            End::Blocked => ("blocked", "blocked"),
            End::FollowUp => ("open", "discovered"),
            End::Open => ("open", "stopped"),
        };
        let failed: Vec<String> = wanted.classes.iter().map(|c| (*c).to_owned()).collect();
        let mut classes = vec![failed; usize::try_from(attempts).unwrap()];
        if end == End::Closed
            && let Some(last) = classes.last_mut()
        {
            last.clear();
        }
        Self {
            status,
            ending,
            attempts,
            classes,
        }
    }
}

/// The night's issues, by id: what each does, and its outcome.
type Script = BTreeMap<String, (String, IssueOutcome)>;

fn script(dice: &mut Dice, issues: u64) -> Script {
    let windows = [issues / 3, issues * 2 / 3];
    (0..issues)
        .map(|number| {
            let (misbehaviour, once) = if windows.contains(&number) {
                (Misbehaviour::Limit(2), false)
            } else if dice.below(100) < MISBEHAVING {
                let count = u64::try_from(MISDEEDS.len()).unwrap();
                MISDEEDS[usize::try_from(dice.below(count)).unwrap()]
            } else {
                (Misbehaviour::None, false)
            };
            let outcome = match misbehaviour {
                // A refusal is not an attempt.
                Misbehaviour::Limit(_) => IssueOutcome::of(Misbehaviour::None, false),
                _ => IssueOutcome::of(misbehaviour, once),
            };
            let title = format!("{misbehaviour}{}", if once { " once" } else { "" });
            (format!("n-{number:03}"), (title, outcome))
        })
        .collect()
}

fn settings(scratch: &Scratch) -> String {
    let limits = format!("--limits \"{}/limits\"", scratch.folder().display());
    let [claude, codex] = PROVIDERS.map(|agent| command_line(agent, &limits));
    format!(
        r#"[agent]
use = ["claude", "codex"]
claude_cmd = '''{claude}'''
codex_cmd = '''{codex}'''
limit_pause = "2s"
[worktrees]
count = {LANES}
[supervision]
step_limit = "60s"
first_event_limit = "4s"
silence = "4s"
call_silence = "4s"
after_end = "1s"
grace = "300ms"
stream_cap_bytes = 1_000_000
[backoff]
fixed_short = "1ms"
exponential_short = "1ms"
[breaker]
pause = "500ms"
"#
    )
}

/// What the batch left of each issue, by its three accounts.
fn found(scratch: &Scratch, ended: &Ended) -> BTreeMap<String, IssueOutcome> {
    let events = ended.events();
    let printed = events.last().unwrap()["issues"].as_array().unwrap();
    let issues = scratch.issues();
    let steps = scratch.steps();
    let status = |id: &str| match issues[id]["status"].as_str() {
        Some("closed") => "closed",
        Some("blocked") => "blocked",
        Some("open") => "open",
        other => panic!("{id} is {other:?}"),
    };
    let of_issue = |one: &Value| {
        let id = one["issueId"].as_str().unwrap().to_owned();
        let rows = steps.iter().filter(|row| row["issueId"] == *id);
        let classes = rows
            .map(|row| words(&row["failureClasses"]))
            .filter(|classes| !classes.iter().any(|class| class == "usage_limit"))
            .collect();
        let ending = match one["ending"].as_str().unwrap() {
            "closed" => "closed",
            "blocked" => "blocked",
            "discovered" => "discovered",
            "stopped" => "stopped",
            other => panic!("{id} ended {other}"),
        };
        let outcome = IssueOutcome {
            status: status(&id),
            ending,
            attempts: one["attempts"].as_u64().unwrap(),
            classes,
        };
        (id, outcome)
    };
    printed.iter().map(of_issue).collect()
}

fn words(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn what_a_night_reports_for_each_issue_is_what_its_script_was() {
    let issues = Length::asked("a night of 300 issues").pick(40, 300);
    let mut dice = Dice::from_environment();
    let seed = dice.seed();
    let script = script(&mut dice, issues);
    let rows: Vec<Value> = script
        .iter()
        .map(|(id, (title, _))| titled(id, title, 2))
        .collect();
    let scratch = Scratch::with_issues(0, &rows);
    let settings = format!("{}{}", settings(&scratch), may_write_limits(&scratch));
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let ended = scratch
        .run(&binaries().coordinator)
        .args(["--json", "--override-reason", "test"])
        .args(["--verify-cmd", VERIFY])
        .args(NO_STARTUP)
        .start()
        .wait_within(PATIENCE);
    scratch.no_process_left();
    assert_eq!(ended.code, Some(1), "seed {seed}: {ended:?}");
    let found = found(&scratch, &ended);
    let mut wrong = Vec::new();
    for (id, (title, outcome)) in &script {
        if found.get(id) != Some(outcome) {
            wrong.push(format!(
                "{id} `{title}`: {outcome:?}\n  found {:?}",
                found.get(id)
            ));
        }
    }
    assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
    let follow_ups = |outcome: &IssueOutcome| outcome.ending == "discovered";
    let filed = scratch.issues().len() - script.len();
    let wanted = script.values().filter(|(_, one)| follow_ups(one)).count();
    assert_eq!(filed, wanted, "seed {seed}: follow-ups");
    let mut parked = scratch.trajectory();
    parked.retain(|row| row["action"] == "coordinator.provider_parked");
    assert!(parked.len() >= 2, "seed {seed}: {parked:#?}");
    assert_eq!(
        ended.events().last().unwrap()["lanesLost"],
        0,
        "seed {seed}"
    );
    every_close_is_on_the_target(&scratch);
    the_report_equals(&scratch, &script, &ended);
}

/// Compares every figure of the report with what the script of the night, the end of
/// the batch and git say.
fn the_report_equals(scratch: &Scratch, script: &Script, ended: &Ended) {
    let report = scratch.premath(["report", "--json"]).end().exits(0).json();
    let totals = &report["totals"];
    let (mut closed, mut attempts, mut retried, mut after_retry) = (0_u64, 0, 0, 0);
    let (mut by_outcome, mut by_class) = (Counts::new(), Counts::new());
    let mut clusters = BTreeMap::<String, u64>::new();
    for (_, outcome) in script.values() {
        attempts += outcome.attempts;
        retried += u64::from(outcome.attempts > 1);
        let is_closed = outcome.ending == "closed";
        closed += u64::from(is_closed);
        after_retry += u64::from(is_closed && outcome.attempts > 1);
        for class in outcome.classes.iter().filter_map(|classes| classes.first()) {
            *clusters.entry(class.clone()).or_default() += 1;
        }
        if !is_closed {
            let word = match outcome.ending {
                "discovered" => "follow-up filed",
                other => other,
            };
            *by_outcome.entry(word.to_owned()).or_default() += 1;
            let class = outcome.classes.last().unwrap()[0].clone();
            *by_class.entry(class).or_default() += 1;
        }
    }
    let issues = u64::try_from(script.len()).unwrap();
    let expected = json!({
        "issues": issues, "closed": closed, "failed": issues - closed, "attempts": attempts,
        "retried": retried, "failedByOutcome": by_outcome, "failedByClass": by_class,
        "landed": closed, "unchanged": 0, "repaired": 0, "repairRounds": 0, "flaky": 0,
        "denials": 0,
    });
    for (name, count) in expected.as_object().unwrap() {
        assert_eq!(totals[name], *count, "{name}");
    }
    // What the batch itself counted, while it ran.
    let summary = ended.events().last().unwrap().clone();
    assert_eq!(totals["closes"], summary["closes"]);
    assert_eq!(totals["closes"]["afterRetry"], after_retry);
    let mut found = BTreeMap::<String, u64>::new();
    for cluster in report["clusters"].as_array().unwrap() {
        let class = cluster["failureClass"].as_str().unwrap().to_owned();
        *found.entry(class).or_default() += cluster["attempts"].as_u64().unwrap();
    }
    assert_eq!(found, clusters, "failed attempts by class");
    usage_equals(scratch, &report, &summary);
    cost_equals(scratch, &report, &summary, script);
    salvage_equals(scratch, &report, script);
    every_figure_has_its_proof(scratch, &report);
    for form in ["", "--json", "--markdown", "--html"] {
        let words = ["report", form].into_iter().filter(|word| !word.is_empty());
        let made = || scratch.premath(words.clone()).end().exits(0).stdout;
        assert_eq!(made(), made(), "{form}: the same files give the same bytes");
    }
}

/// Counts by name.
type Counts = BTreeMap<String, u64>;

/// Returns what an attempt of the scripted Claude Code costs; `None` where it ends
/// before it reports that.
fn cost_of(misbehaviour: Misbehaviour) -> Option<u64> {
    match misbehaviour {
        Misbehaviour::Crash(_)
        | Misbehaviour::Kill(_)
        | Misbehaviour::HangStart
        | Misbehaviour::HangTool
        | Misbehaviour::HangThink
        | Misbehaviour::Truncated
        | Misbehaviour::NoTerminal
        | Misbehaviour::Failed
        | Misbehaviour::Huge
        | Misbehaviour::Limit(_) => None,
        _ => Some(CLAUDE_COST_NANO_USD),
    }
}

/// The cost of the night, by its script: each attempt that Claude Code ended well has its
/// price, and Codex reports none.
fn cost_equals(scratch: &Scratch, report: &Value, summary: &Value, script: &Script) {
    let (mut cost, mut unknown) = (BTreeMap::from([("claude", 0), ("codex", 0)]), 0_u64);
    let mut begun = Counts::new();
    for row in scratch.steps() {
        let id = row["issueId"].as_str().unwrap();
        let (title, _) = script
            .get(id)
            .map_or(("ok", ()), |(title, _)| (&**title, ()));
        let wish = ScriptedTask::of_title(title);
        let is_refused = words(&row["failureClasses"]).contains(&"usage_limit".to_owned());
        let misbehaviour = match is_refused {
            true => Misbehaviour::Limit(2),
            false => {
                let attempt = begun.entry(id.to_owned()).or_default();
                *attempt += 1;
                match wish.at(*attempt) {
                    // It works once its provider takes it.
                    Misbehaviour::Limit(_) => Misbehaviour::None,
                    other => other,
                }
            }
        };
        let agent = row["agent"]["adapter"].as_str().unwrap();
        let expected = cost_of(misbehaviour).filter(|_| agent == "claude");
        assert_eq!(
            row["agent"]["costNanoUsd"].as_u64(),
            expected,
            "{title}: {row}"
        );
        *cost.get_mut(agent).unwrap() += expected.unwrap_or(0);
        unknown += u64::from(expected.is_none());
    }
    assert!(cost["claude"] > 0 && unknown > 0);
    let usage = &report["totals"]["usage"];
    assert_eq!(usage["costNanoUsd"], cost["claude"]);
    assert_eq!(usage["costUnknown"], unknown);
    for provider in summary["providers"].as_array().unwrap() {
        let name = provider["provider"].as_str().unwrap();
        let known = Some(cost[name]).filter(|cost| *cost > 0);
        assert_eq!(provider["costNanoUsd"].as_u64(), known, "{name}");
    }
}

/// Tokens, by agent and in all.
fn usage_equals(scratch: &Scratch, report: &Value, summary: &Value) {
    let (mut tokens, mut unknown) = (0, 0);
    for row in scratch.steps() {
        let used = &row["agent"]["tokens"];
        let total = || used["input"].as_u64().unwrap() + used["output"].as_u64().unwrap();
        match used.is_null() {
            true => unknown += 1,
            false => tokens += total(),
        }
    }
    let usage = &report["totals"]["usage"];
    let sum = &usage["tokens"];
    let sum = sum["input"].as_u64().unwrap() + sum["output"].as_u64().unwrap();
    assert_eq!(
        (sum, usage["tokensUnknown"].as_u64().unwrap()),
        (tokens, unknown)
    );
    for provider in summary["providers"].as_array().unwrap() {
        let agents = report["agents"].as_array().unwrap().iter();
        let mut of_provider = Counts::new();
        for agent in agents.filter(|agent| agent["agent"] == provider["provider"]) {
            *of_provider.entry("steps".to_owned()).or_default() += agent["steps"].as_u64().unwrap();
            for kind in ["input", "cached", "output"] {
                let count = agent["usage"]["tokens"][kind].as_u64().unwrap_or(0);
                *of_provider.entry(kind.to_owned()).or_default() += count;
            }
        }
        assert_eq!(provider["steps"].as_u64().unwrap(), of_provider["steps"]);
        for kind in ["input", "cached", "output"] {
            assert_eq!(
                provider["tokens"][kind].as_u64().unwrap(),
                of_provider[kind],
                "{kind}"
            );
        }
    }
}

/// What was salvaged: the branches of git, and those issues whose scripts leave work that
/// fails.
fn salvage_equals(scratch: &Scratch, report: &Value, script: &Script) {
    let kept = report["salvage"].as_array().unwrap();
    let mut named: Vec<&str> = kept
        .iter()
        .flat_map(|kept| kept["keptAt"].as_str().unwrap().split(", "))
        .collect();
    named.sort_unstable();
    let branches = scratch.branches();
    let mut branches: Vec<&str> = branches
        .iter()
        .map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch))
        .filter(|branch| branch.starts_with("harness/salvage/"))
        .collect();
    branches.sort_unstable();
    assert_eq!(named, branches);
    for (id, (title, _)) in script {
        if title == "wrong-work" {
            // A provider may have refused the first generations.
            let of_issue = format!("harness/salvage/{id}/");
            let is_kept = named.iter().any(|branch| branch.starts_with(&of_issue));
            assert!(is_kept, "{id}: {named:?}");
        }
    }
}

/// The rows that are named are those of the issue, and the witnesses and outputs are there.
fn every_figure_has_its_proof(scratch: &Scratch, report: &Value) {
    let log = fs::read_to_string(scratch.trajectory_path()).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let row = |number: &Value| &lines[usize::try_from(number.as_u64().unwrap()).unwrap() - 1];
    let listed = |name: &str| report[name].as_array().unwrap().clone();
    let mut witnesses = 0;
    for issue in listed("failed").iter().chain(&listed("closed")) {
        for step in issue["steps"].as_array().unwrap() {
            assert_eq!(row(&step["row"])["stepId"], step["stepId"]);
            for file in step["witnesses"].as_array().unwrap() {
                assert!(
                    scratch.root.join(file.as_str().unwrap()).is_file(),
                    "{file}"
                );
                witnesses += 1;
            }
        }
    }
    assert!(witnesses > 0);
    for item in listed("review") {
        assert_eq!(row(&item["row"])["stepId"], item["stepId"]);
        let revision = item["revision"].as_str().unwrap();
        let git = ["cat-file", "-e", revision];
        scratch.git_command(git).end().exits(0);
    }
    for cluster in listed("clusters") {
        for number in cluster["rows"].as_array().unwrap() {
            assert_eq!(row(number)["failureClasses"][0], cluster["failureClass"]);
        }
    }
}

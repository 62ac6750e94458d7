//! Every fault of the scripted agent, in every format: the class, what happens
//! to the issue, that it takes a bounded time and leaves nothing behind, and
//! that the batch continues.

pub(super) mod expected;

use expected::{
    AFTER_END, CALL_SILENCE, End, Expected, FIRST_EVENT, GRACE, SILENCE, STEP, expected,
};
use premath_evidence::Agent;
use premath_tests::scripted::Misbehaviour;
use premath_tests::{Length, NO_STARTUP, Scratch, binaries, issue};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::time::Duration;

/// What the harness itself may take, beside a limit and the grace.
const SLACK: Duration = Duration::from_secs(2);

/// A limit that ends nothing here. In quick form, on a machine that is busy
/// with other tests, it is distinguished from the limit that does.
const FAR: Duration = Duration::from_secs(120);

const LANES: usize = 6;

/// How many issues are worked on well, after the others.
const GOOD: usize = 12;

pub(super) const VERIFY: &str =
    r#"[ "$(cat "$PREMATH_ISSUE_ID.txt")" = "$PREMATH_ISSUE_ID" ] || exit 1"#;

/// The command line of the scripted agent, with flags of its own.
pub(super) fn command_line(agent: Agent, flags: &str) -> String {
    let program = env!("CARGO_BIN_EXE_premath-scripted-agent");
    format!(
        r#"exec "{program}" {} {flags} < "$PREMATH_PROMPT_FILE""#,
        agent.as_str()
    )
}

/// The settings by which agents may write down which provider refuses.
pub(super) fn may_write_limits(scratch: &Scratch) -> String {
    let folder = scratch.folder().join("limits");
    fs::create_dir_all(&folder).unwrap();
    format!("[sandbox]\nwrite = [\"{}\"]\n", folder.display())
}

/// A batch with the limits of the table, or with a step's limit alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Silences,
    Clock,
}

impl Form {
    fn of(misbehaviour: Misbehaviour) -> Self {
        match misbehaviour {
            Misbehaviour::Endless => Self::Clock,
            _ => Self::Silences,
        }
    }

    fn settings(self, agent: Agent, command: &str) -> String {
        let limits = match self {
            Self::Silences => [FAR, FIRST_EVENT, SILENCE, CALL_SILENCE, AFTER_END],
            Self::Clock => [STEP, FAR, FAR, FAR, FAR],
        };
        let [step, first, silence, call, after] = limits.map(|limit| limit.as_millis());
        format!(
            "[agent]\nuse = [\"{agent}\"]\n{agent}_cmd = '''{command}'''\nlimit_pause = \"2s\"\n\
             [supervision]\nstep_limit = \"{step}ms\"\nfirst_event_limit = \"{first}ms\"\n\
             silence = \"{silence}ms\"\ncall_silence = \"{call}ms\"\nafter_end = \"{after}ms\"\n\
             grace = \"{}ms\"\nstream_cap_bytes = 1_000_000\n\
             [backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n\
             [breaker]\nfailures = 0\n[budget]\nissue_tokens = 50_000_000\n",
            GRACE.as_millis(),
            agent = agent.as_str(),
        )
    }
}

/// The issue that a fault belongs to.
fn id_of(misbehaviour: Misbehaviour) -> String {
    format!("m-{misbehaviour}")
}

pub(super) fn titled(id: &str, title: &str, priority: u32) -> Value {
    let mut row = issue(id);
    row["title"] = title.into();
    row["priority"] = priority.into();
    row
}

/// The faults' issues, then good ones, and the last when the slow ones are
/// closed.
fn issues(misbehaviours: &[Misbehaviour], agent: Agent) -> Vec<Value> {
    let mut last = titled("z-last", "ok", 3);
    let mut edges = Vec::new();
    let mut rows = Vec::new();
    for misbehaviour in misbehaviours {
        let wanted = expected(*misbehaviour, agent);
        let once = wanted.limit.is_some() && wanted.attempts == 2;
        let title = format!("{misbehaviour}{}", if once { " once" } else { "" });
        let id = id_of(*misbehaviour);
        if wanted.end == End::Closed {
            edges.push(json!({"issue_id": "z-last", "depends_on_id": id, "type": "blocks"}));
        }
        rows.push(titled(&id, &title, 1));
    }
    last["dependencies"] = edges.into();
    rows.push(last);
    rows.extend((0..GOOD).map(|n| titled(&format!("y-{n:02}"), "ok", 3)));
    let mut victim = titled("victim", "nobody's", 4);
    victim["status"] = "deferred".into();
    rows.push(victim);
    rows
}

/// One line of the table, and what is wrong with it.
struct TableRow {
    text: String,
    faults: Vec<String>,
}

struct Batch {
    scratch: Scratch,
    events: Vec<Value>,
    agent: Agent,
    form: Form,
    strict: bool,
}

impl Batch {
    fn run(agent: Agent, form: Form, misbehaviours: &[Misbehaviour], strict: bool) -> Self {
        // The last lane belongs to another process.
        let scratch = Scratch::with_issues(LANES + 1, &issues(misbehaviours, agent));
        let outside = [&scratch.root, &scratch.lanes[LANES]]
            .map(|folder| format!("--outside \"{}/escaped.txt\"", folder.display()));
        let flags = format!(
            "{} --victim victim --limits \"{}/limits/$PREMATH_ISSUE_ID\"",
            outside.join(" "),
            scratch.folder().display()
        );
        let settings = form.settings(agent, &command_line(agent, &flags));
        let settings = format!("{settings}{}", may_write_limits(&scratch));
        fs::write(scratch.root.join("harness.toml"), settings).unwrap();
        let mut run = scratch.run(&binaries().coordinator).args([
            "--json",
            "--override-reason",
            "test",
            "--landing",
            "none",
            "--verify-cmd",
            VERIFY,
        ]);
        run = run.args(NO_STARTUP);
        for lane in &scratch.lanes[..LANES] {
            run = run.arg("--worktree").arg(lane);
        }
        let ended = run.end();
        scratch.no_process_left();
        let events = ended.events();
        assert!(
            matches!(ended.code, Some(0 | 1)),
            "{}: {ended:?}",
            agent.as_str()
        );
        Self {
            scratch,
            events,
            agent,
            form,
            strict,
        }
    }

    fn ended<'a>(&'a self, id: &str) -> Vec<&'a Value> {
        let steps = self.events.iter();
        steps
            .filter(|event| event["event"] == "step.ended" && event["issueId"] == id)
            .collect()
    }

    fn last_of(&self, id: &str) -> &Value {
        let summary = self.events.last().unwrap();
        let mut issues = summary["issues"].as_array().unwrap().iter();
        issues.find(|one| one["issueId"] == id).unwrap()
    }

    fn witness(&self, step: &Value) -> Value {
        let step_id = step["stepId"].as_str().unwrap();
        let path = format!("artifacts/ciwitness/{step_id}.work.json");
        serde_json::from_slice(&fs::read(self.scratch.root.join(path)).unwrap()).unwrap()
    }

    /// Returns whether a step that began after this one ended closed its issue.
    fn continued(&self, step: &Value) -> bool {
        let rows = self.scratch.steps();
        let row = rows.iter().find(|row| row["stepId"] == step["stepId"]);
        let ended = row.unwrap()["finishedAt"].as_str().unwrap();
        rows.iter().any(|row| {
            row["resultClass"] == "completed" && row["startedAt"].as_str().unwrap() > ended
        })
    }

    fn found_end(&self, id: &str) -> Option<End> {
        let filed = self.last_of(id)["ending"] == "discovered";
        match self.scratch.issue(id)["status"].as_str()? {
            "closed" => Some(End::Closed),
            "blocked" => Some(End::Blocked),
            "open" if filed => Some(End::FollowUp),
            "open" => Some(End::Open),
            _ => None,
        }
    }

    /// Compares the report of a first step with what is expected.
    fn faults_of_report(&self, first: &Value, id: &str, wanted: &Expected) -> Vec<String> {
        let mut faults = Vec::new();
        let classes: Vec<&str> = words(&first["failureClasses"]);
        if classes != wanted.classes {
            faults.push(format!("classes {:?} expected", wanted.classes));
        }
        let row = self.scratch.steps_of(id).remove(0);
        if words(&row["failureClasses"]) != classes {
            faults.push("the row says other classes".to_owned());
        }
        if let Some(said) = wanted.said
            && first["said"] != said
        {
            faults.push(format!("{} was reported, expected: {said}", first["said"]));
        }
        faults
    }

    fn line(&self, misbehaviour: Misbehaviour) -> TableRow {
        let wanted = expected(misbehaviour, self.agent);
        let id = id_of(misbehaviour);
        let mut faults = Vec::new();
        let steps = self.ended(&id);
        let first = steps[0];
        let witness = self.witness(first);
        let classes: Vec<&str> = words(&first["failureClasses"]);
        faults.extend(self.faults_of_report(first, &id, &wanted));
        let end = self.found_end(&id);
        if end != Some(wanted.end) {
            faults.push(format!("{:?} expected", wanted.end));
        }
        let attempts = &self.last_of(&id)["attempts"];
        if *attempts != wanted.attempts {
            faults.push(format!("{} attempts expected", wanted.attempts));
        }
        if witness["survivingProcesses"] != 0 {
            faults.push("processes survived".to_owned());
        }
        let leaked = witness["leakedProcesses"].as_u64().unwrap();
        if misbehaviour == Misbehaviour::Sleepers && leaked < 60 {
            faults.push("60 sleepers expected".to_owned());
        }
        let took = Duration::from_millis(first["durationMs"].as_u64().unwrap());
        let most = wanted.limit.map(|limit| limit + GRACE + SLACK);
        let bound = match most {
            Some(most) if self.strict => most,
            // Far below any other limit.
            _ => FAR / 4,
        };
        if took > bound || wanted.limit.is_some_and(|limit| took < limit) {
            faults.push(format!("took {took:?}"));
        }
        let continued = self.continued(first);
        if !continued {
            faults.push("nothing closed after it".to_owned());
        }
        let text = format!(
            "{:9} {:12} {:38} {:9} {:>2} {:>5} {:>4} {:>7} {:>7}  {}",
            self.agent.as_str(),
            misbehaviour.to_string(),
            if classes.is_empty() {
                "-".to_owned()
            } else {
                classes.join(" ")
            },
            end.map_or("?".to_owned(), |end| format!("{end:?}")),
            attempts,
            leaked,
            witness["survivingProcesses"],
            seconds(took),
            most.map_or("-".to_owned(), seconds),
            if continued { "yes" } else { "no" },
        );
        TableRow { text, faults }
    }

    /// What holds for the batch as a whole.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let lost = &self.events.last().unwrap()["lanesLost"];
        if *lost != 0 {
            faults.push(format!("{lost} lanes were lost"));
        }
        // Where work is not confined it can be done, and the batch reports
        // that.
        let mode = self.events[0]["sandbox"].as_str();
        let confined = mode.is_some_and(|mode| mode != "none");
        if self.form == Form::Silences {
            for folder in [&self.scratch.root, &self.scratch.lanes[LANES]] {
                if folder.join("escaped.txt").exists() == confined {
                    faults.push(format!("{} by an agent that escaped", folder.display()));
                }
            }
            let by_hand = self.scratch.issue("victim")["status"] == "closed";
            let printed = self
                .events
                .iter()
                .any(|event| event["event"] == "memory.changed");
            if by_hand == confined || mode == Some("none") && !printed {
                faults.push(format!("the victim: by hand {by_hand}, printed {printed}"));
            }
        }
        for (id, row) in self.scratch.issues() {
            let good = row["title"] == "ok";
            if good && row["status"] != "closed" {
                faults.push(format!("{id} is {}", row["status"]));
            }
            if row.get("lease").is_some() {
                faults.push(format!("{id} is still leased"));
            }
        }
        faults
    }
}

fn words(list: &Value) -> Vec<&str> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is for a person")]
fn every_misbehaviour_ends_as_the_table_says() {
    let strict = Length::asked("limits of the table to the second").pick(false, true);
    let parts = std::thread::scope(|threads| {
        let batches: Vec<_> = Agent::ALL
            .iter()
            .map(|agent| threads.spawn(move || part(*agent, strict)))
            .collect();
        let parts = batches.into_iter().map(|batch| batch.join().unwrap());
        parts.collect::<Vec<_>>()
    });
    let mut table = format!(
        "{:9} {:12} {:38} {:9} {:>2} {:>5} {:>4} {:>7} {:>7}  {}\n",
        "agent", "does", "classes", "ends", "n", "swept", "left", "took", "within", "continues"
    );
    let mut faults = String::new();
    for (text, wrong) in parts {
        table.push_str(&text);
        faults.push_str(&wrong);
    }
    println!("{table}");
    assert!(faults.is_empty(), "\n{faults}");
}

/// Runs the batches of an agent; returns its part of the table, and what is wrong.
fn part(agent: Agent, strict: bool) -> (String, String) {
    let (mut table, mut wrong) = (String::new(), String::new());
    let said = |one: &&Misbehaviour| one.not_said_by(agent).is_none();
    for form in [Form::Silences, Form::Clock] {
        let all = Misbehaviour::TABLE.iter().filter(said).copied();
        let misbehaviours: Vec<Misbehaviour> = all.filter(|one| Form::of(*one) == form).collect();
        let batch = Batch::run(agent, form, &misbehaviours, strict);
        for misbehaviour in misbehaviours {
            let line = batch.line(misbehaviour);
            let _ = writeln!(table, "{}", line.text);
            for fault in line.faults {
                let _ = writeln!(
                    wrong,
                    "{} {fault}: {fault}\n  {}",
                    agent.as_str(),
                    line.text
                );
            }
        }
        for fault in batch.faults() {
            let _ = writeln!(wrong, "{}: {fault}", agent.as_str());
        }
    }
    for misbehaviour in Misbehaviour::TABLE {
        if let Some(why) = misbehaviour.not_said_by(agent) {
            let _ = writeln!(
                table,
                "{:9} {misbehaviour:12} cannot be reported: {why}",
                agent.as_str()
            );
        }
    }
    (table, wrong)
}

//! `kill -9` of a batch whose work is red, conflicts and is flaky, again and
//! again: what lands is green at every commit, and each failure is charged to
//! its own issue.

mod plan;

use crate::landing::{
    TARGET, every_close_is_on_the_target, first_parents, in_order, refs_are_accounted_for,
};
use crate::landing_settings::Remote;
use plan::{Kind, Planned, below, plan};
use premath_kernel::record::boundary::Boundary;
use premath_tests::{Dice, Length, PATIENCE, Run, Scratch, issue, until};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the last run may take.
const END: Duration = Duration::from_secs(900);

/// A kill follows the step that reached its goal by less than this.
const KILL_WITHIN: Duration = Duration::from_millis(900);

/// What a step passes from its turn in the queue until its issue is closed.
const WHERE_WORK_LANDS: [Boundary; 6] = [
    Boundary::LandingCommitted,
    Boundary::LandingMarked,
    Boundary::TargetAdvanced,
    Boundary::IssueClosed,
    Boundary::RowWritten,
    Boundary::LandingUnmarked,
];

/// How often the policy lets an issue's step be cut by a death of the harness
/// before the batch leaves the issue open.
const TAKE_OVERS: usize = 5;

/// The members of a group wait for each other, so that they begin at one tip. A
/// wait ends by itself where a lane is not free for the other.
const WORK: &str = r#"id=$PREMATH_ISSUE_ID group=${PREMATH_ISSUE_ID##*-}
together() {
  touch "$HOME/at-$group-$id" && n=0
  until [ "$(ls -d "$HOME/at-$group-"* | wc -l)" -ge "$1" ] || [ $n -ge 100 ]; do
    n=$((n + 1)) && sleep 0.02
  done
}
mkdir -p work shared slots
case $id in
*-pair-*) together 2 && echo "$id" >> "shared/$group" ;;
*-trio-*) together 3 && echo "$id" >> "shared/$group" ;;
*-clash-*)
  together 2 && slot=$group
  ! grep -qrx "$group" slots || slot="$group of $id"
  echo "$slot" > "slots/$id" ;;
esac
case $id in
*-red-*) echo red >> "work/$id" ;;
*) echo good >> "work/$id" ;;
esac"#;

/// What is green: each issue's work is there once and good, each line of a
/// shared file is there once, and no slot is taken twice.
const JUDGE: &str = r#"[ ! -d work ] || {
  ! grep -vx good work/* && [ "$(cat work/* | wc -l)" -eq "$(ls work | wc -l)" ] || exit 1
}
for folder in shared slots; do
  [ ! -d $folder ] || [ -z "$(cat $folder/* | sort | uniq -d)" ] || exit 1
done"#;

/// A verification is counted, and takes a while before it judges. That of red
/// work takes longest, so that work behind it fails before it.
const BEFORE: &str = r#"id=$PREMATH_ISSUE_ID
[ -z "$id" ] || {
  echo "$id" >> "$HOME/verifications"
  number=${id#q-} && number=1${number%%-*}
  case $id in
  *-red-*) sleep 0.6 ;;
  *) sleep 0.$((number * 7919 % 40 + 10)) ;;
  esac
}"#;

/// Flaky work fails once.
const FLAKY: &str = r#"fails_once() {
  [ -e "$HOME/failed-$id" ] || { touch "$HOME/failed-$id"; echo "$1" >&2; exit 1; }
}
case $id in
*-flaky-*) fails_once "not this time" ;;
*-named-*) fails_once "flaky_execution: not this time" ;;
esac"#;

/// The issues fail by design: dispatch does not pause for long.
const SETTINGS: &str = r#"[backoff]
exponential_short = "1ms"
[breaker]
pause = "100ms"
"#;

/// Work that waits for one of few verifications is verified with other work.
const BATCHES: &str = r#"[landing]
batch = 4
[verify]
slots = 1
"#;

/// Work waits in spare worktrees. What landed is judged again, and then pushed.
const CHECKS_AND_PUSHES: &str = r#"[landing]
push = "origin"
check_cmd = """
sleep 0.1
JUDGE"""
[verify]
slots = 2
"#;

/// How a campaign's batches run.
struct Variant {
    settings: String,
    /// Whether the harness makes the lanes.
    makes_lanes: bool,
    /// Whether there is a remote that the target is pushed to.
    pushes: bool,
}

impl Variant {
    fn of_settings(settings: &str) -> Self {
        Self {
            settings: settings.to_owned(),
            makes_lanes: false,
            pushes: false,
        }
    }
}

struct Campaign {
    scratch: Scratch,
    planned: Vec<Planned>,
    dice: Dice,
    /// How many lanes the harness makes; none where they are there.
    made_lanes: Option<usize>,
    pushes: bool,
    /// What was over at the last kill.
    over: BTreeMap<String, String>,
}

impl Campaign {
    fn new(total: u64, lanes: usize, variant: &Variant) -> Self {
        let planned = plan(total);
        let rows: Vec<Value> = planned.iter().map(|one| issue(&one.id)).collect();
        let made_lanes = variant.makes_lanes.then_some(lanes);
        let given = if variant.makes_lanes { 0 } else { lanes };
        let scratch = Scratch::with_issues(given, &rows);
        if variant.pushes {
            Remote::of(&scratch);
        }
        let settings = format!("{SETTINGS}{}", variant.settings);
        fs::write(scratch.root.join("harness.toml"), settings).unwrap();
        let dice = Dice::from_environment();
        print_line(&format!(
            "queue campaign: PREMATH_TESTS_SEED={}",
            dice.seed()
        ));
        Self {
            scratch,
            planned,
            dice,
            made_lanes,
            pushes: variant.pushes,
            over: BTreeMap::new(),
        }
    }

    /// The same command each time; its leases would outlive any test.
    fn batch(&self) -> Run {
        let verify = format!("{BEFORE}\n{JUDGE}\n{FLAKY}");
        let run = self.scratch.landing_batch(WORK, &verify);
        let run = run.args(["--lease-ttl-seconds", "3600"]);
        match self.made_lanes {
            Some(count) => run.args(["--lanes", &count.to_string()]),
            None => run,
        }
    }

    /// The issues that are over, with what they ended by.
    fn over(&self) -> BTreeMap<String, String> {
        let of = |(id, row): (String, Value)| match row["status"].as_str() {
            Some("closed") => Some((id, row["closed_by_step"].to_string())),
            Some("blocked") => Some((id, "blocked".to_owned())),
            _ => None,
        };
        self.scratch.issues().into_iter().filter_map(of).collect()
    }

    /// Kills the coordinator in its `part` of `parts`: in every third part where
    /// work lands, in the others at a random moment.
    fn kill(&mut self, part: usize, parts: usize) {
        match part % 3 {
            1 => self.kill_where_work_lands(),
            _ => self.kill_at_a_moment(part, parts),
        }
        // The next run begins at once, or after what this one started is gone.
        if self.dice.below(2) == 0 {
            self.scratch.no_process_within(Duration::from_secs(10));
        }
    }

    fn kill_where_work_lands(&mut self) {
        let boundary = WHERE_WORK_LANDS[below(&mut self.dice, WHERE_WORK_LANDS.len())];
        let at = format!("{boundary}:{}", 1 + self.dice.below(3));
        let ended = self.batch().env("PREMATH_KILL_AT", &at).end();
        assert_eq!(ended.signal, Some(9), "{at} is not reached: {ended:?}");
        self.look(self.over());
    }

    fn kill_at_a_moment(&mut self, part: usize, parts: usize) {
        let mut batch = self.batch().start();
        let total = self.planned.len();
        let width = (total / (parts + 1)).max(1);
        let goal = total * part / (parts + 1) + below(&mut self.dice, width);
        until(PATIENCE, || {
            (self.over().len() >= goal || batch.is_over()).then_some(())
        })
        .expect("the batch makes progress");
        // The moment within a step: chance, not a wait for anything.
        let within = KILL_WITHIN.as_micros();
        let moment = self.dice.below(u64::try_from(within).unwrap());
        std::thread::sleep(Duration::from_micros(moment));
        assert!(!batch.is_over(), "the batch was over: {}", batch.stderr());
        batch.signal(Signal::KILL);
        let now = self.over();
        assert_eq!(batch.wait().signal, Some(9));
        self.look(now);
    }

    /// Looks at what is over now: what was over before is as it was.
    fn look(&mut self, now: BTreeMap<String, String>) {
        for (id, by) in &self.over {
            assert_eq!(now.get(id), Some(by), "{id} ended twice");
        }
        self.over = now;
    }

    /// Runs the batch until no issue is left that a run may take up; returns how
    /// many runs there were, and the warnings of the last one. An issue whose steps were cut as often as the policy
    /// lets them is left to the next batch.
    fn run_to_the_end(&self) -> (usize, String) {
        for runs in 1.. {
            let ended = self.batch().start().wait_within(END);
            self.scratch.no_process_left();
            assert!(
                matches!(ended.code, Some(0 | 1)) && runs <= 3,
                "run {runs}: {ended:?}"
            );
            let over = self.over();
            let open = self
                .planned
                .iter()
                .filter(|one| !over.contains_key(&one.id));
            let open: Vec<&str> = open.map(|one| one.id.as_str()).collect();
            if open.is_empty() {
                return (runs, ended.stderr);
            }
            for id in open {
                let cuts = self.cuts(id);
                assert!(cuts >= TAKE_OVERS, "{id} is open: {:#?}", self.rows_of(id));
            }
        }
        unreachable!("a run is the last one, or fails")
    }

    fn rows_of(&self, id: &str) -> Vec<Value> {
        let mut rows = self.scratch.trajectory();
        rows.retain(|row| row["issueId"] == id);
        rows
    }

    /// Counts the steps of an issue that a kill cut.
    fn cuts(&self, id: &str) -> usize {
        let rows = self.rows_of(id);
        let cut = rows
            .iter()
            .filter(|row| row["action"] == "coordinator.take_over");
        cut.count()
    }

    /// Every commit that landed is judged again, in a clone.
    fn every_commit_is_green(&self) {
        let scratch = &self.scratch;
        let clone = scratch.folder().join("clone");
        let (root, path) = (scratch.root.to_str().unwrap(), clone.to_str().unwrap());
        let git = |arguments: &[&str]| {
            let git = scratch.git_command(arguments.iter().copied());
            git.end().exits(0);
        };
        git(&["clone", "-q", "-b", TARGET, "--single-branch", root, path]);
        for commit in first_parents(scratch) {
            let commit = commit.to_string();
            git(&["-C", path, "checkout", "-q", "--detach", &commit]);
            let judged = scratch.run(Path::new("sh")).args(["-c", JUDGE]);
            let judged = judged.within(&clone).end();
            assert_eq!(judged.code, Some(0), "{commit} is red: {judged:?}");
        }
    }

    /// Each commit of the target is the landing of another issue that is closed,
    /// and each of those landed. Returns how many were adopted: a kill cut the
    /// step that landed, and another one closed the issue; and how many rest on
    /// the verification of a later one.
    fn every_issue_landed_once(&self) -> (usize, usize) {
        let git = self.scratch.git();
        let issues = self.scratch.issues();
        let (mut landed, mut adopted, mut shared) = (BTreeSet::new(), 0, 0);
        let mut within = String::new();
        for id in first_parents(&self.scratch) {
            let commit = git.find_commit(id).unwrap();
            let message = commit.message().unwrap();
            let trailers = git2::message_trailers_strs(message).unwrap();
            let is_shared = trailers.iter().any(|(name, _)| name == "Verified-In");
            let trailer = |key: &str| {
                let mut found = trailers.iter().filter(|(name, _)| *name == key);
                let value = found.next().map(|(_, value)| value.to_owned());
                assert!(found.next().is_none(), "{key} twice: {message}");
                value.unwrap_or_else(|| panic!("no {key}: {message}"))
            };
            let issue = trailer("Issue");
            assert_eq!(issues[&issue]["status"], "closed", "{message}");
            let closed_by = &issues[&issue]["closed_by_step"];
            adopted += usize::from(*closed_by != *trailer("Step"));
            let steps = self.scratch.steps_of(&issue);
            let by = steps.iter().find(|step| step["stepId"] == *closed_by);
            assert_eq!(by.unwrap()["landing"]["commit"], *id.to_string());
            // The newest first: the one that was verified comes before those below.
            if is_shared {
                assert_eq!(trailer("Verified-In"), within);
                shared += 1;
            } else {
                within = commit.tree_id().to_string();
                assert_eq!(trailer("Verified-Tree"), within);
            }
            for key in ["Lease", "Witness", "Trajectory", "Base"] {
                trailer(key);
            }
            assert!(landed.insert(issue), "landed twice: {message}");
        }
        let closed = issues.iter().filter(|(_, row)| row["status"] == "closed");
        let closed: BTreeSet<String> = closed.map(|(id, _)| id.clone()).collect();
        assert_eq!(landed, closed);
        (adopted, shared)
    }

    /// What was pushed stays on the target, and in the end all of it is pushed.
    /// Returns how many pushes there were.
    fn all_is_pushed(&self, warnings: &str) -> usize {
        let landed = first_parents(&self.scratch).into_iter();
        let landed: Vec<String> = landed.map(|commit| commit.to_string()).collect();
        let tips = Remote::at(&self.scratch).tips();
        assert_eq!(tips[0], landed[0], "{warnings}");
        for tip in &tips {
            assert!(landed.contains(tip), "{tip} was pushed and taken back");
        }
        tips.len()
    }

    /// No issue failed by anything but its own work, and no kill used up an
    /// attempt.
    fn every_failure_is_its_own(&self) {
        let issues = self.scratch.issues();
        for Planned { id, kind, .. } in &self.planned {
            let rows = self.scratch.steps_of(id);
            let charged = charged(&rows);
            let status = issues[id]["status"].as_str().unwrap();
            assert!(
                kind.may_end(status, &charged),
                "{id} is {status} after {charged:?}: {rows:#?}"
            );
            assert!(issues[id]["lease"].is_null(), "{id} is leased");
            let completed = rows.iter().filter(|row| row["resultClass"] == "completed");
            assert_eq!(completed.count(), usize::from(status == "closed"), "{id}");
        }
        for one in self.planned.iter().filter(|one| one.kind == Kind::Clash) {
            let members = self.planned.iter().filter(|other| other.group == one.group);
            let mut statuses = members.map(|member| &issues[&member.id]["status"]);
            assert!(statuses.any(|status| status == "closed"), "{}", one.id);
        }
    }

    /// Every issue that failed with a class.
    fn failed_with(&self, class: &str) -> usize {
        let issues = self.planned.iter().filter(|one| {
            let rows = self.scratch.steps_of(&one.id);
            charged(&rows).contains(&class)
        });
        issues.count()
    }
}

/// Returns the classes that used up an attempt, in their order.
fn charged(rows: &[Value]) -> Vec<&str> {
    let mut charged = Vec::new();
    for row in rows.iter().filter(|row| row["resultClass"] != "completed") {
        let classes = row["failureClasses"].as_array().unwrap();
        let [class] = &classes[..] else {
            panic!("not one class: {row}");
        };
        charged.push(class.as_str().unwrap());
        assert_eq!(row["retry"]["failureClass"], *class, "{row}");
        assert_eq!(row["retry"]["attempt"], charged.len(), "{row}");
    }
    charged
}

/// Prints a line past the capture of output.
fn print_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Runs a campaign; returns it with how many landings rest on the verification of a
/// later one.
fn kill_again_and_again(variant: &Variant) -> (Campaign, usize) {
    let length = Length::asked("the queue campaign of 30 kills on 200 issues");
    let (total, lanes, kills) = length.pick((24, 4, 4), (200, 8, 30));
    let mut campaign = Campaign::new(total, lanes, variant);
    let began = Instant::now();
    for part in 0..kills {
        campaign.kill(part, kills);
    }
    let (runs, warnings) = campaign.run_to_the_end();
    let took = began.elapsed();
    campaign.every_commit_is_green();
    let (adopted, shared) = campaign.every_issue_landed_once();
    campaign.every_failure_is_its_own();
    if campaign.pushes {
        // Each run of the batch pushes, and most are killed.
        assert!(campaign.all_is_pushed(&warnings) > 1);
    }
    let scratch = &campaign.scratch;
    every_close_is_on_the_target(scratch);
    refs_are_accounted_for(scratch);
    assert_eq!(scratch.leftovers(), [""; 0]);
    in_order(scratch);
    scratch.premath(["audit"]).end().exits(0);
    let landed = first_parents(scratch).len();
    let verifications = fs::read_to_string(scratch.home().join("verifications")).unwrap();
    let cuts = campaign.planned.iter().map(|one| campaign.cuts(&one.id));
    let (cuts, conflicted) = (
        cuts.sum::<usize>(),
        campaign.failed_with("landing_conflict"),
    );
    assert!(cuts > 0 && (length == Length::Quick || conflicted > 0));
    print_line(&format!(
        "queue campaign: {total} issues, {lanes} lanes: {landed} landed ({shared} by the \
         verification of others), {} blocked, {conflicted} conflicted; {kills} kills cut {cuts} steps, {adopted} of them landed; \
         {runs} run(s) to the end; {:.2} verifications per landing; {:.1} s",
        campaign.planned.len() - landed,
        verifications.lines().count() as f64 / landed as f64,
        took.as_secs_f64(),
    ));
    (campaign, shared)
}

#[test]
fn killed_again_and_again_what_lands_is_green_and_failures_are_charged_to_their_own_issues() {
    let (_, shared) = kill_again_and_again(&Variant::of_settings(""));
    assert_eq!(shared, 0);
}

#[test]
fn killed_again_and_again_what_is_verified_as_one_is_green_too() {
    // How much waits at once is chance, with few issues.
    kill_again_and_again(&Variant::of_settings(BATCHES));
}

#[test]
fn killed_again_and_again_what_is_pushed_was_checked_and_stays() {
    let variant = Variant {
        settings: CHECKS_AND_PUSHES.replace("JUDGE", JUDGE),
        makes_lanes: true,
        pushes: true,
    };
    let (campaign, _) = kill_again_and_again(&variant);
    // Work waited in spare worktrees: more lanes took part than there are.
    let steps = campaign.scratch.steps();
    let workers = steps.iter().filter_map(|row| row["workerId"].as_str());
    let workers: BTreeSet<&str> = workers.collect();
    assert!(workers.len() > campaign.made_lanes.unwrap(), "{workers:?}");
}

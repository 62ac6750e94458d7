//! What must be so after every night, whatever was tried.

use super::night::HONEST_ISSUES;
use super::snapshot::Snapshot;
use super::user::{SHARED, owned_in};
use super::{Before, Ground, Mode, TARGET};
use premath_tests::{Ended, Rows, last_rows, until};
use rustix::process::Pid;
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// How long what was started may take to go after the harness did.
const GOING: Duration = Duration::from_secs(20);

impl Ground {
    /// Reads the issues, as far as they can be read.
    pub(crate) fn issues(&self) -> Rows {
        let text = self.read("repo/.premath/issues.jsonl");
        let rows = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        last_rows(rows.filter(|row: &Value| row["id"].is_string()).collect())
    }

    /// Returns the status of an issue.
    pub(crate) fn status(&self, id: &str) -> String {
        let issues = self.issues();
        let status = issues.get(id).and_then(|row| row["status"].as_str());
        status.unwrap_or("missing").to_owned()
    }

    /// Reads a file as the target has it.
    pub(crate) fn landed(&self, path: &str) -> Option<String> {
        let object = format!("refs/heads/{TARGET}:{path}");
        let ended = self.try_git(&["cat-file", "blob", &object]);
        (ended.code == Some(0)).then_some(ended.stdout)
    }

    /// Reads a file as the landing of an issue has it.
    fn landed_by(&self, id: &str, path: &str) -> Option<String> {
        let grep = format!("--grep=^Issue: {id}$");
        let commit = self.of_target(&["--format=%H", &grep])?;
        let ended = self.try_git(&["cat-file", "blob", &format!("{commit}:{path}")]);
        (ended.code == Some(0)).then_some(ended.stdout)
    }

    /// Returns whose landing changed a file last.
    fn last_to_change(&self, path: &str) -> Option<String> {
        self.of_target(&["--format=%(trailers:key=Issue,valueonly)", "--", path])
    }

    /// What git prints about the newest commit of the target that it selects.
    fn of_target(&self, arguments: &[&str]) -> Option<String> {
        let target = format!("refs/heads/{TARGET}");
        let mut all = vec!["log", "--first-parent", "-1", &target];
        all.extend(arguments);
        let ended = self.try_git(&all);
        let said = ended.stdout.trim();
        (ended.code == Some(0) && !said.is_empty()).then(|| said.to_owned())
    }

    /// Reads what the commands of an issue's work printed.
    pub(crate) fn output(&self, id: &str) -> String {
        self.output_of(id, ".work.std")
    }

    /// Reads what the verifications of an issue printed.
    pub(crate) fn output_of_verification(&self, id: &str) -> String {
        self.output_of(id, ".verify.std")
    }

    fn output_of(&self, id: &str, stream: &str) -> String {
        let mut said = String::new();
        for entry in fs::read_dir(self.path("repo/artifacts/streams"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.contains(&format!(".{id}.")) && name.contains(stream) {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                said.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        said
    }

    /// Reads the prompts of steps that hold a text.
    pub(crate) fn prompts_with(&self, text: &str) -> Vec<String> {
        let folder = self.path("repo/artifacts/streams");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let prompts =
            entries.filter(|entry| entry.path().extension().is_some_and(|e| e == "prompt"));
        prompts
            .filter_map(|entry| fs::read_to_string(entry.path()).ok())
            .filter(|prompt| prompt.contains(text))
            .collect()
    }

    /// Remembers what is there before the first night.
    pub(super) fn remember(&mut self) {
        self.before = Some(Before {
            files: Snapshot::of(&self.scratch.folder()),
            references: self.references(),
            objects: self.objects(),
        });
    }

    /// Takes what changed meanwhile as the user's own doing.
    pub(crate) fn is_by_the_user(&mut self) {
        self.remember();
    }

    /// The references that are the user's.
    fn references(&self) -> Vec<String> {
        let format = "--format=%(refname) %(objectname) %(symref)";
        let listed = self.try_git(&["for-each-ref", format]).stdout;
        let own = [
            "refs/heads/harness/",
            "refs/harness/",
            "refs/remotes/origin/harness/",
        ];
        let is_users = |line: &&str| !own.iter().any(|own| line.starts_with(own));
        listed.lines().filter(is_users).map(str::to_owned).collect()
    }

    fn objects(&self) -> Vec<String> {
        let all = ["cat-file", "--batch-all-objects", "--batch-check"];
        let listed = self.try_git(&all).stdout;
        listed.lines().map(str::to_owned).collect()
    }
}

/// One night that is looked at.
pub(super) struct Checked<'a> {
    ground: &'a Ground,
    ended: &'a Ended,
    pub(super) findings: Vec<String>,
}

impl<'a> Checked<'a> {
    pub(super) fn new(ground: &'a Ground, ended: &'a Ended) -> Self {
        Self {
            ground,
            ended,
            findings: Vec::new(),
        }
    }

    fn found(&mut self, is_found: bool, what: String) {
        if is_found {
            self.findings.push(what);
        }
    }

    fn events(&self) -> Vec<Value> {
        let lines = self.ended.stdout.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// 0 where every issue ended well, 1 where one did not.
    pub(super) fn exit(&mut self) {
        let issues = self.ground.issues();
        let is_work = |row: &&Value| row["issue_type"] != "epic";
        let is_closed = |row: &Value| row["status"] == "closed";
        let is_well = issues.values().filter(is_work).all(is_closed);
        let expected = if is_well { 0 } else { 1 };
        let Ended { code, signal, .. } = self.ended;
        let said: Vec<&str> = self.ended.stderr.lines().rev().take(3).collect();
        // An issue that is no more tried leaves a good night.
        let is_fine = *code == Some(expected) || (self.ground.nights > 1 && *code == Some(0));
        self.found(
            !is_fine,
            format!("exit {code:?}, signal {signal:?}, not {expected}: {said:?}"),
        );
    }

    pub(super) fn honest_issues(&mut self) {
        for number in 1..=HONEST_ISSUES {
            let id = format!("n{}-{number}", self.ground.nights);
            let status = self.ground.status(&id);
            let events = self.events();
            let attempts = events.iter().filter_map(|event| event["issues"].as_array());
            let last = attempts
                .flatten()
                .rfind(|attempt| attempt["issueId"] == *id);
            let last = last.map_or_else(String::new, |attempt| short(&attempt.to_string()));
            self.found(
                status != "closed",
                format!("honest issue {id} is {status}: {last}"),
            );
            let path = format!("src/{id}.txt");
            let landed = self.ground.landed_by(&id, &path);
            self.found(
                landed.as_deref() != Some("x\n"),
                format!("work of honest issue {id} landed as {landed:?}"),
            );
            // A later step may delete the file as its own work, which lands by
            // the name of its issue. Nothing else may change it.
            let last = self.ground.last_to_change(&path);
            let is_by_work = last
                .as_ref()
                .is_some_and(|last| *last == id || !last.starts_with('n'));
            self.found(
                landed.is_some() && !is_by_work,
                format!("work of honest issue {id} was changed by {last:?}"),
            );
        }
    }

    /// Every line is a row, and no change was made outside a transaction.
    pub(super) fn memory(&mut self) {
        for line in self.ground.read("repo/.premath/issues.jsonl").lines() {
            let is_row = serde_json::from_str::<Value>(line).is_ok_and(|row| row["id"].is_string());
            self.found(!is_row, format!("issue memory holds {:?}", short(line)));
        }
        for event in self.events() {
            let is_change = event["event"] == "memory.changed";
            self.found(is_change, format!("issue memory changed outside: {event}"));
        }
    }

    pub(super) fn lanes(&mut self) {
        for event in self.events() {
            if event["event"] == "lane.given_up" {
                self.found(true, format!("a lane was given up: {event}"));
            }
        }
    }

    pub(super) fn processes(&mut self) {
        let ground = self.ground;
        let but: Vec<Pid> = ground.bystanders.iter().map(|one| one.pid()).collect();
        let folder = ground.scratch.folder();
        let gone = until(GOING, || {
            ground
                .user
                .processes(&folder, &but)
                .is_empty()
                .then_some(())
        });
        if gone.is_none() {
            let left = ground.user.processes(&folder, &but);
            let some: Vec<_> = left.iter().take(5).map(|process| short(process)).collect();
            self.found(true, format!("{} processes are left: {some:?}", left.len()));
            ground.user.ends_all(&folder, &but);
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let is_left = mounts.contains(&folder.display().to_string());
        self.found(is_left, "a mount is left".to_owned());
        for bystander in &but {
            let is_there = fs::read_to_string(format!("/proc/{}/stat", bystander.as_raw_nonzero()));
            let is_dead = is_there.map_or(true, |stat| stat.contains(") Z"));
            self.found(is_dead, "a bystander was killed".to_owned());
        }
    }

    /// Nothing of the user's changed but what a landing is meant to change.
    pub(super) fn files(&mut self) {
        let Some(before) = &self.ground.before else {
            return;
        };
        let now = Snapshot::of(&self.ground.scratch.folder());
        // Landlock cannot protect permissions, and the batch reports that.
        let with_permissions = self.ground.mode != Mode::Landlock;
        let changes = before.files.changes_until(&now, with_permissions);
        for change in changes.iter().take(10) {
            self.found(true, change.clone());
        }
        if !self.ground.user.is_own() {
            return;
        }
        let number = self.ground.user.number();
        let folder = self.ground.scratch.folder();
        for shared in SHARED {
            // Programs share memory there, and Landlock gives no other place.
            if shared == "/dev/shm" && self.ground.mode == Mode::Landlock {
                continue;
            }
            let mut left = owned_in(shared, number);
            left.retain(|path| *path != folder);
            for path in left {
                self.found(true, format!("{} is left", path.display()));
                let _ = fs::remove_dir_all(&path);
                let _ = fs::remove_file(&path);
            }
        }
    }

    /// References and objects of the user's are there, and git finds nothing.
    pub(super) fn git(&mut self) {
        let Some(before) = &self.ground.before else {
            return;
        };
        let references = self.ground.references();
        for reference in &before.references {
            let is_there = references.contains(reference);
            self.found(!is_there, format!("moved or gone: {reference}"));
        }
        for reference in &references {
            let is_new = !before.references.contains(reference);
            self.found(is_new, format!("new: {reference}"));
        }
        let objects = self.ground.objects();
        let lost = before.objects.iter().filter(|one| !objects.contains(one));
        let lost = lost.count();
        self.found(lost > 0, format!("{lost} objects are gone"));
        let fsck = self.ground.try_git(&["fsck", "--strict", "--no-dangling"]);
        let is_whole = fsck.code == Some(0) && !fsck.stderr.contains("error");
        let said: Vec<&str> = fsck
            .stderr
            .lines()
            .chain(fsck.stdout.lines())
            .take(3)
            .collect();
        self.found(!is_whole, format!("git fsck: {said:?}"));
    }

    /// A test whose attack did not run would prove nothing.
    pub(super) fn attacks_ran(&mut self) {
        for step in &self.ground.steps {
            let said = self.ground.output(&step.id);
            let has_ended = said.contains("attack: the end");
            self.found(
                !has_ended && !step.may_be_cut,
                format!(
                    "the attack of {} did not run to its end: {}",
                    step.id,
                    short(&said)
                ),
            );
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(600).collect()
}

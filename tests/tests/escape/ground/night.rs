//! A night: the batch is run by the user, and everything that must be so after
//! any batch is looked at.

use super::Ground;
use super::check::Checked;
use premath_tests::{Ended, until};
use rustix::process::{Pid, Signal};
use std::fs;
use std::time::{Duration, Instant};

/// How long a night may take, whatever its steps do, and each hostile step more.
const BOUND: Duration = Duration::from_secs(180);
const BOUND_OF_STEP: Duration = Duration::from_secs(40);

/// How much memory the harness may take: it holds no content of a step's.
const MEMORY: u64 = 1 << 30;

/// How many honest issues a night has.
pub(super) const HONEST_ISSUES: usize = 3;

impl Ground {
    /// Runs a night with the hostile issues and honest ones, and a second one
    /// in the same lanes with honest ones alone.
    pub(crate) fn nights(&mut self) {
        self.night();
        if !self.has_hung {
            self.night();
        }
    }

    /// Runs one night and looks at what is left of it.
    pub(crate) fn night(&mut self) {
        let run = |ground: &Self| ground.harness();
        self.night_of(run);
    }

    /// As [`Ground::night`], with the harness started in a way of the test's.
    pub(crate) fn night_of(&mut self, run: impl Fn(&Self) -> premath_tests::Run) {
        if !self.has_begun {
            self.begins();
        }
        self.has_begun = false;
        let began = Instant::now();
        let mut running = run(self).start();
        let steps = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let bound = BOUND + BOUND_OF_STEP * steps;
        let mut peak = 0;
        let over = until(bound, || {
            peak = peak.max(memory_of(running.pid()));
            running.is_over().then_some(())
        });
        if over.is_none() {
            self.has_hung = true;
            running.signal(Signal::KILL);
        }
        let ended = running.wait();
        self.printed.push_str(&ended.stdout);
        self.printed.push_str(&ended.stderr);
        let number = self.nights;
        self.harm(
            over.is_none(),
            format!("night {number}: not over after {:?}", began.elapsed()),
        );
        self.harm(
            peak > MEMORY,
            format!(
                "night {number}: the harness took {} MiB of memory",
                peak >> 20
            ),
        );
        self.check(&ended);
    }

    /// Says that the night was cut, and the next one begins afresh.
    pub(crate) fn is_cut(&mut self) {
        self.has_begun = false;
    }

    /// Lays the issues of the next night out.
    pub(crate) fn begins(&mut self) {
        self.nights += 1;
        self.has_begun = true;
        if self.nights == 1 {
            self.write_issues();
            self.remember();
        } else {
            self.file_honest_issues();
        }
    }

    /// Files the honest issues of a later night, as the user does.
    fn file_honest_issues(&mut self) {
        if !self.path("repo").is_dir() {
            return;
        }
        for number in 1..=HONEST_ISSUES {
            let id = format!("n{}-{number}", self.nights);
            let reason = ["--override-reason", "test"];
            let add = ["issue", "add", "honest", "--id", &id, reason[0], reason[1]];
            let filed = self.premath(&add);
            self.harm(
                filed.code != Some(0),
                format!("issue {id} cannot be filed: {}", filed.stderr.trim()),
            );
        }
    }

    /// Looks at everything that must be so after any night.
    fn check(&mut self, ended: &Ended) {
        let number = self.nights;
        let mut checked = Checked::new(self, ended);
        checked.exit();
        checked.honest_issues();
        checked.memory();
        checked.lanes();
        checked.processes();
        checked.files();
        checked.git();
        if number == 1 {
            checked.attacks_ran();
        }
        let mut findings = checked.findings;
        for finding in &mut findings {
            finding.insert_str(0, &format!("night {number}: "));
        }
        self.findings.append(&mut findings);
    }
}

/// Returns the most memory that a process had at once.
fn memory_of(process: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kibibytes.unwrap_or(0_u64) << 10
}

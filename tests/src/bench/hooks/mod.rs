//! Batches whose agents start hooks at a rate, beside the same batches whose agents
//! start `/bin/true` in their place.

pub(crate) mod agent;

use crate::Sizes;
use crate::figure::{self, Wrong, median, timed};
use crate::files::children;
use crate::programs::{Programs, command, exits, run};
use crate::scratch::{self, Scratch};
use crate::turn::{judge, turn};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How many lanes work, each on one issue.
const LANES: usize = 8;
/// The milliseconds from one call of a lane to the next: 50 calls a second of all.
const PAUSE: usize = LANES * 20;

/// Measures the hooks, and the gate of turns without them.
pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<(), Wrong> {
    let calls = sizes.hooked;
    let batch = |name: &str, hooks, calls, pause| {
        let batch = Batch {
            programs,
            folder: folder.join(name),
            hooks,
            calls,
            pause,
        };
        batch.take()
    };
    let hooked = batch("hooked", true, calls, PAUSE)?;
    let floor = batch("floor", false, calls, PAUSE)?;
    for (name, part, target) in [("p50", 0.5, "p50 < 5 ms"), ("p99", 0.99, "p99 < 25 ms")] {
        let (own, other) = (at(&hooked.took, part), at(&floor.took, part));
        figure::show(
            &format!(
                "a hook, {LANES} lanes, {} starts a second: {name}, against /bin/true",
                LANES * 2000 / PAUSE
            ),
            &figure::time(own),
            &figure::time(other),
            own / other,
            target,
        );
    }
    figure::note(
        "  events in the journals, of as many that were sent",
        &hooked.events.to_string(),
    );
    let each = (hooked.cpu - floor.cpu) / (LANES * calls) as f64;
    figure::note(
        "  CPU of a call's two hooks, without /bin/true",
        &figure::time(each),
    );
    without_hooks(sizes, &batch("plain", false, 10, 0)?)
}

/// Shows what judging a turn is, of the CPU of a batch whose agents have no hooks.
fn without_hooks(sizes: Sizes, plain: &Taken) -> Result<(), Wrong> {
    const CALLS: usize = 10;
    const TIMES: usize = 100;
    let input = turn(CALLS);
    let mut judged = Vec::new();
    for _ in 0..sizes.runs {
        let (_, took) = timed(|| {
            (0..TIMES).try_for_each(|_| judge(input.evidence.clone(), &input.constraints))
        })?;
        judged.push(took.as_secs_f64() / TIMES as f64);
    }
    let (judged, cpu) = (median(judged), plain.cpu / LANES as f64);
    figure::show(
        &format!(
            "judge a turn of {CALLS} calls, against the CPU of its batch by issue, without hooks"
        ),
        &figure::time(judged),
        &figure::time(cpu),
        judged / cpu,
        "<= 0.05",
    );
    Ok(())
}

/// Returns the value below which a part of sorted ones is.
fn at(sorted: &[f64], part: f64) -> f64 {
    let place = (sorted.len() as f64 * part) as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// A batch whose agents make calls.
struct Batch<'a> {
    programs: &'a Programs,
    folder: PathBuf,
    hooks: bool,
    /// Calls of an issue.
    calls: usize,
    /// The milliseconds between them.
    pause: usize,
}

/// What a batch took.
struct Taken {
    /// The seconds of each start of a hook, sorted.
    took: Vec<f64>,
    /// The CPU seconds of all its processes.
    cpu: f64,
    /// Events in the journals.
    events: usize,
}

impl Batch<'_> {
    fn take(&self) -> Result<Taken, Wrong> {
        let scratch = Scratch::set_up(&self.folder, 0, 3, LANES)?;
        let (times, bin) = (self.folder.join("times"), self.folder.join("bin"));
        fs::create_dir_all(&times)?;
        fs::create_dir_all(&bin)?;
        let own = std::env::current_exe()?;
        let script = format!(
            "#!/bin/sh\nexec '{}' {} {} {} '{}' \"$@\"\n",
            own.display(),
            agent::MODE,
            self.calls,
            self.pause,
            times.display()
        );
        fs::write(bin.join("codex"), script)?;
        fs::set_permissions(bin.join("codex"), fs::Permissions::from_mode(0o755))?;
        let hooks = if self.hooks { "on" } else { "off" };
        let settings = format!("[agent]\nhooks = \"{hooks}\"\n");
        fs::write(scratch.repository.join("harness.toml"), settings)?;
        let path = std::env::var("PATH")?;
        let before = children()?;
        let mut coordinator = self.programs.command("harness-coordinator");
        coordinator
            .current_dir(&scratch.repository)
            .args(["--agent", "codex", "--override-reason", "benchmark"])
            .args(["--verify-cmd", "true", "--startup", "off"])
            .args(["--landing", "none", "--lanes", &LANES.to_string()])
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("HOME", &self.folder)
            .env("PREMATH_SANDBOX_READ", self.programs.folder())
            .env("PREMATH_SANDBOX_WRITE", &times);
        exits(&mut coordinator, 0)?;
        let cpu = children()? - before;
        let closed = scratch::closed(&scratch.issues())?;
        let events = events(&scratch.repository)?;
        let mut took = times_in(&times)?;
        took.sort_by(f64::total_cmp);
        // The prompt is an event too.
        let sent = if self.hooks {
            LANES * (2 * self.calls + 1)
        } else {
            0
        };
        if closed != LANES || took.len() != LANES * 2 * self.calls || events != sent {
            return Err(Wrong::because(format!(
                "{closed} of {LANES} issues were closed, {} hooks started, {events} of {sent} \
                 events are in the journals",
                took.len()
            )));
        }
        Ok(Taken { took, cpu, events })
    }
}

/// Reads the seconds that agents wrote down.
fn times_in(folder: &Path) -> Result<Vec<f64>, Wrong> {
    let mut took = Vec::new();
    for entry in fs::read_dir(folder)? {
        for line in fs::read_to_string(entry?.path())?.lines() {
            took.push(line.parse::<f64>()? / 1e9);
        }
    }
    Ok(took)
}

/// Counts the events in the journals of a batch, which must be as many as their
/// witnesses say.
fn events(repository: &Path) -> Result<usize, Wrong> {
    let mut lines = 0;
    for entry in fs::read_dir(repository.join("artifacts/streams"))? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".hooks.jsonl.gz") {
            let journal = run(command("gzip").args(["-dc"]).arg(&path))?;
            lines += journal.stdout.split(|byte| *byte == b'\n').count() - 1;
        }
    }
    let mut witnessed = 0;
    for entry in fs::read_dir(repository.join("artifacts/ciwitness"))? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".work.json") {
            let witness: Value = serde_json::from_slice(&fs::read(path)?)?;
            witnessed += witness["hooks"]["events"].as_u64().unwrap_or_default() as usize;
        }
    }
    match lines == witnessed {
        true => Ok(lines),
        false => Err(Wrong::because(format!(
            "{lines} events are in the journals, {witnessed} in the witnesses"
        ))),
    }
}

//! What one trivial issue costs of CPU in repositories of several sizes, beside
//! the same change with git in the same repository.

use crate::Sizes;
use crate::figure::{self, Wrong};
use crate::peak;
use crate::plot::{Curve, Plot};
use crate::programs::{Programs, command, run};
use crate::scratch;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Files of a folder, and folders of the folder above.
const FANOUT: usize = 50;
/// How often the coordinator's peak is read.
const LOOK: Duration = Duration::from_millis(20);

/// Measures in repositories of several sizes; returns the plot.
pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<Plot, Wrong> {
    let names = ["harness", "git"];
    let mut curves = names.map(Curve::new);
    for &files in sizes.files {
        let costs = measure_with(sizes, programs, folder, files)?;
        for (curve, seconds) in curves.iter_mut().zip(costs) {
            curve.add(files as f64, seconds);
        }
    }
    Ok(Plot {
        file: "files",
        title: "One small issue that lands, by the size of the repository".to_owned(),
        x: "files",
        y: "CPU seconds of the issue",
        curves: curves.into(),
    })
}

/// Measures in a repository of one size; returns the CPU seconds of an issue by
/// the harness and by git.
pub(crate) fn measure_with(
    sizes: Sizes,
    programs: &Programs,
    folder: &Path,
    files: usize,
) -> Result<[f64; 2], Wrong> {
    let folder = folder.join(files.to_string());
    let repository = LargeRepository::set_up(&folder, files)?;
    let costs = repository.measure(sizes, programs, files)?;
    // Several of the largest need more room than a disk may have.
    fs::remove_dir_all(folder)?;
    Ok(costs)
}

/// The CPU seconds and the peak of a batch.
struct BatchCost {
    seconds: f64,
    peak: u64,
}

/// The least CPU seconds of a process that are compared: they come in ticks of 10 ms.
const SHORTEST: f64 = 0.1;

struct LargeRepository {
    path: PathBuf,
    plain: PathBuf,
    /// CPU seconds of `git worktree add`.
    added: f64,
}

impl LargeRepository {
    /// Makes a repository of small files in folders of folders, packed as after
    /// a clone, with a worktree for git.
    fn set_up(folder: &Path, files: usize) -> Result<Self, Wrong> {
        let path = folder.join("repository");
        fs::create_dir_all(&path)?;
        let git = |arguments: &[&str]| run(command("git").current_dir(&path).args(arguments));
        git(&["init", "--quiet", "--initial-branch", "main"])?;
        for (key, value) in [
            ("user.name", "bench"),
            ("user.email", "bench@localhost"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
        ] {
            git(&["config", key, value])?;
        }
        import(&path, files)?;
        git(&["reset", "--quiet", "--hard", "main"])?;
        let plain = folder.join("plain");
        let before = children()?;
        let mut add = command("git");
        let add = add.current_dir(&path).args(["worktree", "add", "--quiet"]);
        run(add.arg("--detach").arg(&plain))?;
        Ok(Self {
            added: children()? - before,
            path,
            plain,
        })
    }

    fn measure(&self, sizes: Sizes, programs: &Programs, files: usize) -> Result<[f64; 2], Wrong> {
        let (few, many) = sizes.rounds;
        let issues = self.path.join(".premath/issues.jsonl");
        scratch::issues(&issues, 2 * few + many + 3, |_| None)?;
        let first = self.batch(programs, few)?;
        let short = self.batch(programs, few)?;
        let long = self.batch(programs, many)?;
        let count = (many - few) as f64;
        let ours = (long.seconds - short.seconds) / count;
        let theirs = self.by_git(many - few)? / count;
        figure::show(
            &format!("CPU of an issue, {files} files, against git"),
            &figure::time(ours),
            &figure::time(theirs),
            ours / theirs,
            "<= 1.5",
        );
        // A worktree for work, and a checkout for verifications.
        let made = first.seconds - short.seconds;
        if self.added >= SHORTEST {
            figure::show(
                &format!("CPU of making a lane, {files} files, against two git worktree add"),
                &figure::time(made),
                &figure::time(2.0 * self.added),
                made / (2.0 * self.added),
                "<= 1.1",
            );
        }
        let rest = short.seconds - ours * few as f64;
        let rest_of = format!("CPU of a batch without its issues, {files} files");
        figure::note(&rest_of, &figure::time(rest));
        let peak_of = format!("peak memory of the coordinator, {files} files");
        figure::note(&peak_of, &figure::size(long.peak));
        Ok([ours, theirs])
    }

    /// Works on some issues in one lane.
    fn batch(&self, programs: &Programs, rounds: usize) -> Result<BatchCost, Wrong> {
        let issues = self.path.join(".premath/issues.jsonl");
        let closed = scratch::closed(&issues)?;
        let before = children()?;
        let log = self.plain.with_extension("log");
        let mut coordinator = programs.command("harness-coordinator");
        let work = "echo done > source/0/0/${PREMATH_ISSUE_ID#bench-}.txt";
        let child = coordinator
            .current_dir(&self.path)
            .args(["--work-cmd", work, "--verify-cmd", "true"])
            .args(["--override-reason", "benchmark", "--landing", "merge"])
            .args(["--startup", "off"])
            .args(["--lanes", "1", "--new-batch", "--rounds"])
            .arg(rounds.to_string())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let peak = peak_of(child, &log)?;
        let seconds = children()? - before;
        let done = scratch::closed(&issues)? - closed;
        if done != rounds {
            return Err(Wrong::because(format!(
                "{done} of {rounds} issues were closed"
            )));
        }
        Ok(BatchCost { seconds, peak })
    }

    /// Does the same with git; returns its CPU seconds.
    fn by_git(&self, count: usize) -> Result<f64, Wrong> {
        let mut before = 0.0;
        for number in 0..=count {
            // The first fills the caches and does not count.
            if number == 1 {
                before = children()?;
            }
            let branch = format!("plain/{number}");
            self.git(&["switch", "--quiet", "-c", &branch])?;
            let file = format!("source/0/0/{:06}.txt", FANOUT - 1 - number);
            fs::write(self.plain.join(file), "done\n")?;
            self.git(&["add", "-A"])?;
            self.git(&["commit", "--quiet", "-m", "bench"])?;
            self.git(&["merge-tree", "--write-tree", "HEAD^", "HEAD"])?;
        }
        Ok(children()? - before)
    }

    fn git(&self, arguments: &[&str]) -> Result<(), Wrong> {
        let mut git: Command = command("git");
        run(git.current_dir(&self.plain).args(arguments)).map(drop)
    }
}

/// Has git write the files' commit, in one pack.
fn import(repository: &Path, files: usize) -> Result<(), Wrong> {
    let mut git = command("git");
    let mut child = git
        .current_dir(repository)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(input) = child.stdin.take() {
        let mut input = BufWriter::new(input);
        writeln!(
            input,
            "commit refs/heads/main\ncommitter bench <bench@localhost> 1700000000 +0000\n\
             data 5\nbench"
        )?;
        for number in 0..files {
            let (inner, outer) = (number / FANOUT, number / FANOUT / FANOUT);
            let text = format!("the content of file {number}\n");
            writeln!(
                input,
                "M 100644 inline source/{outer}/{inner}/{number:06}.txt\ndata {}\n{text}",
                text.len()
            )?;
        }
        input.flush()?;
    }
    match child.wait()?.success() {
        true => Ok(()),
        false => Err(Wrong::because("git did not take the files in")),
    }
}

/// Waits for a process; returns its peak, read until just before its end.
fn peak_of(mut child: std::process::Child, log: &Path) -> Result<u64, Wrong> {
    let process = child.id().to_string();
    let mut most = 0;
    loop {
        if let Ok(peak) = peak::of(&process) {
            most = peak;
        }
        if let Some(status) = child.try_wait()? {
            return match status.success() {
                true => Ok(most),
                false => Err(Wrong::because(fs::read_to_string(log)?)),
            };
        }
        std::thread::sleep(LOOK);
    }
}

/// Returns the CPU seconds of all processes that ended below this one.
pub(crate) fn children() -> Result<f64, Wrong> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let missing = || Wrong::because("no CPU times in /proc/self/stat");
    let (_, fields) = stat.rsplit_once(')').ok_or_else(missing)?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // Fields 16 and 17 (proc_pid_stat(5)); the third is the first here.
    let [user, system] = fields.get(13..15).ok_or_else(missing)? else {
        return Err(missing());
    };
    let ticks = user.parse::<u64>()? + system.parse::<u64>()?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

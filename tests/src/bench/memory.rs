//! What a process that holds all issues needs of memory, beside the file.

use crate::Sizes;
use crate::figure::{self, Wrong};
use crate::programs::{Programs, command, run};
use crate::scratch;
use premath_memory::{IssueMemory, OpenOptions};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// The hidden mode in which this program opens issue memory and tells its own
/// peak.
pub(crate) const HOLD: &str = "--hold";

pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<(), Wrong> {
    let path = folder.join("memory/issues.jsonl");
    scratch::issues(&path, sizes.large, |_| None)?;
    let file = fs::metadata(&path)?.len();
    for (name, peak) in [
        ("a process with open memory", peak_of_holder(&path)?),
        ("`premath issue ready`", peak_of_ready(programs, &path)?),
    ] {
        figure::show(
            &format!("peak of {name}, {} issues, against the file", sizes.large),
            &figure::size(peak),
            &figure::size(file),
            peak as f64 / file as f64,
            "< 250 MB at 100000",
        );
    }
    Ok(())
}

/// Opens issue memory, looks at it, and prints this process's peak in bytes.
pub(crate) fn hold(path: &str) -> Result<(), Wrong> {
    let memory = IssueMemory::open(Path::new(path), &OpenOptions::default())?;
    if memory.view(|view| view.ready().count())? == 0 {
        return Err(Wrong::because("nothing is ready"));
    }
    println!("{}", peak("self")?);
    Ok(())
}

fn peak_of_holder(path: &Path) -> Result<u64, Wrong> {
    let output = run(command(std::env::current_exe()?).arg(HOLD).arg(path))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

fn peak_of_ready(programs: &Programs, path: &Path) -> Result<u64, Wrong> {
    let mut premath = programs.command("premath");
    peak_of(premath.args(["issue", "ready", "--issues"]).arg(path))
}

/// Returns the peak of a command whose answer does not fit into its pipe: as
/// long as nobody reads it, all that it needed memory for is done, and it is
/// still there.
pub(crate) fn peak_of(command: &mut Command) -> Result<u64, Wrong> {
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let mut answer = process.stdout.take().map(BufReader::new);
    let mut peak = Err(Wrong::because("the command says nothing"));
    if let Some(answer) = &mut answer {
        answer.fill_buf()?;
        peak = self::peak(&process.id().to_string());
        std::io::copy(answer, &mut std::io::sink())?;
    }
    if !process.wait()?.success() {
        return Err(Wrong::because("the command failed"));
    }
    peak
}

/// Reads the most that a process ever had in memory, in bytes.
fn peak(process: &str) -> Result<u64, Wrong> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .ok_or_else(|| Wrong::because("/proc tells no peak"))?;
    Ok(kilobytes.parse::<u64>()? * 1_024)
}

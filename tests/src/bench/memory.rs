//! What a process that holds all issues needs of memory, beside the file.

use crate::Sizes;
use crate::answer;
use crate::figure::{self, Wrong};
use crate::peak;
use crate::programs::{Programs, command, run};
use crate::scratch;
use premath_memory::{IssueMemory, OpenOptions};
use std::fs;
use std::path::Path;

/// The hidden mode in which this program opens issue memory and prints its peak
/// memory.
pub(crate) const HOLD: &str = "--hold";

pub(crate) fn measure(sizes: Sizes, programs: &Programs, folder: &Path) -> Result<(), Wrong> {
    let path = folder.join("memory/issues.jsonl");
    scratch::issues(&path, sizes.large, |_| None)?;
    let file = fs::metadata(&path)?.len();
    for (name, peak) in [
        (
            "a process with the issue store open",
            peak_of_holder(&path)?,
        ),
        ("`premath issue ready`", peak_of_ready(programs, &path)?),
    ] {
        figure::show(
            &format!(
                "peak memory of {name}, {} issues, against the file",
                sizes.large
            ),
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
        return Err(Wrong::because("no issue is ready"));
    }
    println!("{}", peak::of("self")?);
    Ok(())
}

fn peak_of_holder(path: &Path) -> Result<u64, Wrong> {
    let output = run(command(std::env::current_exe()?).arg(HOLD).arg(path))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

fn peak_of_ready(programs: &Programs, path: &Path) -> Result<u64, Wrong> {
    let mut premath = programs.command("premath");
    answer::peak_of(premath.args(["issue", "ready", "--issues"]).arg(path))
}

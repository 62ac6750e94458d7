//! What a process needed of memory at most.

use crate::figure::Wrong;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Returns the peak of a command whose answer does not fit into its pipe: as
/// long as nobody reads it, all that it needed memory for is done, and it is
/// still there.
pub(crate) fn of_command(command: &mut Command) -> Result<u64, Wrong> {
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let mut answer = process.stdout.take().map(BufReader::new);
    let mut peak = Err(Wrong::because("the command says nothing"));
    if let Some(answer) = &mut answer {
        answer.fill_buf()?;
        peak = of(&process.id().to_string());
        std::io::copy(answer, &mut std::io::sink())?;
    }
    if !process.wait()?.success() {
        return Err(Wrong::because("the command failed"));
    }
    peak
}

/// Reads the most that a process ever had in memory, in bytes.
pub(crate) fn of(process: &str) -> Result<u64, Wrong> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .ok_or_else(|| Wrong::because("/proc tells no peak"))?;
    Ok(kilobytes.parse::<u64>()? * 1_024)
}

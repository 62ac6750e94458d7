//! What a process needed of memory at most.

use crate::figure::Wrong;
use std::fs;

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

//! A provider that refuses for a while: every agent of one format that shares
//! the folder is refused.

use premath_evidence::Agent;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Begins to refuse for so many seconds, once an issue.
pub(super) fn begin(folder: &Path, agent: Agent, issue: &str, seconds: u64) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    match fs::File::create_new(folder.join(format!("{issue}.begun"))) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(error),
    }
    let until = now() + seconds;
    let written = folder.join(format!("{issue}.until"));
    fs::write(&written, until.to_string())?;
    fs::rename(written, folder.join(agent.as_str()))
}

/// Returns until when a provider refuses, in seconds since 1970.
pub(super) fn refused_until(folder: &Path, agent: Agent) -> Option<u64> {
    let text = fs::read_to_string(folder.join(agent.as_str())).ok()?;
    let until = text.trim().parse().ok()?;
    (until > now()).then_some(until)
}

/// Writes down that an attempt was refused before it began.
pub(super) fn refuse(folder: &Path, issue: &str) -> io::Result<()> {
    let file = folder.join(format!("{issue}.refused"));
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?;
    file.write_all(b"refused\n")
}

/// Returns how many attempts at an issue were refused.
pub(super) fn refusals(folder: &Path, issue: &str) -> u64 {
    let file = folder.join(format!("{issue}.refused"));
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|_| 1).sum()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

//! Commands with a long answer.

use crate::figure::Wrong;
use crate::peak;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Returns the peak of a command whose answer does not fit into its pipe: while
/// the pipe is not read, the work is done and the process still runs.
pub(crate) fn peak_of(command: &mut Command) -> Result<u64, Wrong> {
    let mut process = command.stdout(Stdio::piped()).spawn()?;
    let mut answer = process.stdout.take().map(BufReader::new);
    let mut peak = Err(Wrong::because("the command printed nothing"));
    if let Some(answer) = &mut answer {
        answer.fill_buf()?;
        peak = peak::of(&process.id().to_string());
        std::io::copy(answer, &mut std::io::sink())?;
    }
    if !process.wait()?.success() {
        return Err(Wrong::because("the command failed"));
    }
    peak
}

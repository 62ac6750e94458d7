//! The launcher: enters the namespaces and starts the init in them.

use super::record::{OrderEnd, Record};
use super::{INIT, MISSED, identity};
use premath_platform::process::Handle;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use std::io;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often it looks whether the init is ready. Nothing but an early signal
/// waits for it.
const STARTING: Duration = Duration::from_millis(5);

/// Runs this process as the launcher of one command.
pub(super) fn main() -> ExitCode {
    let Ok((record, order)) = Record::inherited() else {
        return ExitCode::FAILURE;
    };
    match launch(&record, order.view.network.is_some()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = error.to_string();
            let _ = record.report(&OrderEnd::NotConfined { message });
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the supervisor's chain of processes"
)]
fn launch(record: &Record, is_offline: bool) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

    // They are for the command, which is in the same group.
    let heard = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&heard))?;
    }
    rustix::thread::set_name(c"premath-confine")?;
    identity::enter(is_offline)?;
    // After the change of rights, which clears the signal.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut init = Command::new("/proc/self/exe")
        .arg(INIT)
        .stdin(Stdio::from(record.share()?))
        .spawn()?;
    pass_early_signal_on(record, &heard, &init)?;
    let status = init.wait()?;
    if record.outcome().is_none() && status.success() {
        return Err(io::Error::other(
            "the first process of the sandbox did not answer",
        ));
    }
    Ok(())
}

/// Waits until the init receives signals by itself. One that came before is
/// passed on: the first process of a namespace is not ended by it, and missed
/// it.
fn pass_early_signal_on(record: &Record, heard: &AtomicBool, init: &Child) -> io::Result<()> {
    let handle = Handle::open(Pid::from_child(init))?;
    while !record.is_ready() {
        if handle.has_ended_within(STARTING) {
            return Ok(());
        }
    }
    if heard.load(Ordering::Relaxed) {
        let _ = kill_process(Pid::from_child(init), MISSED);
    }
    Ok(())
}

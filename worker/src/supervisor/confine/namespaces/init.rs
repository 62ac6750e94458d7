//! The init: the first process in the command's namespace of processes.

use super::super::filter::{self, Shared};
use super::super::landlock;
use super::record::{Order, OrderEnd, Record};
use super::{MISSED, loopback, mounts, relay, restrict};
use crate::supervisor::descendants::Children;
use premath_platform::process::Process;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, Signal, WaitStatus, getpid, kill_current_process_group, set_parent_process_death_signal,
};
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long what a finished command left may continue: a `tee` behind it has
/// its last lines to write.
const SETTLE: Duration = Duration::from_millis(200);

/// How often it looks whether anything is left.
const LOOK: Duration = Duration::from_millis(20);

/// Runs this process as the init of one command.
pub(super) fn main() -> ExitCode {
    let Ok((record, order)) = Record::inherited() else {
        return ExitCode::FAILURE;
    };
    let outcome = run(order, &record).unwrap_or_else(|error| OrderEnd::NotConfined {
        message: error.to_string(),
    });
    match record.report(&outcome) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(order: Order, record: &Record) -> io::Result<OrderEnd> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::thread::set_name(c"premath-init")?;
    let is_asked_to_end = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_asked_to_end))?;
    }
    let is_missed = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(MISSED.as_raw(), Arc::clone(&is_missed))?;
    let children = Children::adopt()?;
    record.note_ready()?;
    mounts::set_up(&order.view)?;
    let _ = rustix::system::sethostname(b"premath");
    let listeners = match &order.view.network {
        Some(network) => {
            loopback::raise()?;
            relay::listen(network)?
        }
        None => {
            landlock::keep_from_sockets()?;
            Vec::new()
        }
    };
    restrict::bound(&order.view.bounds)?;
    restrict::give_up_rights()?;
    relay::serve(listeners)?;
    filter::apply(Shared::Nothing)?;
    let main = match start(order) {
        Ok(main) => main,
        Err(outcome) => return Ok(outcome),
    };
    // A signal to the group that came before there was a command in it.
    if is_asked_to_end.load(Ordering::Relaxed) {
        is_missed.store(true, Ordering::Relaxed);
    }
    let status = wait_for_end(&children, main, &is_asked_to_end, &is_missed);
    Ok(OrderEnd::Ended {
        code: status.and_then(WaitStatus::exit_status),
        signal: status.and_then(WaitStatus::terminating_signal),
        left: left(),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the supervisor's chain of processes"
)]
fn start(order: Order) -> Result<Pid, OrderEnd> {
    let terminal = io::stderr().as_fd().try_clone_to_owned();
    let stdin = match terminal {
        Ok(terminal) if order.has_terminal => Stdio::from(terminal),
        _ => Stdio::null(),
    };
    let child = Command::new(order.program.0)
        .args(order.args.into_iter().map(|text| text.0))
        .env_clear()
        .envs(order.env.into_iter().map(|(name, value)| (name.0, value.0)))
        .current_dir(&order.cwd.0)
        .stdin(stdin)
        .spawn();
    match child {
        // The handle is not needed: `Children` reaps.
        Ok(child) => Ok(Pid::from_child(&child)),
        Err(error) => Err(OrderEnd::NotStarted {
            errno: error.raw_os_error().unwrap_or_default(),
            message: error.to_string(),
        }),
    }
}

/// Waits until the command has ended, and what it left had its time. Where the
/// whole group was asked to end, the supervisor says how long that is.
fn wait_for_end(
    children: &Children,
    main: Pid,
    is_asked_to_end: &AtomicBool,
    is_missed: &AtomicBool,
) -> Option<WaitStatus> {
    let mut status = None;
    let mut until = None;
    loop {
        // To the whole group, for the command may have started others by now.
        if is_missed.swap(false, Ordering::Relaxed) {
            is_asked_to_end.store(true, Ordering::Relaxed);
            let _ = kill_current_process_group(Signal::TERM);
        }
        let reaped = children.reap(status.is_none().then_some(main));
        status = status.or(reaped.main);
        if reaped.alone {
            return status;
        }
        if status.is_some() && !is_asked_to_end.load(Ordering::Relaxed) {
            let until = *until.get_or_insert_with(|| Instant::now() + SETTLE);
            if Instant::now() >= until {
                return status;
            }
        }
        let patience = status.is_some().then(|| LOOK.try_into().ok()).flatten();
        let mut fds = [PollFd::from_borrowed_fd(children.pollable(), PollFlags::IN)];
        // An error means another look at once, which is right as well.
        let _ = poll(&mut fds, patience.as_ref());
    }
}

/// Counts the processes that are left beside this one.
fn left() -> u32 {
    let own = getpid();
    let others = Process::all().filter(|process| process.pid != own && !process.zombie);
    u32::try_from(others.count()).unwrap_or(u32::MAX)
}

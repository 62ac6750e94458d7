//! Confinement by namespaces: the command sees a view of files that is made
//! for it, its own processes, and a network of its own.
//!
//! Three processes of ours take part. The supervisor starts the *launcher*,
//! which enters the namespaces and waits. The launcher starts the *init*, the
//! first process of the new namespace of processes. It makes the view, gives
//! up every right, starts the command, and ends when the command has ended;
//! the kernel then kills all that is left there.
//!
//! Sources: user_namespaces(7), pid_namespaces(7), mount_namespaces(7),
//! `isolation.md` 8 to 11.

mod identity;
mod init;
mod launch;
mod loopback;
mod mounts;
mod record;
mod relay;
mod restrict;
mod view;

pub(in crate::supervisor) use record::{OrderEnd, Record};
pub use view::{CommandBounds, Loopback, PortRelay, View, ViewEntry};

use super::super::command::CommandSpec;
use super::super::message::{Begin, OsText};
use record::Order;
use rustix::io::Errno;
use rustix::process::Signal;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

/// The first argument that turns a binary of ours into the launcher.
pub(in crate::supervisor) const LAUNCHER: &str = "confine-launch";
/// The first argument that turns it into the init.
pub(in crate::supervisor) const INIT: &str = "confine-init";

/// With this signal the launcher notifies the init of one that reached the
/// group before the init could receive it.
const MISSED: Signal = Signal::USR1;

/// What a shell needs, for a trial.
const SMALL: [&str; 4] = ["/usr", "/bin", "/lib", "/lib64"];

/// Where a trial sees a layered folder.
const LAYERED: &str = "/layered";

/// Where everything of ours is in a view.
pub(crate) const OWN: &str = "/premath";

/// Runs this process as launcher or init, if it was started so.
pub(in crate::supervisor) fn main(mode: &str) -> Option<ExitCode> {
    match mode {
        LAUNCHER => Some(launch::main()),
        INIT => Some(init::main()),
        _ => None,
    }
}

/// Starts the launcher of a command.
///
/// # Errors
///
/// What the system says.
#[expect(
    clippy::disallowed_methods,
    reason = "only the supervisor starts commands"
)]
pub(in crate::supervisor) fn spawn(
    begin: Begin,
    view: View,
    [stdout, stderr]: [Stdio; 2],
) -> io::Result<(Child, Record)> {
    let marker = begin
        .env
        .iter()
        .find(|(name, _)| name.0 == super::super::MARKER);
    let marker = marker.cloned();
    let order = Order {
        view,
        has_terminal: false,
        program: begin.program,
        args: begin.args,
        env: begin.env,
        cwd: begin.cwd,
    };
    let record = Record::make(&order)?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg(LAUNCHER)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(record.share()?))
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    if let Some((name, value)) = marker {
        command.env(name.0, value.0);
    }
    Ok((command.spawn()?, record))
}

/// Runs a command to its end in its view, with the output and the terminal of
/// this process. Returns its exit code, or 128 and the number of the signal that
/// ended it.
///
/// # Errors
///
/// Where it could not be confined or started.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the supervisor's module; a person waits for the command"
)]
pub(crate) fn run(spec: CommandSpec) -> io::Result<u8> {
    let begin = Begin::new(0, spec);
    let order = Order {
        view: begin.view.unwrap_or_default(),
        has_terminal: io::stdin().is_terminal(),
        program: begin.program,
        args: begin.args,
        env: begin.env,
        cwd: begin.cwd,
    };
    let program = order.program.0.to_string_lossy().into_owned();
    let record = Record::make(&order)?;
    let status = Command::new("/proc/self/exe")
        .arg(LAUNCHER)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(record.share()?))
        .status()?;
    match record.outcome() {
        Some(OrderEnd::Ended { code, signal, .. }) => {
            let code = code.or(signal.map(|signal| 128 + signal));
            Ok(u8::try_from(code.unwrap_or(1)).unwrap_or(u8::MAX))
        }
        Some(OrderEnd::NotStarted { message, .. }) => Err(io::Error::other(format!(
            "`{program}` in the sandbox: {message}"
        ))),
        Some(OrderEnd::NotConfined { message }) => Err(io::Error::other(message)),
        None => Err(io::Error::other(format!(
            "its launcher ended with {status}"
        ))),
    }
}

/// Tries whether namespaces work for this user.
///
/// # Errors
///
/// The cause, with a fix.
pub(crate) fn works() -> Result<(), String> {
    try_view(None).map_err(|error| format!("{error}{}", advice()))
}

/// Tries whether the changes of a folder can be kept apart from it in another, which
/// holds the empty folders `upper` and `work`.
///
/// # Errors
///
/// The cause.
pub(crate) fn layers(folder: &Path, changes: &Path) -> Result<(), String> {
    let lower = [folder.to_path_buf()];
    try_view(Some(ViewEntry::stacked(
        &lower,
        changes,
        Path::new(LAYERED),
    )))
}

/// Runs a command in a small view that has one more place.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the supervisor's module; the trial ends before any command begins"
)]
fn try_view(more: Option<ViewEntry>) -> Result<(), String> {
    let places = SMALL.map(Path::new).into_iter();
    let places = places.filter(|path| path.exists());
    let view = View {
        places: places.map(ViewEntry::as_it_is).chain(more).collect(),
        network: Some(Loopback::default()),
        bounds: CommandBounds::default(),
    };
    let order = Order {
        view,
        has_terminal: false,
        program: OsText("/bin/sh".into()),
        args: ["-c", ":"].map(|text| OsText(text.into())).into(),
        env: Vec::new(),
        cwd: OsText("/".into()),
    };
    let record = Record::make(&order).map_err(|error| error.to_string())?;
    let stdin = record.share().map_err(|error| error.to_string())?;
    let status = Command::new("/proc/self/exe")
        .arg(LAUNCHER)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| error.to_string())?;
    match record.outcome() {
        Some(OrderEnd::Ended { code: Some(0), .. }) => Ok(()),
        Some(OrderEnd::NotConfined { message }) => Err(message),
        Some(other) => Err(format!("the trial ended as {other:?}")),
        None => Err(format!("the trial's launcher ended with {status}")),
    }
}

/// Says what a person can do where the system refuses namespaces.
fn advice() -> String {
    let says = |path: &str, value: &str| {
        std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
    };
    if says(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        let program = std::env::current_exe().unwrap_or_default();
        return format!(
            "; AppArmor restricts user namespaces here: write `abi <abi/4.0>, profile premath {} flags=(unconfined) {{ userns, }}` to /etc/apparmor.d/premath, and run `apparmor_parser -r /etc/apparmor.d/premath`",
            program.display()
        );
    }
    if says("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "; user namespaces are switched off: `sysctl kernel.unprivileged_userns_clone=1`"
    } else if says("/proc/sys/user/max_user_namespaces", "0") {
        "; user namespaces are switched off: `sysctl user.max_user_namespaces=15000`"
    } else {
        ""
    }
    .to_owned()
}

/// Adds to an error what failed.
fn while_doing<T>(what: impl std::fmt::Display, result: Result<T, Errno>) -> io::Result<T> {
    result.map_err(|errno| {
        let error = io::Error::from(errno);
        io::Error::new(error.kind(), format!("{what}: {error}"))
    })
}

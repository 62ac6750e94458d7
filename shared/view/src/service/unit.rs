//! The text of the units.

use super::escape::{Unwritable, line, program, whole_path, word};
use super::{ServiceSchedule, ServiceTerms, service_file};

/// How long the start of a batch may take: the lanes of a large repository are made
/// in that time.
const START: &str = "30min";

/// How long the main loop may be silent. It reports every few seconds; what it does
/// at the end of a batch takes longer.
const WATCHDOG: &str = "5min";

/// Returns the text of the service.
pub(super) fn service(terms: &ServiceTerms) -> Result<String, Unwritable> {
    let directory = whole_path("the repository's path", &terms.repository)?;
    program(&terms.program)?;
    let drain = terms.drain;
    let mut text = format!(
        "[Unit]
Description=Premath batch in {about}
# A batch that died again and again needs a person.
StartLimitIntervalSec=1h
StartLimitBurst=3

[Service]
# Started once the batch has begun.
Type=notify
NotifyAccess=main
WorkingDirectory={directory}
Environment={path}
ExecStart={command}
TimeoutStartSec={START}
# The main loop reports to systemd. One that is stuck is ended and started again.
WatchdogSec={WATCHDOG}
# SIGTERM reaches the coordinator alone, which drains. Commands of steps have
# supervisors, which end with it; what is left then is killed.
KillMode=mixed
# drain_grace {grace}, {term} from TERM to KILL, {notify} for the last notification,
# and time to save work and to write the report.
TimeoutStopSec={stop}
# A batch that was killed continues. One that ended by itself is not started again.
Restart=on-abnormal
RestartSec=30s
# 143: it was drained.
SuccessExitStatus=143
",
        about = line(&terms.repository),
        path = word(&format!("PATH={}", terms.path)),
        command = command(terms),
        grace = seconds(drain.drain_grace),
        term = seconds(drain.grace),
        notify = seconds(drain.notify),
        stop = (drain.total()).map_or_else(
            || "infinity".to_owned(),
            |total| format!("{}s", total.as_secs())
        ),
    );
    if terms.schedule == ServiceSchedule::Forever {
        text.push_str("\n[Install]\nWantedBy=default.target\n");
    }
    Ok(text)
}

/// Returns the text of the timer.
pub(super) fn timer(terms: &ServiceTerms, hour: u8, minute: u8) -> Result<String, Unwritable> {
    whole_path("the repository's path", &terms.repository)?;
    Ok(format!(
        "[Unit]
Description=Premath batch in {about}, every night

[Timer]
OnCalendar=*-*-* {hour:02}:{minute:02}:00
# A start that was missed is not made up for in the morning.
Persistent=false
Unit={service}

[Install]
WantedBy=timers.target
",
        about = line(&terms.repository),
        service = service_file(&terms.name),
    ))
}

/// Returns the command line. The colon has systemd take `$` as it is.
fn command(terms: &ServiceTerms) -> String {
    let stays: &[&str] = match terms.schedule {
        ServiceSchedule::Forever => &["--until", "forever"],
        ServiceSchedule::ByHand | ServiceSchedule::EveryNight(..) => &[],
    };
    let flags = stays.iter().copied();
    let flags = flags.chain(terms.flags.iter().map(String::as_str));
    let mut line = format!(":{}", word(&terms.program));
    for flag in flags {
        line.push(' ');
        line.push_str(&word(flag));
    }
    line
}

fn seconds(time: std::time::Duration) -> String {
    format!("{} s", time.as_secs())
}

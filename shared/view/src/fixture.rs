//! A batch as the tests of several models look at it.

use crate::figures::Viewer;
use jiff::tz::TimeZone;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::json::time::Moment;
use premath_kernel::record::live::{
    AgentState, LiveAgent, LiveAmounts, LiveBatch, LiveCommand, LiveStep, StepPhase,
};
use premath_kernel::record::trajectory::BatchHolder;

/// When the batch began, on the clock that counts while the machine sleeps.
pub(crate) const BEGAN_MS: u64 = 1_000_000;

/// When it is looked at: 2 h 13 min later.
pub(crate) fn now() -> Moment {
    Moment {
        wall: "2026-03-05T12:13:00Z".parse().unwrap(),
        boot_ms: BEGAN_MS + 7_980_000,
    }
}

pub(crate) fn viewer(width: usize) -> Viewer {
    Viewer {
        now: now().wall,
        zone: TimeZone::UTC,
        width,
    }
}

/// The batch without a lane, published now.
pub(crate) fn batch() -> LiveBatch {
    let holder = BatchHolder {
        host: "h".into(),
        boot_id: "b".into(),
        pid: 41,
        started: 7,
        pid_ns: None,
    };
    let at = Stamp::parse("2026-03-05T10:00:00Z").unwrap();
    let mut live = LiveBatch::new("hb1_a".into(), holder, at, BEGAN_MS);
    live.written_at = Stamp::at(now().wall);
    live.written_ms = now().boot_ms;
    live
}

/// An attempt at the issue of a number, whose agent calls a tool.
pub(crate) fn step(number: u64, title: &str) -> LiveStep {
    let ago = |ms: u64| now().boot_ms - ms;
    LiveStep {
        issue_id: format!("bd-{number}").into(),
        title: title.into(),
        step_id: format!("worker.{number}.bd-{number}.1").into(),
        generation: 1,
        attempt: 1,
        provider: Some("claude".into()),
        started_at: Stamp::parse("2026-03-05T12:00:00Z").unwrap(),
        started_ms: ago(780_000),
        phase: StepPhase::Working,
        phase_ms: ago(770_000),
        command: Some(LiveCommand {
            phase: "work".into(),
            started_ms: ago(770_000),
            limit_ms: 2_700_000,
        }),
        agent: Some(LiveAgent {
            state: AgentState::Calling,
            calls: 30 + number,
            last_tool: Some("Bash".into()),
            last_event_ms: Some(ago(10_000)),
            silence_limit_ms: 1_800_000,
            used: LiveAmounts {
                tokens: Some(120_000),
                cost_nano_usd: Some(1_230_000_000),
            },
        }),
        lease_renewed_ms: ago(120_000),
        lease_ttl_ms: 3_600_000,
    }
}

//! The progress of a batch in a line, for a service manager.

use premath_kernel::record::live::{LiveBatch, LiveLaneState};

/// Returns the line. It holds numbers and fixed words alone.
pub fn progress(live: &LiveBatch) -> String {
    let works = |state: LiveLaneState| live.lanes.iter().filter(|lane| lane.state == state).count();
    let mut parts = vec![
        format!(
            "{} of {} lanes work",
            works(LiveLaneState::Working),
            live.lanes.len()
        ),
        format!("{} closed", live.totals.closed),
        format!("{} given up", live.totals.given_up),
    ];
    if let Some(queue) = &live.queue {
        parts.push(format!("{} ready", queue.ready));
        parts.push(format!("{} blocked", queue.blocked));
    }
    if !live.pauses.is_empty() {
        parts.push("paused".to_owned());
    }
    parts.join(", ")
}

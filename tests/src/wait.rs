//! Waiting for an event, with an end to patience.

use std::time::{Duration, Instant};

/// How long a test waits for what should come soon, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until something is so; `None` where patience ends first.
pub fn until<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if began.elapsed() >= patience {
            return None;
        }
        // The polling interval where no descriptor reports the event.
        std::thread::sleep(Duration::from_millis(10));
    }
}

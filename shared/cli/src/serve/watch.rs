//! The one look at what batches publish, for all pages: at most once a second,
//! and only while a page is open.

use super::site::Site;
use crate::error::CliError;
use crate::status;
use futures_util::Stream;
use futures_util::stream::unfold;
use hyper::body::Bytes;
use premath_view::status::StatusView;
use premath_view::web::{Fragment, fragments};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// How long a look is the current one.
const FRESH: Duration = Duration::from_millis(900);
/// How often is looked while a page is open.
const AGAIN: Duration = Duration::from_secs(1);
/// The most streams at a time.
const STREAMS_MOST: usize = 128;
/// A stream without news sends a comment this often, so that one whose client is
/// gone is found.
const QUIET_MOST: Duration = Duration::from_secs(15);
/// How soon a client comes back whose stream broke, in milliseconds.
const RETRY: &str = "retry: 2000\n\n";

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// How the batches are; absent before the first look.
    pub(super) status: Option<StatusView>,
    parts: Vec<Part>,
}

/// A part of the page, as it is sent.
#[derive(Clone, Debug)]
struct Part {
    fragment: Fragment,
    /// The look that changed it last.
    version: u64,
    event: Bytes,
}

/// The look, and who follows it.
#[derive(Debug)]
pub(super) struct Watch {
    frames: watch::Sender<Arc<Frame>>,
    /// When was looked last, and how often.
    looked: Mutex<(Option<Instant>, u64)>,
    streams: Arc<Semaphore>,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            frames: watch::Sender::new(Arc::default()),
            looked: Mutex::default(),
            streams: Arc::new(Semaphore::new(STREAMS_MOST)),
        }
    }
}

impl Site {
    /// Looks again while pages are open.
    pub(super) fn keep_watch(self: Arc<Self>) {
        tokio::spawn(async move {
            let mut ticks = interval(AGAIN);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if self.watch.frames.receiver_count() > 0 {
                    // What cannot be read now is read again in a second.
                    let _ = self.current().await;
                }
            }
        });
    }

    /// Returns how the batches are, as of a second ago at most.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(super) async fn current(self: &Arc<Self>) -> Result<Arc<Frame>, CliError> {
        let mut looked = self.watch.looked.lock().await;
        let is_fresh = looked.0.is_some_and(|at| at.elapsed() < FRESH);
        if !is_fresh {
            let version = looked.1 + 1;
            let before = Arc::clone(&self.watch.frames.borrow());
            let frame = self.look(move |site| {
                let status = status::current(&site.roots, || site.memory())?;
                let shown = fragments(&status, &site.viewer(), site.controls);
                Ok(Frame::after(&before, status, shown, version))
            });
            let frame = frame.await?;
            *looked = (Some(Instant::now()), version);
            self.watch.frames.send_replace(Arc::new(frame));
        }
        Ok(Arc::clone(&self.watch.frames.borrow()))
    }

    /// Returns the stream of what changes; `None` where there are too many.
    pub(super) fn follow(&self) -> Option<impl Stream<Item = Result<Bytes, Infallible>> + use<>> {
        let place = Arc::clone(&self.watch.streams).try_acquire_owned().ok()?;
        let follower = Follower {
            frames: self.watch.frames.subscribe(),
            seen: None,
            _place: place,
        };
        Some(unfold(follower, async |mut follower| {
            let bytes = follower.next().await?;
            Some((Ok(bytes), follower))
        }))
    }
}

impl Frame {
    fn after(before: &Self, status: StatusView, shown: Vec<Fragment>, version: u64) -> Self {
        let parts = shown.into_iter().map(|fragment| {
            let same = before.parts.iter().find(|part| part.fragment == fragment);
            same.cloned().unwrap_or_else(|| Part {
                event: event(&fragment),
                version,
                fragment,
            })
        });
        Self {
            parts: parts.collect(),
            status: Some(status),
        }
    }
}

/// Writes a fragment as an event of the stream.
fn event(fragment: &Fragment) -> Bytes {
    let mut text = format!("event: {}\n", fragment.name);
    for line in fragment.html.lines() {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    // An event without a line of data is none, and what is shown would stay.
    text.push_str("data:\n\n");
    text.into()
}

/// Who follows.
struct Follower {
    frames: watch::Receiver<Arc<Frame>>,
    /// The last look that was sent; `None` before the first.
    seen: Option<u64>,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    /// Waits for the next bytes; `None` where the server ends.
    async fn next(&mut self) -> Option<Bytes> {
        let Some(seen) = self.seen else {
            self.seen = Some(0);
            self.frames.mark_changed();
            return Some(Bytes::from_static(RETRY.as_bytes()));
        };
        loop {
            match timeout(QUIET_MOST, self.frames.changed()).await {
                Ok(changed) => changed.ok()?,
                Err(_) => return Some(Bytes::from_static(b":\n\n")),
            }
            let frame = Arc::clone(&self.frames.borrow_and_update());
            let news = frame.parts.iter().filter(|part| part.version > seen);
            let mut bytes = Vec::new();
            let mut latest = seen;
            for part in news {
                latest = latest.max(part.version);
                bytes.extend_from_slice(&part.event);
            }
            if !bytes.is_empty() {
                self.seen = Some(latest);
                return Some(bytes.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(name: &'static str, html: &str) -> Fragment {
        let html = html.to_owned();
        Fragment { name, html }
    }

    #[test]
    fn an_event_has_each_line_of_its_part() {
        let event = event(&fragment("lanes", "<p>\na</p>\n"));
        assert_eq!(event, "event: lanes\ndata: <p>\ndata: a</p>\ndata:\n\n");
        assert_eq!(
            super::event(&fragment("lanes", "")),
            "event: lanes\ndata:\n\n"
        );
    }
}

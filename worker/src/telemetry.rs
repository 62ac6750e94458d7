//! Sends what a batch records to a receiver of OpenTelemetry, beside the batch. What
//! is not taken is dropped and counted; nothing waits but the end, for a bounded time.

use crate::batch::{Batch, RecordedRow};
use crate::environment::{EnvironmentRules, passes};
use crate::post::{PostError, Poster};
use crate::settings::TelemetrySettings;
use percent_encoding::percent_decode_str;
use premath_kernel::json::plain::plain;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use ureq::http::{HeaderName, HeaderValue};

/// How many rows one message has at most.
const ROWS_MAX: usize = 256;

/// How many characters of an error are reported.
const SAID: usize = 200;

/// A document to post, below the endpoint.
#[derive(Clone, Debug)]
pub struct Export {
    /// The path.
    pub path: &'static str,
    /// The type.
    pub content_type: &'static str,
    /// The document.
    pub body: Vec<u8>,
}

/// Makes documents of rows.
pub type Encoder = Box<dyn FnMut(&[RecordedRow]) -> Vec<Export> + Send>;

/// What was not taken.
#[derive(Debug, Default)]
struct Tally {
    lost: u64,
    why: Option<String>,
}

type SharedTally = Arc<Mutex<Tally>>;

/// Exports a batch.
#[derive(Debug)]
pub struct Exporter {
    batch: Arc<Batch>,
    tally: SharedTally,
    /// Closed when everything is sent.
    done: Receiver<()>,
    timeout: Duration,
}

impl Exporter {
    /// Starts the thread that sends; `None` where nothing is exported.
    pub fn start(batch: &Arc<Batch>, encoder: Encoder) -> Option<Self> {
        let settings = batch.settings.telemetry.clone()?;
        let rows = batch.recorded_rows()?;
        let tally = SharedTally::default();
        let (held, done) = channel::<()>();
        let timeout = settings.timeout;
        let environment = &batch.settings.environment;
        match headers_of(&settings, environment) {
            Err(why) => note(&tally, 0, why),
            Ok(headers) => {
                let (tally, thread) = (tally.clone(), std::thread::Builder::new());
                let sent = thread.name("telemetry".to_owned()).spawn(move || {
                    let _held = held;
                    send_all(&rows, encoder, &settings, &headers, &tally);
                });
                if let Err(error) = sent {
                    tracing::warn!(%error, "no telemetry is sent");
                    return None;
                }
            }
        }
        Some(Self {
            batch: batch.clone(),
            tally,
            done,
            timeout,
        })
    }

    /// Waits for the last spans, no longer than one request may take; returns what
    /// there is to warn of.
    pub fn finish(self) -> Option<String> {
        let dropped = self.batch.close_rows();
        let left = self.done.recv_timeout(self.timeout) == Err(RecvTimeoutError::Timeout);
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let why = tally
            .why
            .clone()
            .or(left.then(|| "the receiver took too long".to_owned()));
        let lost = tally.lost + dropped;
        if lost == 0 && why.is_none() {
            return None;
        }
        let why = why.unwrap_or_else(|| "too many were waiting".to_owned());
        let why: String = plain(&why).chars().take(SAID).collect();
        let more = if left { ", and the last ones" } else { "" };
        Some(format!(
            "telemetry is incomplete ({lost} rows of the run log{more} were not taken): {why}"
        ))
    }
}

fn note(tally: &SharedTally, lost: u64, why: String) {
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    tally.lost += lost;
    tally.why.get_or_insert(why);
}

fn send_all(
    rows: &Receiver<RecordedRow>,
    mut encoder: Encoder,
    settings: &TelemetrySettings,
    headers: &[(String, String)],
    tally: &SharedTally,
) {
    while let Ok(first) = rows.recv() {
        let further = rows.try_iter().take(ROWS_MAX - 1);
        let some: Vec<RecordedRow> = [first].into_iter().chain(further).collect();
        let until = Instant::now() + settings.timeout;
        for export in encoder(&some) {
            if let Err(error) = post(&export, settings, headers, until) {
                note(tally, some.len() as u64, error.to_string());
                break;
            }
        }
    }
}

/// Posts one document.
fn post(
    export: &Export,
    settings: &TelemetrySettings,
    headers: &[(String, String)],
    until: Instant,
) -> Result<(), PostError> {
    let own = [("Content-Type", export.content_type)];
    let further = headers.iter().map(|(name, value)| (&**name, &**value));
    let all: Vec<(&str, &str)> = own.into_iter().chain(further).collect();
    let left = until.saturating_duration_since(Instant::now());
    Poster::to(settings.endpoint.below(export.path)).post(&all, &export.body, left)
}

/// Reads the headers of this process's environment. An error never has a value.
fn headers_of(
    settings: &TelemetrySettings,
    rules: &EnvironmentRules,
) -> Result<Vec<(String, String)>, String> {
    let Some(name) = &settings.headers_env else {
        return Ok(Vec::new());
    };
    // The environment may allow it, which the file alone does not show.
    if passes(name, rules) {
        return Err(format!("{name} passes to the commands of steps"));
    }
    let text = std::env::var(name).ok().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| format!("{name} is not set"))?;
    parsed(&text).ok_or_else(|| format!("{name} is not of the form key=value,key=value"))
}

fn parsed(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        HeaderValue::from_str(&value).ok()?;
        Some((name.as_str().to_owned(), value.into_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_pairs_with_encoded_values() {
        let pairs = parsed("api-key=a%20b, x-team=ops").unwrap();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(pairs, [("api-key", "a b"), ("x-team", "ops")]);
        for wrong in ["api-key", "a b=c", "x=%0d%0aevil: 1", "x=%ff"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}

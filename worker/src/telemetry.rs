//! Sends what a batch records to a receiver of OpenTelemetry, beside the batch. What
//! is not taken is dropped and counted; nothing waits but the end, for a bounded time.

use crate::batch::{Batch, RecordedRow};
use crate::environment::{EnvironmentRules, passes};
use crate::post::{PostError, Poster};
use crate::settings::{Settings, SettingsError, TelemetryHeadersError, TelemetrySettings};
use crate::witness;
use percent_encoding::percent_decode_str;
use premath_evidence::TimedCalls;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::landing::WORK_ROUNDS;
use premath_kernel::record::timed_call::TimedCall;
use premath_kernel::record::trajectory::StepRow;
use premath_memory::hook_journals;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use ureq::http::{HeaderName, HeaderValue};

/// How many rows one message has at most.
const ROWS_MAX: usize = 256;

/// The most calls of an attempt that are exported; an agent makes as many as it likes.
const CALLS_MAX: usize = 1_000;

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
    /// Reads from an answer what the receiver did not take.
    pub rejection: fn(&[u8]) -> Option<Rejection>,
}

/// What a receiver that answered with success did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// How many spans or points; none where it only warns.
    pub count: u64,
    /// Its words, which are not escaped.
    pub why: String,
}

/// Makes documents of rows.
pub type Encoder = Box<dyn FnMut(&[RecordedRow]) -> Vec<Export> + Send>;

/// What was not taken.
#[derive(Debug, Default)]
struct Tally {
    /// Rows of the run log.
    lost: u64,
    /// Spans and points.
    rejected: u64,
    why: Option<String>,
}

impl Tally {
    /// Returns what there is to warn of; the receiver's words are escaped.
    fn warning(&self, is_late: bool) -> Option<String> {
        let mut parts = Vec::new();
        if self.lost > 0 || is_late {
            let more = if is_late { ", and the last ones" } else { "" };
            parts.push(format!(
                "{} rows of the run log{more} were not taken",
                self.lost
            ));
        }
        if self.rejected > 0 {
            let count = self.rejected;
            parts.push(format!("{count} spans or points were rejected"));
        }
        let why = self.why.as_deref().map(|why| {
            let why: String = plain(why).chars().take(SAID).collect();
            why
        });
        match (parts.is_empty(), why) {
            (true, None) => None,
            (true, Some(why)) => Some(format!("the receiver of telemetry warns: {why}")),
            (false, why) => {
                let why = why.unwrap_or_else(|| match is_late {
                    true => "the receiver took too long".to_owned(),
                    false => "too many were waiting".to_owned(),
                });
                let parts = parts.join(", ");
                Some(format!("telemetry is incomplete ({parts}): {why}"))
            }
        }
    }
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
            Err(why) => note(&tally, (0, 0), why),
            Ok(headers) => {
                let sender = Sender {
                    encoder,
                    settings,
                    headers,
                    streams: batch.settings.roots.streams.clone(),
                    tally: tally.clone(),
                };
                let thread = std::thread::Builder::new().name("telemetry".to_owned());
                let sent = thread.spawn(move || {
                    let _held = held;
                    sender.send_all(&rows);
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
        let is_late = self.done.recv_timeout(self.timeout) == Err(RecvTimeoutError::Timeout);
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.lost += dropped;
        tally.warning(is_late)
    }
}

fn note(tally: &SharedTally, (lost, rejected): (u64, u64), why: String) {
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    tally.lost += lost;
    tally.rejected += rejected;
    if !why.is_empty() {
        tally.why.get_or_insert(why);
    }
}

/// What a thread sends, and where.
struct Sender {
    encoder: Encoder,
    settings: TelemetrySettings,
    headers: Vec<(String, String)>,
    /// Where the journals of hooks are.
    streams: PathBuf,
    tally: SharedTally,
}

impl Sender {
    fn send_all(mut self, rows: &Receiver<RecordedRow>) {
        while let Ok(first) = rows.recv() {
            let further = rows.try_iter().take(ROWS_MAX - 1);
            let mut some: Vec<RecordedRow> = [first].into_iter().chain(further).collect();
            for recorded in &mut some {
                (recorded.calls, recorded.more_calls) = calls_of(&self.streams, &recorded.row);
            }
            let until = Instant::now() + self.settings.timeout;
            for export in (self.encoder)(&some) {
                match post(&export, &self.settings, &self.headers, until) {
                    Ok(None) => {}
                    Ok(Some(Rejection { count, why })) => note(&self.tally, (0, count), why),
                    Err(error) => {
                        note(&self.tally, (some.len() as u64, 0), error.to_string());
                        break;
                    }
                }
            }
        }
    }
}

/// Returns the first calls of an attempt's agent, from the journals of its hooks, and
/// how many more it had; none where it has none. An agent decides how many there are.
fn calls_of(streams: &Path, row: &StepRow) -> (Vec<TimedCall>, u64) {
    let (mut all, mut more) = (Vec::new(), 0);
    if row.agent.is_none() {
        return (all, more);
    }
    for (phase, round) in WORK_ROUNDS.iter().zip(1..) {
        let file = witness::file(streams, &row.step_id, phase, "hooks.jsonl");
        let mut calls = TimedCalls::of_round(round);
        match hook_journals::lines_of(&file, |line| calls.take(line)) {
            Ok(true) => {
                let mut of_round = calls.into_calls();
                all.extend(of_round.by_ref().take(CALLS_MAX - all.len()));
                more += of_round.count() as u64;
            }
            Ok(false) => break,
            Err(error) => {
                tracing::warn!(%error, "telemetry has no calls of an attempt");
                break;
            }
        }
    }
    (all, more)
}

/// Posts one document.
fn post(
    export: &Export,
    settings: &TelemetrySettings,
    headers: &[(String, String)],
    until: Instant,
) -> Result<Option<Rejection>, PostError> {
    let own = [("Content-Type", export.content_type)];
    let further = headers.iter().map(|(name, value)| (&**name, &**value));
    let all: Vec<(&str, &str)> = own.into_iter().chain(further).collect();
    let left = until.saturating_duration_since(Instant::now());
    let poster = Poster::to(settings.endpoint.below(export.path));
    let answer = poster.post_for(&all, &export.body, left)?;
    Ok((export.rejection)(&answer))
}

/// Requires the headers that a batch exports with, before it begins.
///
/// # Errors
///
/// [`SettingsError::Telemetry`]; it never has a value of a header.
pub fn require_headers(settings: &Settings) -> Result<(), SettingsError> {
    let Some(telemetry) = &settings.telemetry else {
        return Ok(());
    };
    let headers = headers_of(telemetry, &settings.environment);
    headers
        .map(drop)
        .map_err(|why| SettingsError::Telemetry(Box::new(TelemetryHeadersError { why })))
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
    use premath_kernel::record::trajectory::{AgentRecord, action};
    use premath_memory::artifact;
    use serde_json::json;
    use std::fmt::Write;

    #[test]
    fn the_first_calls_of_an_attempt_are_exported_and_the_others_counted() {
        let folder = tempfile::tempdir().unwrap();
        let at = jiff::Timestamp::UNIX_EPOCH;
        let mut row = StepRow::new("s", action::WORKER_LOOP, "completed", at);
        row.agent = Some(AgentRecord::default());
        let rounds = WORK_ROUNDS.iter().zip([CALLS_MAX - 3, 5, 4]);
        for (phase, count) in rounds {
            let mut text = String::new();
            for number in 1..=count {
                let line = json!({"kind": "before", "at": "2026-03-05T10:00:00Z",
                    "call": number, "tool": "Bash", "toolClass": "shell"});
                writeln!(text, "{line}").unwrap();
            }
            let file = witness::file(folder.path(), &row.step_id, phase, "hooks.jsonl");
            artifact::write(&file, text.as_bytes()).unwrap();
            artifact::compress(&file).unwrap();
        }
        let (calls, more) = calls_of(folder.path(), &row);
        assert_eq!((calls.len(), more), (CALLS_MAX, 6));
        let last: Vec<(u32, u64)> = calls[CALLS_MAX - 4..]
            .iter()
            .map(|call| (call.round, call.number))
            .collect();
        let first_round = CALLS_MAX as u64 - 3;
        assert_eq!(last, [(1, first_round), (2, 1), (2, 2), (2, 3)]);
    }

    #[test]
    fn a_warning_counts_what_was_not_taken_and_escapes_the_receivers_words() {
        let tally = |lost, rejected, why: Option<&str>| Tally {
            lost,
            rejected,
            why: why.map(str::to_owned),
        };
        assert_eq!(tally(0, 0, None).warning(false), None);
        for (tally, is_late, expected) in [
            (
                tally(5, 0, None),
                false,
                "telemetry is incomplete (5 rows of the run log were not taken): too many were \
                 waiting",
            ),
            (
                tally(2, 3, Some("no \u{1b}[2J room")),
                false,
                "telemetry is incomplete (2 rows of the run log were not taken, 3 spans or points \
                 were rejected): no \\u{1b}[2J room",
            ),
            (
                tally(0, 0, None),
                true,
                "telemetry is incomplete (0 rows of the run log, and the last ones were not \
                 taken): the receiver took too long",
            ),
            (
                tally(0, 0, Some("use gzip")),
                false,
                "the receiver of telemetry warns: use gzip",
            ),
        ] {
            assert_eq!(tally.warning(is_late).as_deref(), Some(expected));
        }
        let long = tally(1, 0, Some(&"x".repeat(10_000))).warning(false);
        assert!(long.unwrap().len() < 300);
    }

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

//! Witness references, and what their documents say.

use crate::failure::FailureClass;
use crate::json::canonical::{canonical_value, sha256_hex};
use crate::json::id::StepId;
use crate::json::token;
use crate::policy::landing::{LANDED_ROUNDS, SHARED_ROUND, verification_rounds};
use crate::policy::retry::may_pass_again;
use serde_json::Value;

/// A reference to a witness document: `ciwitness://<step>/<phase>/<digest>`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WitnessRef {
    /// The step.
    pub step_id: StepId,
    /// What it witnesses, as in `verify`.
    pub phase: String,
    /// The digest of the document.
    pub digest: String,
}

/// Returns the digest that a reference to a document has.
pub fn digest_of(document: &Value) -> String {
    sha256_hex(canonical_value(document).as_bytes())
}

impl WitnessRef {
    /// Reads a reference; `None` where it is of another kind.
    pub fn parse(reference: &str) -> Option<Self> {
        let rest = reference.strip_prefix("ciwitness://")?;
        let (step, rest) = rest.split_once('/')?;
        let (phase, digest) = rest.split_once('/')?;
        let plain = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        let is_digest = digest.len() == 64 && plain(digest);
        Some(Self {
            step_id: token::decode(step)?.into(),
            phase: plain(phase).then(|| phase.to_owned())?,
            digest: is_digest.then(|| digest.to_owned())?,
        })
    }

    /// The phase of the witness of a closed issue.
    pub const CLOSE: &'static str = "mutation";

    /// Returns whether it is a closed issue's.
    pub fn is_close(&self) -> bool {
        self.phase == Self::CLOSE
    }

    /// The phase of the witness of a step's turn.
    pub const TURN: &'static str = "turn";

    /// The phase of the witness of an escalation's turn; that of another one of
    /// the same step has a number behind it.
    pub const ESCALATION: &'static str = "escalation";

    /// Returns whether it is that of a turn.
    pub fn is_turn(&self) -> bool {
        let numbered = self.phase.strip_prefix(Self::ESCALATION);
        self.phase == Self::TURN || numbered.is_some_and(|n| n.is_empty() || n.starts_with('-'))
    }

    /// Returns whether its document lies with those of the step itself, and not
    /// with those of a crossing to another world.
    pub fn is_of_step(&self) -> bool {
        !matches!(self.phase.as_str(), "transport" | "gate")
    }

    /// Returns whether it says that work rests on the verification of other work.
    pub fn is_shared(&self) -> bool {
        self.phase == SHARED_ROUND
    }

    /// Returns whether it is a verification's.
    pub(crate) fn is_verification(&self) -> bool {
        verification_rounds().any(|round| round == self.phase)
    }

    /// Returns whether it is that of a check after a landing.
    pub(crate) fn is_check(&self) -> bool {
        LANDED_ROUNDS.contains(&self.phase.as_str())
    }
}

/// An output stream of a step's command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamName {
    /// The step.
    pub step_id: StepId,
    /// What the command was run for.
    pub phase: String,
    /// `stdout`, `stderr`, or the journal of the hooks.
    pub stream: &'static str,
}

/// What a witness reports about a stream that its file must hold whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Streamed {
    pub(super) name: StreamName,
    /// How many bytes it has; the witness of a journal does not say it.
    pub(super) bytes: Option<u64>,
    pub(super) sha256: String,
}

/// Returns the names of the streams that a command's witness records.
pub fn streams_of(reference: &WitnessRef, document: &Value) -> Vec<StreamName> {
    let streams = streamed(reference, document).into_iter();
    streams.map(|stream| stream.name).collect()
}

/// The streams of a command.
const STREAMS: [&str; 2] = ["stdout", "stderr"];
/// The end of the name of a journal.
const JOURNAL: &str = "hooks.jsonl";

/// Returns the streams of a command's witness whose files must be whole.
pub(super) fn streamed(reference: &WitnessRef, document: &Value) -> Vec<Streamed> {
    let of = |stream: &'static str| {
        let facts = document.get(stream)?;
        let is_whole = facts.get("cutBytes")?.as_u64()? == 0 && facts.get("writeError")?.is_null();
        let streamed = Streamed {
            name: StreamName {
                step_id: reference.step_id.clone(),
                phase: reference.phase.clone(),
                stream,
            },
            bytes: Some(facts.get("bytes")?.as_u64()?),
            sha256: facts.get("sha256")?.as_str()?.to_owned(),
        };
        is_whole.then_some(streamed)
    };
    let journal = || {
        let sha256 = document.get("hooks")?.get("journalSha256")?.as_str()?;
        Some(Streamed {
            name: StreamName {
                step_id: reference.step_id.clone(),
                phase: reference.phase.clone(),
                stream: JOURNAL,
            },
            bytes: None,
            sha256: sha256.to_owned(),
        })
    };
    let streams = STREAMS.into_iter().filter_map(of);
    streams.chain(journal()).collect()
}

/// Returns how many streams a command's witness has that its file need not hold whole.
pub(super) fn cut_streams(document: &Value) -> usize {
    let is_cut = |stream: &&str| {
        let facts = document.get(*stream);
        facts.is_some_and(|facts| {
            facts["cutBytes"].as_u64().is_some_and(|cut| cut > 0) || !facts["writeError"].is_null()
        })
    };
    STREAMS.into_iter().filter(is_cut).count()
}

/// Returns whether a command's witness says that it passed.
pub(super) fn passed(document: &Value) -> bool {
    let exit = &document["exit"];
    let classes = document["failureClasses"].as_array();
    exit["cause"] == "exited" && exit["code"] == 0 && classes.is_some_and(Vec::is_empty)
}

/// Returns whether a verification's witness says that its command failed in a way
/// that is repeated.
pub(super) fn may_pass(document: &Value) -> bool {
    let classes = classes(document);
    !classes.is_empty() && may_pass_again(&classes)
}

/// Returns whether a verification's witness says that its command ran to its end and
/// failed.
pub(super) fn is_red(document: &Value) -> bool {
    let red = [FailureClass::CheckFailed, FailureClass::LandingCheckFailed];
    let is_red = |class: &&str| red.iter().any(|red| red.as_str() == *class);
    let classes = classes(document);
    !classes.is_empty() && classes.iter().all(is_red)
}

fn classes(document: &Value) -> Vec<&str> {
    let classes = document["failureClasses"].as_array().into_iter().flatten();
    classes.map(|class| class.as_str().unwrap_or("")).collect()
}

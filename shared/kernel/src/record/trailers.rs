//! The trailers of a landing commit: what ties a commit of the target to a
//! step, its verification and the trajectory (`isolation.md` 6).
//!
//! The trailers are the last paragraph of the message and nothing else is in
//! it. Each key occurs once, in the order of `KEYS`. A value is one line;
//! what could end the line or be read as an escape is percent-encoded, so that
//! each value reads back as it was and no title can forge one.

use crate::json::id::{IssueId, StepId};
use crate::record::trajectory::ChainHead;
use std::borrow::Cow;
use std::fmt;

/// The keys, in the order in which they are written.
pub(crate) const KEYS: [&str; 8] = [
    "Issue",
    "Lease",
    "Step",
    "Witness",
    "Trajectory",
    "Base",
    "Verified-Tree",
    "Verified-In",
];

/// How many characters of a title a subject has.
const TITLE_MAX: usize = 200;
/// How much of a wrong text an error shows.
const SHOWN_CHARS: usize = 80;

/// What a landing commit reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LandingTrailers {
    /// The issue.
    pub issue: IssueId,
    /// The lease, with its generation.
    pub lease: String,
    /// The step.
    pub step: StepId,
    /// The witness of the verification that the tree passed.
    pub witness: Option<String>,
    /// The end of the trajectory's hash chain at the landing.
    pub trajectory: Option<ChainHead>,
    /// The commit that the step began at.
    pub base: Option<String>,
    /// The tree that was verified: that of the commit.
    pub verified_tree: Option<String>,
    /// The tree of a later commit, which was verified and contains the work: that
    /// of the commit was not.
    pub verified_in: Option<String>,
}

/// A message whose trailers claim a step and are not what the harness writes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrailerError {
    /// A trailer occurs twice.
    #[error("the trailer `{0}` occurs twice")]
    Duplicate(&'static str),
    /// A trailer that the harness always writes is absent.
    #[error("the trailer `{0}` is missing")]
    Missing(&'static str),
    /// A line of the last paragraph is not a trailer of the harness.
    #[error("`{0}` is not a trailer of the harness")]
    Unknown(String),
    /// The trailers are in another order.
    #[error("the trailer `{0}` is out of order")]
    Order(&'static str),
    /// A value is not what the trailer holds.
    #[error("the trailer `{key}` must be {expected}, found `{found}`")]
    Value {
        /// The trailer.
        key: &'static str,
        /// The value that was expected.
        expected: &'static str,
        /// The beginning of what it is.
        found: String,
    },
}

impl LandingTrailers {
    /// Returns the lines, each with its line feed.
    pub(crate) fn write(&self) -> String {
        let chain = self.trajectory.map(|value| value.to_string());
        let values = [
            Some(self.issue.as_str()),
            Some(self.lease.as_str()),
            Some(self.step.as_str()),
            self.witness.as_deref(),
            chain.as_deref(),
            self.base.as_deref(),
            self.verified_tree.as_deref(),
            self.verified_in.as_deref(),
        ];
        let mut text = String::new();
        for (key, value) in KEYS.into_iter().zip(values) {
            if let Some(value) = value {
                text.push_str(&format!("{key}: {}\n", escape(value)));
            }
        }
        text
    }

    /// Returns the message of a landing commit: a subject of one line, an
    /// optional body, and the trailers as the last paragraph.
    pub fn message(&self, title: &str, body: Option<&str>) -> String {
        let title: String = one_line(title).chars().take(TITLE_MAX).collect();
        let subject = format!("{}: {}", one_line(&self.issue), title);
        let mut message = format!("{}\n\n", subject.trim());
        if let Some(body) = body.map(plain).filter(|body| !body.is_empty()) {
            message.push_str(&format!("{body}\n\n"));
        }
        message.push_str(&self.write());
        message
    }

    /// Returns whether the commit is what a step of an issue landed under a
    /// generation of its lease.
    pub fn is_of(&self, issue_id: &IssueId, generation: u64) -> bool {
        let of = self.lease.rsplit_once('#').map(|(_, number)| number);
        self.issue == *issue_id && of == Some(generation.to_string().as_str())
    }

    /// Reads the trailers of a commit's message; `None` where it claims no
    /// step.
    ///
    /// # Errors
    ///
    /// [`TrailerError`], where the last paragraph has a line that begins with
    /// `Step:` in any case, and is not exactly what `write`
    /// writes.
    pub fn parse(message: &str) -> Result<Option<Self>, TrailerError> {
        let Some(block) = last_paragraph(message) else {
            return Ok(None);
        };
        if !block.split('\n').any(claims_step) {
            return Ok(None);
        }
        let mut values: [Option<String>; KEYS.len()] = Default::default();
        let mut last = 0;
        for line in block.split('\n') {
            let (index, value) = trailer(line)?;
            if values[index].is_some() {
                return Err(TrailerError::Duplicate(KEYS[index]));
            }
            if index < last {
                return Err(TrailerError::Order(KEYS[index]));
            }
            last = index;
            values[index] = Some(value);
        }
        let [issue, lease, step, witness, chain, base, tree, within] = values;
        let must = |value: Option<String>, key| value.ok_or(TrailerError::Missing(key));
        Ok(Some(Self {
            issue: must(issue, "Issue")?.into(),
            lease: must(lease, "Lease")?,
            step: must(step, "Step")?.into(),
            witness,
            trajectory: chain.map(|text| chain_head(&text)).transpose()?,
            base: base.map(|text| object_id("Base", text)).transpose()?,
            verified_tree: tree
                .map(|text| object_id("Verified-Tree", text))
                .transpose()?,
            verified_in: within
                .map(|text| object_id("Verified-In", text))
                .transpose()?,
        }))
    }
}

impl fmt::Display for LandingTrailers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write())
    }
}

/// Returns the last paragraph of a message that has more than one.
fn last_paragraph(message: &str) -> Option<&str> {
    let text = message.trim_end_matches('\n');
    text.rsplit_once("\n\n").map(|(_, block)| block)
}

/// Returns whether a line is a `Step` trailer for git, which ignores case and
/// white space before the colon.
fn claims_step(line: &str) -> bool {
    line.split_once(':')
        .is_some_and(|(key, _)| key.trim().eq_ignore_ascii_case("step"))
}

/// Reads one line as the trailer that it is.
fn trailer(line: &str) -> Result<(usize, String), TrailerError> {
    let unknown = || TrailerError::Unknown(shown(line));
    let (key, value) = line.split_once(": ").ok_or_else(unknown)?;
    let index = KEYS.iter().position(|known| *known == key);
    let index = index.ok_or_else(unknown)?;
    let value = unescape(value).ok_or_else(|| TrailerError::Value {
        key: KEYS[index],
        expected: "text as the harness writes it",
        found: shown(value),
    })?;
    Ok((index, value))
}

fn chain_head(text: &str) -> Result<ChainHead, TrailerError> {
    text.parse().map_err(|_| TrailerError::Value {
        key: "Trajectory",
        expected: "`sha256:` and 64 lower-case hexadecimal digits",
        found: shown(text),
    })
}

fn object_id(key: &'static str, text: String) -> Result<String, TrailerError> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if matches!(text.len(), 40 | 64) && text.bytes().all(is_hex) {
        return Ok(text);
    }
    Err(TrailerError::Value {
        key,
        expected: "a git object's full name",
        found: shown(&text),
    })
}

/// Writes a value as one line that reads back: characters that end or bend a
/// line, `%`, and white space at its ends are percent-encoded.
fn escape(value: &str) -> Cow<'_, str> {
    let inner = value.trim();
    let starts = inner.as_ptr() as usize - value.as_ptr() as usize;
    let ends = starts + inner.len();
    let is_safe = |at: usize, c: char| !must_escape(c) && (starts..ends).contains(&at);
    if value.char_indices().all(|(at, c)| is_safe(at, c)) {
        return Cow::Borrowed(value);
    }
    let mut text = String::with_capacity(value.len() * 2);
    for (at, c) in value.char_indices() {
        if is_safe(at, c) {
            text.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(text)
}

/// Reads a value; `None` where [`escape`] does not write it so.
fn unescape(text: &str) -> Option<String> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    let value = decoded.ok()?.into_owned();
    (escape(&value) == text).then_some(value)
}

/// Returns whether a character could end a line, hide or reorder text, or be
/// read as an escape.
fn must_escape(c: char) -> bool {
    c.is_control()
        || matches!(c, '%'
            | '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}')
}

/// Returns text as one line without control characters.
fn one_line(text: &str) -> String {
    let clean = text.chars().map(|c| match c {
        '%' => c,
        c if must_escape(c) => ' ',
        c => c,
    });
    let clean: String = clean.collect();
    clean.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns text without control characters but its line feeds.
fn plain(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let clean = line.chars().map(|c| match c {
            '%' => c,
            c if must_escape(c) => ' ',
            c => c,
        });
        clean.collect::<String>().trim_end().to_owned()
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n").trim().to_owned()
}

fn shown(text: &str) -> String {
    one_line(text).chars().take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::trajectory::Chain;
    use proptest::prelude::*;

    fn full() -> LandingTrailers {
        LandingTrailers {
            issue: "bd-1".into(),
            lease: "lease1_bd-1_w#2".into(),
            step: "w.bd-1.2".into(),
            witness: Some("ciwitness://w.bd-1.2/verify/00".into()),
            trajectory: Some(Chain::default().value_of("{}")),
            base: Some("a".repeat(40)),
            verified_tree: Some("b".repeat(64)),
            verified_in: None,
        }
    }

    #[test]
    fn the_message_is_a_subject_and_the_trailers() {
        let chain = Chain::default().value_of("{}");
        let (a, b) = ("a".repeat(40), "b".repeat(64));
        assert_eq!(
            full().message(" Do  it\nnow ", None),
            format!(
                "bd-1: Do it now\n\nIssue: bd-1\nLease: lease1_bd-1_w#2\nStep: w.bd-1.2\n\
                 Witness: ciwitness://w.bd-1.2/verify/00\nTrajectory: {chain}\n\
                 Base: {a}\nVerified-Tree: {b}\n"
            )
        );
        let message = full().message("t", Some("One.\r\n\n\u{7}Two.\n\n"));
        assert!(message.starts_with("bd-1: t\n\nOne.\n\n Two.\n\nIssue: bd-1\n"));
        assert_eq!(LandingTrailers::parse(&message), Ok(Some(full())));
    }

    #[test]
    fn only_the_last_paragraph_counts_and_only_a_step_is_a_claim() {
        for message in [
            "",
            "Step: x",
            "Step: x\n",
            "subject\nStep: x\n",
            "s\n\nIssue: 12\nSigned-off-by: a\n",
            "s\n\nStep: x\n\nA last paragraph.\n",
            "s\n\nStepwise: x\n",
        ] {
            assert_eq!(LandingTrailers::parse(message), Ok(None), "{message}");
        }
    }

    #[test]
    fn what_claims_a_step_must_be_what_the_harness_writes() {
        let good = full().write();
        let with = |from: &str, to: &str| good.replacen(from, to, 1);
        let cases = [
            (with("Lease", "Issue"), "the trailer `Issue` occurs twice"),
            (
                format!("{good}Step: w.bd-1.2\n"),
                "the trailer `Step` occurs twice",
            ),
            (
                with("Lease: lease1_bd-1_w#2\n", ""),
                "the trailer `Lease` is missing",
            ),
            (
                with("Step: ", "step: "),
                "`step: w.bd-1.2` is not a trailer of the harness",
            ),
            (
                with("Step: ", "Step : "),
                "`Step : w.bd-1.2` is not a trailer of the harness",
            ),
            (
                format!("{good}Signed-off-by: a\n"),
                "`Signed-off-by: a` is not a trailer of the harness",
            ),
            (
                format!(
                    "Base: {}\n{}",
                    "a".repeat(40),
                    with(&format!("Base: {}\n", "a".repeat(40)), "")
                ),
                "the trailer `Issue` is out of order",
            ),
            (
                with("sha256:", "sha1:"),
                "the trailer `Trajectory` must be `sha256:` and 64 lower-case hexadecimal digits",
            ),
            (
                with("Base: a", "Base: A"),
                "the trailer `Base` must be a git object's full name",
            ),
            (
                format!("{good}Verified-In: tree\n"),
                "the trailer `Verified-In` must be a git object's full name",
            ),
            (
                with("bd-1\n", "bd-1 \n"),
                "the trailer `Issue` must be text as the harness writes it",
            ),
            (
                with("bd-1\n", "bd%2D1\n"),
                "the trailer `Issue` must be text as the harness writes it",
            ),
        ];
        for (block, expected) in cases {
            let found = LandingTrailers::parse(&format!("subject\n\n{block}"));
            let found = found.unwrap_err().to_string();
            assert!(found.starts_with(expected), "{found}\n{block}");
        }
    }

    fn any_trailers() -> impl Strategy<Value = LandingTrailers> {
        let text = || prop_oneof![any::<String>(), "[ -~\n]{0,20}"];
        let id = "[0-9a-f]{40}";
        let chain = "[ -~]{0,5}".prop_map(|text| Chain::default().value_of(&text));
        (
            text(),
            text(),
            text(),
            proptest::option::of(text()),
            proptest::option::of(chain),
            proptest::option::of(id),
            proptest::option::of(id),
            proptest::option::of(id),
        )
            .prop_map(
                |(issue, lease, step, witness, trajectory, base, tree, within)| LandingTrailers {
                    issue: issue.into(),
                    lease,
                    step: step.into(),
                    witness,
                    trajectory,
                    base,
                    verified_tree: tree,
                    verified_in: within,
                },
            )
    }

    proptest! {
        #[test]
        fn whatever_is_written_reads_back_and_no_text_forges_a_trailer(
            trailers in any_trailers(),
            title in any::<String>(),
            body in proptest::option::of(prop_oneof![
                any::<String>(), "(\n|Step: x|Issue: y| |z){0,8}"]),
        ) {
            let message = trailers.message(&title, body.as_deref());
            prop_assert_eq!(LandingTrailers::parse(&message), Ok(Some(trailers)));
        }

        #[test]
        fn what_parses_is_written_alike(block in "((Issue|Lease|Step|Witness|Base): [ -~]{0,6}\n){1,6}") {
            let message = format!("s\n\n{block}");
            if let Ok(Some(found)) = LandingTrailers::parse(&message) {
                prop_assert_eq!(found.write(), block);
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in any::<String>()) {
            let _ = LandingTrailers::parse(&text);
        }
    }
}

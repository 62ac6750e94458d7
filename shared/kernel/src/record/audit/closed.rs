//! Issues that steps closed: row, witnesses and issue say the same.

use super::witness::{WitnessRef, cut_streams, digest_of, is_red, may_pass, passed, streamed};
use super::{Audit, AuditRow, ContradictionCode as Code, IssueState, WitnessFile};
use crate::json::canonical;
use crate::record::trajectory::StepRow;
use crate::record::turn_context::TurnContext;
use crate::turn::{ParsedInput, join_check};
use serde_json::Value;

/// How many fields of a right to close a turn of an earlier version decides.
const SAID_BEFORE: usize = 6;
/// The fields of a verdict that the witness of a turn repeats.
const VERDICT: [&str; 5] = [
    "joinClosed",
    "result",
    "failureClasses",
    "mutationReady",
    "mutationFailureClasses",
];

/// A witness of a row, as its file has it.
pub(super) struct ClosedWitness<'a> {
    /// The reference as the row names it.
    text: &'a str,
    pub(super) reference: WitnessRef,
    pub(super) document: &'a Value,
}

impl<'a> Audit<'a> {
    pub(super) fn closed(&mut self) {
        let facts = self.facts;
        let by_none =
            |state: &&IssueState| state.is_closed && !state.is_deleted && state.closed_by.is_none();
        let by_none = facts.issues.values().filter(by_none).count();
        if by_none > 0 {
            self.note(format!(
                "{by_none} issue(s) were not closed by a step and have no proof"
            ));
        }
        for (issue, state) in &facts.issues {
            let Some(step) = state.closed_by.as_deref().filter(|_| state.is_closed) else {
                continue;
            };
            self.report.closed += 1;
            let Some(found) = self.row_of(issue, step) else {
                continue;
            };
            let witnesses = self.witnesses(issue, found);
            if found.row.recovered {
                self.note(format!(
                    "{issue}: the row of {step} was written by a later process; its witnesses are not named"
                ));
            } else {
                self.turn(issue, found, &witnesses);
                self.mutation(issue, found, &witnesses);
                self.verification(issue, found, &witnesses);
                self.flaky(issue, found, &witnesses);
            }
            self.landing(issue, found, &witnesses);
            for read in &witnesses {
                self.streams(issue, read);
            }
        }
        let uncompared = self.uncompared;
        if uncompared > 0 {
            self.note(format!(
                "{uncompared} stream(s) of commands were cut when they were written, or are not there any more, and were not compared"
            ));
        }
        let shared = self.report.shared;
        if shared > 0 {
            self.note(format!(
                "{shared} issue(s) landed as trees that were not verified by themselves, but with a later commit"
            ));
        }
    }

    /// Finds the row that a closed issue names.
    fn row_of(&mut self, issue: &str, step: &str) -> Option<&'a AuditRow> {
        let facts = self.facts;
        let place = format!("{}: {issue}", facts.issues_path);
        let mut rows: Vec<&AuditRow> = facts
            .steps()
            .filter(|found| found.row.step_id == step)
            .collect();
        rows.sort_by_key(|found| (!found.row.succeeded(), found.line));
        let Some(found) = rows.first().copied() else {
            self.contradiction(
                Code::RowMissing,
                place,
                format!("a completed row of {step}"),
                "none",
            );
            return None;
        };
        let of = found.row.issue_id.as_deref();
        if of != Some(issue) {
            let found = format!("a row of {}", of.unwrap_or("no issue"));
            self.contradiction(
                Code::RowOfAnotherIssue,
                place,
                format!("a row of {issue} for {step}"),
                found,
            );
            return None;
        }
        if !found.row.succeeded() {
            let class = found.row.result_class.clone();
            self.contradiction(
                Code::RowNotCompleted,
                place,
                format!("a completed row of {step}"),
                class,
            );
            return None;
        }
        Some(found)
    }

    /// Reads the witnesses that a row names. One that differs from its
    /// reference is a contradiction.
    fn witnesses(&mut self, issue: &str, found: &'a AuditRow) -> Vec<ClosedWitness<'a>> {
        let facts = self.facts;
        let mut read: Vec<ClosedWitness<'a>> = Vec::new();
        let references: Vec<WitnessRef> = found
            .row
            .witness_refs
            .iter()
            .filter_map(WitnessRef::parse)
            .filter(WitnessRef::is_of_step)
            .collect();
        for text in found.row.witness_refs.iter() {
            let Some(reference) = WitnessRef::parse(text).filter(WitnessRef::is_of_step) else {
                continue;
            };
            let place = format!("{issue}: {text}");
            if reference.step_id != found.row.step_id {
                self.contradiction(
                    Code::WitnessOfAnotherStep,
                    self.row_place(found.line),
                    format!("a witness of {}", found.row.step_id),
                    text,
                );
                continue;
            }
            match facts.witnesses.get(text) {
                Some(WitnessFile::Found { path, document }) => {
                    let digest = digest_of(document);
                    // A phase that was witnessed again has one file.
                    let newer = references
                        .iter()
                        .any(|other| other.phase == reference.phase && other.digest == digest);
                    if digest == reference.digest {
                        read.push(ClosedWitness {
                            text,
                            reference,
                            document,
                        });
                    } else if !newer {
                        self.contradiction(Code::WitnessAltered, path, reference.digest, digest);
                    }
                }
                Some(WitnessFile::Unreadable { path, detail }) => self.contradiction(
                    Code::WitnessUnreadable,
                    path,
                    format!("the document {}", reference.digest),
                    detail,
                ),
                Some(WitnessFile::Missing { path }) => {
                    self.contradiction(Code::WitnessMissing, place, path, "no file");
                }
                None => self.contradiction(Code::WitnessMissing, place, "its file", "no file"),
            }
        }
        read
    }

    /// Returns the witness of a phase; records a finding if the row names none.
    fn must_have<'r>(
        &mut self,
        issue: &str,
        found: &AuditRow,
        witnesses: &'r [ClosedWitness<'a>],
        phase: &str,
    ) -> Option<&'r ClosedWitness<'a>> {
        let named = |reference: &str| {
            WitnessRef::parse(reference).is_some_and(|reference| reference.phase == phase)
        };
        let read = witnesses.iter().find(|read| read.reference.phase == phase);
        if read.is_none() && !found.row.witness_refs.iter().any(named) {
            self.contradiction(
                Code::WitnessLacking,
                self.row_place(found.line),
                format!("a `{phase}` witness, for the row closes {issue}"),
                "none",
            );
        }
        read
    }

    /// Judges the turn again, by its evidence alone.
    fn turn(&mut self, issue: &str, found: &AuditRow, witnesses: &[ClosedWitness<'a>]) {
        let Some(read) = self.must_have(issue, found, witnesses, "turn") else {
            return;
        };
        let place = format!("{issue}: turn of {}", found.row.step_id);
        let document = read.document;
        let judged = ParsedInput::from_value(document["input"].clone())
            .and_then(|parsed| join_check(&parsed.input));
        self.context(&place, document);
        let judged = match judged {
            Ok(judged) => canonical::value_of(&judged),
            Err(error) => {
                self.contradiction(
                    Code::TurnVerdict,
                    place,
                    "evidence that the gate reads",
                    error.to_string(),
                );
                return;
            }
        };
        let written = &document["joinCheck"];
        let digests = judged["witness"]["digests"].as_object();
        for (name, expected) in digests.into_iter().flatten() {
            let found = &written["witness"]["digests"][name];
            if found != expected {
                self.contradiction(
                    Code::TurnDigest,
                    format!("{place}: {name}"),
                    shown(expected),
                    shown(found),
                );
                return;
            }
        }
        for name in VERDICT {
            if written[name] != judged[name] {
                let (expected, found) = (shown(&judged[name]), shown(&written[name]));
                self.contradiction(
                    Code::TurnVerdict,
                    format!("{place}: {name}"),
                    expected,
                    found,
                );
                return;
            }
        }
        let against = document["closeFailureClasses"].as_array();
        if judged["mutationReady"] != true || !against.is_some_and(Vec::is_empty) {
            self.contradiction(
                Code::TurnVerdict,
                place,
                "a closed join that may close the issue",
                shown(&document["closeFailureClasses"]),
            );
        }
    }

    /// Compares the context rows of a turn with what they are digests of. A turn
    /// of an earlier version has no contents.
    fn context(&mut self, place: &str, document: &Value) {
        let Some(context) = document.get("context") else {
            return;
        };
        let input = ParsedInput::from_value(document["input"].clone());
        let context = serde_json::from_value::<TurnContext>(context.clone());
        let unproven = match (input, context) {
            (Ok(parsed), Ok(context)) => context.unproven(&parsed.input.evidence),
            _ => vec!["context".to_owned()],
        };
        for row in unproven {
            self.contradiction(
                Code::TurnContext,
                format!("{place}: {row}"),
                "the digest of its content",
                "another one",
            );
        }
    }

    /// Compares the witness of the close with the row.
    fn mutation(&mut self, issue: &str, found: &AuditRow, witnesses: &[ClosedWitness<'a>]) {
        let Some(read) = self.must_have(issue, found, witnesses, WitnessRef::CLOSE) else {
            return;
        };
        let row = &found.row;
        let place = format!("{issue}: close by {}", row.step_id);
        let document = read.document;
        let digest = canonical::ref_digest(&document["mutation"]);
        // The row also names the right of what the step discovered.
        let rights = row.witness_refs.iter();
        let mut rights = rights.filter_map(|text| text.strip_prefix("mutation-ready://"));
        let right = rights.find(|text| text.rsplit('/').nth(1) == Some("close"));
        let named = right.and_then(|text| text.rsplit_once('/'));
        if named.map(|(_, digest)| digest) != Some(&digest) {
            let found = named.map_or("none", |(_, digest)| digest).to_owned();
            self.contradiction(Code::MutationDigest, &place, digest, found);
        }
        let back = &document["found"];
        let held = document["holds"] == true
            && back["status"] == "closed"
            && back["closedByThisStep"] == true;
        if !held {
            let expected = format!("{issue} closed by {}", row.step_id);
            self.contradiction(Code::CloseNotHeld, &place, expected, shown(back));
        }
        let turn = witnesses
            .iter()
            .find(|read| read.reference.phase == WitnessRef::TURN);
        if let Some(turn) = turn {
            self.right_of_turn(&place, (issue, row), &document["mutation"], turn.document);
        }
        let landing = canonical::value_of(&row.landing);
        if document["landing"] != landing {
            let found = shown(&document["landing"]);
            self.contradiction(Code::CloseDisagrees, place, shown(&landing), found);
        }
    }

    /// Compares the right to close with the turn that it rests on.
    fn right_of_turn(
        &mut self,
        place: &str,
        (issue, row): (&str, &StepRow),
        right: &Value,
        turn: &Value,
    ) {
        let digests = &turn["joinCheck"]["witness"]["digests"];
        let step = &turn["step"];
        let trimmed = |value: &Value| {
            value
                .as_str()
                .map_or(Value::Null, |text| text.trim().into())
        };
        for (name, expected) in [
            ("change", "close".into()),
            ("issueId", issue.into()),
            ("stepId", row.step_id.as_str().into()),
            ("callSpecDigest", digests["callSpecDigest"].clone()),
            ("joinSetDigest", digests["joinSetDigest"].clone()),
            (
                "mutationPolicyDigest",
                trimmed(&turn["input"]["evidence"]["callSpec"]["mutationPolicyDigest"]),
            ),
            // A turn of an earlier version has none of these.
            ("sessionId", step["sessionId"].clone()),
            ("leaseId", step["leaseId"].clone()),
            ("leaseOwner", step["owner"].clone()),
            ("leaseGeneration", step["generation"].clone()),
            ("verificationCallId", trimmed(&turn["verificationCallId"])),
            ("instructionRef", turn["instructionRef"].clone()),
        ]
        .into_iter()
        .take(if step.is_null() {
            SAID_BEFORE
        } else {
            usize::MAX
        }) {
            if right[name] != expected {
                self.contradiction(
                    Code::MutationDisagrees,
                    format!("{place}: {name}"),
                    shown(&expected),
                    shown(&right[name]),
                );
                return;
            }
        }
    }

    /// The latest verification of the tree that the row's one judged has passed.
    fn verification(&mut self, issue: &str, found: &AuditRow, witnesses: &[ClosedWitness<'a>]) {
        if let Some(said) = &found.row.verification {
            let witness = said.witness_ref.as_deref().unwrap_or("no witness");
            if said.class != "passed" || !found.row.witness_refs.contains(witness) {
                self.contradiction(
                    Code::VerificationDisagrees,
                    self.row_place(found.line),
                    "one that passed, with a witness that the row names",
                    format!("{}, {witness}", said.class),
                );
            }
        }
        // Others judged states that did not land.
        let named = found.row.verification.as_ref();
        let named = named.and_then(|said| said.witness_ref.as_deref());
        let tree = |read: &ClosedWitness<'a>| read.document["before"]["tree"].as_str();
        let judged = witnesses.iter().find(|read| Some(read.text) == named);
        // Whether that holds is looked at with its commit.
        if judged.is_some_and(|judged| judged.reference.is_shared()) {
            return;
        }
        let decided = witnesses
            .iter()
            .filter(|read| read.reference.is_verification())
            .filter(|read| judged.is_none_or(|judged| tree(read) == tree(judged)))
            .max_by_key(|read| read.document["finishedAt"].as_str().unwrap_or_default());
        let Some(read) = decided else {
            self.contradiction(
                Code::WitnessLacking,
                issue,
                "the witness of a verification",
                "none",
            );
            return;
        };
        if !passed(read.document) {
            self.contradiction(
                Code::VerificationFailed,
                format!("{issue}: {}", read.reference.phase),
                "exit code 0",
                shown(&read.document["exit"]),
            );
        }
    }

    /// The row lists every verification that failed on the tree that passed, and
    /// no other; and every check after the landing that did.
    fn flaky(&mut self, issue: &str, found: &AuditRow, witnesses: &[ClosedWitness<'a>]) {
        let judging = || {
            witnesses
                .iter()
                .filter(|read| read.reference.is_verification() || read.reference.is_check())
        };
        let judged = |read: &ClosedWitness<'a>| {
            let tree = read.document["before"]["tree"].as_str();
            (tree, read.reference.is_check())
        };
        let passed_trees: Vec<_> = judging()
            .filter(|read| passed(read.document))
            .map(judged)
            .collect();
        let failed: Vec<&ClosedWitness<'a>> = judging()
            .filter(|read| may_pass(read.document) && passed_trees.contains(&judged(read)))
            .collect();
        let listed: Vec<&str> = found.row.flaky_refs.iter().collect();
        let is_listed = |read: &&&ClosedWitness<'a>| listed.contains(&read.text);
        // Rows of earlier versions list no checks, and failures of these classes alone.
        let is_due =
            |read: &&&ClosedWitness<'a>| !read.reference.is_check() && is_red(read.document);
        let all_due = failed.iter().filter(is_due).all(|read| is_listed(&read));
        let all_failed = failed.iter().filter(is_listed).count() == listed.len();
        if !(all_due && all_failed) {
            let mut failed: Vec<&str> = failed.iter().map(|read| read.text).collect();
            failed.sort_unstable();
            self.contradiction(
                Code::FlakyDisagrees,
                format!("{issue}: {}", self.row_place(found.line)),
                failed.join(", "),
                listed.join(", "),
            );
        }
    }

    /// Compares what a command printed with what its witness says.
    fn streams(&mut self, issue: &str, read: &ClosedWitness<'a>) {
        let facts = self.facts;
        self.uncompared += cut_streams(read.document);
        for stream in streamed(&read.reference, read.document) {
            let Some(file) = facts.streams.get(&stream.name) else {
                self.uncompared += 1;
                continue;
            };
            let bytes = stream.bytes.unwrap_or(file.bytes);
            if (file.bytes, &file.sha256) != (bytes, &stream.sha256) {
                self.contradiction(
                    Code::StreamAltered,
                    format!("{issue}: {}", file.path),
                    format!("{bytes} bytes, sha256 {}", stream.sha256),
                    format!("{} bytes, sha256 {}", file.bytes, file.sha256),
                );
            }
        }
    }
}

/// Returns a value as a short text.
pub(super) fn shown(value: &Value) -> String {
    const LONGEST: usize = 200;
    let text = match value {
        Value::String(text) => text.clone(),
        other => canonical::canonical_value(other),
    };
    text.chars().take(LONGEST).collect()
}

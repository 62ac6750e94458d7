//! Escalation: which issue it is about, and what is written down
//! (`contracts.md` 7, TUSK-HARNESS-CONTRACT 5).
//!
//! Pure text and pure decisions; the caller reads the sources and hands the
//! change to the gate. Text is deterministic and plain: no time, no control
//! character.

use crate::failure::FailureClass;
use crate::issue::lease::LeaseRefusal;
use crate::json::id::{IssueId, StepId, WorkerName};
use crate::json::reference::RefSet;
use crate::policy::retry::{Decision, RetryOutcome};
use crate::turn::{Block, Discover, MutationReady};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What reading the session gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionSource {
    /// There is no session file.
    Absent,
    /// There is one, about this issue or none.
    Read {
        /// The session's `issueId`.
        issue_id: Option<IssueId>,
    },
    /// There is one that does not have the shape of a session.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// There is one that cannot be read.
    ReadFailed {
        /// The message of the system.
        reason: String,
    },
}

/// Where the issue of an escalation may be named, in order of precedence.
#[derive(Clone, Copy, Debug)]
pub struct ContextSources<'a> {
    /// `PREMATH_ACTIVE_ISSUE_ID`.
    pub active_env: Option<&'a str>,
    /// `PREMATH_ISSUE_ID`.
    pub env: Option<&'a str>,
    /// The session at `PREMATH_HARNESS_SESSION_PATH`, or the default.
    pub session: &'a SessionSource,
    /// The ids of the ready frontier.
    pub ready: &'a [String],
}

/// Which source named the issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextSource {
    /// `PREMATH_ACTIVE_ISSUE_ID`.
    ActiveEnv,
    /// `PREMATH_ISSUE_ID`.
    Env,
    /// The session.
    Session,
    /// The ready frontier's only row.
    ReadyFrontier,
}

/// The issue that an escalation is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssueContext {
    /// The issue's id.
    pub issue_id: IssueId,
    /// The source that named the issue.
    pub source: ContextSource,
}

/// An escalation that does not know its issue: it fails, and never reads as
/// success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssueContextError {
    /// No source names an issue.
    #[error(
        "cannot determine which issue to escalate: no variable, no session and no ready issue \
        names one"
    )]
    Unbound,
    /// The two variables name different issues.
    #[error(
        "cannot determine which issue to escalate: PREMATH_ACTIVE_ISSUE_ID is `{active}`, but \
        PREMATH_ISSUE_ID is `{other}`"
    )]
    Disagree {
        /// The value of `PREMATH_ACTIVE_ISSUE_ID`.
        active: String,
        /// The value of `PREMATH_ISSUE_ID`.
        other: String,
    },
    /// Nothing but the ready frontier could say, and it has several rows.
    #[error("cannot determine which issue to escalate: {count} issues are ready")]
    ManyReady {
        /// The number of ready issues.
        count: usize,
    },
    /// The session is broken.
    #[error("cannot determine which issue to escalate: the session is invalid: {reason}")]
    SessionInvalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The session cannot be read.
    #[error("cannot determine which issue to escalate: the session cannot be read: {reason}")]
    SessionReadFailed {
        /// The message of the system.
        reason: String,
    },
}

impl IssueContextError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Unbound => FailureClass::EscalationIssueContextUnbound,
            Self::Disagree { .. } | Self::ManyReady { .. } => {
                FailureClass::EscalationIssueContextAmbiguous
            }
            Self::SessionInvalid { .. } => FailureClass::EscalationSessionInvalid,
            Self::SessionReadFailed { .. } => FailureClass::EscalationSessionReadFailed,
        }
    }
}

/// Returns which issue an escalation is about.
///
/// Blank reads as absent. A later source is read only if the earlier ones are
/// empty, so a broken session matters only without a variable.
///
/// # Errors
///
/// Variables that disagree, a broken session, no name, or several.
pub fn issue_context(sources: &ContextSources<'_>) -> Result<IssueContext, IssueContextError> {
    let named = |issue_id: &str, source| {
        Ok(IssueContext {
            issue_id: IssueId::from(issue_id),
            source,
        })
    };
    match (present(sources.active_env), present(sources.env)) {
        (Some(active), Some(other)) if active != other => {
            return Err(IssueContextError::Disagree {
                active: plain(active),
                other: plain(other),
            });
        }
        (Some(active), _) => return named(active, ContextSource::ActiveEnv),
        (None, Some(other)) => return named(other, ContextSource::Env),
        (None, None) => {}
    }
    match sources.session {
        SessionSource::Invalid { reason } => {
            return Err(IssueContextError::SessionInvalid {
                reason: plain(reason),
            });
        }
        SessionSource::ReadFailed { reason } => {
            return Err(IssueContextError::SessionReadFailed {
                reason: plain(reason),
            });
        }
        SessionSource::Read { issue_id } => {
            if let Some(issue_id) = present(issue_id.as_deref()) {
                return named(issue_id, ContextSource::Session);
            }
        }
        SessionSource::Absent => {}
    }
    match sources.ready {
        [] => Err(IssueContextError::Unbound),
        [only] => named(only, ContextSource::ReadyFrontier),
        many => Err(IssueContextError::ManyReady { count: many.len() }),
    }
}

fn present(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|t| !t.is_empty())
}

/// The right that an escalation's turn was granted: blocking or discovering,
/// and nothing else.
#[derive(Debug)]
pub enum EscalationRight {
    /// To set the issue blocked.
    ToBlock(MutationReady<Block>),
    /// To file a follow-up of it.
    ToDiscover(MutationReady<Discover>),
}

/// What the turn of an escalation gives.
#[derive(Debug)]
pub struct EscalationGrant {
    /// The right to the action, none where it changes nothing, or the gate's
    /// refusal.
    pub right: Result<Option<EscalationRight>, LeaseRefusal>,
    /// The witness of the turn, where there was one: it is written before the
    /// right is used.
    pub witness: Option<Value>,
}

impl EscalationRight {
    /// Returns the reference of what the right rests on.
    pub fn witness_ref(&self) -> String {
        match self {
            Self::ToBlock(ready) => ready.witness_ref(),
            Self::ToDiscover(ready) => ready.witness_ref(),
        }
    }
}

/// What an escalation has to say.
#[derive(Clone, Copy, Debug)]
pub struct EscalationReport<'a> {
    /// The issue that failed.
    pub issue_id: &'a IssueId,
    /// The title of the issue.
    pub issue_title: &'a str,
    /// The step that used up the attempts.
    pub step_id: &'a StepId,
    /// The worker that ran it.
    pub worker_id: &'a WorkerName,
    /// The decision of the policy.
    pub decision: &'a Decision,
    /// Every class of the step, in their order.
    pub failure_classes: &'a [String],
    /// The step's witnesses.
    pub witness_refs: &'a RefSet,
}

/// The follow-up that `issue_discover` files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowUp {
    /// The new issue's title, one line.
    pub title: String,
    /// The new issue's description.
    pub description: String,
}

/// Returns the notes of an issue that is marked blocked: the class, the
/// attempts, the witnesses.
pub fn blocked_notes(report: &EscalationReport<'_>) -> String {
    let mut text = format!(
        "Blocked by the harness: {} after {}.\n",
        plain(&report.decision.class),
        attempts(report.decision)
    );
    text.push_str(&facts(report));
    text
}

/// Returns the follow-up of an issue whose attempts are used up.
///
/// The same report gives the same text; the step id in it distinguishes two
/// reports.
pub fn follow_up(report: &EscalationReport<'_>) -> FollowUp {
    let issue_id = plain(report.issue_id);
    let class = plain(&report.decision.class);
    let attempts = attempts(report.decision);
    let mut description = format!(
        "Work on {issue_id} ({}) failed with {class} after {attempts}. Find and fix the cause, so \
        that {issue_id} can be retried.\n",
        plain(report.issue_title)
    );
    description.push_str(&facts(report));
    description.push_str(&format!(
        "\nAcceptance: the cause is fixed, and the remaining work for {issue_id} is described \
        there.\n- `premath issue show {issue_id}`\n"
    ));
    FollowUp {
        title: format!("Follow up on {issue_id}: {class} after {attempts}"),
        description,
    }
}

/// Returns notes with a text added below, once: notes that end with the text
/// stay as they are.
pub fn append_notes(notes: &str, text: &str) -> String {
    let text = text.trim_end();
    let before = notes.trim_end();
    if before.is_empty() {
        text.to_owned()
    } else if text.is_empty() || before == text || before.ends_with(&format!("\n\n{text}")) {
        before.to_owned()
    } else {
        format!("{before}\n\n{text}")
    }
}

fn attempts(decision: &Decision) -> String {
    match (decision.attempt, decision.max_attempts) {
        (1, max) => format!("1 attempt of {max}"),
        (attempt, max) => format!("{attempt} attempts of {max}"),
    }
}

fn facts(report: &EscalationReport<'_>) -> String {
    let decision = report.decision;
    let action = match decision.outcome {
        RetryOutcome::Retry => "retry",
        RetryOutcome::Escalate(action) => action.as_str(),
    };
    let mut text = format!(
        "Step: {}\nWorker: {}\nRule: {} ({action})\n",
        plain(report.step_id),
        plain(report.worker_id),
        plain(&decision.rule_id),
    );
    if !report.failure_classes.is_empty() {
        let classes: Vec<String> = report.failure_classes.iter().map(|c| plain(c)).collect();
        text.push_str(&format!("Failure classes: {}\n", classes.join(", ")));
    }
    if !report.witness_refs.is_empty() {
        text.push_str("Witnesses:\n");
        for reference in report.witness_refs.iter() {
            text.push_str(&format!("- {}\n", plain(reference)));
        }
    }
    text
}

/// Returns text on one line, control characters replaced.
fn plain(text: &str) -> String {
    text.trim()
        .chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::contract;
    use crate::policy::retry::{RetryPolicy, decide};
    use proptest::prelude::*;

    fn ids(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("r{n}")).collect()
    }

    fn read(issue: Option<&str>) -> SessionSource {
        SessionSource::Read {
            issue_id: issue.map(Into::into),
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
    fn the_first_source_that_has_a_value_decides() {
        use ContextSource::{ActiveEnv, Env, ReadyFrontier, Session};
        let broken = SessionSource::Invalid { reason: "x".into() };
        let unread = SessionSource::ReadFailed { reason: "x".into() };
        let table = [
            (Some("a"), None, broken.clone(), 0, Ok(("a", ActiveEnv))),
            (
                Some("a"),
                Some(" a "),
                unread.clone(),
                3,
                Ok(("a", ActiveEnv)),
            ),
            (Some(" "), Some("b"), broken.clone(), 2, Ok(("b", Env))),
            (
                Some("a"),
                Some("b"),
                read(Some("a")),
                1,
                Err("escalation_issue_context_ambiguous"),
            ),
            (None, None, read(Some("s")), 2, Ok(("s", Session))),
            (None, None, read(Some(" ")), 1, Ok(("r0", ReadyFrontier))),
            (
                None,
                None,
                read(None),
                0,
                Err("escalation_issue_context_unbound"),
            ),
            (
                None,
                None,
                SessionSource::Absent,
                1,
                Ok(("r0", ReadyFrontier)),
            ),
            (
                None,
                None,
                SessionSource::Absent,
                2,
                Err("escalation_issue_context_ambiguous"),
            ),
            (None, None, broken, 1, Err("escalation_session_invalid")),
            (
                None,
                Some(""),
                unread,
                1,
                Err("escalation_session_read_failed"),
            ),
        ];
        for (active_env, env, session, ready, expected) in table {
            let found = issue_context(&ContextSources {
                active_env,
                env,
                session: &session,
                ready: &ids(ready),
            });
            let found = found
                .as_ref()
                .map(|c| (c.issue_id.as_str(), c.source))
                .map_err(|e| e.class().as_str());
            assert_eq!(found, expected);
        }
    }

    fn decision(class: &str, attempt: u32) -> Decision {
        decide(&RetryPolicy::embedded().unwrap(), &[class], attempt)
    }

    #[test]
    fn notes_and_follow_up_say_class_attempts_and_witnesses() {
        let decision = decision("gate_timeout", 3);
        let witness_refs: RefSet = ["worker://loop/w/bd-1/failed", "lease://handoff/x"]
            .iter()
            .collect();
        let report = EscalationReport {
            issue_id: &"bd-1".into(),
            issue_title: "Title\u{1b}[31m\nline",
            step_id: &"w.bd-1.4".into(),
            worker_id: &"w".into(),
            decision: &decision,
            failure_classes: &["work_failed".to_owned(), "gate_timeout".to_owned()],
            witness_refs: &witness_refs,
        };
        assert_eq!(
            blocked_notes(&report),
            "Blocked by the harness: gate_timeout after 3 attempts of 3.\n\
             Step: w.bd-1.4\n\
             Worker: w\n\
             Rule: transient_retry (issue_discover)\n\
             Failure classes: work_failed, gate_timeout\n\
             Witnesses:\n\
             - lease://handoff/x\n\
             - worker://loop/w/bd-1/failed\n"
        );
        let follow_up = follow_up(&report);
        assert_eq!(
            follow_up.title,
            "Follow up on bd-1: gate_timeout after 3 attempts of 3"
        );
        assert!(follow_up.description.contains("(Title\u{fffd}[31m line)"));
        assert!(follow_up.description.contains("w.bd-1.4"));
        assert!(contract::has_acceptance_section(&follow_up.description));
        assert!(contract::has_verification_command(&follow_up.description));
    }

    proptest! {
        #[test]
        fn notes_are_added_once_and_nothing_before_is_lost(notes in "[ab\n]{0,12}", text in "[ab\n]{0,6}") {
            let once = append_notes(&notes, &text);
            prop_assert_eq!(&append_notes(&once, &text), &once);
            prop_assert!(once.starts_with(notes.trim_end()) || notes.trim_end().is_empty());
            prop_assert!(once.ends_with(text.trim_end()));
        }

        #[test]
        fn no_control_character_leaves_but_the_line_feed(id in any::<String>(), title in any::<String>()) {
            let decision = decision("check_failed", 1);
            let report = EscalationReport {
                issue_id: &id.as_str().into(),
                issue_title: &title,
                step_id: &id.as_str().into(),
                worker_id: &title.as_str().into(),
                decision: &decision,
                failure_classes: &[],
                witness_refs: &RefSet::new(),
            };
            let follow_up = follow_up(&report);
            let texts = [blocked_notes(&report), follow_up.description];
            prop_assert!(!follow_up.title.chars().any(char::is_control));
            prop_assert!(!texts.iter().any(|t| t.chars().any(|c| c.is_control() && c != '\n')));
        }
    }
}

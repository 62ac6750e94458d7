//! The texts of an operator for running agents, and the answers that wait for them.

use super::{InboxMessage, Shell};
use crate::control::ControlCall;
use crate::report::Notice;
use harness_worker::batch::Message;
use premath_kernel::json::id::IssueId;
use premath_kernel::record::control::{ControlAnswer, IssueControl};
use std::collections::{BTreeMap, BTreeSet};

/// A text that agents have not been given yet.
#[derive(Debug)]
struct PendingText {
    /// None where the operator has the answer already.
    call: Option<Box<ControlCall>>,
    /// In the order of the request.
    issues: Vec<IssueId>,
    /// The issues whose agents do not have it.
    waiting: BTreeSet<IssueId>,
    /// The outcomes of the others.
    outcomes: BTreeMap<IssueId, IssueControl>,
}

impl PendingText {
    fn settle(&mut self, outcome: IssueControl) {
        self.waiting.remove(&outcome.issue_id);
        self.outcomes.insert(outcome.issue_id.clone(), outcome);
    }
}

/// The texts on their way.
#[derive(Debug, Default)]
pub(super) struct Texts {
    count: u64,
    pending: BTreeMap<u64, PendingText>,
}

impl Shell<'_> {
    /// Gives the agents that work on issues a text, each after its next tool call.
    pub(super) fn say(
        &mut self,
        call: Box<ControlCall>,
        issues: &[IssueId],
        text: &str,
        wait: bool,
    ) {
        self.texts.count += 1;
        let number = self.texts.count;
        let mut pending = PendingText {
            call: None,
            issues: issues.to_vec(),
            waiting: BTreeSet::new(),
            outcomes: BTreeMap::new(),
        };
        for issue_id in issues {
            if pending.waiting.contains(issue_id) {
                continue;
            }
            match self.hand(number, issue_id, text) {
                Ok(()) => drop(pending.waiting.insert(issue_id.clone())),
                Err(why) => pending.settle(IssueControl::refused(issue_id, why)),
            }
        }
        if !wait {
            let outcome = |id: &IssueId| match pending.outcomes.get(id) {
                Some(refused) => refused.clone(),
                None => IssueControl::done(id, "its agent gets the text after its next tool call"),
            };
            let outcomes = issues.iter().map(outcome).collect();
            let answer = ControlAnswer::of_issues(self.batch.id(), outcomes);
            self.answer(&call, answer);
        } else {
            pending.call = Some(call);
        }
        self.texts.pending.insert(number, pending);
        self.answer_texts();
    }

    /// Hands a text to the batch, or returns why no agent can be given it.
    fn hand(&self, number: u64, issue_id: &IssueId, text: &str) -> Result<(), &'static str> {
        let mut running = self.control.running.values();
        if !running.any(|claim| claim.issue_id == *issue_id) {
            return Err("no attempt is running; `premath retry` takes a note for the next one");
        }
        let send = self.send.clone();
        let given = issue_id.clone();
        let message = Message {
            text: text.to_owned(),
            given: Box::new(move || drop(send.send(InboxMessage::Told(number, given)))),
        };
        match self.batch.say(issue_id, message) {
            true => Ok(()),
            false => Err(
                "no agent with hooks works on it at the moment; `premath status` shows the phase",
            ),
        }
    }

    /// Takes in that an agent was given a text.
    pub(super) fn told(&mut self, number: u64, issue_id: &IssueId) {
        if let Some(pending) = self.texts.pending.get_mut(&number) {
            tracing::info!(
                issue = issue_id.as_str(),
                "the agent was given the operator's text"
            );
            pending.settle(IssueControl::done(issue_id, "its agent was given the text"));
        }
        self.answer_texts();
    }

    /// Takes in that the attempt at an issue is over: no agent is given the texts
    /// that are left.
    pub(super) fn forget_texts(&mut self, issue_id: &IssueId) {
        self.batch.forget_messages(issue_id);
        let waiting = |pending: &&mut PendingText| pending.waiting.contains(issue_id);
        for pending in self.texts.pending.values_mut().filter(waiting) {
            let why = "its attempt ended before its agent ended another tool call; the text was not given";
            pending.settle(IssueControl::refused(issue_id, why));
            if pending.call.is_none() {
                let detail = format!(
                    "the operator's text for {issue_id} was not given: its attempt ended first"
                );
                self.reporter.notice(&Notice::Warning { detail: &detail });
            }
        }
        self.answer_texts();
    }

    /// Answers the requests for which nothing is waited for any more.
    fn answer_texts(&mut self) {
        let is_over = |(_, pending): &(&u64, &PendingText)| pending.waiting.is_empty();
        let over = self.texts.pending.iter().filter(is_over);
        let over: Vec<u64> = over.map(|(number, _)| *number).collect();
        for number in over {
            let Some(mut pending) = self.texts.pending.remove(&number) else {
                continue;
            };
            if let Some(call) = pending.call.take() {
                let outcomes = pending.issues.iter();
                let outcomes = outcomes.filter_map(|id| pending.outcomes.remove(id));
                let answer = ControlAnswer::of_issues(self.batch.id(), outcomes.collect());
                self.answer(&call, answer);
            }
        }
    }
}

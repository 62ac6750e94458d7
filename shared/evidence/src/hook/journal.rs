//! The fold over the events of an agent's hooks, with what was decided about
//! each call.

use super::reconcile::HookFault;
use crate::adapter::Agent;
use crate::adapter::hook::{HookAnswer, HookCall, HookEvent, HookKey, HookKind};
use indexmap::IndexMap;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::{self, Sum};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::turn::{
    AgentCall, CallCounts, Caller, ToolClass, ToolVerdict, TurnPolicy, decide,
};
use premath_kernel::record::witness::{DeniedCall, HookFacts};
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The most calls that a journal keeps; what comes after them is denied.
const CALLS_MAX: usize = 10_000;

/// The most events of a turn: a call has two, and some have more.
const EVENTS_MAX: u64 = 100_000;

/// The most sub-agents whose depth is known.
const SUBAGENTS_MAX: usize = 1_000;

/// How many faults are kept.
const FAULTS_MAX: usize = 20;

/// How many denied calls are named.
const DENIED_MAX: usize = 20;

/// How much of a command, a path or a host a row shows, in bytes.
pub(super) const SHOWN: usize = 4_096;

/// How many paths and hosts a row lists.
pub(super) const LISTED: usize = 16;

/// One call, as the hooks report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HookedCall {
    pub(super) id: Option<Arc<str>>,
    pub(super) tool: String,
    pub(super) class: ToolClass,
    /// Whether a sub-agent makes it, and one was started before.
    pub(super) is_of_subagent: bool,
    pub(super) input: Sum,
    pub(super) key: Option<HookKey>,
    pub(super) verdict: ToolVerdict,
    pub(super) has_ended: bool,
    /// Whether the agent may have refused it itself.
    pub(super) may_be_refused: bool,
    /// Whether a sub-agent ran while it was made, so that it may be its.
    pub(super) is_beside_subagent: bool,
    /// `D` of the operator's text that its end was answered with.
    pub(super) told: Option<String>,
}

impl HookedCall {
    /// Returns whether the call was denied.
    pub(super) const fn is_denied(&self) -> bool {
        self.verdict.is_denial()
    }
}

/// One line of a journal's file.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookRow {
    /// The number of the event, from 1.
    pub sequence: u64,
    /// When the harness took it, by its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Stamp>,
    /// What the hook was called for.
    pub kind: &'static str,
    /// The number of the call that it is about, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// The sub-agent; none for the agent itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The agent's id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The agent's name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the tool does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_class: Option<ToolClass>,
    /// The beginning of the text that a shell runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// `D` of what the tool is called with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<String>,
    /// `D` of what the tool gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<String>,
    /// What was decided, where the call was about to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ToolVerdict>,
    /// The text of the operator that the agent was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// The fault of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// The journal of one turn.
#[derive(Debug)]
pub struct HookJournal {
    agent: Agent,
    policy: Arc<TurnPolicy>,
    worktree: String,
    pub(super) calls: Vec<HookedCall>,
    by_id: IndexMap<Arc<str>, usize>,
    counts: CallCounts,
    /// How deep each sub-agent is nested.
    depths: BTreeMap<String, u64>,
    has_started_subagent: bool,
    /// The depth of the sub-agents that were started and have not begun.
    starting: VecDeque<u64>,
    pub(super) session: Option<String>,
    pub(super) has_prompt: bool,
    events: u64,
    /// How many calls were denied, by the rule or the limit.
    denials: BTreeMap<String, u64>,
    /// The first calls that were denied.
    denied: Vec<DeniedCall>,
    /// `D` of each text of the operator that a hook was answered with.
    told: Vec<String>,
    pub(super) faults: Vec<HookFault>,
}

impl HookJournal {
    /// Begins the journal of a turn; the worktree is as the agent sees it.
    pub fn new(agent: Agent, policy: Arc<TurnPolicy>, worktree: &str) -> Self {
        Self {
            agent,
            policy,
            worktree: worktree.to_owned(),
            calls: Vec::new(),
            by_id: IndexMap::new(),
            counts: CallCounts::default(),
            depths: BTreeMap::new(),
            has_started_subagent: false,
            starting: VecDeque::new(),
            session: None,
            has_prompt: false,
            events: 0,
            denials: BTreeMap::new(),
            denied: Vec::new(),
            told: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Begins the journal of a turn that continues: so many of its calls were
    /// allowed before.
    #[must_use]
    pub fn resumed(mut self, calls: u64) -> Self {
        self.counts.calls = calls;
        self
    }

    /// Returns how many calls of the turn were allowed, those before it
    /// included.
    pub const fn allowed(&self) -> u64 {
        self.counts.calls
    }

    /// Takes what a hook sent; returns the row of the journal's file and what
    /// the hook program prints.
    pub fn take(&mut self, bytes: &[u8]) -> (HookRow, String) {
        self.take_telling(bytes, || None)
    }

    /// Takes what a hook sent, as [`take`](Self::take) does. `message` is asked for
    /// a text of the operator where one can be given: at the end of a call of the
    /// agent itself.
    pub fn take_telling(
        &mut self,
        bytes: &[u8],
        message: impl FnOnce() -> Option<String>,
    ) -> (HookRow, String) {
        let spec = self.agent.spec().hooks;
        self.events += 1;
        let mut row = HookRow {
            sequence: self.events,
            kind: HookKind::Other.as_str(),
            ..HookRow::default()
        };
        if self.events > EVENTS_MAX {
            let detail = format!("more than {EVENTS_MAX} events in a turn");
            row.fault = Some(self.fault(FailureClass::HookChannelInvalid, detail));
            let answer = HookAnswer::Deny("The turn has too many events.".to_owned());
            return (row, spec.print(HookKind::Before, &answer));
        }
        let event = match spec.read(bytes, &self.worktree) {
            Ok(event) => event,
            Err(flaw) => {
                let detail = flaw.to_string();
                row.fault = Some(self.fault(FailureClass::HookChannelInvalid, detail));
                let answer = HookAnswer::Deny("The event cannot be read.".to_owned());
                return (row, spec.print(HookKind::Before, &answer));
            }
        };
        describe(&mut row, &event);
        let mut answer = self.add(&event, &mut row);
        let takes_text = event.kind == HookKind::After && event.caller.is_none();
        if takes_text
            && row.fault.is_none()
            && let Some(text) = message()
        {
            self.note_told(row.call, &text);
            row.told = Some(text.clone());
            answer = HookAnswer::Tell(text);
        }
        let print = spec.print(event.kind, &answer);
        (row, print)
    }

    fn add(&mut self, event: &HookEvent, row: &mut HookRow) -> HookAnswer {
        self.see_session(event, row);
        match (event.kind, &event.call) {
            (HookKind::Prompt, _) if event.caller.is_none() => self.has_prompt = true,
            (HookKind::Before, Some(call)) => return self.before(event, call, row),
            (HookKind::After | HookKind::Failed, Some(call)) => self.after(event.kind, call, row),
            (HookKind::SubagentBegun, _) => self.begin_subagent(event),
            _ => {}
        }
        HookAnswer::Pass
    }

    /// Keeps that a text of the operator goes to the model with the result of a call.
    fn note_told(&mut self, number: Option<u64>, text: &str) {
        let digest = canonical::digest(&json!(text));
        let place = number.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
        if let Some(call) = place.and_then(|place| self.calls.get_mut(place)) {
            call.told = Some(digest.clone());
        }
        self.told.push(digest);
    }

    /// Holds the agent itself to one session.
    fn see_session(&mut self, event: &HookEvent, row: &mut HookRow) {
        let (None, Some(session)) = (&event.caller, &event.session) else {
            return;
        };
        let known = self.session.get_or_insert_with(|| session.clone());
        if known != session {
            let detail = format!("an event of session `{session}`; the agent's is `{known}`");
            row.fault = Some(self.fault(FailureClass::HookChannelInvalid, detail));
        }
    }

    fn before(&mut self, event: &HookEvent, call: &HookCall, row: &mut HookRow) -> HookAnswer {
        let depth = event.caller.as_ref().map(|caller| {
            let known = self.depths.get(caller).copied();
            known.unwrap_or(1)
        });
        let counts = CallCounts {
            depth: depth.unwrap_or_default(),
            ..self.counts
        };
        let id = call.id.as_deref().map(Arc::<str>::from);
        if let Some(id) = &id
            && self.by_id.contains_key(id)
        {
            let detail = format!("the call `{id}` was announced twice");
            row.fault = Some(self.fault(FailureClass::HookChannelInvalid, detail));
            return HookAnswer::Deny("The call was announced before.".to_owned());
        }
        if self.calls.len() >= CALLS_MAX {
            let detail = format!("more than {CALLS_MAX} calls in a turn");
            row.fault = Some(self.fault(FailureClass::HookChannelInvalid, detail));
            return HookAnswer::Deny("The turn has too many calls.".to_owned());
        }
        let judged = AgentCall {
            caller: match event.caller {
                Some(_) => Caller::Subagent,
                None => Caller::Agent,
            },
            ..call.call.clone()
        };
        let verdict = decide(&self.policy, &judged, &counts);
        let is_denied = verdict.is_denial();
        let is_beside_subagent = self.counts.subagents > 0;
        match is_denied {
            true => self.count_denial(call, &verdict.rule_id),
            false => self.count_call(call, counts.depth),
        }
        let place = self.calls.len();
        row.call = Some(number_of(place));
        if let Some(id) = &id {
            self.by_id.insert(id.clone(), place);
        }
        self.calls.push(HookedCall {
            id,
            tool: call.tool.clone(),
            class: call.call.class,
            is_of_subagent: event.caller.is_some() && self.has_started_subagent,
            input: call.input,
            key: call.key.clone(),
            verdict: verdict.clone(),
            has_ended: is_denied || call.ends_silently,
            may_be_refused: call.may_be_refused,
            is_beside_subagent,
            told: None,
        });
        let reason = verdict.reason.clone();
        row.verdict = Some(verdict);
        match is_denied {
            true => HookAnswer::Deny(reason),
            false => HookAnswer::Pass,
        }
    }

    fn count_denial(&mut self, call: &HookCall, rule_id: &str) {
        *self.denials.entry(rule_id.to_owned()).or_default() += 1;
        if self.denied.len() < DENIED_MAX {
            self.denied.push(DeniedCall {
                tool: call.tool.clone(),
                rule_id: rule_id.to_owned(),
            });
        }
    }

    fn count_call(&mut self, call: &HookCall, depth: u64) {
        self.counts.calls += 1;
        self.counts.open += u64::from(!call.ends_silently);
        if call.call.class == ToolClass::Subagent {
            self.counts.subagents += 1;
            self.has_started_subagent = true;
            if self.starting.len() < SUBAGENTS_MAX {
                self.starting.push_back(depth + 1);
            }
        }
    }

    fn after(&mut self, kind: HookKind, call: &HookCall, row: &mut HookRow) {
        let Some(place) = self.place_of(call) else {
            let detail = format!(
                "the end of a call of `{}` that was not announced",
                call.tool
            );
            row.fault = Some(self.fault(FailureClass::HookChannelInvalid, detail));
            return;
        };
        row.call = Some(number_of(place));
        let known = &mut self.calls[place];
        if known.is_denied() {
            // Some agents report a call that was denied as one that failed.
            if kind == HookKind::Failed {
                return;
            }
            let detail = format!("a call of `{}` ran that was denied", known.tool);
            row.fault = Some(self.fault(FailureClass::DeniedCallRan, detail));
            return;
        }
        let has_changed = !call.is_input_unknown && known.input != call.input;
        let is_again = std::mem::replace(&mut known.has_ended, true);
        let (tool, class) = (known.tool.clone(), known.class);
        if is_again {
            let detail = format!("a call of `{tool}` ended twice");
            row.fault = Some(self.fault(FailureClass::HookChannelInvalid, detail));
            return;
        }
        self.counts.open = self.counts.open.saturating_sub(1);
        if class == ToolClass::Subagent {
            self.counts.subagents = self.counts.subagents.saturating_sub(1);
        }
        if has_changed {
            let detail = format!("a call of `{tool}` ran with another input than was judged");
            row.fault = Some(self.fault(FailureClass::HookInputChanged, detail));
        }
    }

    /// Returns the place of the call that an end is of. Where hooks have no ids,
    /// it is the first open one of the same input, else of the same tool.
    fn place_of(&self, call: &HookCall) -> Option<usize> {
        if let Some(id) = &call.id {
            return self.by_id.get(&**id).copied();
        }
        let is_open = |known: &&HookedCall| !known.has_ended && known.tool == call.tool;
        let open = || {
            let calls = self.calls.iter().enumerate();
            calls.filter(|(_, known)| is_open(known))
        };
        let same = open().find(|(_, known)| known.input == call.input);
        same.or_else(|| open().next()).map(|(place, _)| place)
    }

    fn begin_subagent(&mut self, event: &HookEvent) {
        let started = self.starting.pop_front();
        let Some(caller) = &event.caller else { return };
        let parent = event.parent.as_ref().and_then(|one| self.depths.get(one));
        let depth = match (&event.parent, started) {
            (Some(_), _) => parent.copied().unwrap_or_default() + 1,
            (None, Some(depth)) => depth,
            (None, None) => 1,
        };
        if self.depths.len() < SUBAGENTS_MAX {
            self.depths.insert(caller.clone(), depth);
        }
    }

    /// Notes a fault of the channel; returns its detail.
    pub fn fault(&mut self, class: FailureClass, detail: String) -> String {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(HookFault {
                class,
                detail: detail.clone(),
            });
        }
        detail
    }

    /// Returns what was decided, in the order of the calls.
    pub(crate) fn verdicts(&self) -> impl Iterator<Item = &ToolVerdict> {
        self.calls.iter().map(|call| &call.verdict)
    }

    /// Returns the sub-agents that were started, by the id of the call where hooks
    /// have one, and whether the call ended.
    pub(crate) fn subagents(&self) -> impl Iterator<Item = (Option<&str>, bool)> {
        let calls = self.calls.iter();
        let started = calls.filter(|call| call.class == ToolClass::Subagent && !call.is_denied());
        started.map(|call| (call.id.as_deref(), call.has_ended))
    }

    /// Returns what was decided about a call, where hooks have its id.
    pub(crate) fn verdict_on(&self, id: &str) -> Option<&ToolVerdict> {
        let place = *self.by_id.get(id)?;
        Some(&self.calls[place].verdict)
    }

    /// Returns the digest of the operator's text that the end of a call was answered
    /// with, where hooks have its id.
    pub(crate) fn told_on(&self, id: &str) -> Option<&str> {
        self.calls[*self.by_id.get(id)?].told.as_deref()
    }

    /// Returns the digest of each text of the operator that a hook was answered with,
    /// in their order.
    pub(crate) fn told(&self) -> &[String] {
        &self.told
    }

    /// Returns how many calls were denied, by the rule or the limit.
    pub const fn denials(&self) -> &BTreeMap<String, u64> {
        &self.denials
    }

    /// Returns the first faults of the channel itself.
    pub fn faults(&self) -> &[HookFault] {
        &self.faults
    }

    /// Returns what was reported, as a witness has it, with the faults of the
    /// turn and the journal's file.
    pub fn facts(&self, faults: &[HookFault], path: String, sha256: String) -> HookFacts {
        let shown = |fault: &HookFault| format!("{}: {}", fault.class.as_str(), fault.detail);
        HookFacts {
            turn_policy_digest: self.policy.policy_digest().to_owned(),
            events: self.events,
            calls: self.calls.len() as u64,
            denials: self.denials.values().sum(),
            denied: self.denied.clone(),
            faults: faults.iter().map(shown).collect(),
            journal_path: path,
            journal_sha256: sha256,
        }
    }
}

/// Returns the number of the call at a place.
const fn number_of(place: usize) -> u64 {
    place as u64 + 1
}

/// Puts what an event reports into its row.
fn describe(row: &mut HookRow, event: &HookEvent) {
    row.kind = event.kind.as_str();
    row.caller.clone_from(&event.caller);
    let Some(call) = &event.call else { return };
    row.call_id.clone_from(&call.id);
    row.tool = Some(call.tool.clone());
    row.input_digest = Some(call.input.digest());
    row.result_digest = call.result.map(|result| result.digest());
    if event.kind == HookKind::Before {
        row.tool_class = Some(call.call.class);
        row.command = call.call.command.as_deref().map(shown);
        let paths = call.call.paths.iter().take(LISTED);
        row.paths = paths.map(|path| shown(path.as_str())).collect();
        let hosts = call.call.hosts.iter().take(LISTED);
        row.hosts = hosts.map(|host| shown(host)).collect();
    }
}

/// Returns the beginning of a text that an agent gave.
fn shown(text: &str) -> String {
    let mut end = text.len().min(SHOWN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Events of a turn that does not end, with names as long as they may be.
    #[test]
    fn a_journal_holds_no_more_however_many_events_come() {
        let policy = Arc::new(TurnPolicy::embedded().unwrap());
        let mut journal = HookJournal::new(Agent::Claude, policy, "/lane");
        let name = |number: u64| format!("{number:0>512}");
        let mut take = |kind: &str, number: u64| {
            let event = json!({
                "session_id": name(number % 2), "hook_event_name": kind,
                "agent_id": name(number), "tool_name": "Task", "tool_use_id": name(number),
                "tool_input": {"prompt": "x"},
            });
            journal.take(event.to_string().as_bytes()).1
        };
        let calls = CALLS_MAX as u64;
        for number in 0..=calls {
            let answer = take("PreToolUse", number);
            // The policy bounds them too, and the last one is too many in any case.
            assert!(number < calls || answer.contains("deny"), "{answer}");
            take("SubagentStart", number);
            take("Unknown", number);
        }
        for number in journal.events..EVENTS_MAX {
            journal.take(if number % 2 == 0 { b"{" } else { b"x" });
        }
        let (row, answer) = journal.take(b"{}");
        assert!(answer.contains("deny"));
        assert!(row.fault.unwrap().contains("events"));
        assert_eq!(journal.calls.len(), CALLS_MAX);
        assert_eq!(journal.by_id.len(), CALLS_MAX);
        assert!(journal.depths.len() <= SUBAGENTS_MAX);
        assert!(journal.starting.len() <= SUBAGENTS_MAX);
        assert_eq!(journal.faults.len(), FAULTS_MAX);
        assert!(journal.denied.len() <= DENIED_MAX);
        assert_eq!(journal.events, EVENTS_MAX + 1);
    }
}

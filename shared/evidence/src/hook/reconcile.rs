//! Compares the two channels of a turn: every call that one has and the other
//! should have.

use super::journal::{HookJournal, HookedCall};
use crate::adapter::hook::{HookSpec, Join};
use crate::event::Terminal;
use crate::fold::{CallRecord, FoldedStream};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::Sum;
use std::collections::{BTreeMap, BTreeSet};

/// How many differences are named.
const NAMED_MAX: usize = 20;

/// What is wrong with a turn's hooks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HookFault {
    /// Its class.
    pub class: FailureClass,
    /// What it is, in a sentence.
    pub detail: String,
}

/// Returns every fault of the hooks of a turn: those of the channel itself, and
/// what it and the stream do not agree on. A turn with one never closes its issue.
pub fn reconcile(stream: &FoldedStream, journal: &HookJournal) -> Vec<HookFault> {
    let spec = stream.agent().spec().hooks;
    let mut faults = journal.faults.clone();
    let mut add = |class, detail| {
        if faults.len() < NAMED_MAX {
            faults.push(HookFault { class, detail });
        }
    };
    let has_finished = matches!(stream.terminal(), Some(Terminal::Finished { .. }));
    if has_finished && !journal.has_prompt {
        let detail = "no hook announced the prompt: the agent's hooks did not run".to_owned();
        add(FailureClass::HookCallMissing, detail);
    }
    if let (Some(own), Some(of_stream)) = (&journal.session, stream.session_id())
        && own != of_stream
    {
        let detail = format!("the hooks are of session `{own}`, the stream is of `{of_stream}`");
        add(FailureClass::HookChannelInvalid, detail);
    }
    match spec.join {
        Join::Id => by_id(spec, stream, journal, &mut add),
        Join::Content => by_content(spec, stream, journal, &mut add),
    }
    faults
}

/// Returns whether hooks should have announced a call of the stream.
fn is_announced(spec: &HookSpec, call: &CallRecord) -> bool {
    let Some(request) = &call.request else {
        return true;
    };
    let is_exempt = |tool: &&str| match tool.strip_suffix('*') {
        Some(start) => request.tool.starts_with(start),
        None => *request.tool == **tool,
    };
    let refused = call
        .failure()
        .is_some_and(|class| spec.refused.contains(&class));
    !refused && !spec.unannounced.iter().any(is_exempt)
}

/// Returns whether the stream should have a call that was announced.
fn is_streamed(spec: &HookSpec, call: &HookedCall) -> bool {
    let is_child = call.is_of_subagent || call.is_beside_subagent;
    let is_refused = call.may_be_refused && !call.has_ended;
    !is_refused
        && (spec.streams_denied || !call.is_denied())
        && (spec.streams_children || !is_child)
        && (spec.join == Join::Id || call.key.is_some())
}

fn by_id(
    spec: &HookSpec,
    stream: &FoldedStream,
    journal: &HookJournal,
    add: &mut impl FnMut(FailureClass, String),
) {
    let mut announced: BTreeMap<&str, &HookedCall> = BTreeMap::new();
    for call in &journal.calls {
        match &call.id {
            Some(id) => {
                announced.insert(id, call);
            }
            None => add(
                FailureClass::HookChannelInvalid,
                format!("a call of `{}` was announced without an id", call.tool),
            ),
        }
    }
    let mut seen = BTreeSet::new();
    for call in stream.calls() {
        seen.insert(&*call.id);
        match announced.get(&*call.id) {
            None if is_announced(spec, call) => add(
                FailureClass::HookCallMissing,
                format!("no hook announced the call `{}`", call.id),
            ),
            Some(known) if known.is_denied() && call.is_ok() => add(
                FailureClass::DeniedCallRan,
                format!("the call `{}` was denied, and succeeded", call.id),
            ),
            _ => {}
        }
        if let Some(known) = announced.get(&*call.id)
            && call.is_ok()
            && !known.has_ended
        {
            add(
                FailureClass::HookCallMissing,
                format!("no hook reported the end of the call `{}`", call.id),
            );
        }
        let Some((known, request)) = announced.get(&*call.id).zip(call.request.as_ref()) else {
            continue;
        };
        let has_changed =
            (known.key.as_ref()).is_some_and(|key| key.input != request.join_digest());
        if has_changed || *known.tool != *request.tool {
            add(
                FailureClass::HookInputChanged,
                format!(
                    "the call `{}` ran with another input than was judged",
                    call.id
                ),
            );
        }
    }
    for (id, call) in announced {
        if !seen.contains(id) && is_streamed(spec, call) {
            add(
                FailureClass::HookCallUnaccounted,
                format!("the stream has no call `{id}`, which a hook announced"),
            );
        }
    }
}

/// The calls of one content.
#[derive(Default)]
struct Counted {
    allowed: usize,
    denied: usize,
    optional: usize,
    /// Of those that were allowed, the ones that ended.
    ended: usize,
    streamed: usize,
    succeeded: usize,
}

fn by_content(
    spec: &HookSpec,
    stream: &FoldedStream,
    journal: &HookJournal,
    add: &mut impl FnMut(FailureClass, String),
) {
    let mut counted: BTreeMap<(&str, Sum), Counted> = BTreeMap::new();
    for call in &journal.calls {
        let Some(key) = &call.key else { continue };
        let of = counted.entry((&key.tool, key.input)).or_default();
        of.ended += usize::from(call.has_ended && !call.is_denied());
        match (is_streamed(spec, call), call.is_denied()) {
            (_, true) => of.denied += 1,
            (true, false) => of.allowed += 1,
            (false, false) => of.optional += 1,
        }
    }
    for call in stream.calls() {
        let Some(request) = &call.request else {
            continue;
        };
        if !is_announced(spec, call) {
            continue;
        }
        let of = counted
            .entry((&*request.tool, request.join_digest()))
            .or_default();
        of.streamed += 1;
        of.succeeded += usize::from(call.is_ok());
    }
    for ((tool, _), of) in &counted {
        let allowed = of.allowed + of.optional;
        let expected = match spec.streams_denied {
            true => of.allowed + of.denied,
            false => of.allowed,
        };
        if of.denied > 0
            && (of.succeeded > allowed || (!spec.streams_denied && of.streamed > allowed))
        {
            let detail = format!("a call of `{tool}` ran that was denied");
            add(FailureClass::DeniedCallRan, detail);
        } else if of.streamed > allowed + of.denied {
            let detail = format!("no hook announced a call of `{tool}` with this input");
            add(FailureClass::HookCallMissing, detail);
        } else if of.succeeded > of.ended {
            let detail = format!("no hook reported the end of a call of `{tool}`");
            add(FailureClass::HookCallMissing, detail);
        } else if of.streamed < expected {
            let detail = format!("the stream has no call of `{tool}` that a hook announced");
            add(FailureClass::HookCallUnaccounted, detail);
        }
    }
}

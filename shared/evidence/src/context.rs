//! What the context rows of a turn are digests of: what the model received
//! beside its results, what is left of the queues, and the views of the state.

use crate::policy::Seen;
use indexmap::IndexSet;
use premath_kernel::record::turn_context::TurnContext;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The queue of the failures of all calls, and the view of their ends.
const STEP_QUEUE: &str = "queue/step";
const STEP_VIEW: &str = "state/step";

/// The queue of what the model received about calls that were denied.
const DENIALS: &str = "queue/denials";

/// The queue of the operator's texts that hooks were answered with.
const OPERATOR: &str = "queue/operator";

/// Makes the context of a turn's calls: the failure class of every failed call,
/// in call order, each once; and the end of every call.
pub(crate) fn of_calls(calls: &[Seen<'_>]) -> TurnContext {
    let failures = calls.iter().filter_map(|call| call.failure);
    let failures: IndexSet<&str> = failures.collect();
    let ends = calls.iter().map(|call| {
        let end = call.failure.unwrap_or("ok");
        (call.call_id, end)
    });
    let ends: BTreeMap<&str, &str> = ends.collect();
    TurnContext {
        reminders: BTreeMap::new(),
        queues: BTreeMap::from([(
            STEP_QUEUE.to_owned(),
            json!(failures.iter().collect::<Vec<_>>()),
        )]),
        views: BTreeMap::from([(STEP_VIEW.to_owned(), json!(ends))]),
    }
}

/// Adds what the model received about denied calls, each reason once.
pub(crate) fn add_denials(context: &mut TurnContext, reasons: &BTreeSet<(&str, &str)>) {
    let told = reasons
        .iter()
        .map(|(rule, reason)| json!({"ruleId": rule, "reason": reason}));
    let told = json!(told.collect::<Vec<_>>());
    context.queues.insert(DENIALS.to_owned(), told);
}

/// Adds the digests of the operator's texts that hooks were answered with, in order.
pub(crate) fn add_operator_texts(context: &mut TurnContext, digests: &[&String]) {
    context.queues.insert(OPERATOR.to_owned(), json!(digests));
}

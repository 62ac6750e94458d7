//! What the context rows of a turn are digests of (`HARNESS-TYPESTATE 3.2`).
//!
//! The rows of the evidence have digests alone. Their contents are in the
//! witness of the turn, and an audit compares the two.

use crate::json::canonical;
use crate::policy::turn::ToolVerdict;
use crate::turn::Evidence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The contents of a turn's context rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnContext {
    /// What the model received about a call beside its result, by call id; about
    /// any other call it received nothing.
    pub reminders: BTreeMap<String, Value>,
    /// What each queue was reduced to, by queue id.
    pub queues: BTreeMap<String, Value>,
    /// Each view of the state, by view id.
    pub views: BTreeMap<String, Value>,
}

impl TurnContext {
    /// Adds the reason of a denial, which the model received.
    pub fn add_denial(&mut self, call_id: &str, verdict: &ToolVerdict) {
        let received = json!({"ruleId": verdict.rule_id, "reason": verdict.reason});
        self.reminders.insert(call_id.to_owned(), received);
    }

    /// Adds the digest of a text of the operator, which the hook of a call's end was
    /// answered with. The text is in the journal of the hooks.
    pub fn add_operator_text(&mut self, call_id: &str, digest: &str) {
        let received = json!({"operatorTextDigest": digest});
        self.reminders.insert(call_id.to_owned(), received);
    }

    /// Returns the digest of what the model received about a call.
    pub fn reminder_digest(&self, call_id: &str) -> String {
        canonical::digest(&self.reminders.get(call_id))
    }

    /// Returns the context rows whose digest is not that of their content, each
    /// as its place in the evidence.
    pub fn unproven(&self, evidence: &Evidence) -> Vec<String> {
        let renders = evidence.tool_render.iter().filter_map(|row| {
            let is_it = row.reminder_render_digest == self.reminder_digest(&row.tool_call_id);
            (!is_it).then(|| format!("toolRender[{}]", row.tool_call_id))
        });
        let queues = evidence.reminder_queue.iter().filter_map(|row| {
            let content = self.queues.get(&row.queue_id);
            let is_it = content.is_some_and(|held| canonical::digest(held) == row.reduced_digest);
            (!is_it).then(|| format!("reminderQueue[{}]", row.queue_id))
        });
        let views = evidence.state_views.iter().filter_map(|row| {
            let content = self.views.get(&row.view_id);
            let is_it = content.is_some_and(|held| canonical::digest(held) == row.view_digest);
            (!is_it).then(|| format!("stateViews[{}]", row.view_id))
        });
        renders.chain(queues).chain(views).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::{CallSpecRow, ProtocolState, QueueRow, RenderRow, StateViewRow};

    #[test]
    fn a_row_is_proven_by_its_content_alone() {
        let mut context = TurnContext {
            reminders: BTreeMap::from([("a".to_owned(), json!({"reason": "no"}))]),
            queues: BTreeMap::from([("q".to_owned(), json!([1]))]),
            views: BTreeMap::from([("v".to_owned(), json!({"a": "ok"}))]),
        };
        let mut evidence = Evidence::new(CallSpecRow::default(), ProtocolState::ended("end_turn"));
        evidence.tool_render = ["a", "b"]
            .map(|id| RenderRow {
                tool_call_id: id.to_owned(),
                reminder_render_digest: context.reminder_digest(id),
                ..RenderRow::default()
            })
            .into();
        evidence.reminder_queue = vec![QueueRow {
            queue_id: "q".to_owned(),
            reduced_digest: canonical::digest(&json!([1])),
            ..QueueRow::default()
        }];
        evidence.state_views = vec![StateViewRow {
            view_id: "v".to_owned(),
            view_digest: canonical::digest(&json!({"a": "ok"})),
            ..StateViewRow::default()
        }];
        assert_eq!(context.unproven(&evidence), Vec::<String>::new());
        context.reminders.insert("b".to_owned(), json!("made up"));
        context.queues.insert("q".to_owned(), json!([2]));
        context.views.clear();
        let places = ["toolRender[b]", "reminderQueue[q]", "stateViews[v]"];
        assert_eq!(context.unproven(&evidence), places);
    }
}

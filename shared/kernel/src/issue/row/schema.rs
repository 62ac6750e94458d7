//! The JSON Schema of an issue's row: what the rules read, which the reader's
//! own type says, and what only people and other trackers read.

use super::{Issue, Wire};
use crate::json::schema::describe;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// Texts of a row that no rule looks at.
const TEXTS: [(&str, &str); 8] = [
    ("title", "What it is about, in a line."),
    ("description", "What is to be done."),
    ("design", "How it is to be done."),
    ("acceptance_criteria", "When it counts as done."),
    ("notes", "What was noted; an escalation adds to it."),
    ("owner", "The owner."),
    (
        "closed_under",
        "The instruction that the step which closed it acted under (ours).",
    ),
    (
        "mol_type",
        "What another tracker reports about it; part of the snapshot's digest.",
    ),
];

/// Times of a row that no rule looks at.
const TIMES: [(&str, &str); 3] = [
    ("created_at", "When it was filed."),
    ("updated_at", "When it was last changed."),
    ("closed_at", "When it was closed; absent while it is not."),
];

impl JsonSchema for Issue {
    fn schema_name() -> Cow<'static, str> {
        "Issue".into()
    }

    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::Issue").into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Wire::json_schema(generator);
        for (name, about) in TEXTS {
            describe(&mut schema, name, text(about));
        }
        for (name, about) in TIMES {
            describe(&mut schema, name, time(about));
        }
        describe(
            &mut schema,
            "ephemeral",
            json_schema!({
                "description": "Whether another tracker may drop it; part of the snapshot's digest.",
                "type": ["boolean", "null"],
            }),
        );
        describe(
            &mut schema,
            "metadata",
            json_schema!({"description": "Whatever another tracker keeps here."}),
        );
        add_provenance(&mut schema);
        schema
    }
}

/// Adds by whom and under what the row was changed or filed (ours).
fn add_provenance(schema: &mut Schema) {
    describe(
        schema,
        "operator_override",
        json_schema!({
            "description": "Who last changed the row without a gate (ours).",
            "type": ["object", "null"],
            "properties": {
                "operator": {"type": "string"},
                "at": {"type": "string", "format": "date-time"},
                "reason": {"type": "string"},
            },
            "required": ["operator", "at"],
        }),
    );
    describe(
        schema,
        "instructed_change",
        json_schema!({
            "description": "The last change that was asked for under an instruction (ours).",
            "type": ["object", "null"],
            "properties": {
                "instruction_ref": {"type": "string"},
                "change": {"type": "string"},
                "asked_by": {"type": "string"},
                "at": {"type": "string", "format": "date-time"},
                "mutation_ref": {"type": "string"},
            },
            "required": ["instruction_ref", "change", "asked_by", "at"],
        }),
    );
    describe(
        schema,
        "blocked_by",
        json_schema!({
            "description": "The step that blocked it, with what its row says (ours).",
            "type": ["object", "null"],
            "properties": {
                "step_id": {"type": "string"},
                "worker_id": {"type": "string"},
                "generation": {"type": "integer", "minimum": 0},
                "failure_classes": {"type": "array", "items": {"type": "string"}},
                "retry": {"type": "object"},
            },
            "required": ["step_id", "worker_id", "generation", "failure_classes", "retry"],
        }),
    );
    add_turn_provenance(schema);
}

/// Adds which turns changed or filed an issue.
fn add_turn_provenance(schema: &mut Schema) {
    describe(
        schema,
        "discovered_by",
        json_schema!({
            "description": "The step that filed it, and the lease that the step ran under (ours).",
            "type": ["object", "null"],
            "properties": {
                "step_id": {"type": "string"},
                "lease_id": {"type": "string"},
                "generation": {"type": "integer", "minimum": 0},
                "mutation_ref": {"type": "string"},
            },
            "required": ["step_id", "lease_id", "generation"],
        }),
    );
    describe(
        schema,
        "mutation_refs",
        json_schema!({
            "description": "The rights by which turns changed it, in their order (ours).",
            "type": ["array", "null"],
            "items": {"type": "string"},
        }),
    );
}

/// Adds to an edge what no rule looks at.
pub(super) fn add_edge_texts(edge: &mut Schema) {
    describe(edge, "issue_id", text("The issue that has the edge."));
    describe(edge, "created_by", text("Who added it."));
    describe(edge, "created_at", time("When it was added."));
}

fn text(about: &str) -> Schema {
    json_schema!({"description": about, "type": ["string", "null"]})
}

fn time(about: &str) -> Schema {
    json_schema!({"description": about, "type": ["string", "null"], "format": "date-time"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_all_that_a_row_must_have() {
        let schema = schemars::schema_for!(Issue);
        assert_eq!(schema.get("required").unwrap(), &serde_json::json!(["id"]));
        assert_eq!(schema.get("additionalProperties"), None);
    }
}

//! The tools: a table, held against the one table of operations.

mod arguments;
mod change;
mod control;
mod lease;
mod look;
mod table;

pub(super) use arguments::ToolArguments;
pub(super) use change::DiscoverInput;
pub(super) use control::Caller;
pub(in crate::mcp) use table::TOOLS;

use super::context::{Context, Instructed};
use crate::answer::{Answer, Refusal};
use crate::error::CliError;
use crate::form::{answer, with_place, written};
use premath_kernel::authority::claim::ChangeMorphism;
use premath_kernel::authority::doctrine::ServedTool;
use premath_kernel::authority::{InstructedChange, LeaseAuthority, LeaseOperation};
use premath_kernel::json::schema::describe;
use premath_memory::IssueMemory;
use rmcp::model::{JsonObject, Tool as Described, ToolAnnotations};
use schemars::{Schema, json_schema};
use serde_json::{Value, json};
use std::sync::Arc;

/// A tool of the server.
#[derive(Debug)]
pub(crate) struct Tool {
    /// Its name, which is that of its operation in the table.
    pub(super) name: &'static str,
    /// What its answers call it, as its command's do.
    pub(super) action: &'static str,
    title: &'static str,
    about: &'static str,
    /// Whether something that is there may be lost by it.
    destructive: bool,
    /// Whether a second call with the same arguments changes nothing more.
    idempotent: bool,
    pub(super) place: ToolFile,
    input: fn() -> Schema,
    output: fn(&Tool) -> Schema,
    pub(super) perform: Perform,
}

/// The file that a tool works on.
#[derive(Clone, Copy, Debug)]
pub(super) enum ToolFile {
    Issues,
    Session,
    Trajectory,
    /// The instruction that the server acts under.
    Instruction,
    /// The repository that the server is for.
    Repository,
    None,
}

/// What a tool does, with what it rests on.
#[derive(Debug)]
pub(super) enum Perform {
    /// Looks, and rests on nothing.
    Read(fn(&Context, ToolArguments) -> Result<Answer, CliError>),
    /// Does something to a lease.
    Lease(
        LeaseOperation,
        fn(&IssueMemory, &LeaseAuthority, ToolArguments) -> Result<Answer, CliError>,
    ),
    /// Changes a row.
    Change(
        ChangeMorphism,
        fn(Instructed<'_>, ToolArguments) -> Result<Answer, CliError>,
    ),
    /// Asks the batch that runs.
    Control(
        ChangeMorphism,
        fn(Caller<'_>, ToolArguments) -> Result<Answer, CliError>,
    ),
    /// Files what was found; inside a step it is asked for.
    Discover(fn(&IssueMemory, InstructedChange, ToolArguments) -> Result<Answer, CliError>),
}

/// Returns the tool of that name.
pub(super) fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns what the server serves, for the table of operations to be held
/// against.
pub(crate) fn served() -> Vec<ServedTool> {
    let served = |tool: &Tool| ServedTool {
        name: tool.name,
        claim: tool.claim(),
    };
    TOOLS.iter().map(served).collect()
}

impl Tool {
    /// Returns the kind of change that an instruction must claim.
    const fn claim(&self) -> Option<ChangeMorphism> {
        match self.perform {
            Perform::Read(_) => None,
            Perform::Lease(operation, _) => Some(operation.change()),
            Perform::Change(kind, _) | Perform::Control(kind, _) => Some(kind),
            Perform::Discover(_) => Some(ChangeMorphism::IssueDiscover),
        }
    }

    fn answer<T: schemars::JsonSchema>(&self) -> Schema {
        let place = match self.place {
            ToolFile::Issues => "issuesPath",
            ToolFile::Repository => "repository",
            ToolFile::Session | ToolFile::Trajectory | ToolFile::Instruction | ToolFile::None => {
                "path"
            }
        };
        answer::<T>(&[self.action], place)
    }

    /// Returns the tool's description for clients.
    pub(super) fn described(&self) -> Described {
        let mutates = self.claim().is_some();
        let hints = ToolAnnotations::with_title(self.title)
            .read_only(!mutates)
            .destructive(self.destructive)
            .idempotent(self.idempotent)
            .open_world(false);
        Described::new(self.name, self.about, object((self.input)()))
            .with_title(self.title)
            .with_raw_output_schema(self.answer_or_refusal())
            .with_annotations(hints)
    }

    /// What a tool says is its command's answer or its refusal: some clients
    /// hold errors against the schema too.
    fn answer_or_refusal(&self) -> Arc<JsonObject> {
        let mut answer = (self.output)(self).to_value();
        let mut refusal = refused(self.place).to_value();
        let mut definitions = JsonObject::new();
        for part in [&mut answer, &mut refusal] {
            if let Some(part) = part.as_object_mut() {
                part.remove("$schema");
                if let Some(Value::Object(below)) = part.remove("$defs") {
                    definitions.extend(below);
                }
            }
        }
        // All of them would be in every tool.
        if let Some(class) = definitions.get_mut("FailureClass") {
            let about = "A stable, machine-readable name of one way to fail; list all classes with \
                         `premath classes`.";
            *class = json!({"type": "string", "description": about});
        }
        let schema = json!({
            "type": "object",
            "anyOf": [answer, refusal],
            "$defs": definitions,
        });
        match schema {
            Value::Object(schema) => Arc::new(schema),
            _ => Arc::default(),
        }
    }
}

fn refused(place: ToolFile) -> Schema {
    let mut schema = written::<Refusal>();
    let hint = json_schema!({"description": "How to fix it.", "type": "string"});
    describe(&mut schema, "hint", hint);
    match place {
        ToolFile::Issues => with_place(schema, "issuesPath"),
        ToolFile::Session | ToolFile::Trajectory | ToolFile::Instruction => {
            with_place(schema, "path")
        }
        ToolFile::Repository => with_place(schema, "repository"),
        ToolFile::None => schema,
    }
}

/// A schema as tools have it: without its dialect, which is that of the
/// protocol.
fn object(schema: Schema) -> Arc<JsonObject> {
    match schema.to_value() {
        Value::Object(mut schema) => {
            schema.remove("$schema");
            Arc::new(schema)
        }
        _ => Arc::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_takes_and_answers_objects_and_says_what_it_may_do() {
        for tool in TOOLS {
            let described = tool.described();
            let output = described.output_schema.unwrap();
            for schema in [&*described.input_schema, &*output] {
                assert_eq!(schema["type"], "object", "{}", tool.name);
                assert!(!schema.contains_key("$schema"), "{}", tool.name);
            }
            let hints = described.annotations.unwrap();
            assert_eq!(hints.read_only_hint, Some(tool.claim().is_none()));
            assert!(hints.open_world_hint == Some(false) && hints.destructive_hint.is_some());
            assert!(tool.claim().is_some() || !tool.destructive, "{}", tool.name);
        }
    }
}

//! The JSON Schema of one document: of what is read, of what is written, and of
//! a command's answer.

use premath_kernel::json::schema::require;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::Value;

/// The schema of a document that the harness reads, from any source.
pub(crate) fn read<T: JsonSchema>() -> Schema {
    generated::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of what the harness takes in, where what appears twice in a set
/// counts once.
pub(crate) fn read_with_repeats<T: JsonSchema>() -> Schema {
    let mut schema = read::<T>();
    RecursiveTransform(|part: &mut Schema| {
        part.remove("uniqueItems");
    })
    .transform(&mut schema);
    schema
}

/// The schema of what the harness writes.
pub(crate) fn written<T: JsonSchema>() -> Schema {
    generated::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn generated<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    settings
        .with_transform(RecursiveTransform(simplify))
        .into_generator()
        .into_root_schema_for::<T>()
}

/// Removes redundant defaults, and line ends that descriptions have in the
/// code.
fn simplify(schema: &mut Schema) {
    if schema
        .get("default")
        .is_some_and(|default| default.is_null() || default == "")
    {
        schema.remove("default");
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let paragraphs: Vec<_> = text.split("\n\n").map(|p| p.replace('\n', " ")).collect();
        *text = paragraphs.join("\n\n");
    }
}

/// The schema of the answer of a command that works on no one file: what it
/// says, and the action.
pub(crate) fn answer_alone<T: JsonSchema>(actions: &[&str]) -> Schema {
    let mut schema = written::<T>();
    let about = "The command.";
    let action = json_schema!({"description": about, "type": "string", "enum": actions});
    require(&mut schema, "action", action);
    schema
}

/// The schema of a command's answer: what it says, the action, and the file
/// that it worked on, under its name in answers.
pub(crate) fn answer<T: JsonSchema>(actions: &[&str], place: &str) -> Schema {
    with_place(answer_alone::<T>(actions), place)
}

/// Adds the file that a command worked on.
pub(crate) fn with_place(mut schema: Schema, place: &str) -> Schema {
    let about = "The file that it worked on.";
    let path = json_schema!({"description": about, "type": "string"});
    require(&mut schema, place, path);
    schema
}

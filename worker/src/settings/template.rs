//! What is made from the list of keys: the file that `premath init` writes, and
//! the schema of `harness.toml`.

use super::keys::{HarnessToml, Key, Table};
use premath_evidence::Agent;
use premath_kernel::policy::governing;
use schemars::Schema;
use serde_json::{Map, Value, json};

/// How wide a comment is.
const WIDTH: usize = 84;

const HEAD: &str = "\
# Settings of Premath Harness for this repository.
#
# Every key is optional. Flags override environment variables, which override
# this file. An unknown key is an error. Commented keys show an example value;
# remove the `#` to set them. Durations: \"30s\", \"45m\", \"1h 30m\".
";

/// Keys whose names are not fixed.
struct NamedKeys {
    about: &'static str,
    /// Names with values to show.
    examples: Vec<(String, String)>,
    /// The schema of a value.
    schema: Value,
}

impl NamedKeys {
    /// Returns those of a table.
    fn of(table: &str) -> Option<Self> {
        match table {
            "agent" => Some(Self {
                about: "Replace the built-in command line of an agent.",
                examples: Agent::ALL.iter().copied().map(command_of).collect(),
                schema: json!({"type": "string"}),
            }),
            "backoff" => Some(Self {
                about: "Wait before a retry, by the policy's backoff class: constant, or doubling \
                        up to `cap`.",
                examples: [
                    ("fixed_short", "\"30s\""),
                    ("exponential_short", "{ base = \"15s\", cap = \"10m\" }"),
                ]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
                schema: json!({"type": ["string", "object"]}),
            }),
            _ => None,
        }
    }
}

/// Returns the key that replaces an agent's command line, and an example of it.
fn command_of(agent: Agent) -> (String, String) {
    let spec = agent.spec();
    let line = match spec.options {
        "" => spec.command_line.to_owned(),
        options => spec.command_line.replace(" < ", &format!(" {options} < ")),
    };
    (format!("{}_cmd", spec.name), format!("'{line}'"))
}

/// Returns the file that `premath init` writes.
pub fn template() -> String {
    let mut text = HEAD.to_owned();
    for table in Table::all() {
        text.push_str(&format!("\n[{}]\n", table.name));
        for key in table.keys {
            text.push_str(&comment(&about(key)));
            for (number, example) in key.examples.iter().enumerate() {
                let mark = if key.is_set && number == 0 { "" } else { "#" };
                text.push_str(&format!("{mark}{} = {example}\n", key.name()));
            }
        }
        if let Some(named) = NamedKeys::of(table.name) {
            text.push_str(&comment(named.about));
            for (name, example) in &named.examples {
                text.push_str(&format!("#{name} = {example}\n"));
            }
        }
    }
    text
}

/// Returns what a key's comment says.
fn about(key: &Key) -> String {
    let lines: Vec<&str> = key.about.iter().map(|line| line.trim()).collect();
    filled(&lines.join(" "))
}

/// Puts in what is listed elsewhere.
fn filled(text: &str) -> String {
    let mut agents: Vec<String> = Agent::names().map(|name| format!("\"{name}\"")).collect();
    let last = agents.pop().unwrap_or_default();
    let protected: Vec<String> = governing::defaults(Agent::governing_files()).collect();
    text.replace("{agents}", &format!("{} or {last}", agents.join(", ")))
        .replace("{protected}", &protected.join(", "))
}

/// Breaks a text into lines of a comment, but no code within it.
fn comment(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_code = false;
    for word in text.split_whitespace() {
        let within = is_code;
        is_code ^= word.matches('`').count() % 2 == 1;
        match lines.last_mut() {
            Some(line) if within || line.len() + 1 + word.len() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("# {word}")),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns the JSON schema of `harness.toml`.
pub fn schema() -> Schema {
    let mut schema = schemars::schema_for!(HarnessToml).to_value();
    let defined = schema
        .as_object_mut()
        .and_then(|schema| schema.remove("$defs"))
        .unwrap_or_default();
    resolve(&mut schema, &defined);
    for table in Table::all() {
        let Some(of_table) = schema.pointer_mut(&format!("/properties/{}", table.name)) else {
            continue;
        };
        let Some(keys) = of_table.get_mut("properties") else {
            continue;
        };
        let Value::Object(keys) = keys else { continue };
        describe(table, keys);
        match NamedKeys::of(table.name) {
            Some(named) if table.name == "agent" => {
                for (name, _) in named.examples {
                    let mut schema = named.schema.clone();
                    schema["description"] = named.about.into();
                    keys.insert(name, schema);
                }
                of_table["additionalProperties"] = false.into();
            }
            Some(named) => of_table["additionalProperties"] = named.schema,
            None => of_table["additionalProperties"] = false.into(),
        }
    }
    let mut schema = Schema::try_from(schema).unwrap_or_default();
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

/// Gives every key the comment that is about it.
fn describe(table: &Table, keys: &mut Map<String, Value>) {
    let mut description = String::new();
    for key in table.keys {
        if !key.about.is_empty() {
            description = about(key);
        }
        if let Some(schema) = keys.get_mut(key.name()) {
            schema["description"] = description.as_str().into();
        }
    }
}

/// Puts definitions in the place of references, and takes null out: a key that
/// is not set is absent.
fn resolve(schema: &mut Value, defined: &Value) {
    let name = schema["$ref"].as_str().unwrap_or_default();
    if let Some(name) = name.strip_prefix("#/$defs/") {
        *schema = defined[name].clone();
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let is_null = |choice: &&Value| choice["type"] == "null";
        if let Some(choice) = choices.iter().find(|choice| !is_null(choice)) {
            *schema = choice.clone();
            return resolve(schema, defined);
        }
    }
    match schema {
        Value::Object(members) => {
            members.remove("default");
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|one| one != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    members.insert("type".to_owned(), one);
                }
            }
            members.values_mut().for_each(|one| resolve(one, defined));
        }
        Value::Array(items) => items.iter_mut().for_each(|one| resolve(one, defined)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::FileSettings;
    use std::path::Path;

    #[test]
    fn the_template_is_understood_line_by_line() {
        let template = template();
        let parse = |text: &str| FileSettings::parse(text, Path::new("harness.toml"));
        parse(&template).unwrap();
        let mut table = "";
        let mut keys = 0;
        for line in template.lines() {
            if line.starts_with('[') {
                table = line;
            } else if let Some(key) = line.strip_prefix('#').filter(|l| !l.starts_with(' ')) {
                if key.is_empty() {
                    continue;
                }
                parse(&format!("{table}\n{key}\n")).unwrap();
                keys += 1;
            }
        }
        assert!(keys > 80, "{keys}");
    }

    #[test]
    fn the_template_lists_what_agents_and_the_kernel_protect() {
        let template = template();
        assert!(template.contains("\"claude\", \"codex\""));
        assert!(template.contains("#codex_cmd = 'codex exec --json"));
        assert!(template.contains("--model opus < \"$PREMATH_PROMPT_FILE\"'"));
        let listed = template.replace("\n#", " ");
        let listed: Vec<&str> = listed.split([' ', ',']).collect();
        for pattern in governing::defaults(Agent::governing_files()) {
            assert!(listed.contains(&&*pattern), "{pattern}");
        }
        assert!(!template.contains("{agents}") && !template.contains("{protected}"));
        let is_whole = |line: &&str| line.matches('`').count().is_multiple_of(2);
        let mut comments = template.lines().filter(|line| line.starts_with("# "));
        assert_eq!(comments.find(|line| !is_whole(line)), None);
    }

    #[test]
    fn the_schema_has_every_key_with_its_comment() {
        let schema = schema().to_value();
        for table in Table::all().iter().filter(|table| table.name != "worlds") {
            let keys = &schema["properties"][table.name]["properties"];
            for key in table.names() {
                let about = keys[key]["description"].as_str();
                assert!(about.is_some_and(|about| !about.is_empty()), "{key}");
                assert!(
                    !keys[key]["type"].is_null() || keys[key].get("oneOf").is_some(),
                    "{key}"
                );
            }
        }
        let text = schema.to_string();
        assert!(!text.contains("$ref") && !text.contains("null") && !text.contains("{agents}"));
        assert_eq!(
            schema["properties"]["coordinator"]["properties"]["rounds"]["minimum"],
            1
        );
        assert_eq!(
            schema["properties"]["agent"]["properties"]["codex_cmd"]["type"],
            "string"
        );
    }
}

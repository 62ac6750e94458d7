//! What a tool is called with.

use crate::error::CliError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::Path;

/// The arguments of a call.
#[derive(Debug)]
pub(in crate::mcp) struct ToolArguments {
    tool: &'static str,
    value: Value,
}

impl ToolArguments {
    pub(in crate::mcp) const fn of(tool: &'static str, value: Value) -> Self {
        Self { tool, value }
    }

    /// Writes names in snake_case, as the seeds do, in camelCase.
    ///
    /// # Errors
    ///
    /// [`CliError::Arguments`] for a name that is given in both spellings.
    pub(in crate::mcp) fn in_camel_case(self) -> Result<Self, CliError> {
        let wrong = |detail: String| CliError::Arguments {
            tool: self.tool,
            detail,
        };
        Ok(Self {
            tool: self.tool,
            value: camel_cased(self.value).map_err(wrong)?,
        })
    }

    /// Takes the issue store out that the arguments name.
    ///
    /// # Errors
    ///
    /// [`CliError::Arguments`] for another one than the server's.
    pub(in crate::mcp) fn without_issues_path(mut self, served: &Path) -> Result<Self, CliError> {
        let named = self.value.as_object_mut();
        let Some(named) = named.and_then(|fields| fields.remove("issuesPath")) else {
            return Ok(self);
        };
        let canonical = |path: &Path| std::fs::canonicalize(path).ok();
        let is_served = named.as_str().is_some_and(|path| {
            let path = Path::new(path);
            path == served || canonical(path).is_some_and(|path| Some(path) == canonical(served))
        });
        match is_served {
            true => Ok(self),
            false => Err(CliError::Arguments {
                tool: self.tool,
                detail: format!(
                    "invalid `issuesPath` {named}: this server serves {}",
                    served.display()
                ),
            }),
        }
    }

    pub(in crate::mcp) const fn tool(&self) -> &'static str {
        self.tool
    }

    /// Reads the arguments as the tool's schema describes them.
    ///
    /// # Errors
    ///
    /// [`CliError::Arguments`], which says what does not fit.
    pub(in crate::mcp) fn read<T: DeserializeOwned>(self) -> Result<T, CliError> {
        serde_json::from_value(self.value).map_err(|error| CliError::Arguments {
            tool: self.tool,
            detail: error.to_string(),
        })
    }

    /// Returns the arguments as they are.
    pub(super) fn into_value(self) -> Value {
        self.value
    }

    /// Returns the issue that they are about, where they name one.
    pub(in crate::mcp) fn issue(&self) -> Option<&str> {
        let named = ["id", "issueId", "parent"].into_iter();
        named
            .filter_map(|name| self.value.get(name)?.as_str())
            .next()
    }
}

/// Returns a value with the names of its objects in camelCase; the error is a
/// name that is given twice.
fn camel_cased(value: Value) -> Result<Value, String> {
    let Value::Object(fields) = value else {
        return Ok(value);
    };
    let mut written = Map::new();
    for (name, value) in fields {
        let camel = camel(&name);
        if written.insert(camel.clone(), camel_cased(value)?).is_some() {
            return Err(format!("`{camel}` is given in two spellings; give one"));
        }
    }
    Ok(Value::Object(written))
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut name, part| {
        let mut rest = part.chars();
        name.extend(rest.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(rest.as_str());
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_read_in_both_spellings_but_not_in_two_at_once() {
        let given = json!({"graph_scope": "full", "id": "a_b", "lease": {"lease_id": "l_1"}});
        let read = ToolArguments::of("t", given).in_camel_case().unwrap();
        let expected = json!({"graphScope": "full", "id": "a_b", "lease": {"leaseId": "l_1"}});
        assert_eq!(read.into_value(), expected);
        let twice = json!({"graph_scope": "full", "graphScope": "active"});
        let error = ToolArguments::of("t", twice).in_camel_case().unwrap_err();
        assert!(error.to_string().contains("two spellings"), "{error}");
    }

    #[test]
    fn another_issue_store_than_the_servers_is_refused() {
        let given = || ToolArguments::of("t", json!({"issuesPath": "/repo/issues.jsonl", "id": 1}));
        let same = given().without_issues_path(Path::new("/repo/issues.jsonl"));
        assert_eq!(same.unwrap().into_value(), json!({"id": 1}));
        let other = given().without_issues_path(Path::new("/other/issues.jsonl"));
        let error = other.unwrap_err().to_string();
        assert!(error.contains("this server serves /other"), "{error}");
    }
}

//! What a tool is called with.

use crate::error::CliError;
use serde::de::DeserializeOwned;
use serde_json::Value;

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

//! Tools by what they do, whatever an agent calls them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a tool does. Adapters map the names of their agent's tools to these.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// Runs commands, or writes to a command that runs.
    Shell,
    /// Writes files.
    Edit,
    /// Reads files.
    Read,
    /// Lists or searches files.
    Search,
    /// Fetches an address.
    WebFetch,
    /// Searches the web.
    WebSearch,
    /// Starts another agent.
    Subagent,
    /// Keeps a plan, or asks a question.
    Plan,
    /// A tool of an MCP server.
    Mcp,
    /// Anything else.
    Other,
}

impl ToolClass {
    /// Every class, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::Shell,
        Self::Edit,
        Self::Read,
        Self::Search,
        Self::WebFetch,
        Self::WebSearch,
        Self::Subagent,
        Self::Plan,
        Self::Mcp,
        Self::Other,
    ];

    /// Returns the word that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Edit => "edit",
            Self::Read => "read",
            Self::Search => "search",
            Self::WebFetch => "web_fetch",
            Self::WebSearch => "web_search",
            Self::Subagent => "subagent",
            Self::Plan => "plan",
            Self::Mcp => "mcp",
            Self::Other => "other",
        }
    }
}

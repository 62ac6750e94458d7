//! What the output of a step consists of, as a person reads it.

use schemars::JsonSchema;
use serde::Serialize;

/// What a line of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogKind {
    /// A line as it was printed.
    Output,
    /// Text of an agent.
    Said,
    /// Text of an agent that is not its answer.
    Thought,
    /// A tool call.
    Call,
    /// What a tool call gave, shortened.
    Result,
    /// What a tool call failed with, shortened.
    Failed,
    /// Something about the agent's run.
    Note,
    /// How the agent's run ended.
    End,
}

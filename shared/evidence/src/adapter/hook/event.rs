//! One event of a hook of any agent.

use premath_kernel::json::canonical::{self, Sum};
use premath_kernel::policy::turn::{AgentCall, CallPath, ToolClass};
use serde_json::{Map, Value};

/// The longest id or name, in bytes.
const NAME_MAX: usize = 512;

/// What a hook was called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookKind {
    /// The agent has its prompt.
    Prompt,
    /// A tool call is about to run.
    Before,
    /// A tool call ended.
    After,
    /// A tool call failed.
    Failed,
    /// A sub-agent began.
    SubagentBegun,
    /// The agent says that it is done.
    End,
    /// Anything else.
    Other,
}

impl HookKind {
    /// Returns whether an event is about a tool call.
    pub(super) const fn is_of_call(self) -> bool {
        matches!(self, Self::Before | Self::After | Self::Failed)
    }

    /// Returns the word that the journal has.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Before => "before",
            Self::After => "after",
            Self::Failed => "failed",
            Self::SubagentBegun => "subagent_begun",
            Self::End => "end",
            Self::Other => "other",
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookEvent {
    /// What the hook was called for.
    pub(crate) kind: HookKind,
    /// The agent's session.
    pub(crate) session: Option<String>,
    /// The sub-agent that it is about; none for the agent itself.
    pub(crate) caller: Option<String>,
    /// The caller of that sub-agent, where it is reported.
    pub(crate) parent: Option<String>,
    /// The tool call.
    pub(crate) call: Option<HookCall>,
}

/// The tool call of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookCall {
    /// The agent's id of the call, where hooks have one.
    pub(crate) id: Option<String>,
    /// The agent's name of the tool.
    pub(crate) tool: String,
    /// The call in terms of the policy.
    pub(crate) call: AgentCall,
    /// `D` of what it is called with.
    pub(crate) input: Sum,
    /// What the call is in the stream, where the stream reports its input as it
    /// is here.
    pub(crate) key: Option<HookKey>,
    /// `D` of what it gave, where it ended.
    pub(crate) result: Option<Sum>,
    /// Whether no hook is called at its end.
    pub(crate) ends_silently: bool,
    /// Whether the agent may refuse it itself, without a word in any channel.
    pub(crate) may_be_refused: bool,
    /// Whether the event does not report the input.
    pub(crate) is_input_unknown: bool,
}

/// A call as its stream reports it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HookKey {
    /// The tool's name in the stream.
    pub(crate) tool: String,
    /// `D` of its input.
    pub(crate) input: Sum,
}

/// An event that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HookFlaw {
    /// It is not a JSON object.
    #[error("a hook sent what is not a JSON object")]
    NotAnObject,
    /// A field is not what it must be.
    #[error("`{field}` of the event of a hook must be {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// The value that was expected.
        expected: &'static str,
    },
}

/// Reads an event of one agent. The last argument is the worktree, as the agent
/// sees it.
pub(super) type HookReader = fn(&Map<String, Value>, &str) -> Result<HookEvent, HookFlaw>;

/// Returns a name, which must be there and be short.
pub(super) fn name(event: &Map<String, Value>, field: &'static str) -> Result<String, HookFlaw> {
    optional_name(event, field)?.ok_or(HookFlaw::Field {
        field,
        expected: "a name of 1 to 512 bytes",
    })
}

/// Returns a name, where there is one.
pub(super) fn optional_name(
    event: &Map<String, Value>,
    field: &'static str,
) -> Result<Option<String>, HookFlaw> {
    match event.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() && text.len() <= NAME_MAX => {
            Ok(Some(text.clone()))
        }
        Some(_) => Err(HookFlaw::Field {
            field,
            expected: "a name of 1 to 512 bytes",
        }),
    }
}

/// Returns a text of an input, where it is one.
pub(super) fn text<'v>(input: &'v Value, field: &str) -> Option<&'v str> {
    input.get(field).and_then(Value::as_str)
}

/// Returns the name by which a policy knows a tool.
pub(crate) fn policy_name(class: ToolClass, tool: &str) -> String {
    if class != ToolClass::Mcp {
        return tool.to_owned();
    }
    match (tool.strip_prefix("mcp__"), tool.strip_prefix("mcp.")) {
        (Some(rest), _) => rest.replacen("__", "/", 1),
        (_, Some(rest)) => rest.replacen('.', "/", 1),
        _ => tool.to_owned(),
    }
}

/// Makes a call of a tool and its input. A tool of an MCP server is named
/// `server/tool`, however the agent joins the two: the fields of the input that agents
/// name alike are read.
pub(super) fn call_of(
    class: ToolClass,
    tool: &str,
    input: &Value,
    [folder, worktree]: [&str; 2],
) -> AgentCall {
    let path = |text: &str| CallPath::of(text, folder, worktree);
    let mut call = AgentCall::of(class, &policy_name(class, tool));
    if class == ToolClass::Shell {
        call.command = text(input, "command").map(str::to_owned);
        return call;
    }
    for field in [
        "file_path",
        "filePath",
        "notebook_path",
        "path",
        "dir_path",
        "absolute_path",
    ] {
        call.paths.extend(text(input, field).map(path));
    }
    let url = text(input, "url");
    call.hosts.extend(url.and_then(host_of));
    call
}

/// Returns the host of an address.
pub(super) fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => host.split(':').next()?,
    };
    Some(host.to_ascii_lowercase())
}

/// Returns `D` of a value.
pub(super) fn digest_of(value: &Value) -> Sum {
    canonical::sum_ordered(value)
}

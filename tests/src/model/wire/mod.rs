//! The providers that are spoken for.

mod chat;
mod gemini;
mod messages;
mod responses;

use super::journal::{MadeCall, Spent};
use super::script::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A provider's way to stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// OpenAI's responses, as Codex asks for them.
    Responses,
    /// Gemini's `streamGenerateContent`, as Gemini CLI asks for it.
    Gemini,
    /// OpenAI's chat completions, as OpenCode asks for them.
    Chat,
    /// Anthropic's messages, as Claude Code asks for them.
    Messages,
}

/// What a request asks for.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// What the user said.
    pub(super) prompt: String,
    /// The ids of the calls that the conversation holds, where it has them.
    pub(super) call_ids: Vec<String>,
    /// How many answers that called tools it holds.
    pub(super) rounds: usize,
    /// The agent's number of a command that runs still.
    pub(super) running: Option<u64>,
    /// Whether it is a question beside the conversation: it offers no tools.
    pub(super) aside: bool,
    /// Whether the answer is to be a stream.
    pub(super) streams: bool,
}

/// What the model says in an answer.
#[derive(Debug)]
pub(super) struct Says {
    pub(super) text: String,
    pub(super) calls: Vec<MadeCall>,
    /// Why it stops, if the reason is unusual.
    pub(super) stop: Option<String>,
    pub(super) spent: Spent,
    /// What no other answer is named.
    pub(super) name: String,
    pub(super) turn: usize,
}

impl Dialect {
    /// Returns the dialect of a request, by its path.
    pub(super) fn of(method: &str, path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        match method {
            "POST" if path.ends_with("/chat/completions") => Some(Self::Chat),
            "POST" if path.ends_with("/responses") => Some(Self::Responses),
            "POST" if path.ends_with("enerateContent") => Some(Self::Gemini),
            "POST" if path.ends_with("/v1/messages") => Some(Self::Messages),
            _ => None,
        }
    }

    pub(super) fn asked(self, path: &str, body: &Value) -> Asked {
        match self {
            Self::Responses => responses::asked(body),
            Self::Gemini => gemini::asked(path, body),
            Self::Chat => chat::asked(body),
            Self::Messages => messages::asked(body),
        }
    }

    /// Returns a whole answer.
    pub(super) fn events(self, says: &Says) -> Vec<String> {
        match self {
            Self::Responses => responses::events(says),
            Self::Gemini => gemini::events(says),
            Self::Chat => chat::events(says),
            Self::Messages => messages::events(says),
        }
    }

    /// Returns an answer up to its middle: of a call, half of the arguments.
    pub(super) fn begun(self, says: &Says) -> Vec<String> {
        match self {
            Self::Responses => responses::begun(says),
            Self::Gemini => gemini::begun(says),
            Self::Chat => chat::begun(says),
            Self::Messages => messages::begun(says),
        }
    }

    /// Returns what the model says to a question beside the conversation.
    pub(super) fn aside() -> Says {
        let spent = Spent {
            input: 7,
            cached: 0,
            output: 3,
        };
        Says {
            text: "A scripted run".to_owned(),
            calls: Vec::new(),
            stop: None,
            spent,
            name: "aside".to_owned(),
            turn: 0,
        }
    }

    /// Returns the document of an answer that is not a stream.
    pub(super) fn document(self, says: &Says) -> String {
        if self == Self::Messages {
            return messages::document(says).to_string();
        }
        let events = self.events(says);
        let event = events.first().map(String::as_str).unwrap_or_default();
        let event = event.strip_prefix("data: ").unwrap_or(event);
        event.trim_end().to_owned()
    }

    /// Returns the document by which the provider refuses.
    pub(super) fn refusal(self, refusal: &Refusal) -> String {
        let error = match self {
            Self::Gemini => gemini::refusal(refusal),
            Self::Messages => messages::refusal(refusal),
            Self::Responses | Self::Chat => {
                let kind = refusal.kind.as_deref().unwrap_or(match refusal.status {
                    429 => "rate_limit_exceeded",
                    400 => "invalid_request_error",
                    _ => "server_error",
                });
                json!({"message": refusal.message, "type": kind, "code": kind, "param": null})
            }
        };
        match self {
            Self::Messages => json!({"type": "error", "error": error}).to_string(),
            _ => json!({"error": error}).to_string(),
        }
    }
}

/// Returns the texts of a message's content, whichever way it is written.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| {
                let names = ["text", "encrypted_content"];
                names.into_iter().find_map(|name| part[name].as_str())
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns the number that follows the last of a saying.
fn number_after(text: &str, saying: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(saying)?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
}

/// Returns the first half of arguments.
fn half(arguments: &str) -> &str {
    let mut end = arguments.len() / 2;
    while !arguments.is_char_boundary(end) {
        end -= 1;
    }
    &arguments[..end]
}

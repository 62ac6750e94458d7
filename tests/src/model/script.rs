//! What the server answers, as data.

use super::tool::Tool;
use premath_evidence::Agent;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The turns of a model in one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What it makes an agent do.
    pub about: String,
    /// The agents that it is for; all, where none is named.
    #[serde(default)]
    pub agents: Vec<String>,
    /// Whether it is recorded with hooks.
    #[serde(default)]
    pub hooks: Hooked,
    /// Further arguments that an agent needs for it.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// After how many seconds an agent is stopped that does not end by itself.
    #[serde(default)]
    pub patience: Option<u64>,
    /// The turns, in their order.
    pub turns: Vec<Turn>,
}

/// Whether a script is recorded with hooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hooked {
    /// It is not.
    #[default]
    Never,
    /// It is, and without them too.
    Too,
    /// With hooks alone.
    Only,
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Turn {
    /// The model prints text, calls tools, or both.
    Answer {
        /// What it says.
        #[serde(default)]
        text: String,
        /// What it calls.
        #[serde(default)]
        calls: Vec<Tool>,
        /// Why it stops, in the provider's word, if it is unusual;
        /// messages alone have it.
        #[serde(default)]
        stop: Option<String>,
        /// What the user has to say before it is played; then it is played next,
        /// and what is before it is over.
        #[serde(default)]
        shown: Option<String>,
    },
    /// The provider refuses.
    Fail(Refusal),
    /// The connection is cut in the middle of an answer.
    Cut {
        /// What was reported before.
        text: String,
        /// A call, of whose arguments a half was sent.
        #[serde(default)]
        call: Option<Tool>,
        /// How often, before it continues; always, where nothing is reported.
        #[serde(default)]
        times: Option<u64>,
    },
}

/// How a provider refuses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// What it says.
    pub message: String,
    /// Its word for the kind of failure, where it has one of its own.
    #[serde(default)]
    pub kind: Option<String>,
    /// After how many seconds it may be asked again.
    #[serde(default)]
    pub retry_after: Option<u64>,
    /// How often, before it continues; always, where nothing is reported.
    #[serde(default)]
    pub times: Option<u64>,
}

impl Script {
    /// Returns whether it is played to an agent.
    pub fn is_for(&self, agent: Agent) -> bool {
        self.agents.is_empty() || self.agents.iter().any(|name| name == agent.as_str())
    }
}

impl Turn {
    /// Returns how often a turn is played that goes wrong; `None` for one that
    /// goes well, and the most that there is for one that goes wrong always.
    pub(super) fn failures(&self) -> Option<u64> {
        match self {
            Self::Answer { .. } => None,
            Self::Fail(Refusal { times, .. }) | Self::Cut { times, .. } => {
                Some(times.unwrap_or(u64::MAX))
            }
        }
    }

    /// Returns whether it waits for a text of the user's that is there.
    pub(super) fn is_shown(&self, prompt: &str) -> bool {
        let Self::Answer { shown, .. } = self else {
            return false;
        };
        shown.as_ref().is_some_and(|text| prompt.contains(text))
    }

    /// Returns whether a conversation continues after it.
    pub(super) fn calls_tools(&self) -> bool {
        matches!(self, Self::Answer { calls, .. } if !calls.is_empty())
    }
}

/// Scripts by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scripts(BTreeMap<String, Script>);

/// A script that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file or folder cannot be read.
    #[error("cannot read {}", .path.display())]
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a script.
    #[error("{} is not a script: {source}", .path.display())]
    Malformed {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

impl Scripts {
    /// Reads a folder: every `<name>.json` in it is a script.
    ///
    /// # Errors
    ///
    /// Where a file cannot be read, or is not a script.
    pub fn of_folder(folder: &Path) -> Result<Self, ScriptError> {
        let unreadable = |path: &Path| {
            let path = path.to_path_buf();
            |source| ScriptError::Unreadable { path, source }
        };
        let mut scripts = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(unreadable(folder))? {
            let path = entry.map_err(unreadable(folder))?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let (Some(name), true) = (stem, path.extension().is_some_and(|end| end == "json"))
            else {
                continue;
            };
            let bytes = fs::read(&path).map_err(unreadable(&path))?;
            match serde_json::from_slice(&bytes) {
                Ok(script) => scripts.insert(name.to_owned(), script),
                Err(source) => return Err(ScriptError::Malformed { path, source }),
            };
        }
        Ok(Self(scripts))
    }

    /// Returns a script.
    pub fn get(&self, name: &str) -> Option<&Script> {
        self.0.get(name)
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

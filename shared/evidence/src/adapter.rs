//! The agents, and how a line of each is read.
//!
//! A module of this folder describes one agent by an [`AgentSpec`]: nothing
//! outside of it depends on which agent works. An adapter takes one line, as a
//! JSON object, and gives events. It holds no more than what is open: nothing
//! of a line is left when the next one comes.

mod claude;
mod codex;
mod gemini;
pub(crate) mod hook;
mod opencode;
mod saying;
mod spec;
mod transcript;

pub use hook::{HookFile, HookPlace, HookSpec, HookWiring};
pub(crate) use saying::reports_no_network;
pub(crate) use spec::LineReader;
pub use spec::{AgentFiles, AgentSpec};
pub use transcript::{TranscriptPart, transcript};

use crate::event::EventKind;
use crate::flaw::Flaw;
use crate::json::{Object, cut};

/// The normaliser that agents' evidence is bound to: one for all of them, for
/// they are read into one model of events. Which agent it was says `modelRef`.
pub const AGENT_NORMALIZER: &str = "premath.harness.agent.v1";

/// Makes [`Agent`] from the list of agents.
macro_rules! registry {
    ($($agent:ident => $spec:path,)+) => {
        /// The agents whose event streams are read (`agents.md`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Agent {
            $(
                #[doc = concat!("The agent of `", stringify!($spec), "`.")]
                $agent,
            )+
        }

        impl Agent {
            /// All agents, in the order of the registry.
            pub const ALL: &'static [Self] = &[$(Self::$agent,)+];

            /// Returns everything in which the agent differs from others.
            pub const fn spec(self) -> &'static AgentSpec {
                match self {
                    $(Self::$agent => &$spec,)+
                }
            }
        }
    };
}

// Sorted by name. A new agent is one line here, one above, and its module.
registry! {
    Claude => claude::SPEC,
    Codex => codex::SPEC,
    Gemini => gemini::SPEC,
    OpenCode => opencode::SPEC,
}

impl Agent {
    /// Returns the adapter's name, as it is stored in configuration.
    pub const fn as_str(self) -> &'static str {
        self.spec().name
    }

    /// Returns the agent of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == name)
    }

    /// Returns the names of all agents.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|agent| agent.as_str())
    }

    /// Returns what any agent takes as instructions, hooks or servers, in every
    /// folder of a repository; a folder ends with a slash.
    pub fn governing_files() -> impl Iterator<Item = &'static str> {
        Self::ALL
            .iter()
            .flat_map(|agent| agent.spec().governing_files.iter().copied())
    }

    /// Returns why an agent stopped that reports the reason only by its exit
    /// code.
    pub(crate) fn stop_reason_of_exit(self, code: i32) -> Option<&'static str> {
        let mut reasons = self.spec().stop_reasons_by_exit.iter();
        reasons
            .find(|(of, _)| *of == code)
            .map(|(_, reason)| *reason)
    }
}

/// What takes the events of a line.
pub(crate) type Out<'a> = &'a mut dyn FnMut(EventKind<'_>);

/// Skips an unknown type, unless it could be a call.
fn unknown(kind: &str, within: &Object<'_>, out: Out<'_>) -> Result<(), Flaw> {
    let kind = cut(kind);
    if within.has_call_field() {
        return Err(Flaw::UnknownCall(kind.to_owned()));
    }
    out(EventKind::Unknown(kind.to_owned()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_sorted_and_described() {
        let names: Vec<&str> = Agent::names().collect();
        assert!(names.is_sorted() && !names.is_empty());
        for agent in Agent::ALL {
            let spec = agent.spec();
            let line = spec.command_line;
            assert!(line.starts_with(spec.program), "{line}");
            assert!(line.ends_with("< \"$PREMATH_PROMPT_FILE\""), "{line}");
            let files = &spec.files;
            for name in files.renewed {
                assert!(files.copied.contains(name), "{}: {name}", spec.name);
            }
            assert!(spec.variables.iter().all(|start| start.ends_with('_')));
        }
    }
}

//! The closed vocabularies of a turn.
//!
//! Words are read trimmed and in any ASCII letter case, and written as here.

use super::block::always_normal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A closed set of words, one variant each.
pub(super) trait Word: Sized {
    /// The admitted words, as they are named to a person.
    const ADMITTED: &'static str;

    /// Reads a word that is already trimmed and lower-cased.
    fn read(word: &str) -> Option<Self>;
}

/// Reads a word.
struct Read<W>(PhantomData<W>);

impl<W: Word> Visitor<'_> for Read<W> {
    type Value = W;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}", W::ADMITTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<W, E> {
        W::read(&text.trim().to_ascii_lowercase())
            .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// The schema of a word as it is read: in any letter case, with white space
/// around it, and blank where it may be absent.
fn read_schema(words: &[&str]) -> Schema {
    let any_case = |word: &&str| -> String {
        word.chars()
            .map(|letter| match letter.to_ascii_uppercase() {
                upper if upper == letter => letter.to_string(),
                upper => format!("[{letter}{upper}]"),
            })
            .collect()
    };
    let words_in_any_case: Vec<String> = words.iter().map(any_case).collect();
    let pattern = format!(r"^\s*({})?\s*$", words_in_any_case.join("|"));
    json_schema!({"type": "string", "pattern": pattern, "examples": words})
}

macro_rules! words {
    (
        $(#[$meta:meta])* $name:ident admits $admitted:literal {
            $( $(#[$doc:meta])* $variant:ident = $text:literal $(| $alias:literal)*, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $( $(#[$doc])* $variant, )+ }

        impl $name {
            /// Every word, in the order of the specification.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// Returns the word as it is stored in the normal form.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text, )+ }
            }
        }

        impl Word for $name {
            const ADMITTED: &'static str = $admitted;

            fn read(word: &str) -> Option<Self> {
                match word {
                    $( $text $(| $alias)* => Some(Self::$variant), )+
                    _ => None,
                }
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                if generator.contract().is_deserialize() {
                    read_schema(&[ $( $text, $( $alias, )* )+ ])
                } else {
                    json_schema!({"type": "string", "enum": [ $( $text, )+ ]})
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Read(PhantomData))
            }
        }

        always_normal!($name);

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words! {
    /// How the model acts in a turn (`HARNESS-TYPESTATE 7`).
    #[derive(Default)]
    ActionMode admits "code, json, text" {
        /// Code that may call many tools in one action.
        Code = "code",
        /// One structured call an action object.
        Json = "json",
        /// Free text: no tool calls, except through a named adapter profile.
        #[default]
        Text = "text",
    }
}

words! {
    /// How a tool call ended.
    ResultStatus admits "ok, error" {
        /// It did what it should.
        Ok = "ok",
        /// It failed, with an error envelope.
        Error = "error",
    }
}

words! {
    /// The outcome of a result (`contracts.md` 2).
    Disposition admits
        "consumed, observed (or observed_only), discarded (or discarded_with_reason), retry_scheduled" {
        /// Something was built on it; needs a provenance.
        Consumed = "consumed",
        /// It was looked at and nothing rests on it.
        Observed = "observed" | "observed_only",
        /// It was thrown away; needs a reason.
        Discarded = "discarded" | "discarded_with_reason",
        /// The call will be made again.
        RetryScheduled = "retry_scheduled",
    }
}

words! {
    /// Why a turn stopped, as far as the protocol handles it (`contracts.md` 2).
    /// In the byte order of the words, in which sets of them are written.
    StopReason admits "tool_use, pause_turn, max_tokens, end_turn" {
        /// The model is done.
        EndTurn = "end_turn",
        /// The budget of tokens is used up.
        MaxTokens = "max_tokens",
        /// The provider paused a long turn.
        PauseTurn = "pause_turn",
        /// The model asks for tool calls.
        ToolUse = "tool_use",
    }
}

words! {
    /// How free the model is in its choice of tools.
    ToolChoice admits "auto, any, specific" {
        /// It may call a tool or none.
        Auto = "auto",
        /// The model must call a tool.
        Any = "any",
        /// It must call the named one.
        Specific = "specific",
    }
}

words! {
    /// How a run may be traced.
    ObservabilityMode admits "dashboard, internal_processor, disabled" {
        /// Traces are stored where people look at them.
        Dashboard = "dashboard",
        /// Traces go to a processor of one's own.
        InternalProcessor = "internal_processor",
        /// The run is not traced.
        Disabled = "disabled",
    }
}

words! {
    /// How much is at stake.
    RiskTier admits "low, moderate, high" {
        /// Little.
        Low = "low",
        /// Something.
        Moderate = "moderate",
        /// Much.
        High = "high",
    }
}

words! {
    /// The role of the agent.
    OrchestrationRole admits "orchestrator, specialist" {
        /// Hands work out and gathers it.
        Orchestrator = "orchestrator",
        /// Does one kind of work in its own scope.
        Specialist = "specialist",
    }
}

words! {
    /// Whether tools may filter data before the model sees any of it.
    PreContextFilter admits "allowed, forbidden" {
        /// Tools may filter data.
        Allowed = "allowed",
        /// Whatever there is must be seen.
        Forbidden = "forbidden",
    }
}

words! {
    /// Whether outputs must come in the order of their calls.
    TransportOrdering admits "strict, relaxed" {
        /// Outputs must come in order.
        Strict = "strict",
        /// They may come in any order.
        Relaxed = "relaxed",
    }
}

words! {
    /// When a person must have looked.
    #[derive(Default)]
    Checkpoint admits "none, before_mutation, every_turn" {
        /// Never.
        #[default]
        None = "none",
        /// Before an issue is changed.
        BeforeMutation = "before_mutation",
        /// At every turn.
        EveryTurn = "every_turn",
    }
}

words! {
    /// A stage at which guardrails decide, in their order.
    GuardrailStage admits "pre_flight, input, output" {
        /// Before any tool is run.
        PreFlight = "pre_flight",
        /// On the input.
        Input = "input",
        /// On the output.
        Output = "output",
    }
}

words! {
    /// What is sent between model and tools.
    TransportEvent admits "call, output" {
        /// A call, to a tool.
        Call = "call",
        /// Its output, to the model.
        Output = "output",
    }
}

words! {
    /// How the context is accessed.
    ScopeMode admits "read, write" {
        /// The access reads.
        Read = "read",
        /// The access writes.
        Write = "write",
    }
}

words! {
    /// What a turn asks to change.
    MutationTarget admits "issue, governance, tool_loading" {
        /// An issue or a dependency.
        Issue = "issue",
        /// A governance policy.
        Governance = "governance",
        /// The default by which tools are loaded or filtered.
        ToolLoading = "tool_loading",
    }
}

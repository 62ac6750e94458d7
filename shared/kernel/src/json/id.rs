//! Ids as types, so that no function takes one for another.
//!
//! An id reads and writes as a JSON text. It is made of any text: whether that
//! names something, the store decides.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

/// Returns whether a text is the name of a commit: 40 or 64 hexadecimal digits.
pub fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

macro_rules! id_type {
    ($( $(#[$doc:meta])* $name:ident; )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Makes an id of a text.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn schema_id() -> Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($name)).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                String::json_schema(generator)
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }
    )+ };
}

id_type! {
    /// The id of an issue, as in `bd-12`.
    IssueId;
    /// The name of a worker, as in `worker.1`.
    WorkerName;
    /// The id of a lease, as in `lease1_bd-12_worker_1`.
    LeaseId;
    /// The id of a session, as in `hs1_20260305T100000Z`.
    SessionId;
    /// The id of a step, as in `worker.1.bd-12.3`: worker, issue, generation.
    StepId;
    /// The id of a batch, as in `hb1_20260305T100000Z_0123456789ab`.
    BatchId;
    /// The id of a world, as in `web` of `world://web/`.
    WorldId;
}

impl StepId {
    /// Returns `<worker>.<issue>.<generation>`, which no two attempts share.
    pub fn of(worker_id: &str, issue_id: &str, generation: u64) -> Self {
        Self::from(format!("{worker_id}.{issue_id}.{generation}"))
    }

    /// Returns the generation of the lease that the step ran under; 0 where the id is of
    /// another shape.
    pub fn generation(&self) -> u64 {
        let last = self.rsplit_once('.').map(|(_, last)| last);
        last.and_then(|last| last.parse().ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_names_the_generation_of_its_lease() {
        assert_eq!(StepId::of("worker.1", "a.b", 12).generation(), 12);
        for other in ["", "worker", "worker.1.a.", "worker.1.a.x", "12"] {
            assert_eq!(StepId::from(other).generation(), 0, "{other}");
        }
    }

    #[test]
    fn an_id_is_its_text_in_json_and_in_messages() {
        let id = IssueId::from("bd-1");
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"bd-1\"");
        assert_eq!(serde_json::from_str::<IssueId>("\"bd-1\"").unwrap(), id);
        assert_eq!(format!("{id}|{id:?}|{id:>5}"), "bd-1|\"bd-1\"| bd-1");
        let schema = schemars::schema_for!(Vec<IssueId>).to_value();
        assert_eq!(schema["items"], serde_json::json!({"type": "string"}));
    }
}

//! Which policies a batch has, by what is configured and by what the sandbox
//! can enforce.

use super::word::NetworkWord;
use crate::failure::FailureClass;
use crate::policy::sandbox::SandboxMode;
use schemars::JsonSchema;
use serde::Serialize;

/// What work may reach where nothing is configured.
const WORK_DEFAULT: NetworkWord = NetworkWord::Public;
/// What verification may reach where nothing is configured.
const VERIFY_DEFAULT: NetworkWord = NetworkWord::Registries;

/// Returns whether commands in a sandbox have no way to the network but the
/// proxy. Landlock knows ports and no addresses, and it leaves UDP open.
pub const fn enforces(mode: SandboxMode) -> bool {
    mode.has_view()
}

/// The policies of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkChoice {
    /// The network of the work command.
    pub work: NetworkWord,
    /// The network of the verification.
    pub verify: NetworkWord,
    /// The sandbox that enforces no policy, where a default became `open` by it.
    #[serde(skip)]
    pub unenforced: Option<SandboxMode>,
}

impl NetworkChoice {
    /// Returns the line that warns of a network that is open by default.
    pub fn warning(&self) -> Option<String> {
        let mode = self.unenforced?;
        Some(format!(
            "commands reach every network address: the sandbox `{mode}` cannot enforce a network policy"
        ))
    }
}

/// A policy is configured that the sandbox cannot enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the network policy `{key} = \"{word}\"` cannot be enforced by the sandbox `{mode}`: \
     it does not separate commands from the network"
)]
pub struct NetworkUnenforced {
    /// The key under `[network]`.
    pub key: &'static str,
    /// The policy.
    pub word: NetworkWord,
    /// The sandbox.
    pub mode: SandboxMode,
}

impl NetworkUnenforced {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        FailureClass::SandboxUnavailable
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> String {
        let key = self.key;
        format!(
            "use a sandbox with a network namespace, or accept an open network with `--network-{key} open` or `{key} = \"open\"` under [network]"
        )
    }
}

/// Takes the configured policies, or the defaults.
///
/// `is_enforced` says whether the sandbox enforces policies ([`enforces`]).
///
/// # Errors
///
/// [`NetworkUnenforced`] where a policy other than `open` is configured and
/// cannot be enforced. A default that cannot be enforced becomes `open`.
pub fn choose(
    work: Option<NetworkWord>,
    verify: Option<NetworkWord>,
    mode: SandboxMode,
    is_enforced: bool,
) -> Result<NetworkChoice, NetworkUnenforced> {
    if is_enforced {
        return Ok(NetworkChoice {
            work: work.unwrap_or(WORK_DEFAULT),
            verify: verify.unwrap_or(VERIFY_DEFAULT),
            unenforced: None,
        });
    }
    for (key, asked) in [("work", work), ("verify", verify)] {
        match asked {
            None | Some(NetworkWord::Open) => {}
            Some(word) => return Err(NetworkUnenforced { key, word, mode }),
        }
    }
    let is_default = work.is_none() || verify.is_none();
    Ok(NetworkChoice {
        work: NetworkWord::Open,
        verify: NetworkWord::Open,
        unenforced: is_default.then_some(mode),
    })
}

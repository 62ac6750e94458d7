//! The words of the network policy in settings.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// A network policy by its word; lists of hosts and ports come beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkWord {
    /// No host.
    Off,
    /// The listed hosts.
    Allow,
    /// The package registries, and the listed hosts.
    Registries,
    /// Every host with a public address, and the listed hosts.
    Public,
    /// Every host and port.
    Open,
}

impl NetworkWord {
    /// Every word, the narrowest first.
    pub(crate) const ALL: [Self; 5] = [
        Self::Off,
        Self::Allow,
        Self::Registries,
        Self::Public,
        Self::Open,
    ];

    /// Returns the text in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Allow => "allow",
            Self::Registries => "registries",
            Self::Public => "public",
            Self::Open => "open",
        }
    }
}

impl fmt::Display for NetworkWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word is not a network policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid network policy `{text}`: expected `off`, `allow`, `registries`, `public` or \
        `open`{}", suggestion(*.near))]
pub struct UnknownNetwork {
    /// The text.
    pub text: String,
    /// The word that is nearest to it, where one is near.
    pub near: Option<NetworkWord>,
}

fn suggestion(near: Option<NetworkWord>) -> String {
    near.map_or_else(String::new, |word| format!("; did you mean `{word}`?"))
}

impl FromStr for NetworkWord {
    type Err = UnknownNetwork;

    fn from_str(text: &str) -> Result<Self, UnknownNetwork> {
        let found = Self::ALL.into_iter().find(|word| word.as_str() == text);
        found.ok_or_else(|| {
            let given = text.to_ascii_lowercase();
            let near = Self::ALL
                .into_iter()
                .map(|word| (strsim::damerau_levenshtein(&given, word.as_str()), word))
                .min_by_key(|(distance, _)| *distance)
                // Words are short: two edits make one of another.
                .filter(|(distance, word)| *distance * 3 <= word.as_str().len())
                .map(|(_, word)| word);
            UnknownNetwork {
                text: text.to_owned(),
                near,
            }
        })
    }
}

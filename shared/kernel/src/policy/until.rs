//! When a batch without more ready issues ends.

use std::fmt;
use std::str::FromStr;

/// When a batch ends that reached no other bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// When nothing can run any more, also not later: it waits for retries.
    #[default]
    Done,
    /// As soon as nothing runs and nothing is ready.
    Idle,
    /// Never: it waits for new issues until it is stopped.
    Forever,
}

/// A word is none of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value `{0}`: expected `done`, `idle` or `forever`")]
pub struct UnknownUntil(pub String);

impl Until {
    const ALL: [Self; 3] = [Self::Done, Self::Idle, Self::Forever];

    /// Returns the word used in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Idle => "idle",
            Self::Forever => "forever",
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Until {
    type Err = UnknownUntil;

    fn from_str(text: &str) -> Result<Self, UnknownUntil> {
        let found = Self::ALL.into_iter().find(|until| until.as_str() == text);
        found.ok_or_else(|| UnknownUntil(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reads_as_it_is_written() {
        for until in Until::ALL {
            assert_eq!(until.to_string().parse(), Ok(until));
        }
        let error = "never".parse::<Until>().unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid value `never`: expected `done`, `idle` or `forever`"
        );
    }
}

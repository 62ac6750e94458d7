//! Which git is new enough.

use std::fmt;

/// A version of git, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GitVersion {
    major: u32,
    minor: u32,
}

impl GitVersion {
    /// The oldest that the harness is made for. Filters are run with
    /// `GIT_CONFIG_GLOBAL`, which an older git does not know: it would read the
    /// configuration of the user, which is to have no part in it.
    pub(super) const LEAST: Self = Self {
        major: 2,
        minor: 32,
    };

    /// Reads what `git --version` prints; `None` where it is anything else.
    pub(super) fn read(text: &str) -> Option<Self> {
        let version = text.trim().strip_prefix("git version ")?;
        let mut parts = version.split(|c: char| !c.is_ascii_digit());
        let mut number = || parts.next()?.parse().ok();
        Some(Self {
            major: number()?,
            minor: number()?,
        })
    }
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_vendors_write_them_and_compared_by_number() {
        for (text, is_enough) in [
            ("git version 2.32.0\n", true),
            ("git version 2.39.5 (Apple Git-154)", true),
            ("git version 2.49.0.windows.1", true),
            ("git version 2.100.1", true),
            ("git version 3.0", true),
            ("git version 2.32-rc1", true),
            ("git version 2.31.8", false),
            ("git version 2.4.1", false),
            ("git version 1.99.0", false),
        ] {
            let version = GitVersion::read(text).unwrap();
            assert_eq!(version >= GitVersion::LEAST, is_enough, "{text}");
        }
        for text in [
            "",
            "git version",
            "git version two",
            "hub version 2.40.0",
            "2.40.0",
        ] {
            assert_eq!(GitVersion::read(text), None, "{text}");
        }
        assert_eq!(GitVersion::LEAST.to_string(), "2.32");
    }
}

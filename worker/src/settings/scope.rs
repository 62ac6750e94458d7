//! The files that an instruction's scope covers.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::BTreeSet;

/// Patterns of the files that work may change.
#[derive(Clone, Debug)]
pub(crate) struct ScopePaths {
    set: GlobSet,
}

/// A pattern that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid pattern `{pattern}`: {detail}")]
pub struct ScopePatternError {
    pattern: String,
    detail: String,
}

impl ScopePaths {
    /// Reads patterns, from the root of the repository; a folder covers what is
    /// in it.
    ///
    /// # Errors
    ///
    /// [`ScopePatternError`].
    pub(crate) fn new(patterns: &BTreeSet<String>) -> Result<Self, ScopePatternError> {
        let wrong = |pattern: &str, error: &globset::Error| ScopePatternError {
            pattern: pattern.to_owned(),
            detail: error.kind().to_string(),
        };
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let rooted = pattern.trim_start_matches('/').trim_end_matches('/');
            for glob in [rooted.to_owned(), format!("{rooted}/**")] {
                let glob = GlobBuilder::new(&glob).literal_separator(true).build();
                set.add(glob.map_err(|error| wrong(pattern, &error))?);
            }
        }
        let set = set.build().map_err(|error| wrong("", &error))?;
        Ok(Self { set })
    }

    /// Returns the paths that no pattern covers, in their order.
    pub(crate) fn outside<'a>(&self, paths: &'a [String]) -> Vec<&'a str> {
        let outside = paths
            .iter()
            .filter(|path| !self.set.is_match(path.as_str()));
        outside.map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_rooted_and_a_folder_covers_what_is_in_it() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let scope = ScopePaths::new(&words(&["src/parser/", "docs/*.md"])).unwrap();
        let paths: Vec<String> = [
            "src/parser/a/b.rs",
            "docs/a.md",
            "docs/deep/a.md",
            "other/src/parser/a.rs",
            "SRC/parser/a.rs",
            "src/parser.rs",
        ]
        .map(str::to_owned)
        .to_vec();
        let outside = scope.outside(&paths);
        assert_eq!(
            outside,
            [
                "docs/deep/a.md",
                "other/src/parser/a.rs",
                "SRC/parser/a.rs",
                "src/parser.rs"
            ]
        );
        assert!(ScopePaths::new(&words(&["a[b"])).is_err());
    }
}

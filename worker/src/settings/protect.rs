//! Files that work must not touch: `[protect]` of `harness.toml`.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns as in `.gitignore`: one without a slash counts in every folder, and
/// what a folder holds goes with it.
#[derive(Clone, Debug, Default)]
pub struct Protect {
    patterns: Vec<String>,
    set: GlobSet,
}

/// A text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no pattern as in .gitignore: {detail}")]
pub struct PatternError {
    pattern: String,
    detail: String,
}

impl Protect {
    /// Reads patterns.
    ///
    /// # Errors
    ///
    /// [`PatternError`], naming the pattern that is none.
    pub fn of(patterns: &[String]) -> Result<Self, PatternError> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let trimmed = pattern.trim_end_matches('/');
            let rooted = match trimmed.strip_prefix('/') {
                Some(rooted) => rooted.to_owned(),
                None if trimmed.contains('/') => trimmed.to_owned(),
                None => format!("**/{trimmed}"),
            };
            let wrong = |error: &globset::Error| PatternError {
                pattern: pattern.clone(),
                detail: error.kind().to_string(),
            };
            for glob in [format!("{rooted}/**"), rooted] {
                let glob = GlobBuilder::new(&glob).literal_separator(true).build();
                set.add(glob.map_err(|error| wrong(&error))?);
            }
        }
        let set = set.build().map_err(|error| PatternError {
            pattern: patterns.join(", "),
            detail: error.to_string(),
        })?;
        Ok(Self {
            patterns: patterns.to_vec(),
            set,
        })
    }

    /// Tells whether anything is protected.
    pub const fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns the patterns as they were written.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// Returns those of the paths that are protected, in their order.
    pub fn touched<'p>(&self, paths: &'p [String]) -> Vec<&'p str> {
        paths
            .iter()
            .map(String::as_str)
            .filter(|path| self.set.is_match(path))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_count_as_in_a_gitignore() {
        for (pattern, path, expected) in [
            ("Cargo.lock", "Cargo.lock", true),
            ("Cargo.lock", "tests/fuzz/Cargo.lock", true),
            ("/Cargo.lock", "tests/fuzz/Cargo.lock", false),
            ("*.pem", "keys/a.pem", true),
            ("migrations/", "db/migrations/1.sql", true),
            ("migrations", "db/migrations.md", false),
            (".github/**", ".github/workflows/ci.yml", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**/*.rs", "src/deep/a.rs", true),
        ] {
            let protect = Protect::of(&[pattern.to_owned()]).unwrap();
            let paths = [path.to_owned()];
            assert_eq!(
                !protect.touched(&paths).is_empty(),
                expected,
                "{pattern} {path}"
            );
        }
        assert!(Protect::default().is_empty());
        assert_eq!(
            Protect::of(&["[a".to_owned()]).unwrap_err().to_string(),
            "`[a` is no pattern as in .gitignore: unclosed character class; missing ']'"
        );
    }
}

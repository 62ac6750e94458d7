//! Caches of build tools: what can be fetched again.

use std::path::{Path, PathBuf};

/// A cache of the user's, which a step sees with a layer of its own over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cache {
    /// The folder of the cache.
    pub folder: PathBuf,
    /// Where a step's programs look for it, from the private home.
    pub at: &'static str,
}

/// Where programs look for a cache, the variable that moves it, and what of the
/// moved folder it is.
const KNOWN: [(&str, Option<(&str, &str)>); 21] = [
    (".cargo/registry", Some(("CARGO_HOME", "registry"))),
    (".cargo/git", Some(("CARGO_HOME", "git"))),
    (".npm/_cacache", Some(("NPM_CONFIG_CACHE", "_cacache"))),
    (".local/share/pnpm/store", None),
    (".bun/install/cache", None),
    ("go/pkg/mod", Some(("GOMODCACHE", ""))),
    (".gradle/caches", Some(("GRADLE_USER_HOME", "caches"))),
    (".gradle/wrapper", Some(("GRADLE_USER_HOME", "wrapper"))),
    (".m2/repository", None),
    (".nuget/packages", Some(("NUGET_PACKAGES", ""))),
    (".cache/pip", Some(("PIP_CACHE_DIR", ""))),
    (".cache/ccache", Some(("CCACHE_DIR", ""))),
    (".cache/sccache", Some(("SCCACHE_DIR", ""))),
    (".cache/uv", Some(("UV_CACHE_DIR", ""))),
    (".cache/go-build", Some(("GOCACHE", ""))),
    (".cache/yarn", None),
    (".cache/node", None),
    (".cache/node-gyp", None),
    (".cache/pypoetry", None),
    (".cache/ms-playwright", None),
    (".cache/deno", Some(("DENO_DIR", ""))),
];

/// Returns the caches that are there, without links on the way.
pub(super) fn find(home: Option<&Path>, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<Cache> {
    let here = |(at, moved): &(&'static str, Option<(&str, &str)>)| {
        let moved = moved.and_then(|(name, below)| Some(variable(name)?.join(below)));
        let moved = moved.filter(|path| path.is_absolute());
        let folder = moved.or_else(|| Some(home?.join(at)))?;
        let folder = std::fs::canonicalize(folder).ok()?;
        folder.is_dir().then_some(Cache { folder, at })
    };
    KNOWN.iter().filter_map(here).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_found_where_a_variable_moved_them_too() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for there in ["home/.cargo/registry", "home/.cache/pip", "elsewhere/git"] {
            std::fs::create_dir_all(root.join(there)).unwrap();
        }
        let home = root.join("home");
        let found = |variable: &dyn Fn(&str) -> Option<PathBuf>| -> Vec<PathBuf> {
            let found = find(Some(&home), variable).into_iter();
            found.map(|cache| cache.folder).collect()
        };
        assert_eq!(
            found(&|_| None),
            [home.join(".cargo/registry"), home.join(".cache/pip")]
        );
        let moved = |name: &str| (name == "CARGO_HOME").then(|| root.join("elsewhere"));
        assert_eq!(
            found(&moved),
            [root.join("elsewhere/git"), home.join(".cache/pip")]
        );
    }
}

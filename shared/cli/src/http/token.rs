//! The secrets that HTTP requests bear, and where one may be kept: in a place
//! that no step can read.

use crate::error::CliError;
use crate::paths::{self, variable};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use premath_evidence::Agent;
use premath_kernel::json::canonical::hex;
use premath_memory::private::PrivateFolder;
use premath_memory::roots::worktree_folders;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;

/// The fewest characters of a token: less can be guessed.
const TOKEN_LEAST: usize = 16;
/// The longest file that is read.
const FILE_MAX: u64 = 64 << 10;
/// The bits of a file's mode that let others than its owner at it.
const OTHERS: u32 = 0o077;
/// The name of the token's file in the private folder.
const DEFAULT_NAME: &str = "mcp-token";
/// Folders in the home that steps use for the state of their tools, beside those
/// of agents.
const TOOL_STATE: &[&str] = &[
    ".bun",
    ".cache",
    ".cargo",
    ".gradle",
    ".local/share/pnpm",
    ".local/state",
    ".m2",
    ".npm",
    ".nuget",
    "go",
];
/// The variables that move such folders.
const TOOL_STATE_VARIABLES: &[&str] = &[
    "CARGO_HOME",
    "GOMODCACHE",
    "GRADLE_USER_HOME",
    "MISE_STATE_DIR",
    "NPM_CONFIG_CACHE",
    "NUGET_PACKAGES",
    "XDG_CACHE_HOME",
];

/// Bytes of a new secret, before they are written as text.
const SECRET_BYTES: usize = 32;

/// A text that only who was given it knows. Not `Debug`: it reaches no log.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    /// Makes a random one.
    ///
    /// # Errors
    ///
    /// [`CliError::Serve`] where the system has no random bytes.
    pub(crate) fn random() -> Result<Self, CliError> {
        let mut bytes = [0; SECRET_BYTES];
        let failed = |errno: Errno| super::failed("make a token")(errno.into());
        // Up to 256 bytes come whole.
        getrandom(&mut bytes, GetRandomFlags::empty()).map_err(failed)?;
        Ok(Self(hex(&bytes)))
    }

    /// Returns whether a text is it, in a time that does not say where another one
    /// differs.
    pub(crate) fn is(&self, given: &str) -> bool {
        bool::from(given.as_bytes().ct_eq(self.0.as_bytes()))
    }

    /// Returns it, to be given to the one that it is for.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

/// What every request must bear.
pub(crate) struct Token(Secret);

impl From<Secret> for Token {
    fn from(secret: Secret) -> Self {
        Self(secret)
    }
}

impl Token {
    /// Reads the token of a file.
    ///
    /// # Errors
    ///
    /// As [`Token::read`].
    pub(crate) fn of_file(path: &Path) -> Result<Self, CliError> {
        Self::fit(
            &read_private(path, "token file")?,
            &path.display().to_string(),
        )
    }

    /// Reads the token: from the file that is given, from
    /// `PREMATH_MCP_TOKEN`, or from the repository's private folder, where one
    /// is made.
    ///
    /// # Errors
    ///
    /// [`CliError::Usage`] for a file that others or steps can read, and for a
    /// token that can be guessed.
    pub(crate) fn read(file: Option<&Path>) -> Result<Self, CliError> {
        let (text, from) = match file {
            Some(path) => return Self::of_file(path),
            None => match variable("PREMATH_MCP_TOKEN") {
                Some(token) => (
                    token.to_string_lossy().into_owned(),
                    "PREMATH_MCP_TOKEN".to_owned(),
                ),
                None => {
                    let folder = PrivateFolder::of(&paths::roots()?);
                    let path = folder.path().join(DEFAULT_NAME);
                    (folder.secret(DEFAULT_NAME)?, path.display().to_string())
                }
            },
        };
        Self::fit(&text, &from)
    }

    fn fit(text: &str, from: &str) -> Result<Self, CliError> {
        let token = text.trim();
        let fits = token.len() >= TOKEN_LEAST && token.bytes().all(|b| b.is_ascii_graphic());
        if fits {
            Ok(Self(Secret(token.to_owned())))
        } else {
            Err(CliError::Usage(format!(
                "the token in {from} must have at least {TOKEN_LEAST} visible ASCII characters"
            )))
        }
    }

    /// Returns whether a request bears the token, in a time that does not say
    /// where another one differs.
    pub(crate) fn is_presented(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(given), None) = (given.next(), given.next()) else {
            return false;
        };
        let Some((scheme, token)) = given.to_str().ok().and_then(|text| text.split_once(' '))
        else {
            return false;
        };
        scheme.eq_ignore_ascii_case("bearer") && self.0.is(token.trim())
    }
}

/// Reads a file that only its owner may read and that no step can read; `what` it is
/// called in an error.
///
/// # Errors
///
/// [`CliError::Usage`] for a file that others or steps can read.
pub(crate) fn read_private(path: &Path, what: &str) -> Result<String, CliError> {
    // Where the file lies counts, not the link to it.
    let path = &std::fs::canonicalize(path).map_err(CliError::file("read", path))?;
    let file = File::open(path).map_err(CliError::file("read", path))?;
    let meta = file.metadata().map_err(CliError::file("read", path))?;
    let mode = meta.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(CliError::Usage(format!(
            "the {what} {} is accessible to other users (mode {:03o}); run `chmod 600` on it",
            path.display(),
            mode & 0o777
        )));
    }
    let private = PrivateFolder::of(&paths::roots()?);
    let folders = Folders::now()?;
    if let Some(place) = folders.holding(path, private.path()) {
        return Err(CliError::Usage(format!(
            "the {what} {} is readable by steps, because it is in {place}; move it to {}/",
            path.display(),
            private.path().display()
        )));
    }
    let mut text = String::new();
    file.take(FILE_MAX)
        .read_to_string(&mut text)
        .map_err(CliError::file("read", path))?;
    Ok(text)
}

/// Folders whose files a step can read, each with what it is.
struct Folders(Vec<(PathBuf, &'static str)>);

impl Folders {
    fn now() -> Result<Self, CliError> {
        let mut folders: Vec<(PathBuf, &'static str)> = worktree_folders(&paths::repository()?)?
            .into_iter()
            .map(|folder| (folder, "a worktree of the repository"))
            .collect();
        // The checkouts that verifications run in are next to the repository.
        let repository = paths::repository()?;
        let name = repository.file_name().unwrap_or_default().to_string_lossy();
        let checkouts = repository.with_file_name(format!("{name}-verify"));
        folders.push((checkouts, "a checkout for verifications"));
        let temporary = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
        let temporary = temporary.into_iter().chain([std::env::temp_dir()]);
        folders.extend(temporary.map(|folder| (folder, "a folder for temporary files")));
        let of_agents = Agent::ALL.iter().map(|agent| &agent.spec().files);
        let of_agents = of_agents.filter_map(|files| files.folder_variable);
        let variables = TOOL_STATE_VARIABLES.iter().copied().chain(of_agents);
        let moved = variables.filter_map(variable);
        let mut state: Vec<PathBuf> = moved.map(PathBuf::from).collect();
        if let Some(home) = variable("HOME").map(PathBuf::from) {
            state.extend(TOOL_STATE.iter().map(|name| home.join(name)));
            let of_agents = Agent::ALL.iter();
            let of_agents = of_agents.flat_map(|agent| agent.spec().files.folders());
            state.extend(of_agents.map(|name| home.join(name)));
        }
        folders.extend(state.into_iter().map(|folder| (folder, "a tool's state")));
        Ok(Self(folders))
    }

    /// Returns what the folder is that holds a file; `None` for a file in the
    /// private folder, and where no step reads.
    fn holding(&self, file: &Path, private: &Path) -> Option<&'static str> {
        let resolved = |path: &Path| std::fs::canonicalize(path).ok();
        if resolved(private).is_some_and(|private| file.starts_with(private)) {
            return None;
        }
        let holds = |folder: &Path| resolved(folder).is_some_and(|folder| file.starts_with(folder));
        let found = self.0.iter().find(|(folder, _)| holds(folder));
        found.map(|(_, place)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use std::fs;

    fn is_presented(headers: &[&str]) -> bool {
        let token = Token(Secret("0123456789abcdef".to_owned()));
        let mut map = HeaderMap::new();
        for value in headers {
            map.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        token.is_presented(&map)
    }

    #[test]
    fn a_request_bears_the_one_token_once() {
        assert!(is_presented(&["Bearer 0123456789abcdef"]));
        assert!(is_presented(&["bearer  0123456789abcdef"]));
        for wrong in [
            &[][..],
            &["0123456789abcdef"],
            &["Basic 0123456789abcdef"],
            &["Bearer 0123456789abcde"],
            &["Bearer 0123456789abcdef0"],
            &["Bearer "],
            &["Bearer 0123456789abcdef", "Bearer 0123456789abcdef"],
        ] {
            assert!(!is_presented(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_random_secret_is_long_and_its_own() {
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert_eq!(one.reveal().len(), 2 * SECRET_BYTES);
        assert!(one.is(one.reveal()) && !one.is(other.reveal()) && !one.is(""));
    }

    #[test]
    fn a_file_is_where_steps_read_unless_it_is_in_the_private_folder() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        let private = root.join("repository/.premath/private");
        fs::create_dir_all(&private).unwrap();
        fs::create_dir_all(root.join("home")).unwrap();
        let folders = Folders(vec![(root.join("repository"), "a worktree")]);
        let place = |file: &str| folders.holding(&root.join(file), &private);
        assert_eq!(place("repository/token"), Some("a worktree"));
        assert_eq!(place("repository/.premath/token"), Some("a worktree"));
        assert_eq!(place("repository/.premath/private/token"), None);
        assert_eq!(place("home/token"), None);
    }
}

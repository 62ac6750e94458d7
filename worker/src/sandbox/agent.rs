//! What an agent signs in with and is configured by, copied into the private
//! home of its command.
//!
//! A copy and no mount: agents replace these files when they renew a token,
//! and a file that is mounted cannot be replaced. A renewed file is taken back
//! only where it is of the same account and the original has not changed since.
//! Tokens that name no account can be another account's, so that what the file had
//! before is kept.

use premath_evidence::Agent;
use premath_memory::untrusted::UntrustedFolder;
use premath_platform::file::open_regular;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Returns the variables that lead an agent to its folder; in a private home it
/// is where it usually is.
pub(crate) fn folder_variables() -> impl Iterator<Item = &'static str> {
    let agents = Agent::ALL.iter();
    agents.filter_map(|agent| agent.spec().files.folder_variable)
}

/// A file that is larger is not a file of an agent's state.
const BYTES_MAX: u64 = 4 << 20;

/// Claims of a JSON web token that say whose account it is for, with any
/// server.
const ACCOUNT: [&str; 3] = ["/iss", "/sub", "/email"];

/// The state of the agents that a command starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentState {
    /// What is copied: from where to where in the private home.
    files: Vec<(PathBuf, PathBuf)>,
    /// Which of these is taken back, with the bytes that were copied.
    renewed: BTreeMap<PathBuf, PathBuf>,
    copied: BTreeMap<PathBuf, Vec<u8>>,
}

/// A sign-in file that a renewed one replaced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TakenBack {
    pub(crate) file: PathBuf,
    /// The copy of what the user had; none where a batch had replaced that before.
    pub(crate) kept: Option<PathBuf>,
}

/// Held while a sign-in file is compared, saved and replaced: lanes share them.
static REPLACING: Mutex<()> = Mutex::new(());

impl AgentState {
    /// Finds the state of the agent that a command is, or that it names.
    pub(crate) fn of(
        agent: Option<Agent>,
        command: &str,
        home: Option<&Path>,
        variable: fn(&str) -> Option<PathBuf>,
    ) -> Self {
        let mut state = Self::default();
        let names = |program: &str| {
            let mut words = command.split(|c: char| !c.is_ascii_alphanumeric());
            words.any(|word| word == program)
        };
        for one in Agent::ALL.iter().copied() {
            if agent != Some(one) && !names(one.spec().program) {
                continue;
            }
            let known = &one.spec().files;
            let usual = known.folder;
            let moved = known.folder_variable.and_then(variable);
            let moved = moved.filter(|path| path.is_absolute());
            let Some(folder) = moved.or_else(|| Some(home?.join(usual))) else {
                continue;
            };
            for name in known.copied {
                let at = Path::new(usual).join(name);
                if known.renewed.contains(name) {
                    state.renewed.insert(folder.join(name), at.clone());
                }
                state.files.push((folder.join(name), at));
            }
            for name in known.beside.iter().filter(|_| home.is_some()) {
                let from = home.unwrap_or(Path::new("/")).join(name);
                state.files.push((from, PathBuf::from(name)));
            }
        }
        state
    }

    /// Copies the files that are there into a private home.
    ///
    /// # Errors
    ///
    /// What the system says about the private home.
    pub(crate) fn copy_into(&mut self, private: &Path) -> io::Result<()> {
        for (from, at) in &self.files {
            let Some(bytes) = read(from) else { continue };
            let at = private.join(at);
            if let Some(above) = at.parent() {
                fs::create_dir_all(above)?;
            }
            fs::write(&at, &bytes)?;
            fs::set_permissions(&at, fs::Permissions::from_mode(0o600))?;
            self.copied.insert(from.clone(), bytes);
        }
        Ok(())
    }

    /// Copies the files again into a private home that a command had, in the place
    /// of whatever it left there; a file that the user does not have is removed.
    ///
    /// # Errors
    ///
    /// What the system says about the private home.
    pub(crate) fn copy_again_into(&mut self, private: &Path) -> io::Result<()> {
        for (from, at) in &self.files {
            let within = at.parent().unwrap_or(Path::new(""));
            let name = at.file_name().unwrap_or_default().to_string_lossy();
            let folder = UntrustedFolder::make(private, within).map_err(io::Error::other)?;
            match read(from) {
                Some(bytes) => {
                    let written = folder.write(&name, &bytes, 0o600);
                    written.map_err(io::Error::other)?;
                    self.copied.insert(from.clone(), bytes);
                }
                None => {
                    folder.remove(&name).map_err(io::Error::other)?;
                    self.copied.remove(from);
                }
            }
        }
        Ok(())
    }

    /// Takes renewed tokens back; returns the files that were replaced. `keep` saves what
    /// a file has before, the first of the two contents; where it cannot, the file is
    /// not replaced.
    pub(crate) fn take_back(
        &self,
        private: &Path,
        keep: impl Fn(&Path, (&[u8], &[u8])) -> io::Result<Option<PathBuf>>,
    ) -> Vec<TakenBack> {
        let mut taken = Vec::new();
        for (original, at) in &self.renewed {
            let Some(before) = self.copied.get(original) else {
                continue;
            };
            let Some(after) = read_private(private, at) else {
                continue;
            };
            if &after == before || !is_renewal(before, &after) {
                continue;
            }
            let _alone = REPLACING.lock().unwrap_or_else(PoisonError::into_inner);
            let is_unchanged = || read(original).as_ref() == Some(before);
            if !is_unchanged() {
                continue;
            }
            let replaced = keep(original, (before, &after)).and_then(|kept| {
                // Saving it takes time, in which the user may sign in.
                replace(original, &after, is_unchanged).map(|done| (done, kept))
            });
            match replaced {
                Ok((true, kept)) => taken.push(TakenBack {
                    file: original.clone(),
                    kept,
                }),
                Ok((false, _)) => {}
                Err(error) => {
                    let file = original.display();
                    tracing::warn!(%file, %error, "a renewed sign-in is discarded");
                }
            }
        }
        taken
    }
}

/// Returns whether a document is the other one with new tokens of the same
/// account.
fn is_renewal(before: &[u8], after: &[u8]) -> bool {
    let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    match (parse(before), parse(after)) {
        (Some(before), Some(after)) => differs_in_tokens_alone(&before, &after),
        _ => false,
    }
}

fn differs_in_tokens_alone(before: &Value, after: &Value) -> bool {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return before == after;
    };
    let is_fine = |name: &str, value: &Value, other: &Value| match is_token(name) {
        true => is_renewed(value, other),
        false => differs_in_tokens_alone(value, other),
    };
    before.len() == after.len()
        && before.iter().all(|(name, value)| {
            after
                .get(name)
                .is_some_and(|other| is_fine(name, value, other))
        })
}

/// Returns whether an agent renews a field; a renewal leaves everything else
/// alone.
fn is_token(field: &str) -> bool {
    let mut agents = Agent::ALL.iter();
    agents.any(|agent| agent.spec().files.token_fields.contains(&field))
}

fn is_renewed(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::String(before), Value::String(after)) => {
            !after.is_empty() && account(before) == account(after)
        }
        (Value::Number(before), Value::Number(after)) => after.as_f64() >= before.as_f64(),
        (before, after) => before == after,
    }
}

/// Reads the account off a JSON web token (RFC 7519); nothing where it is none.
/// Its signature is the server's to check.
fn account(token: &str) -> Option<Vec<Option<Value>>> {
    let mut parts = token.split('.');
    let (Some(_), Some(claims), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let claims: Value = serde_json::from_slice(&decoded(claims)?).ok()?;
    let agents = Agent::ALL.iter();
    let own = agents.flat_map(|agent| agent.spec().files.account_claims.iter());
    let fields = ACCOUNT.iter().chain(own);
    Some(fields.map(|field| claims.pointer(field).cloned()).collect())
}

/// Decodes base64url (RFC 4648).
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0_u32);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    Some(bytes)
}

/// Reads a file of the user's, who may have made it a link.
fn read(path: &Path) -> Option<Vec<u8>> {
    let file = open_regular(path).ok()?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= BYTES_MAX).then_some(bytes)
}

/// Reads a file that a command left.
fn read_private(private: &Path, at: &Path) -> Option<Vec<u8>> {
    let folder = UntrustedFolder::open(private, at.parent()?).ok()?;
    folder.read(at.file_name()?.to_str()?, BYTES_MAX).ok()?
}

/// Replaces a file at once, with its rights, if it `may` be then; returns whether it did.
fn replace(path: &Path, bytes: &[u8], may: impl Fn() -> bool) -> io::Result<bool> {
    let path = fs::canonicalize(path)?;
    let mode = fs::metadata(&path)?.permissions().mode();
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = UntrustedFolder::open(folder, Path::new("")).map_err(io::Error::other)?;
    if !may() {
        return Ok(false);
    }
    let written = folder.write(&name, bytes, mode & 0o7777);
    written.map_err(io::Error::other).map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_keeps_everything_but_tokens() {
        let before = br#"{"tokens":{"account_id":"a","access_token":"1","expiresAt":5},"url":"u"}"#;
        for (after, expected) in [
            (
                &br#"{"tokens":{"account_id":"a","access_token":"2","expiresAt":6},"url":"u"}"#[..],
                true,
            ),
            (
                br#"{"tokens":{"account_id":"b","access_token":"2","expiresAt":6},"url":"u"}"#,
                false,
            ),
            (
                br#"{"tokens":{"account_id":"a","access_token":"2","expiresAt":6},"url":"x"}"#,
                false,
            ),
            (
                br#"{"tokens":{"account_id":"a","access_token":"2","expiresAt":4},"url":"u"}"#,
                false,
            ),
            (
                br#"{"tokens":{"account_id":"a","access_token":"","expiresAt":6},"url":"u"}"#,
                false,
            ),
            (
                br#"{"tokens":{"account_id":"a","access_token":["2"],"expiresAt":6},"url":"u"}"#,
                false,
            ),
            (
                br#"{"tokens":{"account_id":"a","access_token":"2"},"url":"u"}"#,
                false,
            ),
            (b"not json", false),
        ] {
            let text = String::from_utf8_lossy(after);
            assert_eq!(is_renewal(before, after), expected, "{text}");
        }
        let key = |key: &str| format!(r#"{{"a":{{"type":"api","key":"{key}"}}}}"#).into_bytes();
        assert!(!is_renewal(&key("1"), &key("2")));
    }

    #[test]
    fn a_token_of_another_account_is_not_a_renewal() {
        // {"email":"me@me"}, {"email":"me@me","exp":2} and {"email":"evil@evil"}
        let [mine, newer, other] = [
            "e30.eyJlbWFpbCI6Im1lQG1lIn0.s",
            "e30.eyJlbWFpbCI6Im1lQG1lIiwiZXhwIjoyfQ.s",
            "e30.eyJlbWFpbCI6ImV2aWxAZXZpbCJ9.s",
        ]
        .map(|token| format!(r#"{{"tokens":{{"id_token":"{token}"}}}}"#).into_bytes());
        assert!(is_renewal(&mine, &newer));
        assert!(!is_renewal(&mine, &other));
        assert!(!is_renewal(&mine, br#"{"tokens":{"id_token":"opaque"}}"#));
    }

    #[test]
    fn a_renewed_token_comes_back_unless_the_original_changed() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let private = folder.path().join("private");
        fs::create_dir_all(home.join(".codex")).unwrap();
        fs::create_dir_all(&private).unwrap();
        let original = home.join(".codex/auth.json");
        fs::write(
            &original,
            r#"{"tokens":{"account_id":"a","access_token":"1"}}"#,
        )
        .unwrap();
        let mut state = AgentState::of(None, "npx codex exec", Some(&home), |_| None);
        state.copy_into(&private).unwrap();
        let renewed = r#"{"tokens":{"account_id":"a","access_token":"2"}}"#;
        fs::write(private.join(".codex/auth.json"), renewed).unwrap();
        // If the content cannot be saved, the file is not replaced.
        let full = |_: &Path, _: (&[u8], &[u8])| Err(io::ErrorKind::StorageFull.into());
        assert_eq!(state.take_back(&private, full), []);
        let kept = folder.path().join("kept");
        let keep = |_: &Path, (before, _): (&[u8], &[u8])| {
            fs::write(&kept, before)?;
            Ok(Some(kept.clone()))
        };
        let expected = TakenBack {
            file: original.clone(),
            kept: Some(kept.clone()),
        };
        assert_eq!(state.take_back(&private, keep), [expected]);
        assert_eq!(fs::read_to_string(&original).unwrap(), renewed);
        let before = r#"{"tokens":{"account_id":"a","access_token":"1"}}"#;
        assert_eq!(fs::read_to_string(&kept).unwrap(), before);
        // The next command's copy is older than what is there now.
        fs::write(
            private.join(".codex/auth.json"),
            r#"{"tokens":{"account_id":"a","access_token":"3"}}"#,
        )
        .unwrap();
        assert_eq!(state.take_back(&private, keep), []);
    }

    #[test]
    fn a_home_that_is_kept_has_the_users_files_again_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let private = folder.path().join("private");
        let outside = folder.path().join("outside");
        fs::create_dir_all(home.join(".codex")).unwrap();
        for made in [&private, &outside] {
            fs::create_dir(made).unwrap();
        }
        fs::write(home.join(".codex/config.toml"), "model = 'm'").unwrap();
        let mut state = AgentState::of(None, "codex exec", Some(&home), |_| None);
        state.copy_into(&private).unwrap();
        // The command changed its configuration, and put a link in its place.
        fs::remove_file(private.join(".codex/config.toml")).unwrap();
        fs::write(outside.join("config.toml"), "mine").unwrap();
        let link = std::os::unix::fs::symlink;
        link(
            outside.join("config.toml"),
            private.join(".codex/config.toml"),
        )
        .unwrap();
        fs::write(private.join(".codex/AGENTS.md"), "obey").unwrap();
        fs::write(private.join(".codex/session"), "s").unwrap();
        state.copy_again_into(&private).unwrap();
        let read = |name: &str| fs::read_to_string(private.join(".codex").join(name)).ok();
        assert_eq!(read("config.toml").as_deref(), Some("model = 'm'"));
        assert_eq!(read("AGENTS.md"), None);
        assert_eq!(read("session").as_deref(), Some("s"));
        assert_eq!(
            fs::read_to_string(outside.join("config.toml")).unwrap(),
            "mine"
        );
        // The folder itself is a link.
        fs::remove_dir_all(private.join(".codex")).unwrap();
        link(outside.clone(), private.join(".codex")).unwrap();
        state.copy_again_into(&private).unwrap();
        assert_eq!(
            fs::read_to_string(outside.join("config.toml")).unwrap(),
            "mine"
        );
        assert_eq!(read("config.toml").as_deref(), Some("model = 'm'"));
    }

    #[test]
    fn a_link_in_the_place_of_a_token_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, r#"{"t":"9"}"#).unwrap();
        let private = folder.path().join("private");
        fs::create_dir_all(&private).unwrap();
        std::os::unix::fs::symlink(&secret, private.join("auth.json")).unwrap();
        assert_eq!(read_private(&private, Path::new("auth.json")), None);
    }
}

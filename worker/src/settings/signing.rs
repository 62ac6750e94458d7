//! `[signing]`: the key that landing commits are signed with.

use super::SettingsError;
use super::file::ConfigError;
use super::keys::SigningKeys;
use super::program::Places;
use premath_worktree::signing::{KeySource, Signer, SigningError};
use std::path::Path;

/// The key of `[signing]` cannot sign.
#[derive(Debug, thiserror::Error)]
#[error("{place}: landing commits cannot be signed")]
pub struct SigningKeyError {
    /// File, line and key.
    place: String,
    /// What is wrong with the key.
    source: SigningError,
}

impl SigningKeyError {
    /// Returns what a person can do about it.
    pub(super) fn hint(&self) -> Option<String> {
        self.source.hint()
    }
}

impl SigningKeys {
    /// Reads the key that landing commits are signed with; `None` where none is
    /// configured.
    ///
    /// # Errors
    ///
    /// [`SettingsError`], with file, line and key.
    pub(super) fn signer(
        &self,
        places: &Places,
        repository: &Path,
    ) -> Result<Option<Signer>, SettingsError> {
        let home = super::path_of("HOME").filter(|home| home.is_absolute());
        let name = if self.key.is_some() { "key" } else { "use_git" };
        let found = places.get(&format!("signing.{name}"));
        let source = KeySource::of(
            self.key.as_deref(),
            self.use_git.unwrap_or_default(),
            home.as_deref(),
            repository,
        );
        let source = source.map_err(|detail| match found {
            Some((path, line)) => SettingsError::Config(ConfigError::Line {
                path: path.clone(),
                line: *line,
                detail: format!("[signing]: {detail}"),
            }),
            None => SettingsError::Value {
                name: "[signing]",
                detail: detail.to_owned(),
            },
        })?;
        let Some(source) = source else {
            return Ok(None);
        };
        let loaded = source.path(repository).and_then(|path| Signer::load(&path));
        loaded.map(Some).map_err(|source| {
            let place = match found {
                Some((path, line)) => format!("{}:{line}: `{name}` of [signing]", path.display()),
                None => format!("`{name}` of [signing]"),
            };
            SettingsError::Signing(Box::new(SigningKeyError { place, source }))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::{FileSettings, SettingsError};
    use premath_kernel::failure::FailureClass;
    use std::path::Path;

    fn refusal(text: &str, root: &Path) -> SettingsError {
        let file = FileSettings::parse(text, Path::new("h.toml")).unwrap();
        file.signing.signer(&file.places, root).unwrap_err()
    }

    #[test]
    fn nothing_is_signed_where_no_key_is_configured() {
        for text in ["", "[signing]\n", "[signing]\nuse_git = false\n"] {
            let file = FileSettings::parse(text, Path::new("h.toml")).unwrap();
            let signer = file.signing.signer(&file.places, Path::new("/none"));
            assert!(signer.unwrap().is_none(), "{text}");
        }
    }

    #[test]
    fn a_key_that_cannot_be_loaded_refuses_with_file_line_and_hint() {
        let folder = tempfile::tempdir().unwrap();
        let error = refusal("\n[signing]\nkey = \"keys/none\"\n", folder.path());
        assert_eq!(
            error.to_string(),
            "h.toml:3: `key` of [signing]: landing commits cannot be signed"
        );
        let said = premath_memory::cause::chain(&error);
        let path = folder.path().join("keys/none");
        assert!(said.contains(&path.display().to_string()), "{said}");
        let hint = error.hint().unwrap();
        assert!(hint.contains("private SSH key"), "{hint}");
        assert_eq!(error.exit_code(), crate::exit::REFUSED);
        assert_eq!(error.refusal_classes(), [FailureClass::SigningKeyUnusable]);
    }

    #[test]
    fn keys_that_do_not_fit_together_are_named_with_their_line() {
        let root = Path::new("/none");
        let error = refusal("[signing]\nuse_git = true\nkey = \"x\"\n", root);
        assert_eq!(
            error.to_string(),
            "h.toml:3: [signing]: `key` and `use_git = true` are mutually exclusive"
        );
        assert_eq!(error.exit_code(), crate::exit::USAGE);
        let parse = |text: &str| FileSettings::parse(text, Path::new("h.toml"));
        let error = parse("[signing]\nuse_git = \"yes\"\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "h.toml:2: `use_git`: invalid type: string \"yes\", expected a boolean"
        );
        let error = parse("[signing]\nkye = \"x\"\n").unwrap_err();
        assert_eq!(error.to_string(), "h.toml:2: unknown key `kye`");
        assert_eq!(error.hint().as_deref(), Some("did you mean `key`?"));
    }
}

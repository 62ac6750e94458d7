//! Whose signatures count.

use crate::error::CliError;
use crate::paths;
use premath_kernel::record::audit::SignaturePolicy;
use premath_memory::roots::MemoryRoots;
use premath_worktree::signing::{AllowedSigners, KeySource, allowed_file_of_git, public_half};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The keys that may sign, where they are known, and what is asked of commits.
pub(super) struct Signers {
    pub(super) allowed: Option<AllowedSigners>,
    pub(super) policy: SignaturePolicy,
}

/// Finds the keys that may sign: those of the flag, the key of `[signing]`, or
/// those of git's configuration.
pub(super) fn find(flag: Option<&Path>, roots: &MemoryRoots) -> Result<Signers, CliError> {
    if let Some(file) = flag {
        return Ok(Signers {
            allowed: Some(read(file)?),
            policy: SignaturePolicy::Required,
        });
    }
    if let Some(path) = configured(roots)? {
        let key = public_half(&path).map_err(|error| CliError::Usage(message(&error)))?;
        return Ok(Signers {
            allowed: Some(AllowedSigners::only(key, "[signing] key")),
            policy: SignaturePolicy::Required,
        });
    }
    Ok(Signers {
        allowed: allowed_file_of_git(&roots.repository)
            .map(|file| read(&file))
            .transpose()?,
        policy: SignaturePolicy::WhereSigned,
    })
}

fn read(file: &Path) -> Result<AllowedSigners, CliError> {
    let text = fs::read_to_string(file).map_err(CliError::file("read", file))?;
    AllowedSigners::parse(&text)
        .map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))
}

/// The `[signing]` table of `harness.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SigningTable {
    key: Option<String>,
    use_git: bool,
}

/// Returns the private key that `[signing]` of `harness.toml` names.
fn configured(roots: &MemoryRoots) -> Result<Option<PathBuf>, CliError> {
    let file = roots.repository.join("harness.toml");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CliError::file("read", &file)(error)),
    };
    let wrong = |detail: &str| CliError::Usage(format!("{}: {detail}", file.display()));
    let table: toml::Table = text.parse().map_err(|error| wrong(&format!("{error}")))?;
    let Some(signing) = table.get("signing") else {
        return Ok(None);
    };
    let settings: SigningTable = signing
        .clone()
        .try_into()
        .map_err(|error| wrong(&format!("[signing]: {error}")))?;
    let home = paths::variable("HOME").map(PathBuf::from);
    let source = KeySource::of(
        settings.key.as_deref(),
        settings.use_git,
        home.as_deref(),
        &roots.repository,
    )
    .map_err(|detail| wrong(&format!("[signing]: {detail}")))?;
    let Some(source) = source else {
        return Ok(None);
    };
    source
        .path(&roots.repository)
        .map(Some)
        .map_err(|error| CliError::Usage(message(&error)))
}

/// Returns an error with its cause.
fn message(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

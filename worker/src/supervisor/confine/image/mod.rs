//! The files of a container image, for views whose system folders come from
//! there.
//!
//! No container is ever run. Podman or docker makes one of the image, exports
//! its files and removes it; the files are kept in the user's cache by the
//! image's id, and commands see them read-only.

mod cache;
mod engine;
mod files;
mod unpack;

pub(crate) use engine::Engine;
pub(crate) use engine::EngineError;
pub use files::{ImageFiles, RootEntry};
pub(crate) use unpack::UnpackError;

use premath_kernel::policy::sandbox::ContainerImage;
use premath_memory::{CacheUse, StoreError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An image whose files are here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The name and id of the image.
    pub named: ContainerImage,
    /// The variables that it declares.
    pub variables: Vec<(String, String)>,
    /// The files of the image.
    pub files: ImageFiles,
    /// Keeps them from being removed.
    _in_use: Arc<CacheUse>,
}

/// The files of an image are not available.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageError {
    /// The settings name no image.
    #[error("no image is set")]
    Missing,
    /// The text is not the name of an image.
    #[error("`{0}` is not the name of an image")]
    Name(String),
    /// Podman or docker is missing, or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What was exported cannot be used.
    #[error("cannot unpack the image `{image}`: {source}")]
    Unpack {
        /// The name of the image.
        image: String,
        /// The cause.
        source: UnpackError,
    },
    /// The folder for unpacked images cannot be used.
    #[error("cannot keep images in {folder}: {detail}")]
    Cache {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        detail: String,
    },
    /// Another process makes it, or the lock cannot be used.
    #[error(transparent)]
    Lock(#[from] StoreError),
    /// Commands are started by a shell.
    #[error("the image `{0}` has no program /bin/sh")]
    Shell(String),
}

impl Image {
    /// Gets the files of an image: those in the cache, or an export by the
    /// program on `path`. An image that is not here is pulled.
    ///
    /// # Errors
    ///
    /// [`ImageError`].
    pub(crate) fn obtain(
        name: &str,
        path: &std::ffi::OsStr,
        cache: &Path,
    ) -> Result<Self, ImageError> {
        let name = checked(name)?;
        let engine = Engine::find(path)?;
        let found = match engine.inspect(name) {
            // It is not here, or the program does not work, which a pull says.
            Err(EngineError::Failed { .. }) => {
                engine.pull(name)?;
                engine.inspect(name)?
            }
            found => found?,
        };
        let named = ContainerImage {
            name: name.to_owned(),
            id: found.id,
        };
        let (folder, in_use) = cache::folder_of(cache, &named, |folder| {
            engine.export(&named, |archive| unpack::unpack(archive, folder))
        })?;
        let files = ImageFiles::at(folder);
        if !files.has_program(Path::new("/bin/sh")) {
            return Err(ImageError::Shell(named.name));
        }
        Ok(Self {
            named,
            variables: found.variables,
            files,
            _in_use: Arc::new(in_use),
        })
    }

    /// Tries whether the files of an image could be had; nothing is pulled or
    /// exported for it. Returns its id.
    ///
    /// # Errors
    ///
    /// [`ImageError`]; [`EngineError::Failed`] also for an image that is not
    /// here and would be pulled.
    pub(crate) fn look(name: &str, path: &std::ffi::OsStr) -> Result<ContainerImage, ImageError> {
        let name = checked(name)?;
        let found = Engine::find(path)?.inspect(name)?;
        Ok(ContainerImage {
            name: name.to_owned(),
            id: found.id,
        })
    }

    /// Returns the value of a variable that the image declares.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        let mut found = self.variables.iter().filter(|(other, _)| other == name);
        found.next_back().map(|(_, value)| value.as_str())
    }
}

/// Refuses what a program would take for an option, or for nothing.
fn checked(name: &str) -> Result<&str, ImageError> {
    let trimmed = name.trim();
    if trimmed.is_empty() {
        return Err(ImageError::Missing);
    }
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    if trimmed.starts_with('-') || trimmed.contains(is_odd) {
        return Err(ImageError::Name(trimmed.to_owned()));
    }
    Ok(trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_not_a_name_of_an_image() {
        assert_eq!(checked(" debian:12 ").unwrap(), "debian:12");
        for name in ["--privileged", "a b", "a\nb"] {
            assert!(matches!(checked(name), Err(ImageError::Name(_))), "{name}");
        }
        assert!(matches!(checked(" "), Err(ImageError::Missing)));
    }
}

//! Where the vectors come from.

use crate::error::CliError;
use include_dir::{Dir, include_dir};
use premath_conformance::Files;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The suite that this binary was built with.
static EMBEDDED: Dir<'_> =
    include_dir!("$CARGO_MANIFEST_DIR/../../tests/conformance/harness-typestate");

/// The files of a suite and where they are from.
#[derive(Debug)]
pub(super) struct SuiteSource {
    files: Files,
    folder: Option<PathBuf>,
}

impl SuiteSource {
    /// Returns the embedded suite.
    pub(super) fn embedded() -> Self {
        let mut files = Files::new();
        unpack(&EMBEDDED, &mut files);
        Self {
            files,
            folder: None,
        }
    }

    /// Reads a folder's suite, or the embedded one where none is named.
    ///
    /// # Errors
    ///
    /// A folder or a file of it that cannot be read.
    pub(super) fn find(folder: Option<PathBuf>) -> Result<Self, CliError> {
        let Some(folder) = folder else {
            return Ok(Self::embedded());
        };
        let mut files = Files::new();
        load(&folder, "", &mut files)?;
        Ok(Self {
            files,
            folder: Some(folder),
        })
    }

    /// Returns the files.
    pub(super) const fn files(&self) -> &Files {
        &self.files
    }

    /// Returns where they are from.
    pub(super) fn describe(&self) -> String {
        match &self.folder {
            Some(folder) => folder.display().to_string(),
            None => "embedded".to_owned(),
        }
    }
}

fn unpack(dir: &Dir<'_>, files: &mut Files) {
    for file in dir.files() {
        // Always with slashes here: the harness runs on Linux alone.
        let path = file.path().display().to_string();
        files.insert(path, file.contents().to_vec());
    }
    dir.dirs().for_each(|dir| unpack(dir, files));
}

/// Reads what is in a folder; links to folders are not followed.
fn load(folder: &Path, prefix: &str, files: &mut Files) -> Result<(), CliError> {
    let failed = |path: &Path, source: io::Error| CliError::File {
        operation: "read",
        path: path.to_path_buf(),
        source,
    };
    let entries = fs::read_dir(folder).map_err(|source| failed(folder, source))?;
    for entry in entries {
        let entry = entry.map_err(|source| failed(folder, source))?;
        let path = entry.path();
        let name = format!("{prefix}{}", entry.file_name().display());
        let kind = entry.file_type().map_err(|source| failed(&path, source))?;
        if kind.is_dir() {
            load(&path, &format!("{name}/"), files)?;
        } else {
            let bytes = fs::read(&path).map_err(|source| failed(&path, source))?;
            files.insert(name, bytes);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_suite_is_that_of_the_repository() {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/conformance/harness-typestate"
        );
        let read = SuiteSource::find(Some(folder.into())).unwrap();
        assert!(read.files() == SuiteSource::embedded().files());
        assert!(read.files().contains_key("bases/closed.json"));
    }
}

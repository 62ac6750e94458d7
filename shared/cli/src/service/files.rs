//! The folder of a user's units.

use super::UnitWord;
use crate::error::{CliError, UnitError};
use crate::paths::variable;
use crate::terminal::plain;
use premath_view::service::{UnitState, is_sealed, service_file, state_of, timer_file};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The largest unit that is read.
const UNIT_MAX: u64 = 1 << 20;

/// Where `systemctl --user` finds units that a person wrote.
pub(crate) struct UnitFolder(PathBuf);

/// A unit file that is there.
pub(super) struct FoundUnit {
    /// Its text; of a symlink, which is never followed, none.
    pub(super) text: String,
    is_ours: bool,
}

impl FoundUnit {
    pub(super) const fn word(&self) -> UnitWord {
        match self.is_ours {
            true => UnitWord::Installed,
            false => UnitWord::Changed,
        }
    }

    /// Returns the line that names its repository, where it has one.
    fn directory(&self) -> Option<&str> {
        let mut lines = self.text.lines();
        lines.find(|line| line.starts_with("WorkingDirectory="))
    }

    /// Returns whether it names this repository.
    fn names(&self, repository: &Path) -> bool {
        let directory = repository.display().to_string().replace('%', "%%");
        self.directory() == Some(&format!("WorkingDirectory={directory}"))
    }

    /// Returns whether it is for this repository.
    fn is_for(&self, repository: &Path) -> bool {
        self.directory().is_none() || self.names(repository)
    }
}

/// The folder of links to the timers that are enabled.
const WANTED: &str = "timers.target.wants";

/// Returns whether the user's systemd has a service started: it then keeps a link with
/// the id of the start.
fn is_started(file: &str) -> bool {
    let folder = variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let user = || format!("/run/user/{}", rustix::process::getuid().as_raw());
    let folder = folder.unwrap_or_else(|| user().into());
    let link = folder.join(format!("systemd/units/invocation:{file}"));
    fs::symlink_metadata(link).is_ok()
}

/// A unit that `premath service install` made for a repository.
pub(crate) struct OwnUnit {
    /// The name of its file.
    pub(crate) file: String,
    /// Whether a person changed it since.
    pub(crate) is_changed: bool,
    /// Whether systemd runs it, or starts it at a time.
    pub(crate) is_active: bool,
}

impl UnitFolder {
    /// Returns whether systemd runs a unit, or starts it at a time: of a timer there is
    /// no link but that by which it is enabled.
    fn is_active(&self, file: &str) -> bool {
        match file.ends_with(".timer") {
            true => fs::symlink_metadata(self.0.join(WANTED).join(file)).is_ok(),
            false => is_started(file),
        }
    }

    /// Finds the units of a repository, under whatever names, by file.
    pub(crate) fn of_repository(&self, repository: &Path) -> Result<Vec<OwnUnit>, CliError> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(CliError::file("read", &self.0)(error)),
        };
        let files = entries.flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> = files
            .filter_map(|file| Some(file.to_str()?.strip_suffix(".service")?.to_owned()))
            .collect();
        names.sort();
        let mut units = Vec::new();
        for name in names {
            let service = self.read(&service_file(&name))?;
            let is_own = |unit: &FoundUnit| is_sealed(&unit.text) && unit.names(repository);
            if !service.as_ref().is_some_and(is_own) {
                continue;
            }
            for file in [timer_file(&name), service_file(&name)] {
                let found = self.read(&file)?.filter(|unit| is_sealed(&unit.text));
                units.extend(found.map(|unit| OwnUnit {
                    is_changed: !unit.is_ours,
                    is_active: self.is_active(&file),
                    file,
                }));
            }
        }
        Ok(units)
    }

    /// Returns the folder of this user.
    pub(crate) fn of_user() -> Result<Self, CliError> {
        let configuration = match variable("XDG_CONFIG_HOME").map(PathBuf::from) {
            Some(folder) if folder.is_absolute() => Some(folder),
            _ => variable("HOME").map(|home| PathBuf::from(home).join(".config")),
        };
        match configuration {
            Some(folder) => Ok(Self(folder.join("systemd/user"))),
            None => Err(CliError::Usage("HOME is not set".to_owned())),
        }
    }

    /// Names a file of it.
    pub(crate) fn shown(&self, file: &str) -> String {
        self.0.join(file).display().to_string()
    }

    /// Reads a unit; `None` where there is none.
    pub(super) fn read(&self, file: &str) -> Result<Option<FoundUnit>, CliError> {
        let path = self.0.join(file);
        let failed = CliError::file("read", &path);
        let meta = match fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if !meta.is_file() {
            return Ok(Some(FoundUnit {
                text: String::new(),
                is_ours: false,
            }));
        }
        let mut bytes = Vec::new();
        let opened = fs::File::open(&path);
        let read = opened.and_then(|file| file.take(UNIT_MAX).read_to_end(&mut bytes));
        read.map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let is_ours = state_of(&text) == UnitState::Ours;
        Ok(Some(FoundUnit { text, is_ours }))
    }

    /// Refuses to touch a unit that a person changed, or that is another
    /// repository's, unless `force`.
    pub(super) fn refuse_foreign(
        &self,
        file: &str,
        repository: &Path,
        force: bool,
    ) -> Result<(), CliError> {
        let Some(found) = self.read(file)?.filter(|_| !force) else {
            return Ok(());
        };
        let path = self.shown(file);
        if !found.is_ours {
            return Err(UnitError::Changed { path }.into());
        }
        match found.is_for(repository) {
            true => Ok(()),
            false => Err(UnitError::OfAnother { path }.into()),
        }
    }

    /// Writes a unit whole or not at all.
    pub(super) fn write(&self, file: &str, text: &str) -> Result<(), CliError> {
        fs::create_dir_all(&self.0).map_err(CliError::file("create", &self.0))?;
        let path = self.0.join(file);
        let new = self.0.join(format!(".{file}.{}", std::process::id()));
        let _ = fs::remove_file(&new);
        let opened = OpenOptions::new().write(true).create_new(true).open(&new);
        let written = opened.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        let renamed = written.and_then(|()| fs::rename(&new, &path));
        renamed.map_err(|error| {
            let _ = fs::remove_file(&new);
            CliError::file("write", &path)(error)
        })
    }

    /// Deletes a unit and the links by which it is enabled; returns whether there
    /// was one.
    pub(crate) fn delete(&self, file: &str) -> Result<bool, CliError> {
        for target in ["default.target.wants", WANTED] {
            let link = self.0.join(target).join(file);
            if fs::symlink_metadata(&link).is_ok_and(|meta| meta.is_symlink()) {
                fs::remove_file(&link).map_err(CliError::file("delete", &link))?;
            }
        }
        let path = self.0.join(file);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(CliError::file("delete", &path)(error)),
        }
    }
}

impl std::fmt::Display for UnitFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&plain(&self.0.display().to_string()))
    }
}

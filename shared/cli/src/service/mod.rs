//! `premath service`: the units of systemd that run a repository's batches.

mod files;
mod install;

use crate::answer::{Answer, Finished};
use crate::error::{CliError, UnitError};
use crate::operator::is_inside_step;
use crate::terminal::plain;
use clap::{Args, Subcommand};
pub(crate) use files::{OwnUnit, UnitFolder};
use install::InstallArgs;
use premath_memory::roots::MemoryRoots;
use premath_view::service::{is_unit_name, service_file, timer_file, unit_name};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `premath service`.
#[derive(Debug, Args)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    command: ServiceCommand,
}

#[derive(Debug, Subcommand)]
enum ServiceCommand {
    /// Write a service, and a timer, of systemd for this repository
    Install(InstallArgs),
    /// Delete the units of this repository
    Uninstall(UninstallArgs),
    /// Show the units of this repository
    Show(ShowArgs),
}

/// Which units.
#[derive(Debug, Args)]
struct Which {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
    /// The name of the units, without an ending [default: premath-REPOSITORY]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

#[derive(Debug, Args)]
struct UninstallArgs {
    #[command(flatten)]
    which: Which,
    /// Delete units that a person changed, too
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    which: Which,
}

/// The answer of `premath service`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceAnswer {
    /// The name of the units, without an ending.
    name: String,
    /// The units.
    units: Vec<UnitItem>,
    /// The commands to run next, in order.
    commands: Vec<String>,
}

/// A unit file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UnitItem {
    /// The file.
    path: String,
    /// What it is now, or what was done with it.
    state: UnitWord,
    /// Its text; null where it was deleted.
    text: Option<String>,
}

/// What a unit file is, or what was done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum UnitWord {
    /// It was written.
    Wrote,
    /// It is as it would be written.
    Unchanged,
    /// It would be written.
    WouldWrite,
    /// It was deleted.
    Deleted,
    /// It would be deleted.
    WouldDelete,
    /// It is as `premath service install` wrote it.
    Installed,
    /// A person wrote or changed it.
    Changed,
}

impl UnitWord {
    const fn word(self) -> &'static str {
        match self {
            Self::Wrote => "wrote",
            Self::Unchanged => "unchanged",
            Self::WouldWrite => "would write",
            Self::Deleted => "deleted",
            Self::WouldDelete => "would delete",
            Self::Installed => "installed",
            Self::Changed => "changed by a person",
        }
    }
}

impl ServiceAnswer {
    /// Returns the answer with its lines, those of the units with them where
    /// `is_whole`.
    fn answer(self, is_whole: bool) -> Answer {
        let mut text = String::new();
        for unit in &self.units {
            text.push_str(&format!("{} {}\n", unit.state.word(), plain(&unit.path)));
            if let Some(content) = unit.text.as_ref().filter(|_| is_whole) {
                let lines = content.lines().map(|line| format!("  {}", plain(line)));
                for line in lines {
                    text.push_str(line.trim_end());
                    text.push('\n');
                }
            }
        }
        if self.units.is_empty() {
            text.push_str(&format!("no units named {}\n", self.name));
        }
        if !self.commands.is_empty() {
            text.push_str("next:\n");
            for command in &self.commands {
                text.push_str(&format!("  {}\n", plain(command)));
            }
        }
        Answer::new(self, text)
    }
}

impl ServiceArgs {
    pub(crate) fn run(self) -> Finished {
        match self.command {
            ServiceCommand::Install(args) => Finished::new("service.install", args.run()),
            ServiceCommand::Uninstall(args) => Finished::new("service.uninstall", args.run()),
            ServiceCommand::Show(args) => Finished::new("service.show", args.run()),
        }
    }
}

impl Which {
    fn roots(&self) -> Result<MemoryRoots, CliError> {
        let folder = self.repo_root.as_deref().unwrap_or(Path::new("."));
        Ok(MemoryRoots::discover(folder)?)
    }

    fn name(&self, roots: &MemoryRoots) -> Result<String, CliError> {
        let folder = roots.repository.file_name().unwrap_or_default();
        let name = match &self.name {
            Some(name) => name.clone(),
            None => unit_name(&folder.to_string_lossy()),
        };
        match is_unit_name(&name) {
            true => Ok(name),
            false => Err(CliError::Usage(format!(
                "`{}` cannot be the name of a unit: letters, digits, `-`, `_`, `.` and `:` can",
                plain(&name)
            ))),
        }
    }
}

/// Refuses inside a step: what a unit starts has the operator's rights.
fn refuse_inside_step() -> Result<(), CliError> {
    match is_inside_step() {
        true => Err(UnitError::InsideStep.into()),
        false => Ok(()),
    }
}

impl UninstallArgs {
    fn run(self) -> Result<Answer, CliError> {
        refuse_inside_step()?;
        let roots = self.which.roots()?;
        let name = self.which.name(&roots)?;
        let folder = UnitFolder::of_user()?;
        let files = [timer_file(&name), service_file(&name)];
        for file in &files {
            folder.refuse_foreign(file, &roots.repository, self.force)?;
        }
        let mut units = Vec::new();
        for file in &files {
            if folder.delete(file)? {
                units.push(UnitItem {
                    path: folder.shown(file),
                    state: UnitWord::Deleted,
                    text: None,
                });
            }
        }
        let mut commands = Vec::new();
        if !units.is_empty() {
            commands.push(format!("systemctl --user stop {} {}", files[0], files[1]));
            commands.push("systemctl --user daemon-reload".to_owned());
        }
        let done = ServiceAnswer {
            name,
            units,
            commands,
        };
        Ok(done.answer(false))
    }
}

impl ShowArgs {
    fn run(self) -> Result<Answer, CliError> {
        let roots = self.which.roots()?;
        let name = self.which.name(&roots)?;
        let folder = UnitFolder::of_user()?;
        let mut units = Vec::new();
        for file in [service_file(&name), timer_file(&name)] {
            if let Some(found) = folder.read(&file)? {
                units.push(UnitItem {
                    path: folder.shown(&file),
                    state: found.word(),
                    text: Some(found.text),
                });
            }
        }
        let commands = match units.is_empty() {
            true => vec!["premath service install --user --every-night 22:00".to_owned()],
            false => vec![format!("systemctl --user status {}", service_file(&name))],
        };
        let shown = ServiceAnswer {
            name,
            units,
            commands,
        };
        Ok(shown.answer(true))
    }
}

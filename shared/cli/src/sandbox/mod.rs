//! `premath sandbox`: what a command of a step may do, and a command that is
//! tried there.

mod show;

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::operator;
use crate::paths;
use clap::{Args, Subcommand};
use harness_worker::sandbox::{Explanation, try_command};
use harness_worker::settings::{LoopFlags, Settings, SettingsError};
use premath_kernel::authority::MutationMode;
use premath_kernel::policy::network::NetworkPhase;
use premath_memory::clock;
use premath_memory::roots::MemoryRoots;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `premath sandbox`.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    #[command(subcommand)]
    command: SandboxCommand,
}

#[derive(Debug, Subcommand)]
enum SandboxCommand {
    /// List what a step's command may read, write and reach, and why
    Explain(ExplainArgs),
    /// Run a command in a step's sandbox, on the files of HEAD
    ///
    /// Its exit code is that of the command. Nothing that it does is kept.
    Try(TryArgs),
}

#[derive(Debug, Args)]
struct Common {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
    /// Confine commands by namespaces, container, landlock or none [default: as
    /// in a batch]
    #[arg(long, value_name = "MODE")]
    sandbox: Option<String>,
    /// Set the image of the mode container [default: as in a batch]
    #[arg(long, value_name = "IMAGE")]
    sandbox_image: Option<String>,
}

#[derive(Debug, Args)]
struct ExplainArgs {
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct TryArgs {
    #[command(flatten)]
    common: Common,
    /// Use the network policy and variables of a verification
    #[arg(long)]
    verify: bool,
    /// The command with its arguments [default: a shell]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl SandboxArgs {
    /// Runs a command that has the terminal for itself; `None` where it is
    /// another one.
    pub(crate) fn run_in_terminal(&self) -> Option<Result<ExitCode, Finished>> {
        let SandboxCommand::Try(args) = &self.command else {
            return None;
        };
        let ran = args.perform();
        Some(ran.map_err(|error| Finished::new("sandbox.try", Err(error))))
    }

    pub(crate) fn run(self) -> Finished {
        match self.command {
            SandboxCommand::Explain(args) => {
                let root = args.common.root();
                Finished::on("sandbox.explain", "repository", root, |root| {
                    let settings = args.common.settings(root)?;
                    let explanation = Explanation::of(&settings);
                    let text = show::text(&explanation);
                    Ok(Answer::new(explanation, text))
                })
            }
            SandboxCommand::Try(args) => {
                let done = args.perform();
                Finished::new("sandbox.try", done.map(|_| Answer::new((), "")))
            }
        }
    }
}

impl TryArgs {
    fn perform(&self) -> Result<ExitCode, CliError> {
        if operator::is_inside_step() {
            return Err(CliError::InsideStep);
        }
        let settings = self.common.settings(&self.common.root()?)?;
        let phase = match self.verify {
            true => NetworkPhase::Verify,
            false => NetworkPhase::Work,
        };
        Ok(ExitCode::from(try_command(
            &settings,
            phase,
            &self.command,
        )?))
    }
}

impl Common {
    fn root(&self) -> Result<PathBuf, CliError> {
        match &self.repo_root {
            Some(folder) => Ok(MemoryRoots::discover(folder)?.repository),
            None => paths::repository(),
        }
    }

    /// Reads the settings as a batch would. What only a batch needs, and a
    /// repository may leave to its flags, is filled in.
    fn settings(&self, root: &Path) -> Result<Settings, CliError> {
        let mut flags = LoopFlags {
            repo_root: Some(root.to_path_buf()),
            sandbox: self.sandbox.clone(),
            sandbox_image: self.sandbox_image.clone(),
            override_reason: Some("premath sandbox".to_owned()),
            mutation_mode: Some(MutationMode::HUMAN_OVERRIDE.to_owned()),
            ..LoopFlags::default()
        };
        let now = clock::now().wall;
        match Settings::resolve(&flags, now) {
            Err(SettingsError::CommandMissing { .. }) => {}
            resolved => return Ok(resolved?),
        }
        flags.verify_cmd = Some("true".to_owned());
        match Settings::resolve(&flags, now) {
            Err(SettingsError::CommandMissing { .. }) => {}
            resolved => return Ok(resolved?),
        }
        flags.work_cmd = Some("true".to_owned());
        Ok(Settings::resolve(&flags, now)?)
    }
}

//! `premath instruction …`: the envelopes that authorise batches
//! (`contracts.md` 8).

mod check;
mod named;
mod new;
mod show;

pub(crate) use check::{InstructionCheckAnswer, checked};
pub(crate) use new::{FIRST_ID, InstructionNewAnswer, first, write};
pub(crate) use show::InstructionShowAnswer;

use crate::answer::Finished;
use crate::error::CliError;
use clap::{Args, Subcommand};
use premath_memory::instruction::ActivePolicy;
use premath_memory::roots::MemoryRoots;
use std::path::{Path, PathBuf};

/// Arguments of `premath instruction`.
#[derive(Debug, Args)]
pub(crate) struct InstructionArgs {
    /// Use this instruction policy [default: policies/control/harness-instruction-policy-v1.json of the
    /// repository root where there is one, else the embedded one]
    #[arg(long, global = true, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(subcommand)]
    command: InstructionCommand,
}

#[derive(Debug, Subcommand)]
enum InstructionCommand {
    /// Write an instruction bound to the active policy into instructions/
    New(Box<new::NewArgs>),
    /// Check an instruction against the active policy and list what it covers
    Check(FileArgs),
    /// Show an instruction, its digest and its classification
    Show(FileArgs),
}

/// The file of an instruction.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// The envelope
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl InstructionArgs {
    pub(crate) fn run(self) -> Finished {
        let policy = active(self.policy.as_deref());
        match self.command {
            InstructionCommand::New(args) => Finished::new(
                "instruction.new",
                policy.and_then(|policy| args.perform(&policy)),
            ),
            InstructionCommand::Check(args) => {
                Finished::on("instruction.check", "path", Ok(args.file), |path| {
                    check::perform(path, &policy?)
                })
            }
            InstructionCommand::Show(args) => {
                Finished::on("instruction.show", "path", Ok(args.file), |path| {
                    show::perform(path, &policy?)
                })
            }
        }
    }
}

fn active(named: Option<&Path>) -> Result<ActivePolicy, CliError> {
    let root = MemoryRoots::discover(Path::new("."))?.repository;
    Ok(ActivePolicy::find(named, &root)?)
}

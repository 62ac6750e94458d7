//! `premath world …`: what crosses to other worlds (HARNESS-RUNTIME 1.2).

mod submit;

pub(crate) use submit::CrossingAnswer;

use crate::answer::Finished;
use crate::paths;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `premath world`.
#[derive(Debug, Args)]
pub(crate) struct WorldArgs {
    /// Record the crossing in this trajectory [default: .premath/harness_trajectory.jsonl of
    /// the repository root]
    #[arg(long, global = true, value_name = "FILE")]
    path: Option<PathBuf>,
    #[command(subcommand)]
    command: WorldCommand,
}

#[derive(Debug, Subcommand)]
enum WorldCommand {
    /// Submit a step's turn to the gate of another repository
    Submit(submit::SubmitArgs),
}

impl WorldArgs {
    pub(crate) fn run(self) -> Finished {
        let WorldCommand::Submit(args) = self.command;
        let path = paths::trajectory(self.path);
        Finished::on("world.submit", "path", path, |path| args.perform(path))
    }
}

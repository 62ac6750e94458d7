//! `premath batch …`: pauses, resumes, drains and stops the batch that runs, and
//! adds and removes its lanes.

use super::{WhichBatch, roots, whole};
use crate::answer::Finished;
use clap::{Args, Subcommand};
use premath_kernel::record::control::{ControlOperation, LANES_MAX};

/// Arguments of `premath batch`.
#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    #[command(subcommand)]
    command: BatchCommand,
}

#[derive(Debug, Subcommand)]
enum BatchCommand {
    /// Start no new attempts; running ones continue
    Pause(RequestArgs),
    /// Start attempts again
    Resume(RequestArgs),
    /// Finish the running attempts, then end the batch, as SIGTERM does
    Drain(RequestArgs),
    /// End the running attempts now, then the batch; their work is saved
    Stop(RequestArgs),
    /// Add and remove lanes of the running batch
    Lanes(LanesArgs),
}

/// Which batch, and why.
#[derive(Debug, Args)]
struct RequestArgs {
    #[command(flatten)]
    which: WhichBatch,
    /// Give the reason; recorded in the trajectory
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, Args)]
struct LanesArgs {
    #[command(subcommand)]
    command: LanesCommand,
}

#[derive(Debug, Subcommand)]
enum LanesCommand {
    /// Create lanes that work beside the others
    Add {
        /// How many
        #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(LANES_MAX)))]
        count: u32,
        #[command(flatten)]
        request: RequestArgs,
    },
    /// End a lane after its running attempt
    Remove {
        /// The lane's worker, for example worker.2
        lane: String,
        #[command(flatten)]
        request: RequestArgs,
    },
}

impl BatchArgs {
    pub(crate) fn run(self) -> Finished {
        let (operation, request) = self.command.operation();
        Finished::new(operation.action(), request.perform(operation))
    }
}

impl BatchCommand {
    fn operation(self) -> (ControlOperation, RequestArgs) {
        match self {
            Self::Pause(request) => (ControlOperation::Pause, request),
            Self::Resume(request) => (ControlOperation::Resume, request),
            Self::Drain(request) => (ControlOperation::Drain, request),
            Self::Stop(request) => (ControlOperation::Stop, request),
            Self::Lanes(lanes) => match lanes.command {
                LanesCommand::Add { count, request } => {
                    (ControlOperation::LanesAdd { count }, request)
                }
                LanesCommand::Remove { lane, request } => {
                    let lane = lane.into();
                    (ControlOperation::LanesRemove { lane }, request)
                }
            },
        }
    }
}

impl RequestArgs {
    fn perform(
        self,
        operation: ControlOperation,
    ) -> Result<crate::answer::Answer, crate::error::CliError> {
        let asked = self.which.asked(self.reason.as_deref());
        whole(asked.ask(&roots()?, operation)?)
    }
}

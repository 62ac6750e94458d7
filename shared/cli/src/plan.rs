//! `premath plan`: what a batch that began now would do.

use crate::answer::{Answer, Finished};
use crate::terminal::columns;
use clap::Args;
use harness_worker::plan::plan;
use harness_worker::settings::{CrewFlags, LoopFlags};
use harness_worker::stderr::local_zone;
use premath_view::figures::Viewer;
use premath_view::plan::{ACTION, lines};

/// Arguments of `premath plan`.
///
/// It takes the flags of `harness-coordinator`, whose `--dry-run` prints the same. It
/// assumes that every attempt closes its issue and that all take the same time. The
/// exit code is 1 if the batch would be refused.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    flags: LoopFlags,
    #[command(flatten)]
    crew: CrewFlags,
    /// Use lines of this many columns [default: those of the terminal, or 120]
    #[arg(long, value_name = "COLUMNS")]
    width: Option<u16>,
}

impl PlanArgs {
    pub(crate) fn run(self) -> Finished {
        let answer = plan(&self.flags, &self.crew).map(|plan| {
            let viewer = Viewer {
                now: plan.at.time(),
                zone: local_zone(),
                width: columns(self.width),
            };
            let text = format!("{}\n", lines(&plan, &viewer).join("\n"));
            let is_refused = !plan.refusals.is_empty();
            Answer::new(plan, text).refused(is_refused)
        });
        Finished::new(ACTION, answer.map_err(Into::into))
    }
}

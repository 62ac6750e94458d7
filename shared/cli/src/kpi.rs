//! `premath kpi`: the throughput of the worker loops (`contracts.md` 6).

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::paths;
use clap::{Args, ValueEnum};
use premath_kernel::record::trajectory::{KPI_WINDOW, KpiDecision, Throughput, throughput};
use premath_memory::Trajectory;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `premath kpi`.
#[derive(Debug, Args)]
pub(crate) struct KpiArgs {
    /// Use this trajectory [default: .premath/harness_trajectory.jsonl of the repository root]
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,
    /// Look back this far from the newest row, for example 24h [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    window: Option<Duration>,
    /// Exit 1 if the verdict is worse
    #[arg(long, value_enum, value_name = "VERDICT")]
    require: Option<Required>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Required {
    /// 0.8 and above
    Pass,
    /// 0.4 and above
    Watch,
}

impl Required {
    /// Too few rows prove nothing.
    const fn is_met(self, decision: KpiDecision) -> bool {
        match decision {
            KpiDecision::Pass => true,
            KpiDecision::Watch => matches!(self, Self::Watch),
            KpiDecision::Rollback | KpiDecision::InsufficientData => false,
        }
    }
}

impl KpiArgs {
    pub(crate) fn run(mut self) -> Finished {
        let path = paths::trajectory(self.path.take());
        Finished::on("kpi", "path", path, |path| self.perform(path))
    }

    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let rows = if path.exists() {
            Trajectory::open(path)?.rows()?
        } else {
            Vec::new()
        };
        let found = throughput(&rows, self.window.unwrap_or(KPI_WINDOW));
        let failed = self
            .require
            .is_some_and(|required| !required.is_met(found.decision));
        let text = describe(&found);
        Ok(Answer::new(&found, text).refused(failed))
    }
}

fn describe(found: &Throughput) -> String {
    let decision = match found.decision {
        KpiDecision::Pass => "pass",
        KpiDecision::Watch => "watch",
        KpiDecision::Rollback => "rollback",
        KpiDecision::InsufficientData => "insufficient data",
    };
    let workers = match found.active_workers {
        1 => "1 worker".to_owned(),
        many => format!("{many} workers"),
    };
    let window = humantime::format_duration(Duration::from_secs(found.window_seconds));
    let end = match &found.window_end {
        Some(end) => format!("{window} to {}", end.as_str()),
        None => format!("last {window} (no rows)"),
    };
    format!(
        "{decision}: {:.2} closed per worker-day (weighted by success rate)\n{} of {} steps closed \
         their issue, {workers}, {end}\n",
        found.throughput, found.completed_count, found.row_count,
    )
}

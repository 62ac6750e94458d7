//! `premath watch`: the live view on a terminal.

mod beside;
mod input;
mod operate;
mod screen;
mod session;
mod source;

pub use beside::{Beside, HeldStream};

use crate::answer::{Finished, deliver};
use crate::error::CliError;
use crate::exit;
use clap::Args;
use premath_memory::roots::MemoryRoots;
use screen::Screen;
use session::Session;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `premath watch`.
///
/// It may be started before a batch, and shows each one that runs. It needs a terminal; elsewhere
/// `premath status --watch` prints the same figures as lines.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
}

impl WatchArgs {
    /// Says why there is no view: [`WatchArgs::show`] shows it.
    pub(crate) fn run(self) -> Finished {
        let why = "premath watch needs a terminal for its input and its output; `premath status \
                   --watch` prints lines";
        Finished::new("watch", Err(CliError::Usage(why.to_owned())))
    }

    /// Shows the view until a person leaves it; `None` where there is no terminal.
    pub(crate) fn show(&self, json: bool) -> Option<ExitCode> {
        if json || !screen::is_possible() {
            return None;
        }
        let folder = self.repo_root.as_deref().unwrap_or(Path::new("."));
        let shown = MemoryRoots::discover(folder)
            .map_err(CliError::from)
            .and_then(|roots| shown(&roots));
        Some(match shown {
            Ok(()) => ExitCode::from(exit::OK),
            Err(error) => deliver(Finished::new("watch", Err(error)), false),
        })
    }
}

fn shown(roots: &MemoryRoots) -> Result<(), CliError> {
    let mut session = Session::begin(roots, None)?;
    let failed = |error| CliError::Terminal(error);
    let mut screen = Screen::begin().map_err(failed)?;
    let ended = session.run(&mut screen);
    // Whatever is printed then is printed on the terminal as it was.
    drop(screen);
    ended.map_err(failed)
}

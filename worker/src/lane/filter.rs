//! The operator's git filters in a lane: git runs them over files that a step
//! wrote, confined like a command of the step, without network and without any
//! of the step's folders.

use super::Lane;
use super::boot::BootError;
use super::confine::FilterConfinement;
use crate::batch::Batch;
use crate::environment;
use crate::interrupt::{LOOK, Level};
use crate::sandbox::set;
use crate::supervisor::{CommandSpec, Exit, ExitCause, Supervisor, SupervisorError, shell};
use premath_memory::StoreError;
use premath_worktree::tree::{FilterEnd, FilterRun, FilterRunner, Filters};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// How much of what git and a filter say is reported, in bytes.
const SAID: u64 = 1_500;

/// How lines begin that name a file which is deleted.
const OF_LOG: [&str; 2] = ["Errors logged to ", "Use `git lfs logs last`"];

/// Variables for git that are the user's own wish, not the repository's.
const WISHES: [&str; 1] = ["GIT_LFS_SKIP_SMUDGE"];

/// Runs git with the operator's filters.
#[derive(Debug)]
struct LaneFilters {
    batch: Arc<Batch>,
    confinement: FilterConfinement,
    /// The lane's lock: it stays locked while a filter runs.
    lock: OwnedFd,
    /// What runs it, from the first run on.
    engine: Mutex<Option<Engine>>,
}

#[derive(Debug)]
struct Engine {
    runtime: Runtime,
    supervisor: Supervisor,
}

impl Lane {
    /// Has files of the lane go through the operator's filters, where the
    /// repository has any.
    pub(super) fn use_filters(&mut self) -> Result<(), BootError> {
        let definitions = self.batch.filters();
        let Some(definitions) = definitions.map_err(BootError::Filters)? else {
            return Ok(());
        };
        let folder = self.site.state.folder.join("filters");
        let failed = |operation: &'static str| {
            let path = folder.clone();
            move |source| StoreError::Io {
                operation,
                path,
                source,
            }
        };
        let lock = self.lock.share().map_err(failed("share the lock for"))?;
        let runner = LaneFilters {
            batch: self.batch.clone(),
            confinement: self.confinement.of_filters(),
            lock,
            engine: Mutex::default(),
        };
        let filters = Filters::new(definitions, &folder, Box::new(runner));
        let filters = Arc::new(filters.map_err(failed("make ready"))?);
        self.tree.use_filters(filters.clone());
        self.tree.fill_filtered()?;
        self.site.use_filters(filters)?;
        Ok(())
    }
}

impl FilterRunner for LaneFilters {
    fn run(&self, run: &FilterRun<'_>) -> Result<FilterEnd, String> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = match &mut *engine {
            Some(engine) => engine,
            none => none.insert(self.engine().map_err(|error| error.to_string())?),
        };
        if engine.supervisor.is_lost() {
            let lock = self.lock.try_clone().map_err(|error| error.to_string())?;
            let restarted = engine.supervisor.restart(lock);
            restarted.map_err(|error| error.to_string())?;
        }
        let mut spec = self.spec(run);
        let text = |error: io::Error| error.to_string();
        let confined = self.confinement.confine(&self.batch, run, &mut spec);
        let scratch = confined.map_err(|error| error.to_string())?;
        let at = |name: &str| scratch.path().join(name);
        let open = |path: &Path| {
            let mut options = File::options();
            options.read(true).write(true).create_new(true).open(path)
        };
        let stdout = open(&at("stdout")).map_err(text)?;
        let mut stderr = open(&at("stderr")).map_err(text)?;
        let files = (stdout, stderr.try_clone().map_err(text)?);
        let exit = self.supervise(engine, spec, files);
        let exit = exit.map_err(|error| error.to_string())?;
        if exit.survivors > 0 {
            return Err(format!("cannot kill {} process(es)", exit.survivors));
        }
        tracing::debug!(
            code = exit.code,
            milliseconds = exit.duration_ms,
            "filters ran"
        );
        Ok(FilterEnd {
            passed: exit.code == Some(0),
            was_ended: matches!(exit.cause, ExitCause::Limit | ExitCause::Exceeded(_)),
            said: said(&mut stderr, &exit).map_err(text)?,
        })
    }
}

impl LaneFilters {
    fn engine(&self) -> Result<Engine, SupervisorError> {
        let source = |source| SupervisorError::Register { source };
        let runtime = Builder::new_current_thread().enable_all().build();
        let lock = self.lock.try_clone().map_err(source)?;
        Ok(Engine {
            runtime: runtime.map_err(source)?,
            supervisor: Supervisor::start(&self.batch.program, lock)?,
        })
    }

    fn spec(&self, run: &FilterRun<'_>) -> CommandSpec {
        let settings = &self.batch.settings;
        let mut spec = shell(run.script);
        spec.cwd = run.files.to_path_buf();
        spec.limit = settings.limits.verify;
        spec.grace = settings.limits.grace;
        let inherited = settings.inherited();
        let wishes = inherited.iter().filter(|(name, _)| {
            let name = name.to_str();
            name.is_some_and(|name| WISHES.contains(&name))
        });
        let wishes: Vec<_> = wishes.cloned().collect();
        spec.env = environment::of_command(inherited, &settings.environment, false, &[]);
        spec.env.extend(wishes);
        set(&mut spec, "GIT_DIR", run.git);
        set(&mut spec, "GIT_WORK_TREE", run.files);
        set(&mut spec, "GIT_CONFIG_NOSYSTEM", "1");
        set(&mut spec, "GIT_CONFIG_GLOBAL", "/dev/null");
        set(&mut spec, "GIT_TERMINAL_PROMPT", "0");
        spec.env.sort();
        spec
    }

    /// Has the supervisor run a command to its end, or to that of the batch.
    fn supervise(
        &self,
        engine: &mut Engine,
        spec: CommandSpec,
        files: (File, File),
    ) -> Result<Exit, SupervisorError> {
        let supervisor = &mut engine.supervisor;
        engine.runtime.block_on(async {
            let mut running = supervisor.begin(spec, files.0, files.1).await?;
            loop {
                let woken = self.batch.interrupt.woken();
                if self.batch.interrupt.level() >= Level::Kill {
                    running.stop(true).await?;
                }
                tokio::select! {
                    biased;
                    exit = running.wait() => return exit,
                    () = woken => {}
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        })
    }
}

/// Returns the end of what was printed, or how the command ended.
fn said(stderr: &mut File, exit: &Exit) -> io::Result<String> {
    let length = stderr.seek(SeekFrom::End(0))?;
    stderr.seek(SeekFrom::Start(length.saturating_sub(SAID)))?;
    let mut bytes = Vec::new();
    stderr.take(SAID).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // The log that Git LFS writes is gone with the run.
    let lines = text.lines().map(str::trim_end);
    let is_of_log = |line: &str| OF_LOG.iter().any(|start| line.starts_with(start));
    let lines = lines.filter(|line| !line.is_empty() && !is_of_log(line));
    let text = lines.collect::<Vec<_>>().join("\n");
    let is_ended = exit.cause != ExitCause::Exited;
    let how = (is_ended || (text.is_empty() && exit.code != Some(0))).then(|| how(exit));
    let parts = [text, how.unwrap_or_default()];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    Ok(parts.collect::<Vec<_>>().join("\n"))
}

/// Returns how a command ended.
fn how(exit: &Exit) -> String {
    match &exit.cause {
        ExitCause::Limit => {
            "it took longer than a verification may (`verify_limit` under [supervision])".to_owned()
        }
        ExitCause::Exceeded(resource) => {
            let name = resource.name();
            format!("it exceeded its limit of {name} (`{name}` under [limits])")
        }
        ExitCause::Stopped => "the batch ended it".to_owned(),
        ExitCause::SpawnFailed { message, .. } => message.clone(),
        ExitCause::Exited => format!("git exited with {:?}", exit.code),
    }
}

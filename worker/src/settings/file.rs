//! `harness.toml`: read, checked key by key, with the near key suggested for
//! one that is unknown.

use super::agent::AgentTable;
use super::bounds::BoundsTable;
use super::document::ConfigDocument;
use super::keys::{
    BatchKeys, CoordinatorKeys, GovernanceKeys, IssuesKeys, LandingKeys, LimitsKeys, NetworkKeys,
    ProtectKeys, SandboxKeys, SigningKeys, SupervisionKeys, WorktreesKeys,
};
use super::notify::NotifySettings;
use super::program::Places;
use super::protect::Protect;
use super::telemetry::TelemetrySettings;
use super::values::{BackoffValue, Period, Word, Words};
use super::verify::VerifyTable;
use super::{CommandLimits, EnvironmentRules, SettingsError, landing};
use premath_kernel::issue::prefix::prefix_fault;
use premath_kernel::policy::retry::BackoffTable;
use premath_kernel::policy::silence::SilenceLimits;
use premath_kernel::policy::until::Until;
use premath_kernel::policy::window::DayWindow;
use premath_memory::artifact;
use premath_memory::untrusted::{SETTINGS_MAX, read_in_checkout};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A line of it does not fit.
    #[error("{path}:{line}: {detail}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong and what would be right.
        detail: String,
    },
    /// A key or a table that is near to one that there is.
    #[error("{path}:{line}: unknown key `{key}`")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The key.
        key: String,
        /// The key that is near.
        near: &'static str,
    },
}

impl ConfigError {
    /// Returns what would correct it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { near, .. } => Some(format!("did you mean `{near}`?")),
            Self::Read { .. } | Self::Line { .. } => None,
        }
    }
}

/// The `[coordinator]` table; the coordinator reads it.
#[derive(Clone, Debug, Default)]
pub struct CoordinatorTable {
    /// Worktrees, relative to the repository root.
    pub worktrees: Vec<PathBuf>,
    /// The prefix of worker ids.
    pub worker_prefix: Option<String>,
    /// Steps a dispatch may take.
    pub max_steps_per_worker: Option<u64>,
    /// Dispatches a lane may get; until done where absent.
    pub rounds: Option<u64>,
    /// When the batch ends.
    pub until: Option<Until>,
    /// The hours in which attempts begin.
    pub window: Option<DayWindow>,
}

/// The configuration file of a repository, in its root.
const HARNESS_TOML: &str = "harness.toml";

/// The settings of `harness.toml`.
#[derive(Clone, Debug, Default)]
pub struct FileSettings {
    pub(super) batch: BatchKeys,
    /// The coordinator's part.
    pub coordinator: CoordinatorTable,
    pub(super) limits: CommandLimits,
    pub(super) backoff: BackoffTable,
    pub(super) environment: EnvironmentRules,
    pub(super) prompt_template: Option<String>,
    pub(super) landing: LandingKeys,
    /// The lanes that are made for a batch.
    pub worktrees: WorktreesTable,
    pub(super) protect: Protect,
    pub(super) agent: AgentTable,
    pub(super) governance: GovernanceKeys,
    pub(super) bounds: BoundsTable,
    pub(super) sandbox: SandboxKeys,
    pub(super) resources: LimitsKeys,
    pub(super) network: NetworkKeys,
    pub(super) notify: Option<NotifySettings>,
    pub(super) telemetry: Option<TelemetrySettings>,
    pub(super) signing: SigningKeys,
    /// The prefix of the first issue's id; none where it is not set.
    pub issue_prefix: Option<String>,
    pub(super) verify: VerifyTable,
    /// Other repositories, from the repository root, by the names that issues
    /// ask for them by.
    pub(super) worlds: BTreeMap<String, PathBuf>,
    /// By how many hundredths a wait for a retry may be longer.
    pub(super) jitter_percent: Option<u32>,
    /// The place of each key in the file.
    pub(super) places: Places,
}

/// The `[worktrees]` table: the coordinator makes the lanes, every lane takes
/// the setup.
#[derive(Clone, Debug, Default)]
pub struct WorktreesTable {
    /// How many lanes there are to be.
    pub count: Option<usize>,
    /// The folder that holds them, from the repository root; `{repo}` is the
    /// name of the repository's folder.
    pub root: Option<String>,
    pub(super) setup_cmd: Option<String>,
    pub(super) setup_inputs: Vec<PathBuf>,
}

impl FileSettings {
    /// Returns the bounds of commands.
    pub const fn limits(&self) -> &CommandLimits {
        &self.limits
    }

    /// Returns how long the end of a batch waits for the last notification and the
    /// last spans.
    pub fn notify_wait(&self) -> Duration {
        let notify = self.notify.as_ref();
        let telemetry = self.telemetry.as_ref();
        let telemetry = telemetry.map_or(Duration::ZERO, |settings| settings.timeout);
        notify.map_or(Duration::ZERO, NotifySettings::longest) + telemetry
    }

    /// Loads the file that is named, or `harness.toml` of the repository root
    /// where there is one.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with line, key and what would be right.
    pub fn load(named: Option<&Path>, root: &Path) -> Result<Self, ConfigError> {
        let path = named.map_or_else(|| root.join(HARNESS_TOML), Path::to_path_buf);
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text, &path),
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
            Err(source) => Err(ConfigError::Read { path, source }),
        }
    }

    /// Loads `harness.toml` of another repository, whose checkout a step may
    /// write; the defaults where there is none.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with line, key and what would be right.
    pub(crate) fn load_of_checkout(repository: &Path) -> Result<Self, ConfigError> {
        let path = repository.join(HARNESS_TOML);
        let read = read_in_checkout(repository, Path::new(HARNESS_TOML), SETTINGS_MAX);
        let failed = |source| ConfigError::Read {
            path: path.clone(),
            source,
        };
        match read.map_err(|error| failed(io::Error::other(error)))? {
            None => Ok(Self::default()),
            Some(bytes) => {
                let text = String::from_utf8(bytes);
                let text = text.map_err(|error| failed(io::Error::other(error)))?;
                Self::parse(&text, &path)
            }
        }
    }

    /// Reads the text of a configuration file.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Line`].
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        Self::of(ConfigDocument::parse(text, path)?)
    }

    /// Takes what a document says.
    fn of(document: ConfigDocument) -> Result<Self, ConfigError> {
        let ConfigDocument {
            toml,
            commands,
            waits,
            places,
        } = document;
        let mut backoff = BackoffTable::default();
        for (class, BackoffValue(wait)) in waits {
            backoff.set(class, wait);
        }
        let limits = limits_of(&toml.supervision, &toml.coordinator);
        let bounds = BoundsTable::of(&toml, &places);
        let environment = EnvironmentRules {
            allow: toml
                .env
                .allow
                .map_or_else(BTreeSet::new, |w| w.0.into_iter().collect()),
            drop: toml
                .env
                .drop
                .map_or_else(BTreeSet::new, |w| w.0.into_iter().collect()),
        };
        let notify = NotifySettings::of(toml.notify, &environment, &places)?;
        let telemetry = TelemetrySettings::of(toml.telemetry, &environment, &places)?;
        Ok(Self {
            limits,
            bounds,
            agent: AgentTable::of(toml.agent, commands),
            coordinator: CoordinatorTable::of(toml.coordinator),
            backoff,
            jitter_percent: (toml.backoff.jitter_percent).and_then(|p| u32::try_from(p.0).ok()),
            environment,
            prompt_template: toml.prompt.template,
            notify,
            telemetry,
            landing: landing::checked(toml.landing, &places)?,
            worktrees: WorktreesTable::of(toml.worktrees, &places)?,
            protect: protect_of(&toml.protect, &places)?,
            governance: toml.governance,
            sandbox: toml.sandbox,
            resources: toml.limits,
            network: toml.network,
            signing: toml.signing,
            issue_prefix: issue_prefix(toml.issues, &places)?,
            verify: VerifyTable::of(toml.verify, &places)?,
            worlds: worlds_of(toml.worlds, &places)?,
            batch: toml.batch,
            places,
        })
    }
}

fn issue_prefix(keys: IssuesKeys, places: &Places) -> Result<Option<String>, ConfigError> {
    let fault = keys.prefix.as_deref().and_then(prefix_fault);
    match fault {
        Some(fault) => Err(wrong(places, "issues.prefix", format!("`prefix`: {fault}"))),
        None => Ok(keys.prefix),
    }
}

/// Makes an error about a key of a file.
pub(super) fn wrong(places: &Places, key: &str, detail: String) -> ConfigError {
    let (path, line) = places.get(key).cloned().unwrap_or_default();
    ConfigError::Line { path, line, detail }
}

/// Reads the file that a key names.
///
/// # Errors
///
/// [`ConfigError::Line`] where it does not exist, [`SettingsError::Store`] where
/// it cannot be read.
pub(super) fn named_file(
    places: &Places,
    key: &str,
    name: &str,
    path: &Path,
) -> Result<Vec<u8>, SettingsError> {
    let bytes = artifact::read(path)?;
    bytes.ok_or_else(|| {
        let word = key.rsplit('.').next().unwrap_or(key);
        let detail = format!("`{word}`: cannot read {name}: no such file");
        wrong(places, key, detail).into()
    })
}

impl CoordinatorTable {
    fn of(keys: CoordinatorKeys) -> Self {
        Self {
            worktrees: paths(keys.worktrees),
            worker_prefix: keys.worker_prefix,
            max_steps_per_worker: keys.max_steps_per_worker.map(|count| count.0),
            rounds: keys.rounds.map(|count| count.0),
            until: keys.until.map(|word| word.0),
            window: keys.window.map(|word| word.0),
        }
    }
}

impl WorktreesTable {
    fn of(keys: WorktreesKeys, places: &Places) -> Result<Self, ConfigError> {
        let in_commit = |path: PathBuf| {
            below_root(&path).ok_or_else(|| {
                let detail = format!(
                    "`setup_inputs`: `{}` is not a path in the repository; expected one from \
                     its root, such as \"package-lock.json\"",
                    path.display()
                );
                wrong(places, "worktrees.setup_inputs", detail)
            })
        };
        let setup_inputs = paths(keys.setup_inputs).into_iter().map(in_commit);
        let setup_inputs = setup_inputs.collect::<Result<_, _>>()?;
        Ok(Self {
            count: keys.count.and_then(|count| usize::try_from(count.0).ok()),
            root: keys.root,
            setup_cmd: keys.setup_cmd,
            setup_inputs,
        })
    }
}

/// Returns a path as a commit has it: without `.`; `None` where it leads to the root
/// itself or out of it.
fn below_root(path: &Path) -> Option<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let parts = parts.map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let below: PathBuf = parts.collect::<Option<_>>()?;
    (!below.as_os_str().is_empty()).then_some(below)
}

fn paths(words: Option<Words>) -> Vec<PathBuf> {
    let words = words.unwrap_or_default().0;
    words.into_iter().map(PathBuf::from).collect()
}

fn limits_of(keys: &SupervisionKeys, coordinator: &CoordinatorKeys) -> CommandLimits {
    let usual = CommandLimits::default();
    let silence = usual.silence;
    let period = |key: Option<Period>, usual| key.map_or(usual, |period| period.0);
    CommandLimits {
        step: period(keys.step_limit, usual.step),
        verify: period(keys.verify_limit, usual.verify),
        grace: keys.grace.map_or(usual.grace, |wait| wait.0),
        output_cap: keys
            .output_cap_bytes
            .map_or(usual.output_cap, |count| count.0),
        stream_cap: keys
            .stream_cap_bytes
            .map_or(usual.stream_cap, |count| count.0),
        silence: SilenceLimits {
            first_event: period(keys.first_event_limit, silence.first_event),
            call: period(keys.call_silence, silence.call),
            otherwise: period(keys.silence, silence.otherwise),
            after_end: period(keys.after_end, silence.after_end),
        },
        drain_grace: (coordinator.drain_grace).map_or(usual.drain_grace, |wait| wait.0),
    }
}

fn protect_of(keys: &ProtectKeys, places: &Places) -> Result<Protect, ConfigError> {
    let mut protect = Protect::default();
    if let Some(Words(patterns)) = &keys.paths {
        let set = protect.set_patterns(patterns);
        set.map_err(|error| wrong(places, "protect.paths", format!("`paths`: {error}")))?;
    }
    if let Some(Words(names)) = &keys.allow {
        let set = protect.allow(names);
        set.map_err(|error| wrong(places, "protect.allow", format!("`allow`: {error}")))?;
    }
    if let Some(Word(rule)) = keys.sensitive {
        protect.set_sensitive(rule);
    }
    Ok(protect)
}

fn worlds_of(
    worlds: BTreeMap<String, String>,
    places: &Places,
) -> Result<BTreeMap<String, PathBuf>, ConfigError> {
    let world = |(name, path): (String, String)| {
        if path.trim().is_empty() || name.trim() != name || name.is_empty() {
            let detail = "a world is a name and a repository path, for example docs = \"../docs\"";
            return Err(wrong(places, &format!("worlds.{name}"), detail.to_owned()));
        }
        Ok((name, PathBuf::from(path)))
    };
    worlds.into_iter().map(world).collect()
}

#[cfg(test)]
mod tests;

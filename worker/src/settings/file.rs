//! `harness.toml`: read, checked key by key, with the near key suggested for
//! one that is unknown.

use super::EnvironmentRules;
use super::Limits;
use super::agent::AgentTable;
use super::bounds::BoundsTable;
use super::governance::GovernanceTable;
use super::keys::{TABLES, keys_of};
use super::network::NetworkTable;
use super::program::Places;
use super::protect::Protect;
use super::reader::Reader;
use super::resources::ResourcesTable;
use super::sandbox::SandboxTable;
use super::signing::SigningTable;
use super::verify::VerifyTable;
use premath_kernel::policy::landing::LandingMode;
use premath_kernel::policy::retry::BackoffTable;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
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
}

/// The `[batch]` table.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchTable {
    pub(super) work_cmd: Option<String>,
    pub(super) verify_cmd: Option<String>,
    pub(super) boot_cmd: Option<String>,
    pub(super) stop_cmd: Option<String>,
    pub(super) startup_cmd: Option<String>,
    pub(super) instruction: Option<String>,
    pub(super) mutation_mode: Option<String>,
    pub(super) override_reason: Option<String>,
    pub(super) support_until: Option<String>,
    pub(super) retry_policy: Option<String>,
    pub(super) issue_types: Option<Vec<String>>,
    pub(super) labels: Option<Vec<String>>,
    pub(super) assignee: Option<String>,
    pub(super) lease_ttl: Option<Duration>,
    pub(super) stop_on_failure: bool,
    pub(super) refuse_no_change: bool,
    pub(super) witness_ref_prefix: Option<String>,
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
}

/// What `harness.toml` says.
#[derive(Clone, Debug, Default)]
pub struct FileSettings {
    pub(super) batch: BatchTable,
    /// The coordinator's part.
    pub coordinator: CoordinatorTable,
    pub(super) limits: Limits,
    pub(super) backoff: BackoffTable,
    pub(super) environment: EnvironmentRules,
    pub(super) prompt_template: Option<String>,
    pub(super) landing: LandingTable,
    /// The lanes that are made for a batch.
    pub worktrees: WorktreesTable,
    pub(super) protect: Protect,
    pub(super) agent: AgentTable,
    pub(super) governance: GovernanceTable,
    pub(super) bounds: BoundsTable,
    pub(super) sandbox: SandboxTable,
    pub(super) resources: ResourcesTable,
    pub(super) network: NetworkTable,
    pub(super) signing: SigningTable,
    pub(super) verify: VerifyTable,
    /// Other repositories, from the repository root, by the names that issues
    /// ask for them by.
    pub(super) worlds: BTreeMap<String, PathBuf>,
    /// By how many hundredths a wait for a retry may be longer.
    pub(super) jitter_percent: Option<u32>,
    /// Where its keys stand.
    pub(super) places: Places,
}

/// The `[landing]` table.
#[derive(Clone, Debug, Default)]
pub(super) struct LandingTable {
    pub(super) mode: Option<LandingMode>,
    pub(super) target: Option<String>,
    pub(super) check: Option<String>,
    pub(super) push: Option<String>,
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
    /// Loads the file that is named, or `harness.toml` of the repository root
    /// where there is one.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with line, key and what would be right.
    pub fn load(named: Option<&Path>, root: &Path) -> Result<Self, ConfigError> {
        let path = named.map_or_else(|| root.join("harness.toml"), Path::to_path_buf);
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text, &path),
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self::default())
            }
            Err(source) => Err(ConfigError::Read { path, source }),
        }
    }

    /// Reads the text of a configuration file.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Line`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let reader = Reader { text, path };
        let document = DeTable::parse(text).map_err(|error| {
            reader.at(
                error.span().map_or(0, |span| span.start),
                error.message().to_owned(),
            )
        })?;
        let mut settings = Self::default();
        for (name, value) in document.get_ref() {
            let table = match name.get_ref().as_ref() {
                known if TABLES.contains(&known) => reader.table(known, value)?,
                other => return Err(reader.unknown(name.span().start, other, &TABLES)),
            };
            for (key, value) in table {
                let key_at = key.span().start;
                let key = key.get_ref().as_ref();
                let place = reader.place(key_at);
                settings
                    .places
                    .insert(format!("{}.{key}", name.get_ref()), place);
                settings.set(&reader, name.get_ref(), key, key_at, value)?;
            }
        }
        Ok(settings)
    }

    fn set(
        &mut self,
        reader: &Reader<'_>,
        table: &str,
        key: &str,
        key_at: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let batch = &mut self.batch;
        let limits = &mut self.limits;
        match (table, key) {
            ("batch", "work_cmd") => batch.work_cmd = Some(reader.text(key, value)?),
            ("batch", "verify_cmd") => batch.verify_cmd = Some(reader.text(key, value)?),
            ("batch", "boot_cmd") => batch.boot_cmd = Some(reader.text(key, value)?),
            ("batch", "stop_cmd") => batch.stop_cmd = Some(reader.text(key, value)?),
            ("batch", "startup_cmd") => batch.startup_cmd = Some(reader.text(key, value)?),
            ("batch", "instruction") => batch.instruction = Some(reader.text(key, value)?),
            ("batch", "mutation_mode") => batch.mutation_mode = Some(reader.text(key, value)?),
            ("batch", "override_reason") => batch.override_reason = Some(reader.text(key, value)?),
            ("batch", "support_until") => batch.support_until = Some(reader.text(key, value)?),
            ("batch", "retry_policy") => batch.retry_policy = Some(reader.text(key, value)?),
            ("batch", "issue_types") => batch.issue_types = Some(reader.words(key, value)?),
            ("batch", "labels") => batch.labels = Some(reader.words(key, value)?),
            ("batch", "assignee") => batch.assignee = Some(reader.text(key, value)?),
            ("batch", "lease_ttl") => batch.lease_ttl = Some(reader.duration(key, value)?),
            ("batch", "witness_ref_prefix") => {
                batch.witness_ref_prefix = Some(reader.text(key, value)?);
            }
            ("batch", "on_failure") => match reader.text(key, value)?.as_str() {
                "continue" => batch.stop_on_failure = false,
                "stop" => batch.stop_on_failure = true,
                other => {
                    return Err(reader.at(
                        value.span().start,
                        format!("invalid `on_failure` `{other}`: expected `continue` or `stop`"),
                    ));
                }
            },
            ("batch", "on_no_change") => match reader.text(key, value)?.as_str() {
                "allow" => batch.refuse_no_change = false,
                "refuse" => batch.refuse_no_change = true,
                other => {
                    return Err(reader.at(
                        value.span().start,
                        format!("invalid `on_no_change` `{other}`: expected `allow` or `refuse`"),
                    ));
                }
            },
            ("coordinator", "worktrees") => {
                let list = reader.words(key, value)?;
                self.coordinator.worktrees = list.into_iter().map(PathBuf::from).collect();
            }
            ("coordinator", "worker_prefix") => {
                self.coordinator.worker_prefix = Some(reader.text(key, value)?);
            }
            ("coordinator", "max_steps_per_worker") => {
                self.coordinator.max_steps_per_worker = Some(reader.count(key, value)?);
            }
            ("coordinator", "rounds") => self.coordinator.rounds = Some(reader.count(key, value)?),
            ("coordinator", "drain_grace") => limits.drain_grace = reader.duration(key, value)?,
            ("supervision", "step_limit") => limits.step = reader.span(key, value)?,
            ("supervision", "verify_limit") => limits.verify = reader.span(key, value)?,
            ("supervision", "grace") => limits.grace = reader.duration(key, value)?,
            ("supervision", "output_cap_bytes") => limits.output_cap = reader.count(key, value)?,
            ("supervision", "stream_cap_bytes") => limits.stream_cap = reader.count(key, value)?,
            ("supervision", "first_event_limit") => {
                limits.silence.first_event = reader.span(key, value)?;
            }
            ("supervision", "call_silence") => limits.silence.call = reader.span(key, value)?,
            ("supervision", "silence") => limits.silence.otherwise = reader.span(key, value)?,
            ("supervision", "after_end") => limits.silence.after_end = reader.span(key, value)?,
            ("backoff", "jitter_percent") => {
                let percent = reader.number(key, value, 100)?;
                self.jitter_percent = u32::try_from(percent).ok();
            }
            ("governance", "package") => {
                self.governance.package = Some(reader.text(key, value)?.into());
            }
            ("governance", "package_ref") => {
                self.governance.package_ref = Some(reader.text(key, value)?);
            }
            ("governance", "expected_digest") => {
                self.governance.expected_digest = Some(reader.text(key, value)?);
            }
            ("backoff", class) => {
                let backoff = reader.backoff(class, value)?;
                self.backoff.set(class, backoff);
            }
            ("env", "drop") => {
                self.environment.drop = reader.words(key, value)?.into_iter().collect();
            }
            ("env", "allow") => {
                self.environment.allow = reader.words(key, value)?.into_iter().collect();
            }
            ("landing", "mode") => self.landing.mode = Some(reader.word(key, value)?),
            ("landing", "target") => self.landing.target = Some(reader.text(key, value)?),
            ("landing", "strategy") => {
                let detail = "`strategy` is no longer supported: work lands as one commit on the \
                              target's tip; delete the key";
                return Err(reader.at(key_at, detail.to_owned()));
            }
            ("landing", "check_cmd") => self.landing.check = Some(reader.text(key, value)?),
            ("landing", "push") => self.landing.push = Some(reader.text(key, value)?),
            ("worktrees", "count") => {
                let lanes = reader.count(key, value)?;
                let lanes = usize::try_from(lanes).ok().filter(|n| *n <= LANES_MAX);
                self.worktrees.count = Some(lanes.ok_or_else(|| {
                    let detail = format!("`count` is at most {LANES_MAX}");
                    reader.at(value.span().start, detail)
                })?);
            }
            ("worktrees", "root") => self.worktrees.root = Some(reader.text(key, value)?),
            ("worktrees", "setup_cmd") => {
                self.worktrees.setup_cmd = Some(reader.text(key, value)?);
            }
            ("worktrees", "setup_inputs") => {
                let list = reader.words(key, value)?;
                self.worktrees.setup_inputs = list.into_iter().map(PathBuf::from).collect();
            }
            ("protect", "paths") => {
                let patterns = reader.words(key, value)?;
                let set = self.protect.set_patterns(&patterns);
                set.map_err(|error| reader.at(value.span().start, format!("`{key}`: {error}")))?;
            }
            ("protect", "allow") => {
                let set = self.protect.allow(&reader.words(key, value)?);
                set.map_err(|error| reader.at(value.span().start, format!("`{key}`: {error}")))?;
            }
            ("protect", "sensitive") => self.protect.set_sensitive(reader.word(key, value)?),
            ("sandbox", "mode") => self.sandbox.mode = Some(reader.word(key, value)?),
            ("sandbox", "image") => self.sandbox.image = Some(reader.text(key, value)?),
            ("sandbox", "read") => self.sandbox.read = reader.words(key, value)?,
            ("sandbox", "write") => self.sandbox.write = reader.words(key, value)?,
            ("worlds", name) => {
                let path = reader.text(key, value)?;
                if path.trim().is_empty() || name.trim() != name || name.is_empty() {
                    let detail = "a world is a name and a repository path, for example docs = \
                                  \"../docs\"";
                    return Err(reader.at(key_at, detail.to_owned()));
                }
                self.worlds.insert(name.to_owned(), path.into());
            }
            ("prompt", "template") => self.prompt_template = Some(reader.text(key, value)?),
            _ if self.resources.set(reader, table, key, value)? => {}
            _ if self.network.set(reader, table, key, value)? => {}
            _ if self.signing.set(reader, table, key, value)? => {}
            _ if self.verify.set(reader, table, key, value)? => {}
            _ if self.bounds.set(reader, table, key, value)? => {}
            _ if self.agent.set(reader, table, key, value)? => {}
            _ => return Err(reader.unknown(key_at, key, keys_of(table))),
        }
        Ok(())
    }
}

/// More lanes than any machine works on are a slip of the finger.
const LANES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        FileSettings::parse(text, Path::new("h.toml"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn an_unknown_key_suggests_the_near_one_and_names_its_line() {
        assert_eq!(
            error("[batch]\nwork_comd = \"x\"\n"),
            "h.toml:2: unknown key `work_comd`; did you mean `work_cmd`?"
        );
        assert_eq!(
            error("\n[supervison]\n"),
            "h.toml:2: unknown key `supervison`; did you mean `supervision`?"
        );
        assert!(error("[env]\nfrobnicate = 1\n").contains("expected one of drop, allow"));
    }

    #[test]
    fn a_wrong_value_says_what_would_be_right() {
        assert_eq!(
            error("[coordinator]\nrounds = 0\n"),
            "h.toml:2: `rounds` is a whole number above 0, not `0`"
        );
        assert!(error("[supervision]\nstep_limit = \"45 moons\"").contains("such as \"45m\""));
        assert!(error("[batch]\nwork_cmd = 3").starts_with("h.toml:2: `work_cmd` is a text"));
        assert!(error("[batch\n").starts_with("h.toml:1: "));
    }

    #[test]
    fn every_known_key_is_read() {
        let text = r#"
[batch]
work_cmd = "w"
issue_types = ["task", "bug"]
labels = "a, b"
lease_ttl = "90s"
on_failure = "stop"
on_no_change = "refuse"
[coordinator]
worktrees = ["../a"]
rounds = 3
drain_grace = "1m"
[supervision]
output_cap_bytes = 1_000
[backoff]
fixed_short = "1s"
exponential_short = { base = "1s", cap = "4s" }
[env]
allow = ["PATH"]
"#;
        let settings = FileSettings::parse(text, Path::new("h.toml")).unwrap();
        assert_eq!(settings.batch.labels.unwrap(), ["a", "b"]);
        assert_eq!(settings.batch.lease_ttl, Some(Duration::from_secs(90)));
        assert!(settings.batch.refuse_no_change);
        assert_eq!(settings.limits.output_cap, 1_000);
        assert_eq!(settings.coordinator.rounds, Some(3));
        assert_eq!(
            settings.backoff.wait("exponential_short", 9),
            Duration::from_secs(4)
        );
        for table in [
            "batch",
            "coordinator",
            "agent",
            "supervision",
            "env",
            "prompt",
            "landing",
            "agent",
            "breaker",
            "budget",
            "network",
            "limits",
            "sandbox",
        ] {
            for key in keys_of(table) {
                let error =
                    FileSettings::parse(&format!("[{table}]\n{key} = true\n"), Path::new("h"));
                assert!(
                    !error.unwrap_err().to_string().contains("unknown key"),
                    "{key}"
                );
            }
        }
    }

    #[test]
    fn an_unknown_landing_mode_is_named_with_its_line() {
        let text = "[landing]\ntarget = \"t\"\nmode = \"merg\"\n";
        let error = FileSettings::parse(text, Path::new("h")).unwrap_err();
        let said = error.to_string();
        for part in ["h", "3", "`merg`", "`merge`, `branch` or `none`"] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn the_strategy_of_landings_is_refused_with_its_line() {
        for word in ["merge", "rebase", "squash"] {
            let error = error(&format!(
                "[landing]\ntarget = \"t\"\nstrategy = \"{word}\"\n"
            ));
            assert!(
                error.starts_with("h.toml:3: `strategy` is no longer supported")
                    && error.ends_with("delete the key"),
                "{error}"
            );
        }
        assert!(!keys_of("landing").contains(&"strategy"));
    }

    #[test]
    fn worlds_are_names_and_paths() {
        let parse = |text: &str| FileSettings::parse(text, Path::new("h"));
        let worlds = parse("[worlds]\ndocs = \"../docs\"\n").unwrap().worlds;
        assert_eq!(worlds["docs"], PathBuf::from("../docs"));
        for text in ["docs = \" \"", "\"\" = \"../docs\"", "\" a\" = \"../docs\""] {
            let error = error(&format!("[worlds]\n{text}\n"));
            assert!(error.starts_with("h.toml:2: a world is a name"), "{error}");
        }
        assert!(error("[worlds]\ndocs = 1\n").contains("a text in quotes"));
    }

    #[test]
    fn a_number_that_does_not_fit_is_shown() {
        for (text, said) in [
            (
                "[worktrees]\ncount = -1\n",
                "`count` is a whole number above 0, not `-1`",
            ),
            (
                "[backoff]\njitter_percent = 101\n",
                "`jitter_percent` is a whole number from 0 to 100, not `101`",
            ),
            (
                "[worktrees]\ncount = \"2\"\n",
                "`count` is a whole number above 0, not of type string",
            ),
        ] {
            let error = FileSettings::parse(text, Path::new("h")).unwrap_err();
            assert_eq!(error.to_string(), format!("h:2: {said}"));
        }
    }

    /// The file that `premath init` writes: as it is, and each line that it
    /// shows commented out.
    #[test]
    fn the_template_is_understood_line_by_line() {
        let template = include_str!("../../../shared/cli/src/init/harness.toml");
        let parse = |text: &str| FileSettings::parse(text, Path::new("harness.toml"));
        parse(template).unwrap();
        let mut table = "";
        let mut keys = 0;
        for line in template.lines() {
            if line.starts_with('[') {
                table = line;
            } else if let Some(key) = line.strip_prefix('#').filter(|l| !l.starts_with(' ')) {
                parse(&format!("{table}\n{key}\n")).unwrap();
                keys += 1;
            }
        }
        assert!(keys > 20, "{keys}");
    }
}

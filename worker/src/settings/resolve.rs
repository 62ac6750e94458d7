//! Settings from their sources: flags over environment over `harness.toml`.

use super::authority::AuthoritySources;
use super::file::{named_file, wrong};
use super::landing::landing_of;
use super::notify::NotifySettings;
use super::rules::{IssueChecksRule, OnFailure, OnNoChange};
use super::values::{Natural, flag_word};
use super::{
    FileSettings, Hooks, HostActionTransport, LoopFlags, Network, Protect, Provided, Sandbox,
    Settings, SettingsError, Setup, Workforce, agent, hooks, instruction, policy, program, protect,
    roots_of, split, variable_of,
};
use crate::environment;
use premath_kernel::authority::MutationMode;
use premath_kernel::issue::lease::{AssigneeRule, TTL_DEFAULT, TTL_MAX, TTL_MIN, TTL_RANGE};
use premath_kernel::issue::{Selection, TypeSelection};
use premath_kernel::json::reference::DEFAULT_WITNESS_PREFIX;
use premath_kernel::policy::landing::{LandingMode, LandingRule};
use premath_kernel::policy::retry::BackoffTable;
use premath_kernel::policy::turn::TurnPolicy;
use premath_memory::governance::PolicyPackage;
use premath_memory::roots::MemoryRoots;
use premath_platform::machine::total_memory;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

impl Settings {
    /// Puts flags, environment and file together, in falling order.
    ///
    /// # Errors
    ///
    /// [`SettingsError`], naming the flag or key.
    pub fn resolve(flags: &LoopFlags, now: jiff::Timestamp) -> Result<Self, SettingsError> {
        let sources = Sources::read(flags, now)?;
        let (root, file) = (&sources.roots.repository, &sources.file);
        let (sandbox, network) = sources.confinement()?;
        let provided = file.verify.provided(&file.places, root)?;
        let (work, hooks) = (sources.workforce()?, sources.hooks()?);
        let verify_base = file.verify.verifies_base(flags.startup.as_deref())?;
        let has_startup = verify_base || hooks.startup.is_some();
        let (setup, landing) = (sources.setup(), landing_of(flags, &file.landing)?);
        // A program that is missing is named before what it would be authorised by.
        sources.require_programs(&work, &hooks, &landing, &sandbox)?;
        let mode = sources.mode(has_startup, &work)?;
        let own = setup.iter().map(|setup| setup.command.as_str());
        let own = hooks.commands().chain(own).chain(landing.check.as_deref());
        let own = own.chain(file.notify.iter().filter_map(NotifySettings::command));
        let commands = own.chain(work.all().map(|work| work.command.as_str()));
        Ok(Self {
            session_path: flags.session_path.clone(),
            ledger_path: flags.feature_ledger_path.clone(),
            protect: sources.protect(&provided, commands),
            lease_ttl: sources.lease_ttl()?,
            hooks_of_agents: hooks::are_on(file.agent.hooks, &work, &sandbox)?,
            bounds: file.bounds.clone().settled(flags, &work, now)?,
            work,
            hooks,
            witness_prefix: sources.witness_prefix(),
            authority: sources.authority(has_startup, &mode),
            transport: sources.transport()?,
            selection: sources.selection(&mode),
            scope_paths: instruction::scope_paths(&mode)?,
            mode,
            assignees: sources.assignees(),
            stop_on_failure: sources.stops_on_failure(),
            set_aside_after: sources.set_aside_after(),
            refuse_no_change: sources.on_no_change()? == OnNoChange::Refuse,
            limits: file.limits.clone(),
            retry: policy::policy_in(root, file.batch.retry_policy.as_deref(), &file.places)?,
            resumes: file.agent.resume,
            turn: sources.turn_policy()?,
            backoff: sources.backoff(),
            environment: file.environment.clone(),
            prompt_template: sources.prompt_template()?,
            landing,
            landing_is_default: flags.landing.is_none() && file.landing.mode.is_none(),
            setup,
            governance: PolicyPackage::from(&file.governance).profile(root)?,
            sandbox,
            resources: file.resources.resolve(total_memory()),
            network,
            notify: file.notify.clone(),
            telemetry: file.telemetry.clone(),
            warm: file.verify.warm(),
            flaky_reruns: file.verify.flaky_reruns(),
            verify_slots: file.verify.slots(),
            verify_base,
            issue_checks: file.batch.issue_checks.unwrap_or_default() == IssueChecksRule::Run,
            own_checks: BTreeMap::new(),
            signer: file.signing.signer(&file.places, root)?,
            provided,
            worlds: sources.worlds(),
            roots: sources.roots,
        })
    }
}

/// In how many batches in a row an issue fails before it is set aside.
pub const SET_ASIDE_AFTER: u32 = 3;

/// What settings are read from, beside the environment.
struct Sources<'a> {
    flags: &'a LoopFlags,
    file: FileSettings,
    roots: MemoryRoots,
    /// The time at which the batch begins.
    now: jiff::Timestamp,
}

impl<'a> Sources<'a> {
    fn confinement(&self) -> Result<(Sandbox, Network), SettingsError> {
        let (flags, file) = (self.flags, &self.file);
        let sandbox = Sandbox::resolve(flags, file, &self.roots.repository)?;
        let network = Network::resolve(flags, file, sandbox.choice.mode)?;
        Ok((sandbox, network))
    }

    fn turn_policy(&self) -> Result<Arc<TurnPolicy>, SettingsError> {
        let named = self.file.batch.turn_policy.as_deref();
        let policy = policy::policy_in(&self.roots.repository, named, &self.file.places)?;
        Ok(Arc::new(policy))
    }

    fn read(flags: &'a LoopFlags, now: jiff::Timestamp) -> Result<Self, SettingsError> {
        let roots = roots_of(flags)?;
        let mut file = FileSettings::load(flags.config.as_deref(), &roots.repository)?;
        let more = variable_of("PREMATH_ENV_ALLOW").unwrap_or_default();
        file.environment.allow.extend(split(&more));
        Ok(Self {
            flags,
            file,
            roots,
            now,
        })
    }

    fn workforce(&self) -> Result<Workforce, SettingsError> {
        let selection = agent::AgentSelection {
            flags: self.flags,
            table: &self.file.agent,
            bounds: &self.file.bounds,
            command: self.file.batch.work_cmd.as_deref(),
        };
        selection.workforce()
    }

    fn hooks(&self) -> Result<Hooks, SettingsError> {
        let keys = &self.file.batch;
        let flag = &self.flags.verify_cmd;
        let verify = first_given(flag, "PREMATH_VERIFY_CMD", &keys.verify_cmd);
        Ok(Hooks {
            verify: verify.ok_or(SettingsError::CommandMissing { name: "verify" })?,
            boot: first_given(&None, "PREMATH_BOOT_CMD", &keys.boot_cmd),
            stop: first_given(&None, "PREMATH_STOP_CMD", &keys.stop_cmd),
            startup: first_given(&None, "PREMATH_STARTUP_CMD", &keys.startup_cmd),
        })
    }

    fn lease_ttl(&self) -> Result<Duration, SettingsError> {
        let range = TTL_MIN..=TTL_MAX;
        if let Some(seconds) = self.flags.lease_ttl_seconds {
            let ttl = Duration::from_secs(seconds);
            return match range.contains(&ttl) {
                true => Ok(ttl),
                false => Err(SettingsError::Value {
                    name: "--lease-ttl-seconds",
                    detail: format!(
                        "{seconds} s is out of range; expected {} to {} s",
                        TTL_MIN.as_secs(),
                        TTL_MAX.as_secs()
                    ),
                }),
            };
        }
        let key = self.file.batch.lease_ttl.as_ref();
        let ttl = key.map_or(TTL_DEFAULT, |wait| wait.0);
        if range.contains(&ttl) {
            return Ok(ttl);
        }
        let detail = format!(
            "`lease_ttl`: {} is out of range; expected {TTL_RANGE}",
            humantime::format_duration(ttl)
        );
        Err(wrong(&self.file.places, "batch.lease_ttl", detail).into())
    }

    /// Returns what changes rest on, which must fit who works.
    fn selected_mode(&self, has_startup: bool) -> instruction::ModeSelection<'_> {
        instruction::ModeSelection {
            flags: self.flags,
            file: &self.file.batch,
            repository: &self.roots.repository,
            has_startup,
            now: self.now,
        }
    }

    /// Returns where what changes rest on is read from again.
    fn authority(&self, has_startup: bool, mode: &MutationMode) -> AuthoritySources {
        let path = self.selected_mode(has_startup).path();
        AuthoritySources {
            repository: self.roots.repository.clone(),
            instruction: AuthoritySources::instruction_of(mode, path),
            retry_policy: self.file.batch.retry_policy.clone(),
            turn_policy: self.file.batch.turn_policy.clone(),
            governance: PolicyPackage::from(&self.file.governance),
            ..AuthoritySources::default()
        }
    }

    fn mode(&self, has_startup: bool, work: &Workforce) -> Result<MutationMode, SettingsError> {
        let mode = self.selected_mode(has_startup).mode()?;
        instruction::must_bind(&mode, work)?;
        Ok(mode)
    }

    fn transport(&self) -> Result<HostActionTransport, SettingsError> {
        let flag = &self.flags.host_action_transport;
        let named = first_given(flag, "PREMATH_HOST_ACTION_TRANSPORT", &None);
        match named.as_deref() {
            None | Some("mcp") => Ok(HostActionTransport::Mcp),
            Some("local-repl") => Ok(HostActionTransport::LocalRepl),
            Some(other) => Err(SettingsError::Value {
                name: "--host-action-transport",
                detail: format!("unknown transport `{other}`; expected `mcp` or `local-repl`"),
            }),
        }
    }

    fn prompt_template(&self) -> Result<Option<String>, SettingsError> {
        let Some(name) = &self.file.prompt_template else {
            return Ok(None);
        };
        let path = self.roots.repository.join(name);
        let bytes = named_file(&self.file.places, "prompt.template", name, &path)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn setup(&self) -> Option<Setup> {
        let table = &self.file.worktrees;
        Some(Setup {
            command: table.setup_cmd.clone()?,
            inputs: table.setup_inputs.clone(),
        })
    }

    /// Refuses commands whose program is not there. What makes a lane ready may
    /// well install what its commands begin with.
    fn require_programs(
        &self,
        work: &Workforce,
        hooks: &Hooks,
        landing: &LandingRule,
        sandbox: &Sandbox,
    ) -> Result<(), SettingsError> {
        if self.file.worktrees.setup_cmd.is_some() || hooks.boot.is_some() {
            return Ok(());
        }
        let commands = program::Commands {
            flags: self.flags,
            places: &self.file.places,
            agents: &self.file.agent,
            work,
            verify: &hooks.verify,
            startup: hooks.startup.as_deref(),
            check: (landing.check.as_deref()).filter(|_| landing.mode == LandingMode::Merge),
            sandbox,
        };
        let inherited = sandbox.inherited(&self.file.environment);
        let path = environment::path(inherited, &self.file.environment);
        commands.must_be_there(path.as_deref())
    }

    fn protect<'c>(
        &self,
        provided: &[Provided],
        commands: impl Iterator<Item = &'c str>,
    ) -> Protect {
        let mut protect = self.file.protect.clone();
        protect.add_commands(commands);
        let root = &self.roots.repository;
        protect.add_named(protect::named(self.flags, &self.file, provided, root));
        protect
    }

    fn selection(&self, mode: &MutationMode) -> Selection {
        let keys = &self.file.batch;
        let types = match (&self.flags.issue_types, &keys.issue_types) {
            (Some(types), _) => types_of(&split(types)),
            (None, Some(types)) => types_of(&types.0),
            (None, None) => TypeSelection::Default,
        };
        let labels = match &self.flags.labels {
            Some(labels) => split(labels),
            None => keys.labels.clone().unwrap_or_default().0,
        };
        let scope = mode.issue_scope();
        Selection {
            types,
            labels,
            scope,
        }
    }

    fn assignees(&self) -> AssigneeRule {
        let key = self.file.batch.assignee.as_deref();
        match self.flags.assignee.as_deref().or(key) {
            None | Some("none") => AssigneeRule::Unassigned,
            Some("any") => AssigneeRule::Any,
            Some(name) => AssigneeRule::Named(name.to_owned()),
        }
    }

    fn stops_on_failure(&self) -> bool {
        let key_stops = self.file.batch.on_failure == Some(OnFailure::Stop);
        self.flags.stop_on_failure || (!self.flags.continue_on_failure && key_stops)
    }

    fn set_aside_after(&self) -> u32 {
        let after = self.file.batch.set_aside_after.map(Natural::count);
        after.map_or(SET_ASIDE_AFTER, |count| {
            count.try_into().unwrap_or(u32::MAX)
        })
    }

    fn on_no_change(&self) -> Result<OnNoChange, SettingsError> {
        let Some(flag) = self.flags.on_no_change.as_deref() else {
            return Ok(self.file.batch.on_no_change.unwrap_or_default());
        };
        flag_word(
            "--on-no-change",
            flag,
            &OnNoChange::WORDS,
            OnNoChange::EXPECTED,
        )
    }

    fn backoff(&self) -> BackoffTable {
        let mut backoff = self.file.backoff.clone();
        if let Some(percent) = self.file.jitter_percent {
            backoff.set_jitter(percent);
        }
        backoff
    }

    fn worlds(&self) -> BTreeMap<String, PathBuf> {
        let worlds = self.file.worlds.iter();
        let folder = |path: &PathBuf| self.roots.repository.join(path);
        let worlds = worlds.map(|(name, path)| (name.clone(), folder(path)));
        worlds.collect()
    }

    fn witness_prefix(&self) -> String {
        let flag = &self.flags.witness_ref_prefix;
        let key = &self.file.batch.witness_ref_prefix;
        first_given(flag, "PREMATH_WITNESS_REF_PREFIX", key)
            .unwrap_or_else(|| DEFAULT_WITNESS_PREFIX.to_owned())
    }
}

/// Returns the first value that is not blank: the flag's, the variable's, the
/// key's.
fn first_given(flag: &Option<String>, variable: &str, key: &Option<String>) -> Option<String> {
    [flag.clone(), variable_of(variable), key.clone()]
        .into_iter()
        .flatten()
        .find(|value| !value.trim().is_empty())
}

fn types_of(words: &[String]) -> TypeSelection {
    if words.iter().any(|word| word == "all") {
        TypeSelection::All
    } else if words.is_empty() {
        TypeSelection::Default
    } else {
        TypeSelection::Only(words.to_vec())
    }
}

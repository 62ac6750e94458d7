//! Who works: a command, or coding agents whose event streams are read
//! (`agents.md`).

use super::bounds::BoundsTable;
use super::hooks::HookMode;
use super::keys::AgentKeys;
use super::{LoopFlags, SettingsError, variable_of};
use premath_evidence::{AGENT_NORMALIZER, Agent, FILE_NORMALIZER, SHELL_NORMALIZER};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// How what a work command did becomes evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// The harness ran it: one call with its exit.
    Shell,
    /// It writes evidence to a file.
    EvidenceFile,
    /// It prints the event stream of an agent.
    Stream(Agent),
}

impl Adapter {
    /// Returns the adapter's name, as it is stored in configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::EvidenceFile => "evidence-file",
            Self::Stream(agent) => agent.as_str(),
        }
    }

    /// Returns the adapter of a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "shell" => Some(Self::Shell),
            "evidence-file" => Some(Self::EvidenceFile),
            name => Agent::named(name).map(Self::Stream),
        }
    }

    /// Returns the normaliser that its evidence is bound to.
    pub(crate) const fn normalizer(self) -> &'static str {
        match self {
            Self::Shell => SHELL_NORMALIZER,
            Self::EvidenceFile => FILE_NORMALIZER,
            Self::Stream(_) => AGENT_NORMALIZER,
        }
    }

    /// Returns the agent whose stream it reads.
    pub(crate) const fn agent(self) -> Option<Agent> {
        match self {
            Self::Stream(agent) => Some(agent),
            Self::Shell | Self::EvidenceFile => None,
        }
    }
}

impl FromStr for Adapter {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::named(name).ok_or_else(|| unknown("adapter", name))
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Adapter {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A command that works on issues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Work {
    /// Whose limits it works under: the agent's name, else the adapter's.
    pub provider: String,
    /// How what it did becomes evidence.
    pub adapter: Adapter,
    /// The command, as a shell reads it.
    pub command: String,
}

/// Who works in a batch's lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Workforce {
    /// The lanes take them in turn; at least one.
    lanes: Vec<Work>,
    /// Who works where a lane's own provider refuses.
    fallback: Vec<Work>,
}

impl Workforce {
    /// Returns who works with a provider.
    pub(crate) fn with(&self, provider: &str) -> Option<&Work> {
        self.all().find(|work| work.provider == provider)
    }

    /// Returns the providers that the lanes take in turn, and the ones that
    /// take their place.
    pub(crate) fn providers(&self) -> [Vec<String>; 2] {
        [&self.lanes, &self.fallback].map(|works| {
            let names = works.iter().map(|work| work.provider.clone());
            names.collect()
        })
    }

    /// Returns everybody.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Work> {
        self.lanes.iter().chain(&self.fallback)
    }
}

/// The `[agent]` table.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentTable {
    /// The agents that the lanes take in turn.
    pub(super) agents: Vec<Agent>,
    pub(super) adapter: Option<Adapter>,
    /// Whether hooks are wired in.
    pub(super) hooks: Option<HookMode>,
    /// Whether an attempt resumes the session of the one before.
    pub(super) resume: bool,
    /// Command lines in place of the ready ones.
    pub(super) commands: BTreeMap<Agent, String>,
}

impl AgentTable {
    /// Takes the keys of the file, with the command lines of agents.
    pub(super) fn of(keys: AgentKeys, commands: BTreeMap<Agent, String>) -> Self {
        Self {
            agents: keys.r#use.map_or_else(Vec::new, |names| names.0),
            adapter: keys.adapter.map(|word| word.0),
            hooks: keys.hooks.map(|word| word.0),
            resume: keys.resume.unwrap_or(false),
            commands,
        }
    }
}

/// What the workforce is decided by.
pub(super) struct AgentSelection<'a> {
    pub(super) flags: &'a LoopFlags,
    pub(super) table: &'a AgentTable,
    /// Who takes the place of an agent whose provider refuses.
    pub(super) bounds: &'a BoundsTable,
    /// `work_cmd` of the file.
    pub(super) command: Option<&'a str>,
}

/// The source of a value; a later one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ValueSource {
    File,
    Environment,
    Flag,
}

impl AgentSelection<'_> {
    /// Puts together who works.
    ///
    /// # Errors
    ///
    /// [`SettingsError`]: no agent is named, a name is unknown, or one command
    /// is to be several agents'.
    pub(super) fn workforce(&self) -> Result<Workforce, SettingsError> {
        let of_file = self.command.map(str::to_owned);
        let command = layered(self.flags.work_cmd.clone(), "PREMATH_WORK_CMD", of_file);
        let (agents, agents_in) = self.agents()?;
        let adapter = self.adapter()?;
        // Who says a command where a lower layer names agents means it alone.
        let agents = match &command {
            Some((_, layer)) if *layer > agents_in => Vec::new(),
            _ => agents,
        };
        let command = command.map(|(command, _)| command);
        let lanes = match (agents.as_slice(), command) {
            ([], None) => return Err(SettingsError::CommandMissing { name: "work" }),
            ([], Some(command)) => {
                let adapter = adapter.unwrap_or(Adapter::Shell);
                let provider = adapter.as_str().to_owned();
                vec![Work {
                    provider,
                    adapter,
                    command,
                }]
            }
            ([agent], command) => vec![self.work(*agent, adapter, command)],
            (_, Some(_)) => {
                return Err(SettingsError::Value {
                    name: "work_cmd",
                    detail: "one command cannot serve several agents; set one per agent under \
                             [agent], for example codex_cmd"
                        .to_owned(),
                });
            }
            (several, None) => {
                let work = |agent: &Agent| self.work(*agent, adapter, None);
                several.iter().map(work).collect()
            }
        };
        let fallback: Result<Vec<Work>, SettingsError> = self
            .bounds
            .fallback()
            .iter()
            .map(|name| match (Agent::named(name), lanes.as_slice()) {
                // One command, which reads PREMATH_PROVIDER.
                (_, [work]) if agents.is_empty() => Ok(Work {
                    provider: name.clone(),
                    ..work.clone()
                }),
                (Some(agent), _) => Ok(self.work(agent, None, None)),
                (None, _) => Err(self.bounds.wrong_fallback(unknown("agent", name)).into()),
            })
            .collect();
        let fallback = fallback?;
        Ok(Workforce { lanes, fallback })
    }

    fn work(&self, agent: Agent, adapter: Option<Adapter>, command: Option<String>) -> Work {
        let own = self.table.commands.get(&agent).cloned();
        let ready = || agent.spec().command_line.to_owned();
        Work {
            provider: agent.as_str().to_owned(),
            adapter: adapter.unwrap_or(Adapter::Stream(agent)),
            command: command.or(own).unwrap_or_else(ready),
        }
    }

    fn agents(&self) -> Result<(Vec<Agent>, ValueSource), SettingsError> {
        let Some((list, layer)) = layered(self.flags.agent.clone(), "PREMATH_AGENT", None) else {
            return Ok((self.table.agents.clone(), ValueSource::File));
        };
        let names = list.split(',').map(str::trim).filter(|one| !one.is_empty());
        let agents: Result<Vec<Agent>, SettingsError> = names
            .map(|name| {
                Agent::named(name).ok_or_else(|| SettingsError::Value {
                    name: "--agent",
                    detail: unknown("agent", name),
                })
            })
            .collect();
        Ok((agents?, layer))
    }

    fn adapter(&self) -> Result<Option<Adapter>, SettingsError> {
        let Some((name, _)) = layered(self.flags.adapter.clone(), "PREMATH_ADAPTER", None) else {
            return Ok(self.table.adapter);
        };
        let adapter = Adapter::named(&name).ok_or_else(|| SettingsError::Value {
            name: "--adapter",
            detail: unknown("adapter", &name),
        })?;
        Ok(Some(adapter))
    }
}

/// Returns the names of all adapters.
pub(super) fn adapter_names() -> impl Iterator<Item = &'static str> {
    let of_commands = [Adapter::Shell, Adapter::EvidenceFile];
    let of_commands = of_commands.into_iter().map(Adapter::as_str);
    of_commands.chain(Agent::names())
}

/// Says which names are known.
pub(super) fn unknown(what: &str, name: &str) -> String {
    let known: Vec<&str> = match what {
        "adapter" => adapter_names().collect(),
        _ => Agent::names().collect(),
    };
    format!(
        "unknown {what} `{name}`; expected one of {}",
        known.join(", ")
    )
}

/// Returns a value with the layer that it is in; empty ones are none.
fn layered(
    flag: Option<String>,
    variable: &str,
    file: Option<String>,
) -> Option<(String, ValueSource)> {
    let layers = [
        (flag, ValueSource::Flag),
        (variable_of(variable), ValueSource::Environment),
        (file, ValueSource::File),
    ];
    layers
        .into_iter()
        .filter_map(|(value, layer)| Some((value?, layer)))
        .find(|(value, _)| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::FileSettings;
    use std::path::Path;

    /// The bounds of a file that names who takes others' places.
    fn bounds(fallback: &str) -> BoundsTable {
        let text = format!("[agent]\nfallback = [\"{fallback}\"]\n");
        let file = FileSettings::parse(&text, Path::new("h.toml"));
        file.unwrap().bounds
    }

    fn workforce(
        agents: &[Agent],
        command: Option<&str>,
        flags: &LoopFlags,
    ) -> Result<Workforce, SettingsError> {
        let table = AgentTable {
            agents: agents.to_vec(),
            adapter: None,
            hooks: None,
            resume: false,
            commands: BTreeMap::from([(Agent::OpenCode, "mine".to_owned())]),
        };
        AgentSelection {
            flags,
            table: &table,
            bounds: &bounds("gemini"),
            command,
        }
        .workforce()
    }

    #[test]
    fn lanes_take_agents_in_turn_and_fall_back() {
        let flags = LoopFlags::default();
        let workforce = workforce(&[Agent::Codex, Agent::OpenCode], None, &flags).unwrap();
        let [own, fallback] = workforce.providers();
        assert_eq!(own, ["codex", "opencode"]);
        assert_eq!(fallback, ["gemini"]);
        assert_eq!(
            workforce.with("gemini").unwrap().adapter,
            Adapter::Stream(Agent::Gemini)
        );
        assert_eq!(workforce.with("claude"), None);
        let commands: Vec<_> = workforce.all().map(|work| &work.command).collect();
        assert_eq!(commands[1], "mine");
        assert!(commands[0].starts_with("codex exec --json"));
    }

    #[test]
    fn a_command_is_an_agents_own_or_wins_over_it() {
        let flags = LoopFlags::default();
        let one = workforce(&[Agent::Codex], Some("c"), &flags).unwrap();
        let work = one.all().next().unwrap();
        assert_eq!(
            (&*work.command, work.adapter),
            ("c", Adapter::Stream(Agent::Codex))
        );
        let flags = LoopFlags {
            work_cmd: Some("mine".to_owned()),
            ..LoopFlags::default()
        };
        let one = workforce(&[Agent::Codex], None, &flags).unwrap();
        let work = one.all().next().unwrap();
        assert_eq!((&*work.command, work.adapter), ("mine", Adapter::Shell));
        assert_eq!(work.provider, "shell");
    }

    #[test]
    fn what_cannot_be_is_reported() {
        let error = |agents: &[Agent], command, flags: &LoopFlags| {
            workforce(agents, command, flags).unwrap_err().to_string()
        };
        let none = LoopFlags::default();
        assert_eq!(error(&[], None, &none), "no work command");
        let several = [Agent::Codex, Agent::Claude];
        assert!(error(&several, Some("c"), &none).contains("codex_cmd"));
        let flags = LoopFlags {
            agent: Some("codx".to_owned()),
            ..LoopFlags::default()
        };
        let table = AgentTable {
            agents: vec![Agent::Codex],
            ..AgentTable::default()
        };
        let wish = AgentSelection {
            flags: &none,
            table: &table,
            bounds: &bounds("gemni"),
            command: None,
        };
        let said = wish.workforce().unwrap_err().to_string();
        assert!(
            said.starts_with("h.toml:2: `fallback`: unknown agent `gemni`"),
            "{said}"
        );
        let said = error(&[], None, &flags);
        assert!(
            said.contains("unknown agent `codx`; expected one of claude, codex"),
            "{said}"
        );
    }
}

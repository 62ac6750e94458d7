//! `premath agents check`: which coding agents are here, and whether their
//! event streams can be read.

mod probe;
mod trial;

pub(crate) use probe::find;

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::paths;
use crate::terminal::plain;
use clap::{Args, Subcommand};
use premath_evidence::Agent;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use trial::Trial;

/// How long a program may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// Arguments of `premath agents`.
#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
enum AgentsCommand {
    /// List installed agents and versions; with --try, run each one once
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Check these agents; a missing one is a failure [default: all]
    #[arg(value_name = "AGENT", value_parser = named)]
    agents: Vec<Agent>,
    /// Run each agent once on a one-line prompt; this calls its provider
    #[arg(long = "try")]
    attempt: bool,
    /// Set the time limit of such a run
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = humantime::parse_duration)]
    limit: Duration,
}

/// Returns the agent of a name.
pub(crate) fn named(name: &str) -> Result<Agent, String> {
    let known: Vec<&str> = Agent::names().collect();
    Agent::named(name).ok_or_else(|| {
        format!(
            "unknown agent `{name}`; expected one of {}",
            known.join(", ")
        )
    })
}

/// Returns whether PATH has a program.
pub(crate) fn is_on_path(program: &str) -> bool {
    probe::find(program).is_some()
}

/// Returns whether files or variables are there that an agent signs in with.
/// Whether its provider takes them is known only by a run.
pub(crate) fn is_signed_in(agent: Agent) -> bool {
    let spec = agent.spec();
    let is_key = |name: &str| {
        let begins = spec.variables.iter().any(|start| name.starts_with(start));
        begins
            && ["KEY", "TOKEN", "USE"]
                .iter()
                .any(|part| name.contains(part))
    };
    if std::env::vars_os().any(|(name, _)| name.to_str().is_some_and(is_key)) {
        return true;
    }
    let home = paths::variable("HOME").map(PathBuf::from);
    let moved = spec.files.folder_variable.and_then(paths::variable);
    let folder = moved.map(PathBuf::from).or_else(|| {
        let home = home.as_ref()?;
        Some(home.join(spec.files.folder))
    });
    let files = match spec.files.renewed {
        [] => spec.files.copied,
        renewed => renewed,
    };
    folder.is_some_and(|folder| files.iter().any(|name| folder.join(name).exists()))
}

/// The answer of `premath agents check`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentsAnswer {
    /// The agents, by name.
    agents: Vec<Found>,
}

/// An agent that was found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Found {
    /// The agent's name in the configuration.
    agent: &'static str,
    /// Its program; null where PATH has none.
    program: Option<PathBuf>,
    /// What it reports about its version; null where it does not.
    version: Option<String>,
    /// The command line that it would work by.
    command: &'static str,
    /// How its run went, where one was asked for.
    trial: Option<Trial>,
    /// Why it cannot be used; empty if it can.
    missing: Vec<String>,
}

impl AgentsArgs {
    pub(crate) fn run(self) -> Finished {
        let AgentsCommand::Check(args) = self.command;
        Finished::new("agents.check", args.perform())
    }
}

impl CheckArgs {
    fn perform(self) -> Result<Answer, CliError> {
        let all = self.agents.is_empty();
        let asked = if all {
            Agent::ALL.to_vec()
        } else {
            self.agents.clone()
        };
        let mut agents = Vec::new();
        for agent in asked {
            agents.push(self.look(agent)?);
        }
        agents.sort_by_key(|found| found.agent);
        agents.dedup_by_key(|found| found.agent);
        let is_ready = |found: &Found| found.missing.is_empty();
        let failed = if all {
            !agents.iter().any(is_ready)
        } else {
            !agents.iter().all(is_ready)
        };
        let text = describe(&agents);
        Ok(Answer::new(AgentsAnswer { agents }, text).refused(failed))
    }

    fn look(&self, agent: Agent) -> Result<Found, CliError> {
        let mut found = Found {
            agent: agent.as_str(),
            program: probe::find(agent.spec().program),
            version: None,
            command: agent.spec().command_line,
            trial: None,
            missing: Vec::new(),
        };
        let Some(program) = &found.program else {
            found.missing.push(format!(
                "`{}` not found on PATH: {}",
                agent.spec().program,
                agent.spec().install_command()
            ));
            return Ok(found);
        };
        match probe::version(program, VERSION_LIMIT) {
            Ok(version) => found.version = Some(version),
            Err(why) => found
                .missing
                .push(format!("`{} --version` {why}", agent.spec().program)),
        }
        if self.attempt {
            let trial = Trial::of(agent, self.limit)?;
            found.missing.extend(trial.faults());
            found.trial = Some(trial);
        }
        Ok(found)
    }
}

fn describe(agents: &[Found]) -> String {
    let mut text = String::new();
    for found in agents {
        let version = found.version.as_deref().unwrap_or("-");
        let place = found.program.as_ref();
        let place = place.map_or_else(|| "-".to_owned(), |path| path.display().to_string());
        let state = match (&found.program, &found.trial) {
            (None, _) => "missing",
            _ if !found.missing.is_empty() => "not usable",
            (_, Some(_)) => "ready",
            (_, None) => "installed",
        };
        let _ = writeln!(
            text,
            "{:9} {state:10} {}  {}",
            found.agent,
            plain(version),
            plain(&place)
        );
        match &found.trial {
            Some(trial) => {
                let _ = writeln!(text, "          {}", plain(&trial.describe()));
            }
            None if found.program.is_some() => {
                text.push_str(
                    "          sign-in and event stream not checked: use --try to run it \
                    once\n",
                );
            }
            None => {}
        }
        for missing in &found.missing {
            let _ = writeln!(text, "          {}", plain(missing));
        }
    }
    text
}

//! What the real agents printed when a model server of ours played scripts to
//! them: `tests/recorded/<agent>/<script>.jsonl`, beside the server's journal
//! and how the agent ended.

mod amounts;
mod calls;
mod faults;
mod hooked;

use premath_evidence::Agent;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of an agent's recordings.
fn folder(agent: Agent) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    folder.join(agent.as_str())
}

/// Returns the agents that were recorded.
fn recorded_agents() -> Vec<Agent> {
    let agents = Agent::ALL.iter().copied();
    let agents: Vec<Agent> = agents.filter(|agent| folder(*agent).is_dir()).collect();
    assert!(!agents.is_empty());
    agents
}

/// One script, as one agent took it.
struct Recording {
    agent: Agent,
    script: String,
    stream: String,
    /// The model server's answers.
    journal: Vec<Value>,
    /// None where the agent was stopped.
    exit_code: Option<i64>,
    /// The events of its hooks; none where these were not wired.
    hooks: String,
}

impl Recording {
    /// Returns the calls that the model made, in their order.
    fn made(&self) -> impl Iterator<Item = &Value> {
        let answers = self.journal.iter();
        let seen = answers.filter(|answer| self.is_of_own(answer));
        seen.filter_map(|answer| answer["calls"].as_array())
            .flatten()
    }

    /// Returns whether the stream reports an answer: Claude alone reports those
    /// of sub-agents.
    fn is_of_own(&self, answer: &Value) -> bool {
        self.agent == Agent::Claude || answer["conversation"] == *self.script
    }
}

/// Returns an agent's recordings, sorted.
fn recordings(agent: Agent) -> Vec<Recording> {
    recordings_in(agent, &folder(agent))
}

/// Returns an agent's recordings with hooks, sorted.
fn hooked_recordings(agent: Agent) -> Vec<Recording> {
    recordings_in(agent, &folder(agent).join("hooked"))
}

#[expect(clippy::disallowed_methods, reason = "recordings are files")]
fn recordings_in(agent: Agent, folder: &Path) -> Vec<Recording> {
    let mut scripts: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Some(name.strip_suffix(".run.json")?.to_owned())
        })
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    let recordings = scripts.into_iter().map(|script| {
        let path = |end: &str| folder.join(format!("{script}.{end}"));
        let read = |end: &str| fs::read_to_string(path(end)).unwrap();
        let run: Value = serde_json::from_str(&read("run.json")).unwrap();
        let journal = read("journal.jsonl");
        Recording {
            agent,
            stream: read("jsonl"),
            journal: journal
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            exit_code: run["exitCode"].as_i64(),
            hooks: fs::read_to_string(path("hooks.jsonl")).unwrap_or_default(),
            script,
        }
    });
    recordings.collect()
}

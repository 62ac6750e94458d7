//! One script, played to one agent, and what the agent printed.

use super::normal::without_numbers;
use super::{Installed, Profile, normalised};
use crate::model::{Journal, ModelServer, Scripts};
use crate::{processes_in, until, workspace};
use premath_evidence::Agent;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// How long an agent may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// What an agent made of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// What it printed, without what is of the run.
    pub stream: String,
    /// What the model server answered, a line an answer.
    pub journal: String,
    /// How it ended: agent, version, exit code.
    pub run: String,
}

/// Returns the folder of an agent's recordings.
pub fn recordings(agent: Agent) -> PathBuf {
    workspace().join(format!("shared/evidence/tests/recorded/{}", agent.as_str()))
}

/// Plays one of the scripts to an agent in a scratch folder below `target`.
///
/// # Panics
///
/// Where the folder cannot be written or the agent cannot be started.
pub fn record(installed: &Installed, name: &str, scripts: &Scripts) -> Recorded {
    let agent = installed.agent.as_str();
    let folder = workspace().join(format!("target/agents/scratch/{agent}-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("work")).unwrap();
    let folder = fs::canonicalize(folder).unwrap();
    let work = folder.join("work");
    fs::write(work.join("notes.txt"), "a note\n").unwrap();
    git2::Repository::init(&work).unwrap();
    let journal = folder.join("journal.jsonl");
    let server =
        ModelServer::start(scripts.clone(), Journal::in_file(&journal).unwrap(), None).unwrap();
    let profile = Profile::set_up(installed, &folder.join("home"), &server.url());
    let prompt = format!("Do what is asked. play:{name}");
    let mut run = profile.run(&prompt, &work, &folder.join("agent"));
    // What Claude's tasks print is else below `/tmp`.
    run = run.env("CLAUDE_CODE_TMPDIR", folder.join("tmp"));
    // The folder is a scratch one; Claude works as root only if this is set.
    for name in installed.agent.spec().confined_variables {
        run = run.env(name, "1");
    }
    let mut running = run.start();
    let patience = scripts.get(name).and_then(|script| script.patience);
    let limit = patience.map_or(PATIENCE, Duration::from_secs);
    let over = until(limit, || running.is_over().then_some(()));
    if over.is_none() {
        running.signal(Signal::TERM);
        let _ = until(PATIENCE, || running.is_over().then_some(()));
    }
    let ended = running.wait();
    // What it left behind, or what its wrapper did not take along.
    for process in processes_in(&folder) {
        let pid = process.split(' ').next().and_then(|pid| pid.parse().ok());
        let pid = pid.and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let run = json!({
        "agent": agent,
        "version": installed.version,
        "exitCode": ended.code.filter(|_| over.is_some()),
    });
    Recorded {
        stream: normalised(&ended.stdout, &folder.to_string_lossy(), &server.url()),
        journal: without_numbers(&fs::read_to_string(journal).unwrap()),
        run: format!("{run}\n"),
    }
}

impl Recorded {
    /// Writes it beside the others.
    ///
    /// # Panics
    ///
    /// Where the folder cannot be written.
    pub fn write(&self, agent: Agent, name: &str) {
        let folder = recordings(agent);
        fs::create_dir_all(&folder).unwrap();
        for (end, text) in [
            ("jsonl", &self.stream),
            ("journal.jsonl", &self.journal),
            ("run.json", &self.run),
        ] {
            fs::write(folder.join(format!("{name}.{end}")), text).unwrap();
        }
    }
}

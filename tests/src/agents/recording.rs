//! One script, played to one agent, and what the agent printed.

use super::hooked::HookSocket;
use super::normal::without_numbers;
use super::{Installed, Profile, normalised};
use crate::model::{Journal, ModelServer, Script, Scripts};
use crate::{Ended, Run, Running, processes_in, until, workspace};
use premath_evidence::Agent;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
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
    /// The events of its hooks, where these were wired.
    pub hooks: Option<String>,
}

/// Returns the folder of an agent's recordings.
pub fn recordings(agent: Agent) -> PathBuf {
    workspace().join(format!("shared/evidence/tests/recorded/{}", agent.as_str()))
}

/// Plays one of the scripts to an agent in a scratch folder below `target`, with
/// hooks or without them.
///
/// # Panics
///
/// Where the folder cannot be written or the agent cannot be started.
pub fn record(installed: &Installed, name: &str, scripts: &Scripts, hooked: bool) -> Recorded {
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
    let script = scripts.get(name).expect("the script is there");
    let socket = hooked.then(|| HookSocket::open(installed.agent, &work));
    let run = run_of(
        &profile,
        installed.agent,
        name,
        script,
        socket.as_ref(),
        &folder,
    );
    let (ended, is_over) = end_of(run.start(), script.patience, &folder);
    let run = json!({
        "agent": agent,
        "version": installed.version,
        "exitCode": ended.code.filter(|_| is_over),
    });
    // Both in one: ids are counted in both.
    let hooks = socket.map_or_else(String::new, |socket| socket.events());
    let both = format!("{}{APART}{hooks}", ended.stdout);
    let both = normalised(&both, &folder.to_string_lossy(), &server.url());
    let (stream, hooks) = both.split_once(APART).expect("there are two");
    Recorded {
        stream: stream.to_owned(),
        journal: without_numbers(&fs::read_to_string(journal).unwrap()),
        run: format!("{run}\n"),
        hooks: hooked.then(|| hooks.to_owned()),
    }
}

/// What is between the stream and the events of hooks.
const APART: &str = "\u{1e}\n";

fn run_of(
    profile: &Profile,
    agent: Agent,
    name: &str,
    script: &Script,
    socket: Option<&HookSocket>,
    folder: &Path,
) -> Run {
    let mut arguments = script.arguments.clone();
    let wiring = socket.map(|socket| socket.wire(agent, &folder.join("hooks")));
    let wiring = wiring.unwrap_or_default();
    arguments.extend(wiring.arguments);
    let prompt = format!("Do what is asked. play:{name}");
    let mut run = profile.run_with(
        &arguments,
        &prompt,
        &folder.join("work"),
        &folder.join("agent"),
    );
    // What Claude's tasks print is else below `/tmp`.
    run = run.env("CLAUDE_CODE_TMPDIR", folder.join("tmp"));
    // The folder is a scratch one; Claude works as root only if this is set.
    for variable in agent.spec().confined_variables {
        run = run.env(variable, "1");
    }
    for (variable, value) in wiring.variables {
        run = run.env(variable, value);
    }
    run
}

/// Waits for the end of a run, and ends one that does not end by itself.
fn end_of(mut running: Running, patience: Option<u64>, folder: &Path) -> (Ended, bool) {
    let limit = patience.map_or(PATIENCE, Duration::from_secs);
    let over = until(limit, || running.is_over().then_some(()));
    if over.is_none() {
        running.signal(Signal::TERM);
        let _ = until(PATIENCE, || running.is_over().then_some(()));
    }
    let ended = running.wait();
    // What it left behind, or what its wrapper did not take along.
    for process in processes_in(folder) {
        let pid = process.split(' ').next().and_then(|pid| pid.parse().ok());
        let pid = pid.and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    (ended, over.is_some())
}

impl Recorded {
    /// Writes it beside the others.
    ///
    /// # Panics
    ///
    /// Where the folder cannot be written.
    pub fn write(&self, agent: Agent, name: &str) {
        let folder = recordings(agent);
        let folder = match &self.hooks {
            Some(_) => folder.join("hooked"),
            None => folder,
        };
        fs::create_dir_all(&folder).unwrap();
        for (end, text) in [
            ("jsonl", Some(&self.stream)),
            ("journal.jsonl", Some(&self.journal)),
            ("run.json", Some(&self.run)),
            ("hooks.jsonl", self.hooks.as_ref()),
        ] {
            if let Some(text) = text {
                fs::write(folder.join(format!("{name}.{end}")), text).unwrap();
            }
        }
    }
}

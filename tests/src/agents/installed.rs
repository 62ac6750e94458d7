//! Where the agents are, and how they get there.

use crate::{command, workspace};
use premath_evidence::Agent;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;

/// An agent that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Which one.
    pub agent: Agent,
    /// Its program.
    pub program: PathBuf,
    /// The version that is pinned.
    pub version: String,
}

/// Returns the folder that the agents are installed in.
pub fn agents_folder() -> PathBuf {
    workspace().join("target/agents")
}

/// Returns the version of an agent that `tests/agents/package.json` pins.
///
/// # Panics
///
/// Where the file does not pin it.
pub fn pinned(agent: Agent) -> String {
    let text = std::fs::read(workspace().join("tests/agents/package.json"));
    let text = text.expect("the versions are pinned");
    let document: Value = serde_json::from_slice(&text).expect("package.json is JSON");
    let version = document["dependencies"][agent.spec().package].as_str();
    version.expect("package.json pins the agent").to_owned()
}

impl Installed {
    /// Finds an agent: where [`install`] put it, and nowhere else, so that its
    /// version is known.
    pub fn find(agent: Agent) -> Option<Self> {
        let manifest = agents_folder()
            .join("node_modules")
            .join(agent.spec().package);
        let manifest = std::fs::read(manifest.join("package.json")).ok()?;
        let manifest: Value = serde_json::from_slice(&manifest).ok()?;
        let program = agents_folder()
            .join("node_modules/.bin")
            .join(agent.spec().program);
        let version = pinned(agent);
        (manifest["version"] == version.as_str() && program.exists()).then_some(Self {
            agent,
            program,
            version,
        })
    }
}

/// Says what a test of an agent lacks.
pub fn missing(agent: Agent) -> String {
    format!(
        "{} {} is not in target/agents: `mise run agents-install`",
        agent.as_str(),
        pinned(agent)
    )
}

/// Installs agents into `target/agents` by npm; those that are there already
/// stay as they are.
///
/// # Panics
///
/// Where npm cannot be started or fails.
pub fn install(agents: &[Agent]) {
    let missing: Vec<String> = agents
        .iter()
        .filter(|agent| Installed::find(**agent).is_none())
        .map(|agent| format!("{}@{}", agent.spec().package, pinned(*agent)))
        .collect();
    if missing.is_empty() {
        return;
    }
    std::fs::create_dir_all(agents_folder()).expect("target can be written");
    let mut npm = command("npm");
    npm.args(["install", "--silent", "--no-fund", "--no-audit"])
        .args(["--no-save", "--prefix"])
        .arg(agents_folder())
        // Installed agents are named too: npm removes unlisted packages.
        .args(agents_here())
        .args(&missing)
        .stdin(Stdio::null());
    let installed = npm.status().expect("npm can be started");
    assert!(installed.success(), "npm cannot install {missing:?}");
}

fn agents_here() -> Vec<String> {
    let here = Agent::ALL.iter().filter_map(|agent| {
        let found = Installed::find(*agent)?;
        Some(format!("{}@{}", agent.spec().package, found.version))
    });
    here.collect()
}

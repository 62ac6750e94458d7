//! How each agent is pointed at a model server and started.

use super::Installed;
use super::kit::{AgentKit, kit};
use crate::Run;
use crate::model::{HOLDER, RENEWAL, sign_in};
use premath_evidence::Agent;
use std::fs;
use std::path::{Path, PathBuf};

/// An agent with a home of its own, in which a model server is named.
#[derive(Clone, Debug)]
pub struct Profile {
    installed: Installed,
    home: PathBuf,
    url: String,
    is_signed_in: bool,
}

impl Profile {
    /// Creates a home folder.
    ///
    /// # Panics
    ///
    /// Where the home cannot be written.
    pub fn set_up(installed: &Installed, home: &Path, url: &str) -> Self {
        let (path, settings) = kit_of(installed.agent).settings;
        let path = home.join(path);
        fs::create_dir_all(path.parent().expect("the file is in a folder")).unwrap();
        fs::write(path, settings(url)).unwrap();
        Self {
            installed: installed.clone(),
            home: home.to_path_buf(),
            url: url.to_owned(),
            is_signed_in: false,
        }
    }

    /// Signs Codex in, by tokens that it has to renew at the server.
    ///
    /// # Panics
    ///
    /// Where the home cannot be written.
    pub fn signed_in(mut self) -> Self {
        assert_eq!(self.installed.agent, Agent::Codex, "it alone has a sign-in");
        let (path, settings) = kit_of(Agent::Codex).settings;
        let config = settings(&self.url).replace(
            "wire_api",
            "requires_openai_auth = true\nsupports_websockets = false\nwire_api",
        );
        fs::write(self.home.join(path), config).unwrap();
        let tokens = sign_in(HOLDER, 1).to_string();
        fs::write(self.home.join(".codex/auth.json"), tokens).unwrap();
        self.is_signed_in = true;
        self
    }

    /// Returns the variables that the agent needs.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let home = self.home.to_string_lossy().into_owned();
        let mut variables = vec![("HOME", home)];
        variables.extend((kit_of(self.installed.agent).environment)(
            &self.url, &self.home,
        ));
        if self.is_signed_in {
            let at = format!("{}{RENEWAL}", self.url);
            variables.push(("CODEX_REFRESH_TOKEN_URL_OVERRIDE", at));
        }
        variables
    }

    /// Returns the program and its arguments for a prompt.
    pub fn command_line(&self, prompt: &str) -> Vec<String> {
        let program = self.installed.program.to_string_lossy().into_owned();
        let arguments = kit_of(self.installed.agent).arguments.iter().copied();
        let arguments = arguments.chain([prompt]).map(str::to_owned);
        [program].into_iter().chain(arguments).collect()
    }

    /// Makes a run of the agent in a folder.
    pub fn run(&self, prompt: &str, within: &Path, output: &Path) -> Run {
        self.run_with(&[], prompt, within, output)
    }

    /// Makes a run with further arguments before the prompt.
    pub(super) fn run_with(
        &self,
        arguments: &[String],
        prompt: &str,
        within: &Path,
        output: &Path,
    ) -> Run {
        let mut line = self.command_line(prompt);
        let prompt = line.pop();
        line.extend(arguments.iter().cloned());
        line.extend(prompt);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut run = Run::new(Path::new(&line[0]), output.to_path_buf())
            .args(&line[1..])
            .within(within)
            .env("PATH", path);
        for (name, value) in self.environment() {
            run = run.env(name, value);
        }
        run
    }
}

fn kit_of(agent: Agent) -> &'static AgentKit {
    kit(agent).expect("an agent that tests can play")
}

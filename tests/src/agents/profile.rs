//! How each agent is pointed at a model server and started.

use super::Installed;
use crate::Run;
use crate::model::{HOLDER, RENEWAL, sign_in};
use premath_evidence::Agent;
use serde_json::json;
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
    /// Lays a home out.
    ///
    /// # Panics
    ///
    /// Where the home cannot be written.
    pub fn lay_out(installed: &Installed, home: &Path, url: &str) -> Self {
        let (path, text) = match installed.agent {
            Agent::Codex => (".codex/config.toml", codex(url)),
            Agent::Gemini => (".gemini/settings.json", gemini()),
            Agent::OpenCode => (".config/opencode/opencode.json", opencode(url)),
            Agent::Claude => (".claude/settings.json", claude()),
        };
        let path = home.join(path);
        fs::create_dir_all(path.parent().expect("the file is in a folder")).unwrap();
        fs::write(path, text).unwrap();
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
        let config = codex(&self.url).replace(
            "wire_api",
            "requires_openai_auth = true\nsupports_websockets = false\nwire_api",
        );
        fs::write(self.home.join(".codex/config.toml"), config).unwrap();
        let tokens = sign_in(HOLDER, 1).to_string();
        fs::write(self.home.join(".codex/auth.json"), tokens).unwrap();
        self.is_signed_in = true;
        self
    }

    /// Returns the variables that the agent needs.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let home = self.home.to_string_lossy().into_owned();
        let mut variables = vec![("HOME", home)];
        match self.installed.agent {
            Agent::Codex => {
                variables.push(("CODEX_HOME", self.in_home(".codex")));
                if self.is_signed_in {
                    let at = format!("{}{RENEWAL}", self.url);
                    variables.push(("CODEX_REFRESH_TOKEN_URL_OVERRIDE", at));
                }
            }
            Agent::Gemini => variables.extend([
                ("GOOGLE_GEMINI_BASE_URL", self.url.clone()),
                ("GEMINI_API_KEY", "none".to_owned()),
                ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
            ]),
            // No file of its names a server.
            Agent::Claude => variables.extend([
                ("ANTHROPIC_BASE_URL", self.url.clone()),
                ("ANTHROPIC_API_KEY", "none".to_owned()),
            ]),
            Agent::OpenCode => {}
        }
        variables
    }

    /// Returns the program and its arguments for a prompt.
    pub fn command_line(&self, prompt: &str) -> Vec<String> {
        let program = self.installed.program.to_string_lossy().into_owned();
        let arguments: &[&str] = match self.installed.agent {
            Agent::Codex => &[
                "exec",
                "--json",
                "--skip-git-repo-check",
                "-s",
                "danger-full-access",
                prompt,
            ],
            Agent::Gemini => &[
                "--model",
                "gemini-2.5-flash",
                "--output-format",
                "stream-json",
                "--yolo",
                "--prompt",
                prompt,
            ],
            Agent::Claude => &[
                "-p",
                "--output-format",
                "stream-json",
                "--verbose",
                "--dangerously-skip-permissions",
                prompt,
            ],
            Agent::OpenCode => &["run", "--format", "json", prompt],
        };
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        [program].into_iter().chain(arguments).collect()
    }

    /// Makes a run of the agent in a folder.
    pub fn run(&self, prompt: &str, within: &Path, output: &Path) -> Run {
        let line = self.command_line(prompt);
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

    fn in_home(&self, path: &str) -> String {
        self.home.join(path).to_string_lossy().into_owned()
    }
}

fn claude() -> String {
    json!({
        "env": {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        "autoUpdates": false,
    })
    .to_string()
}

fn codex(url: &str) -> String {
    format!(
        r#"model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2

[analytics]
enabled = false
"#
    )
}

fn gemini() -> String {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": {"disableAutoUpdate": true, "enableAutoUpdate": false, "maxAttempts": 2},
        "model": {"name": "gemini-2.5-flash", "maxSessionTurns": 12},
    })
    .to_string()
}

fn opencode(url: &str) -> String {
    json!({
        "autoupdate": false,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": format!("{url}/v1"), "apiKey": "none"},
            "models": {"scripted": {
                "name": "scripted",
                "limit": {"context": 100_000, "output": 10_000},
                "cost": {"input": 1, "output": 10, "cache_read": 0.1},
            }},
        }},
    })
    .to_string()
}

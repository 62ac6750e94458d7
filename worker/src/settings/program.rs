//! The programs that commands begin with, looked for before anything is
//! dispatched.

use super::agent::AgentTable;
use super::{LoopFlags, Sandbox, Settings, SettingsError, Workforce, variable_of};
use premath_evidence::Agent;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Where the keys of a configuration file stand, by `table.key`.
pub(super) type Places = BTreeMap<String, (PathBuf, usize)>;

/// Words that a shell does not look for on PATH: POSIX's own, and those that
/// shells which are called `sh` have besides.
const OF_THE_SHELL: [&str; 69] = [
    ".", ":", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command",
    "continue", "coproc", "declare", "dirs", "disown", "do", "done", "echo", "elif", "else",
    "enable", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for",
    "function", "getopts", "hash", "if", "in", "jobs", "kill", "let", "local", "newgrp", "popd",
    "print", "printf", "pushd", "pwd", "read", "readonly", "return", "select", "set", "shift",
    "shopt", "source", "test", "then", "time", "times", "trap", "true", "type", "typeset",
    "ulimit", "umask", "unalias", "unset", "until", "while",
];

/// What is known about a batch's commands.
pub(super) struct Commands<'a> {
    pub(super) flags: &'a LoopFlags,
    pub(super) places: &'a Places,
    pub(super) agents: &'a AgentTable,
    pub(super) work: &'a Workforce,
    pub(super) verify: &'a str,
    pub(super) startup: Option<&'a str>,
    /// What must pass after a landing, where work lands.
    pub(super) check: Option<&'a str>,
    /// How they are confined: with an image its programs count.
    pub(super) sandbox: &'a Sandbox,
}

impl Commands<'_> {
    /// Refuses a command whose program is on none of the folders of `path`.
    ///
    /// Only where that can be determined: by folders that are the same in every
    /// lane, and a first word that a shell takes as it is.
    ///
    /// # Errors
    ///
    /// [`SettingsError::ProgramMissing`].
    pub(super) fn must_be_there(&self, path: Option<&OsStr>) -> Result<(), SettingsError> {
        let Some(path) = path else { return Ok(()) };
        let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
        if !folders.iter().all(|folder| folder.is_absolute()) {
            return Ok(());
        }
        let missing = |command| first_word(command).filter(|word| !self.has(word, &folders));
        let image = self.sandbox.image.as_ref();
        let image = image.map(|image| image.named.name.clone());
        for work in self.work.all() {
            if let Some(program) = missing(&work.command) {
                let agent = Agent::named(&work.provider)
                    .filter(|agent| work.command == agent.spec().command_line);
                return Err(SettingsError::ProgramMissing {
                    place: self.place_of_work(&work.provider, &work.command),
                    name: "work",
                    program: program.to_owned(),
                    image,
                    agent,
                });
            }
        }
        let verify = self.flags.verify_cmd.as_deref();
        let others = [
            (
                "verification",
                Some(self.verify),
                self.place(
                    ("--verify-cmd", verify),
                    "PREMATH_VERIFY_CMD",
                    "batch.verify_cmd",
                ),
            ),
            (
                "startup",
                self.startup,
                self.place(("", None), "PREMATH_STARTUP_CMD", "batch.startup_cmd"),
            ),
            (
                "landing check",
                self.check,
                self.place(("", None), "", "landing.check_cmd"),
            ),
        ];
        for (name, command, place) in others {
            if let Some(program) = command.and_then(missing) {
                return Err(SettingsError::ProgramMissing {
                    place,
                    name,
                    program: program.to_owned(),
                    image,
                    agent: None,
                });
            }
        }
        Ok(())
    }

    /// Returns whether a program is in one of some folders, as commands see
    /// them.
    fn has(&self, program: &str, folders: &[PathBuf]) -> bool {
        let Some(image) = &self.sandbox.image else {
            return folders
                .iter()
                .any(|folder| is_executable(&folder.join(program)));
        };
        // A path that a person opened is the machine's.
        let opened = || self.sandbox.read.iter().chain(&self.sandbox.write);
        folders.iter().any(|folder| {
            let path = folder.join(program);
            image.files.has_program(&path)
                || (opened().any(|opened| path.starts_with(opened)) && is_executable(&path))
        })
    }

    /// Returns the source of the agent setting.
    fn place_of_work(&self, provider: &str, command: &str) -> String {
        let agent = Agent::named(provider);
        let own = agent.and_then(|agent| self.agents.commands.get(&agent));
        if own.is_some_and(|own| own == command) {
            let key = format!("agent.{provider}_cmd");
            return self.place(("", None), "", &key);
        }
        if agent.is_some_and(|agent| command == agent.spec().command_line) {
            let named = |list: Option<String>| {
                list.filter(|list| list.split(',').any(|name| name.trim() == provider))
            };
            let flag = named(self.flags.agent.clone());
            let variable = named(variable_of("PREMATH_AGENT")).map_or("", |_| "PREMATH_AGENT");
            let key = match agent {
                Some(agent) if self.agents.agents.contains(&agent) => "agent.use",
                _ => "agent.fallback",
            };
            return self.place(("--agent", flag.as_deref()), variable, key);
        }
        let flag = self.flags.work_cmd.as_deref();
        self.place(("--work-cmd", flag), "PREMATH_WORK_CMD", "batch.work_cmd")
    }

    /// Returns the source of a value: a flag, a variable, or a line of the
    /// file.
    fn place(&self, flag: (&str, Option<&str>), variable: &str, key: &str) -> String {
        let is_set = |text: &str| !text.trim().is_empty();
        if flag.1.is_some_and(is_set) {
            return flag.0.to_owned();
        }
        if variable_of(variable).as_deref().is_some_and(is_set) {
            return variable.to_owned();
        }
        let name = key.rsplit('.').next().unwrap_or(key);
        match self.places.get(key) {
            Some((path, line)) => format!("{}:{line}: `{name}`", path.display()),
            None => format!("`{name}`"),
        }
    }
}

impl Settings {
    /// Returns the programs within the worktree that the work and verification
    /// commands begin with: the word of the command, and its path.
    pub(crate) fn programs_by_path(&self) -> BTreeMap<&str, PathBuf> {
        // Verifications have these files whether or not git tracks them.
        let is_provided = |path: &Path| self.provided.iter().any(|file| file.path == path);
        let verify = by_path(&self.hooks.verify).filter(|(_, path)| !is_provided(path));
        let work = self.work.all().filter_map(|work| by_path(&work.command));
        work.chain(verify).collect()
    }
}

/// Returns the word that a command line begins with, and the path within the worktree
/// that it names, if it names a program by one.
fn by_path(command: &str) -> Option<(&str, PathBuf)> {
    let word = program_word(command).filter(|word| word.contains('/'))?;
    let parts = Path::new(word).components();
    let path: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    let is_plain = |part| matches!(part, Component::Normal(_));
    let is_within = path.components().next().is_some() && path.components().all(is_plain);
    is_within.then_some((word, path))
}

/// Returns the program that a command line begins with, if its first word is the
/// name that it has on PATH.
fn first_word(command: &str) -> Option<&str> {
    program_word(command).filter(|word| !word.contains('/'))
}

/// Returns the program that a command line begins with, if its first word names
/// it.
///
/// A command with an `||` may well know what to do without it.
fn program_word(command: &str) -> Option<&str> {
    let command = command.trim_start();
    if command.contains("||") {
        return None;
    }
    let ends = |c: char| c.is_ascii_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>');
    let (word, rest) = command.split_at(command.find(ends).unwrap_or(command.len()));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-/".contains(&byte);
    // As in `2>log command`.
    let is_descriptor =
        rest.starts_with(['<', '>']) && word.bytes().all(|byte| byte.is_ascii_digit());
    // As in `name ()`, which makes a function.
    let is_function = rest.trim_start().starts_with('(');
    let tells = !word.is_empty()
        && word.bytes().all(is_plain)
        && !is_descriptor
        && !is_function
        && OF_THE_SHELL.binary_search(&word).is_err();
    tells.then_some(word)
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::agent::AgentSelection;
    use crate::settings::{FileSettings, SettingsError};
    use premath_kernel::policy::sandbox::{SandboxMode, choose};

    #[test]
    fn the_words_of_the_shell_are_sorted() {
        assert!(OF_THE_SHELL.is_sorted());
    }

    #[test]
    fn a_first_word_is_reported_only_where_it_is_the_programs_name() {
        for (command, word) in [
            ("cargo test", Some("cargo")),
            ("  \n\tg++-12 x", Some("g++-12")),
            ("make", Some("make")),
            ("agent<in", Some("agent")),
            ("agent|tee log", Some("agent")),
            ("agent;x", Some("agent")),
            ("agent&&x", Some("agent")),
            ("agent\nx", Some("agent")),
            ("", None),
            ("  ", None),
            ("./agent", None),
            ("bin/agent", None),
            ("/bin/true", None),
            ("\"agent\"", None),
            ("ag'en't x", None),
            ("ag\\ent x", None),
            ("$AGENT x", None),
            ("ag${X} x", None),
            ("`agent` x", None),
            ("A=1 agent", None),
            ("# a comment\nagent", None),
            ("~/agent", None),
            ("age*", None),
            ("(agent)", None),
            ("agent() { true; }; agent", None),
            ("agent () { true; }; agent", None),
            ("{ agent; }", None),
            ("! agent", None),
            ("[ -f x ]", None),
            ("2>log agent", None),
            (">log agent", None),
            ("if agent; then x; fi", None),
            ("for i in 1; do x; done", None),
            ("exec agent", None),
            ("test -f x", None),
            (". ./env", None),
            (": x", None),
            ("agent || other", None),
            ("ägent", None),
        ] {
            assert_eq!(first_word(command), word, "{command:?}");
        }
    }

    #[test]
    fn a_program_within_the_worktree_is_named_by_its_path() {
        for (command, path) in [
            ("./agent.sh", Some("agent.sh")),
            (" ./bin/./agent x", Some("bin/agent")),
            ("bin/agent|tee log", Some("bin/agent")),
            ("agent", None),
            ("/bin/true", None),
            ("../agent", None),
            ("bin/../agent", None),
            ("./", None),
            ("~/agent", None),
            ("./$AGENT", None),
            ("./agent || other", None),
            ("sh ./agent", None),
        ] {
            let found = by_path(command).map(|(_, path)| path);
            assert_eq!(found.as_deref(), path.map(Path::new), "{command:?}");
        }
    }

    fn sandbox() -> Sandbox {
        Sandbox {
            choice: choose(Some(SandboxMode::None), |_| Ok(())).unwrap(),
            image: None,
            read: Vec::new(),
            write: Vec::new(),
            home: None,
        }
    }

    struct TestSettings {
        text: String,
        agents: &'static [&'static str],
        flags: LoopFlags,
        path: &'static str,
    }

    impl TestSettings {
        fn of(text: &str) -> Self {
            Self {
                text: text.to_owned(),
                agents: &[],
                flags: LoopFlags::default(),
                path: "",
            }
        }

        /// What is reported where PATH has `there` and the agents.
        fn error(&self) -> Option<SettingsError> {
            let folder = tempfile::tempdir().unwrap();
            for name in ["there"].iter().chain(self.agents) {
                let path = folder.path().join(name);
                fs::write(&path, "").unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            fs::write(folder.path().join("no-program"), "").unwrap();
            fs::create_dir(folder.path().join("folder")).unwrap();
            let file = FileSettings::parse(&self.text, Path::new("h.toml")).unwrap();
            let wish = AgentSelection {
                flags: &self.flags,
                table: &file.agent,
                bounds: &file.bounds,
                command: file.batch.work_cmd.as_deref(),
            };
            let work = wish.workforce().unwrap();
            let sandbox = sandbox();
            let commands = Commands {
                sandbox: &sandbox,
                flags: &self.flags,
                places: &file.places,
                agents: &file.agent,
                work: &work,
                verify: file.batch.verify_cmd.as_deref().unwrap_or("there"),
                startup: file.batch.startup_cmd.as_deref(),
                check: file.landing.check_cmd.as_deref(),
            };
            let path = format!("{}{}", folder.path().display(), self.path);
            let found = commands.must_be_there(Some(OsStr::new(&path)));
            commands.must_be_there(None).unwrap();
            found.err()
        }

        fn message(&self) -> String {
            let error = self.error();
            error.map_or_else(String::new, |error| error.to_string())
        }
    }

    #[test]
    fn a_missing_program_is_named_with_the_place_that_asks_for_it() {
        for (text, place) in [
            (
                "[batch]\nwork_cmd = 'none x'",
                "h.toml:2: `work_cmd`: program `none` of the work command",
            ),
            (
                "[batch]\nwork_cmd = 'there'\n\nverify_cmd = 'none'",
                "h.toml:4: `verify_cmd`: program `none` of the verification command",
            ),
            (
                "[batch]\nwork_cmd = 'there'\nstartup_cmd = 'none'",
                "h.toml:3: `startup_cmd`: program `none` of the startup command",
            ),
            (
                "[batch]\nwork_cmd = 'there'\n[landing]\ncheck_cmd = 'none'",
                "h.toml:4: `check_cmd`: program `none` of the landing check command",
            ),
            (
                "[agent]\nuse = 'codex'\ncodex_cmd = 'none'",
                "h.toml:3: `codex_cmd`: program `none` of the work command",
            ),
        ] {
            let message = TestSettings::of(text).message();
            assert_eq!(message, format!("{place} not found on PATH"));
        }
        for program in ["no-program", "folder"] {
            let settings = TestSettings::of(&format!("[batch]\nwork_cmd = '{program}'"));
            assert!(settings.message().contains(program), "{program}");
        }
        let mut settings = TestSettings::of("[batch]\nwork_cmd = 'there'");
        assert_eq!(settings.message(), "");
        settings.flags.work_cmd = Some("none".to_owned());
        assert!(
            settings
                .message()
                .starts_with("--work-cmd: program `none` of the work command")
        );
        // Where it is looked for is another folder in each lane.
        settings.path = ":bin";
        assert_eq!(settings.message(), "");
    }

    #[test]
    fn a_missing_agent_is_named_with_how_to_get_it() {
        let mut settings =
            TestSettings::of("[agent]\nuse = [\"codex\", \"gemini\"]\nfallback = [\"claude\"]");
        settings.agents = &["codex", "claude"];
        assert!(
            settings
                .message()
                .starts_with("h.toml:2: `use`: gemini is not installed")
        );
        let hint = settings.error().unwrap().hint().unwrap();
        assert!(hint.contains("premath agents check"), "{hint}");
        assert!(hint.contains("@google/gemini-cli"), "{hint}");
        settings.agents = &["codex", "gemini"];
        assert!(settings.message().starts_with("h.toml:3: `fallback`: "));
        settings.flags.agent = Some("opencode,claude".to_owned());
        assert!(
            settings
                .message()
                .starts_with("--agent: opencode is not installed")
        );
        settings.agents = &["opencode", "claude"];
        assert_eq!(settings.message(), "");
    }
}

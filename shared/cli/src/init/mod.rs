//! `premath init`: creates a repository, and overwrites nothing.

mod detect;
mod mise;
mod questions;

use crate::agents::is_on_path;
use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::instruction;
use crate::operator;
use crate::paths;
use crate::terminal::plain;
use crate::trust::accept_created;
use clap::Args;
use premath_evidence::{AGENT_NORMALIZER, Agent};
use premath_kernel::authority::instruction::{
    INSTRUCTION_POLICY_FILE, InstructionPolicy, update_command,
};
use premath_kernel::issue::prefix::{prefix_fault, prefix_of};
use premath_kernel::policy::turn::{POLICY_PLACE, TurnPolicy};
use premath_memory::ignored::exclude_from_status;
use premath_memory::instruction::ActivePolicy;
use premath_memory::roots::{MemoryRoots, has_commit, main_worktree, refuse_git_folder_apart};
use questions::{Choice, Proposal, ask};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

const CONFIG: &str = include_str!("harness.toml");

/// The configuration's name below the root.
const CONFIG_NAME: &str = "harness.toml";

/// What is in the configuration's place of the first instruction.
const FIRST_INSTRUCTION: &str = "instructions/FIRST.json";

/// What is in the configuration's place of the agent.
const NO_AGENT: &str = "#use = \"codex\"";

/// What is in the configuration's place of the verify command.
const NO_VERIFY: &str = "#verify_cmd = 'cargo test --quiet'";

/// What is in the configuration's place of the prefix of ids.
const NO_PREFIX: &str = "#prefix = \"gl\"";

/// What is in the configuration's place of the number of lanes.
const LANES: &str = "count = 2";

/// How many lanes that is.
const LANES_DEFAULT: u16 = 2;

/// Arguments of `premath init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The repository, or any folder in it; created if missing
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Set up the command line and the evidence of this agent
    #[arg(long, value_name = "AGENT", value_parser = crate::agents::named)]
    agent: Option<Agent>,
    /// Set the command that verifies the work
    #[arg(long, value_name = "CMD")]
    verify: Option<String>,
    /// Set the number of lanes [default: 2]
    #[arg(long, value_name = "N", value_parser = questions::lanes)]
    lanes: Option<u16>,
    /// Set the prefix of issue ids [default: from the name of the repository's folder]
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    id_prefix: Option<String>,
}

fn prefix(text: &str) -> Result<String, String> {
    prefix_fault(text).map_or_else(|| Ok(text.to_owned()), Err)
}

/// What was done, by name below the root.
#[derive(Debug, Default)]
struct Report {
    wrote: Vec<String>,
    left: Vec<(String, String)>,
    /// Whether names were added to `.git/info/exclude`.
    is_excluded: bool,
}

/// The answer of `premath init`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitAnswer {
    /// The files that were written or added to.
    wrote: Vec<String>,
    /// The files that were left as they are.
    left: Vec<LeftFile>,
    /// Whether git status skips what the harness keeps.
    git_exclude: bool,
}

/// A file that was left as it is.
#[derive(Debug, Serialize, JsonSchema)]
struct LeftFile {
    /// The file.
    path: String,
    /// The reason why the file is left unchanged.
    reason: String,
}

impl Report {
    fn leave(&mut self, name: &str, reason: impl Into<String>) {
        self.left.push((name.to_owned(), reason.into()));
    }
}

impl InitArgs {
    pub(crate) fn run(self, json: bool) -> Finished {
        let root = root(&self.dir);
        Finished::on("init", "path", root, |root| {
            let given = Choice {
                agent: self.agent,
                verify: self.verify,
                lanes: self.lanes,
                id_prefix: self.id_prefix,
            };
            let choice = match is_asked(root, json) {
                true => asked(root, given)?,
                false => given,
            };
            set_up(root, &self.dir, &choice)
        })
    }
}

/// Returns whether a person is asked: on a terminal, and of what is not set yet.
fn is_asked(root: &Path, json: bool) -> bool {
    let is_new = fs::symlink_metadata(root.join(CONFIG_NAME)).is_err();
    let is_person = io::stdin().is_terminal() && io::stderr().is_terminal();
    is_new && is_person && !json && !operator::is_inside_step()
}

fn asked(root: &Path, given: Choice) -> Result<Choice, CliError> {
    let is_installed = |agent: &&Agent| is_on_path(agent.spec().program);
    let proposal = Proposal {
        installed: Agent::ALL.iter().filter(is_installed).copied().collect(),
        verify: detect::verify_command(&|name| read_small(&root.join(name))),
        lanes: LANES_DEFAULT,
    };
    let (mut input, mut output) = (io::stdin().lock(), io::stderr().lock());
    ask(given, &proposal, &mut input, &mut output).map_err(failed("ask in", root))
}

/// Reads a file of the repository's root; `None` where there is none, or where
/// it is none that a project has.
fn read_small(path: &Path) -> Option<String> {
    const MOST: u64 = 1 << 20;
    let meta = fs::metadata(path).ok()?;
    let is_small = meta.is_file() && meta.len() <= MOST;
    is_small.then(|| fs::read_to_string(path).ok()).flatten()
}

/// The repository root that the folder belongs to: where every command looks.
fn root(dir: &Path) -> Result<PathBuf, CliError> {
    fs::create_dir_all(dir).map_err(failed("make", dir))?;
    refuse_git_folder_apart(dir)?;
    Ok(MemoryRoots::discover(dir)?.repository)
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CliError {
    let path = path.to_path_buf();
    move |source| CliError::File {
        operation,
        path,
        source,
    }
}

fn set_up(root: &Path, dir: &Path, choice: &Choice) -> Result<Answer, CliError> {
    let agent = choice.agent;
    let mut report = Report::default();
    let instruction = write_authority(root, agent, &mut report)?;
    write_config(root, &instruction, choice, &mut report)?;
    make_issue_memory(root, &mut report)?;
    add_tasks(root, &mut report)?;
    let is_git = main_worktree(root)?.is_some();
    report.is_excluded = is_git && exclude_from_status(root)?;
    let is_new = is_git && !has_commit(root)?;
    let unset = agent.and_then(|agent| unset(root, &instruction, agent, &report));
    let text = text(root, &report, choice, is_git, is_new);
    let ignored = ignored(choice, &report);
    let left = report.left.into_iter();
    let wrote: Vec<&str> = report.wrote.iter().map(String::as_str).collect();
    let unaccepted = accept_created(root, &wrote);
    let document = InitAnswer {
        wrote: report.wrote,
        left: left
            .map(|(path, reason)| LeftFile { path, reason })
            .collect(),
        git_exclude: is_git,
    };
    let answer = Answer::new(document, text).refused(unset.is_some());
    let answer = unaccepted.into_iter().fold(answer, |answer, error| {
        answer.note(format!(
            "warning: cannot record the files as accepted: {error}"
        ))
    });
    let answer = match unset {
        Some([note, hint]) => answer.note(note).note(hint),
        None => answer,
    };
    let answer = missing(agent).into_iter().fold(answer, Answer::note);
    let answer = ignored.into_iter().fold(answer, Answer::note);
    let asked = fs::canonicalize(dir).map_err(failed("find", dir))?;
    Ok(if asked == root {
        answer
    } else {
        answer.note(format!(
            "note: using the repository root {}",
            root.display()
        ))
    })
}

/// Says that an agent is not installed, and how to install it.
fn missing(agent: Option<Agent>) -> Option<String> {
    let spec = agent
        .filter(|agent| !is_on_path(agent.spec().program))?
        .spec();
    let install = spec.install_command();
    Some(format!(
        "warning: {} is not installed: install it with `{install}`",
        spec.program
    ))
}

/// Says what was given for a configuration that was there before.
fn ignored(choice: &Choice, report: &Report) -> Option<String> {
    if report.wrote.iter().any(|name| name == CONFIG_NAME) {
        return None;
    }
    let verify = choice.verify.as_ref().map(|command| {
        let command = toml::Value::from(command.as_str());
        format!("verify_cmd = {command} under [batch]")
    });
    let lanes = choice
        .lanes
        .map(|lanes| format!("count = {lanes} under [worktrees]"));
    let keys: Vec<String> = verify.into_iter().chain(lanes).collect();
    (!keys.is_empty()).then(|| {
        let keys = keys.join(" and ");
        format!("note: {CONFIG_NAME} already exists: set {keys} in that file")
    })
}

/// Says how to set an agent that the configuration does not name, where it was
/// there before and is left as it is.
fn unset(root: &Path, instruction: &str, agent: Agent, report: &Report) -> Option<[String; 2]> {
    if report.wrote.iter().any(|name| name == CONFIG_NAME) {
        return None;
    }
    let config = fs::read_to_string(root.join(CONFIG_NAME)).unwrap_or_default();
    let config: toml::Table = config.parse().unwrap_or_default();
    let named = match config.get("agent").and_then(|table| table.get("use")) {
        Some(toml::Value::String(list)) => {
            list.split(',').any(|name| name.trim() == agent.as_str())
        }
        Some(toml::Value::Array(list)) => list
            .iter()
            .any(|name| name.as_str() == Some(agent.as_str())),
        _ => false,
    };
    if named {
        return None;
    }
    let note = format!("agent not set: {CONFIG_NAME} already exists");
    let mut hint = format!(
        "hint: set use = \"{}\" under [agent] in that file",
        agent.as_str()
    );
    let envelope = fs::read(root.join(instruction)).unwrap_or_default();
    let envelope: Value = serde_json::from_slice(&envelope).unwrap_or_default();
    if envelope["normalizerId"] != AGENT_NORMALIZER {
        let command = update_command(AGENT_NORMALIZER);
        let _ = write!(hint, "; then run `{command}`");
    }
    Some([note, hint])
}

fn text(root: &Path, report: &Report, choice: &Choice, is_git: bool, is_new: bool) -> String {
    let mut text = format!("{}\n", plain(&root.display().to_string()));
    for name in &report.wrote {
        let _ = writeln!(text, "  wrote  {name}");
    }
    for (name, reason) in &report.left {
        let _ = writeln!(text, "  left   {name}: {}", plain(reason));
    }
    if report.is_excluded {
        text.push_str("added session, lock and stream files to .git/info/exclude\n");
    }
    if !is_git {
        text.push_str(
            "warning: not a git repository; lanes are git worktrees, so create one \
                      first\n",
        );
    }
    if report.wrote.iter().any(|name| name == CONFIG_NAME) {
        let commands: Vec<&str> = [
            ("work_cmd", choice.agent.is_none()),
            ("verify_cmd", choice.verify.is_none()),
        ]
        .into_iter()
        .filter_map(|(key, is_unset)| is_unset.then_some(key))
        .collect();
        let _ = match &*commands {
            [] => writeln!(text, "next: add issues with `premath issue add`,"),
            commands => writeln!(
                text,
                "next: set {} in harness.toml, add issues with `premath issue add`,",
                commands.join(" and ")
            ),
        };
        if is_git {
            text.push_str("commit these files (lanes are checkouts of committed files)");
            text.push_str(if is_new {
                "\n(this repository has no commit yet; lanes need one),\n"
            } else {
                ",\n"
            });
        }
        text.push_str("then run `harness-coordinator` or `mise run harness-coordinator-loop`\n");
    }
    text
}

fn write_config(
    root: &Path,
    instruction: &str,
    choice: &Choice,
    report: &mut Report,
) -> Result<(), CliError> {
    let mut config = CONFIG.replace(FIRST_INSTRUCTION, instruction);
    if let Some(agent) = choice.agent {
        config = config.replace(NO_AGENT, &format!("use = \"{}\"", agent.as_str()));
    }
    if let Some(command) = &choice.verify {
        let command = toml::Value::from(command.as_str());
        config = config.replace(NO_VERIFY, &format!("verify_cmd = {command}"));
    }
    if let Some(lanes) = choice.lanes {
        config = config.replace(LANES, &format!("count = {lanes}"));
    }
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    if let Some(prefix) = choice.id_prefix.clone().or_else(|| prefix_of(&name)) {
        config = config.replace(NO_PREFIX, &format!("prefix = \"{prefix}\""));
    }
    write_new(root, CONFIG_NAME, &config, report)
}

/// Writes the instruction policy, a first envelope under it and the turn policy,
/// and returns the envelope that a batch is to name, below the root.
///
/// Where there are envelopes already it is the last of them.
fn write_authority(
    root: &Path,
    agent: Option<Agent>,
    report: &mut Report,
) -> Result<String, CliError> {
    let text = InstructionPolicy::embedded_text();
    write_new(root, INSTRUCTION_POLICY_FILE, text, report)?;
    write_new(root, POLICY_PLACE, TurnPolicy::embedded_text(), report)?;
    if let Some(name) = last_envelope(&root.join("instructions")) {
        let name = format!("instructions/{name}");
        report.leave(&name, "already exists");
        return Ok(name);
    }
    let active = ActivePolicy::find(None, root)?;
    let mut envelope = instruction::first(&active, root);
    if agent.is_some() {
        AGENT_NORMALIZER.clone_into(&mut envelope.normalizer_id);
    }
    let (path, _) = instruction::write(root, instruction::FIRST_ID, &envelope)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("instructions/{name}");
    report.wrote.push(name.clone());
    Ok(name)
}

fn last_envelope(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".json") && name.bytes().all(is_bare))
        .max()
}

/// Returns whether a byte represents itself in a text of the configuration.
const fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'%')
}

fn write_new(root: &Path, name: &str, text: &str, report: &mut Report) -> Result<(), CliError> {
    let path = root.join(name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed("make", folder))?;
    }
    let opened = OpenOptions::new().write(true).create_new(true).open(&path);
    match opened {
        Ok(mut file) => {
            file.write_all(text.as_bytes())
                .map_err(failed("write", &path))?;
            report.wrote.push(name.to_owned());
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            report.leave(name, "already exists");
            Ok(())
        }
        Err(error) => Err(failed("create", &path)(error)),
    }
}

fn make_issue_memory(root: &Path, report: &mut Report) -> Result<(), CliError> {
    let path = MemoryRoots::at(root).issues;
    let name = ".premath/issues.jsonl";
    if fs::symlink_metadata(&path).is_ok() {
        report.leave(name, "already exists");
        return Ok(());
    }
    paths::open(&path, true)?;
    report.wrote.push(name.to_owned());
    Ok(())
}

fn add_tasks(root: &Path, report: &mut Report) -> Result<(), CliError> {
    let is_there = |name: &&str| fs::symlink_metadata(root.join(name)).is_ok();
    let there = mise::FILES.into_iter().find(is_there);
    let name = there.unwrap_or(mise::FILES[0]);
    let path = root.join(name);
    let text = match there {
        Some(_) => fs::read_to_string(&path).map_err(failed("read", &path))?,
        None => String::new(),
    };
    match mise::plan(&text) {
        mise::MisePlan::Complete => report.leave(name, "already has the tasks"),
        mise::MisePlan::LeaveAlone(reason) => report.leave(name, reason),
        mise::MisePlan::Append(added) => {
            let mut file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(&path)
                .map_err(failed("write", &path))?;
            file.write_all(added.as_bytes())
                .map_err(failed("write", &path))?;
            report.wrote.push(match there {
                Some(_) => format!("{name} (added the tasks)"),
                None => name.to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{CONFIG, FIRST_INSTRUCTION, LANES, NO_AGENT, NO_PREFIX, NO_VERIFY};

    #[test]
    fn the_template_sets_the_instruction_and_nothing_else() {
        let table: toml::Table = CONFIG.parse().unwrap();
        let set: Vec<_> = table
            .iter()
            .flat_map(|(section, keys)| {
                let keys = keys.as_table().unwrap().keys();
                keys.map(move |key| format!("{section}.{key}"))
            })
            .collect();
        assert_eq!(set, ["batch.instruction", "worktrees.count"]);
        assert_eq!(CONFIG.matches(FIRST_INSTRUCTION).count(), 1);
        assert_eq!(CONFIG.matches(NO_AGENT).count(), 1);
        assert_eq!(CONFIG.matches(NO_VERIFY).count(), 1);
        assert_eq!(CONFIG.matches(LANES).count(), 1);
        assert_eq!(CONFIG.matches(NO_PREFIX).count(), 1);
    }
}

//! Whether the tool calls of agents are checked before they run.

use super::{Sandbox, Settings, SettingsError, Workforce};
use premath_evidence::Agent;
use premath_kernel::policy::sandbox::SandboxMode;
use std::collections::BTreeSet;
use std::str::FromStr;

/// The `hooks` under `[agent]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookMode {
    /// Every call is checked before it runs; an agent that cannot be wired is
    /// refused.
    On,
    /// Calls are judged when the agent is done.
    Off,
}

impl FromStr for HookMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            other => Err(format!("invalid value `{other}`: expected `on` or `off`")),
        }
    }
}

impl Settings {
    /// Returns whether the hooks of an agent are wired into a command.
    pub(crate) fn hooked(&self, agent: Agent, command: &str) -> bool {
        self.hooks_of_agents && agent.spec().is_wireable(command)
    }

    /// Returns whether an agent whose work fails its verification is run again in
    /// its session.
    pub(crate) fn repairs(&self, agent: Agent, command: &str) -> bool {
        self.turn.stop().repair_rounds > 0 && agent.spec().is_resumable(command)
    }

    /// Returns whether the session of an agent is kept after its command ends.
    pub(crate) fn keeps_session(&self, agent: Agent, command: &str) -> bool {
        let is_resumed = self.resumes && agent.spec().is_resumable(command);
        is_resumed || self.repairs(agent, command)
    }

    /// Says in a line which agents repair work that fails its verification; nothing
    /// where no agent works, or none is asked to.
    pub fn describe_repair(&self) -> Option<String> {
        let rounds = self.turn.stop().repair_rounds;
        let agents = self.work.all();
        let agents = agents.filter_map(|work| Some((work.adapter.agent()?, &*work.command)));
        let (repairs, others): (Vec<_>, Vec<_>) =
            agents.partition(|(agent, command)| self.repairs(*agent, command));
        match (repairs.is_empty(), others.is_empty()) {
            _ if rounds == 0 => None,
            (true, true) => None,
            (false, _) => Some(format!(
                "work of {} that fails its verification is repaired in the same session, in at most \
                 {rounds} round(s)",
                names(&repairs)
            )),
            (true, false) => Some(format!(
                "work of {} that fails its verification is not repaired: its command line cannot \
                 resume a session",
                names(&others)
            )),
        }
    }

    /// Says in a line whether the tool calls of agents are checked before they run;
    /// nothing where no agent works.
    pub fn describe_hooks(&self) -> Option<String> {
        let agents = self.work.all();
        let agents = agents.filter_map(|work| Some((work.adapter.agent()?, &*work.command)));
        let (checked, unchecked): (Vec<_>, Vec<_>) =
            agents.partition(|(agent, command)| self.hooked(*agent, command));
        match (checked.is_empty(), unchecked.is_empty()) {
            (true, true) => None,
            (_, true) => Some(format!(
                "tool calls of {} are checked by the turn policy before they run",
                names(&checked)
            )),
            _ => Some(format!(
                "tool calls of {} are not checked before they run (`hooks` under [agent])",
                names(&unchecked)
            )),
        }
    }
}

/// Names agents, each once.
fn names(found: &[(Agent, &str)]) -> String {
    let names: BTreeSet<&str> = found.iter().map(|(agent, _)| agent.as_str()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Returns whether hooks are wired into agents that they can be wired into. Where
/// nothing is set they are, but for images, which may lack what the hook program
/// needs.
///
/// # Errors
///
/// They are demanded, and cannot be wired.
pub(super) fn are_on(
    mode: Option<HookMode>,
    work: &Workforce,
    sandbox: &Sandbox,
) -> Result<bool, SettingsError> {
    let is_container = sandbox.choice.mode == SandboxMode::Container;
    let refused = |detail: String| SettingsError::Value {
        name: "hooks under [agent]",
        detail,
    };
    match mode {
        Some(HookMode::Off) => return Ok(false),
        None => return Ok(!is_container),
        Some(HookMode::On) if is_container => {
            let detail = "an image may lack what the hook program needs; expected `off` with the \
                          sandbox mode `container`";
            return Err(refused(detail.to_owned()));
        }
        Some(HookMode::On) => {}
    }
    for work in work.all() {
        let wireable = |agent: Agent| agent.spec().is_wireable(&work.command);
        if !work.adapter.agent().is_some_and(wireable) {
            return Err(refused(format!(
                "hooks cannot be added to `{}`: expected the program of an agent first, and `< \
                 \"$PREMATH_PROMPT_FILE\"` at the end",
                work.command
            )));
        }
    }
    Ok(true)
}

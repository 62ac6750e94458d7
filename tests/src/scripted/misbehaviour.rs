//! What the scripted agent can be instructed to do.

use crate::agents::kit::kit;
use premath_evidence::Agent;
use std::fmt;
use std::str::FromStr;

/// What the agent does with an issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// It does what is asked for.
    None,
    /// It exits with an error after so many lines.
    Crash(u64),
    /// It is killed by a foreign signal, after so many lines.
    Kill(u64),
    /// It prints nothing and does not end.
    HangStart,
    /// A tool call of it does not end.
    HangTool,
    /// Its model does not answer.
    HangThink,
    /// As before, and it does not hear that it is to end.
    HangDeaf,
    /// It says that it is done, and does not end.
    HangAfter,
    /// It continues forever.
    Endless,
    /// It reports a result without a request.
    Orphan,
    /// It never reports the result of a call.
    Missing,
    /// It tells two calls by one id.
    Duplicate,
    /// Its last line is cut in the middle.
    Truncated,
    /// One of its lines is not JSON.
    Garbage,
    /// A command of it is reported to be over, and has no exit code.
    NullExit,
    /// It ends without its terminal event.
    NoTerminal,
    /// It says that it failed, and exits as if it had not.
    Failed,
    /// It prints some hundred megabytes.
    Huge,
    /// It leaves many processes behind, half of them in sessions of their own.
    Sleepers,
    /// Its provider refuses for so many seconds, which begin when the issue is
    /// worked on first.
    Limit(u64),
    /// It says that it did the work, and did nothing.
    WrongClaim,
    /// It says that it did the work, and did it wrong.
    WrongWork,
    /// It writes outside of its worktree.
    Escape,
    /// It closes another issue in issue memory by hand.
    Memory,
    /// It uses up a great many tokens.
    Budget,
}

impl Misbehaviour {
    /// One of each, as the table of misbehaviours goes through them.
    pub const TABLE: &'static [Self] = &[
        Self::None,
        Self::Crash(0),
        Self::Crash(3),
        Self::Kill(3),
        Self::HangStart,
        Self::HangTool,
        Self::HangThink,
        Self::HangDeaf,
        Self::HangAfter,
        Self::Endless,
        Self::Orphan,
        Self::Missing,
        Self::Duplicate,
        Self::Truncated,
        Self::Garbage,
        Self::NullExit,
        Self::NoTerminal,
        Self::Failed,
        Self::Huge,
        Self::Sleepers,
        Self::Limit(2),
        Self::WrongClaim,
        Self::WrongWork,
        Self::Escape,
        Self::Memory,
        Self::Budget,
    ];

    /// Returns why an agent's stream cannot say it, where it cannot.
    pub fn not_said_by(self, agent: Agent) -> Option<&'static str> {
        let Some(kit) = kit(agent) else {
            return Some("tests cannot play the agent");
        };
        let mut all = kit.not_said.iter();
        all.find(|(one, _)| *one == self).map(|(_, why)| *why)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::None => "ok",
            Self::Crash(_) => "crash",
            Self::Kill(_) => "kill",
            Self::HangStart => "hang-start",
            Self::HangTool => "hang-tool",
            Self::HangThink => "hang-think",
            Self::HangDeaf => "hang-deaf",
            Self::HangAfter => "hang-after",
            Self::Endless => "endless",
            Self::Orphan => "orphan",
            Self::Missing => "missing",
            Self::Duplicate => "duplicate",
            Self::Truncated => "truncated",
            Self::Garbage => "garbage",
            Self::NullExit => "null-exit",
            Self::NoTerminal => "no-terminal",
            Self::Failed => "failed",
            Self::Huge => "huge",
            Self::Sleepers => "sleepers",
            Self::Limit(_) => "limit",
            Self::WrongClaim => "wrong-claim",
            Self::WrongWork => "wrong-work",
            Self::Escape => "escape",
            Self::Memory => "memory",
            Self::Budget => "budget",
        }
    }

    const fn number(self) -> Option<u64> {
        match self {
            Self::Crash(number) | Self::Kill(number) | Self::Limit(number) => Some(number),
            _ => None,
        }
    }
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self.number() {
            Some(number) => write!(f, "-{number}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Misbehaviour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbered = text
            .rsplit_once('-')
            .and_then(|(word, number)| Some((word, number.parse().ok()?)));
        let found = match numbered {
            Some(("crash", number)) => Some(Self::Crash(number)),
            Some(("kill", number)) => Some(Self::Kill(number)),
            Some(("limit", number)) => Some(Self::Limit(number)),
            _ => {
                let mut plain = Self::TABLE.iter().filter(|one| one.number().is_none());
                plain.find(|one| one.word() == text).copied()
            }
        };
        found.ok_or_else(|| format!("`{text}` is nothing that the scripted agent can do"))
    }
}

/// What an issue's title asks for: a fault, and where `once` comes after it,
/// only at the first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptedTask {
    /// The fault.
    pub misbehaviour: Misbehaviour,
    /// Whether later attempts do what is asked for.
    pub once: bool,
}

impl ScriptedTask {
    /// Reads a title; an unknown title means good work.
    pub fn of_title(title: &str) -> Self {
        let mut words = title.split_whitespace();
        let first = words.next().and_then(|word| word.parse().ok());
        Self {
            misbehaviour: first.unwrap_or(Misbehaviour::None),
            once: words.next() == Some("once"),
        }
    }

    /// Returns what is done at an attempt, counted from 1.
    pub fn at(self, attempt: u64) -> Misbehaviour {
        match self.once && attempt > 1 {
            true => Misbehaviour::None,
            false => self.misbehaviour,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misbehaviour_reads_as_it_is_written() {
        for one in Misbehaviour::TABLE {
            assert_eq!(one.to_string().parse(), Ok(*one));
        }
        assert!("hang".parse::<Misbehaviour>().is_err());
        assert!("crash".parse::<Misbehaviour>().is_err());
    }

    #[test]
    fn a_title_asks_for_one_attempt_or_for_all() {
        let wish = ScriptedTask::of_title("hang-tool once, then well");
        assert_eq!(wish.at(1), Misbehaviour::HangTool);
        let once = ScriptedTask::of_title("crash-3 once");
        assert_eq!(
            (once.at(1), once.at(2)),
            (Misbehaviour::Crash(3), Misbehaviour::None)
        );
        assert_eq!(
            ScriptedTask::of_title("garbage").at(2),
            Misbehaviour::Garbage
        );
        assert_eq!(
            ScriptedTask::of_title("mend the roof").at(1),
            Misbehaviour::None
        );
    }
}

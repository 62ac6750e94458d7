//! What the agent does, beat by beat.

use super::beat::{Beat, Call, Deed, End};
use super::limit;
use super::misbehaviour::{Misbehaviour, ScriptedTask};
use super::voice::Voice;
use crate::agents::kit::kit;
use premath_evidence::Agent;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

/// How many processes are left behind, and as many again in sessions of their own.
const SLEEPERS: u32 = 30;

/// How much is printed by one that prints too much.
const HUGE_BYTES: usize = 400 << 20;

/// How often tokens are used up, and how many at a time.
const SPREES: u64 = 500;
const SPREE_TOKENS: u64 = 1_000_000;

/// Where the agent works, and its instructions.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Whose words it uses.
    pub agent: Agent,
    /// Its instructions.
    pub wish: ScriptedTask,
    /// Which attempt it is.
    pub attempt: u64,
    /// The issue.
    pub issue: String,
    /// Files outside of its worktree that it writes where it escapes.
    pub outside: Vec<PathBuf>,
    /// The issue that it closes by hand where it edits issue memory.
    pub victim: Option<String>,
    /// Where issue memory is.
    pub issues: Option<PathBuf>,
    /// Where it is written down which provider refuses.
    pub limits: Option<PathBuf>,
}

/// Follows the agent's instructions; returns its exit code.
///
/// # Errors
///
/// The output is closed, or the work cannot be done.
pub fn play(stage: &Stage) -> io::Result<ExitCode> {
    let unknown = || io::Error::other("tests cannot play the agent");
    let kit = kit(stage.agent).ok_or_else(unknown)?;
    // An attempt that was refused did not begin.
    let refusals = stage
        .limits
        .as_deref()
        .map(|folder| limit::refusals(folder, &stage.issue));
    let misbehaviour = stage
        .wish
        .at(stage.attempt.saturating_sub(refusals.unwrap_or_default()));
    if let Some(folder) = &stage.limits {
        if let Misbehaviour::Limit(seconds) = stage.wish.misbehaviour {
            limit::begin(folder, stage.agent, &stage.issue, seconds)?;
        }
        if let Some(until) = limit::refused_until(folder, stage.agent) {
            limit::refuse(folder, &stage.issue)?;
            let mut voice = Voice::new((kit.format)(), Misbehaviour::None);
            voice.say(&Beat::Begin)?;
            voice.say(&Beat::Refused(until))?;
            return Ok(ExitCode::FAILURE);
        }
    }
    if misbehaviour == Misbehaviour::HangStart {
        hang();
    }
    let mut voice = Voice::new((kit.format)(), misbehaviour);
    voice.say(&Beat::Begin)?;
    voice.say(&Beat::Say("I look."))?;
    let mut calls = Calls::default();
    look(&mut voice, &mut calls, misbehaviour)?;
    astray(&mut voice, &mut calls, stage, misbehaviour)?;
    work(&mut voice, &mut calls, stage, misbehaviour)?;
    voice.say(&Beat::Say("Done."))?;
    leave(&mut voice, misbehaviour)
}

/// Names calls.
#[derive(Default)]
struct Calls {
    made: u32,
}

impl Calls {
    fn command(&mut self, command: &str) -> Call {
        self.call(Deed::Command(command.to_owned()))
    }

    fn write(&mut self, path: &str, content: &str) -> Call {
        self.call(Deed::Write {
            path: path.to_owned(),
            content: content.to_owned(),
        })
    }

    fn call(&mut self, deed: Deed) -> Call {
        self.made += 1;
        Call {
            id: format!("call_{}", self.made),
            deed,
        }
    }
}

/// The first call, which changes nothing.
fn look(voice: &mut Voice, calls: &mut Calls, misbehaviour: Misbehaviour) -> io::Result<()> {
    let call = calls.command("ls");
    voice.say(&Beat::Call(&call))?;
    match misbehaviour {
        Misbehaviour::HangTool => hang(),
        Misbehaviour::Missing => return voice.say(&Beat::Lost),
        Misbehaviour::NullExit => return voice.say(&Beat::Done(&call, End::NoCode)),
        _ => {}
    }
    voice.say(&Beat::Done(&call, End::Ok("README.md\nsrc\n")))?;
    match misbehaviour {
        Misbehaviour::HangThink => hang(),
        Misbehaviour::HangDeaf => hang_deaf(),
        Misbehaviour::Endless => loop {
            voice.say(&Beat::Say("I look again."))?;
            std::thread::sleep(Duration::from_millis(50));
        },
        Misbehaviour::Garbage => voice.line("Segmentation fault (core dumped)"),
        Misbehaviour::Orphan => {
            let nobodys = calls.command("whoami");
            voice.say(&Beat::Done(&nobodys, End::Ok("root\n")))
        }
        Misbehaviour::Duplicate => {
            voice.say(&Beat::Call(&call))?;
            voice.say(&Beat::Done(&call, End::Ok("README.md\n")))
        }
        _ => Ok(()),
    }
}

/// Returns whether an agent reports what it used while it works.
fn reports_use_as_it_goes(agent: Agent) -> bool {
    kit(agent).is_some_and(|kit| kit.reports_use_as_it_goes)
}

/// What has nothing to do with the issue.
fn astray(
    voice: &mut Voice,
    calls: &mut Calls,
    stage: &Stage,
    misbehaviour: Misbehaviour,
) -> io::Result<()> {
    match misbehaviour {
        Misbehaviour::Escape => {
            for path in &stage.outside {
                let call = calls.write(&path.to_string_lossy(), "escaped\n");
                voice.say(&Beat::Call(&call))?;
                finish(voice, &call, fs::write(path, "escaped\n"))?;
            }
            Ok(())
        }
        Misbehaviour::Memory => {
            let call = calls.command("close another issue by hand");
            voice.say(&Beat::Call(&call))?;
            finish(voice, &call, close_by_hand(stage))
        }
        // The others tell it in one sum at the end.
        Misbehaviour::Budget if reports_use_as_it_goes(stage.agent) => {
            for spree in 1..=SPREES {
                // Each answer has its own figure, by which messages are
                // distinguished.
                voice.say(&Beat::Used(SPREE_TOKENS + spree))?;
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        }
        Misbehaviour::Huge => {
            let text = "x".repeat(64 << 10);
            let mut printed = 0;
            while printed < HUGE_BYTES {
                voice.say(&Beat::Say(&text))?;
                printed += text.len();
            }
            Ok(())
        }
        Misbehaviour::Sleepers => {
            let call = calls.command("sleepers");
            voice.say(&Beat::Call(&call))?;
            finish(voice, &call, sleepers())
        }
        _ => Ok(()),
    }
}

fn finish(voice: &mut Voice, call: &Call, done: io::Result<()>) -> io::Result<()> {
    match done {
        Ok(()) => voice.say(&Beat::Done(call, End::Ok(""))),
        Err(error) => voice.say(&Beat::Done(call, End::Error(&error.to_string()))),
    }
}

/// The work itself: a file that is named like the issue.
fn work(
    voice: &mut Voice,
    calls: &mut Calls,
    stage: &Stage,
    misbehaviour: Misbehaviour,
) -> io::Result<()> {
    let path = format!("{}.txt", stage.issue);
    let content = format!("{}\n", stage.issue);
    let call = calls.write(&path, &content);
    voice.say(&Beat::Call(&call))?;
    match misbehaviour {
        Misbehaviour::WrongClaim => {}
        Misbehaviour::WrongWork => fs::write(&path, "something else\n")?,
        _ => fs::write(&path, &content)?,
    }
    voice.say(&Beat::Done(&call, End::Ok("written")))
}

/// The end.
fn leave(voice: &mut Voice, misbehaviour: Misbehaviour) -> io::Result<ExitCode> {
    let tokens = match misbehaviour {
        Misbehaviour::Budget => SPREES * SPREE_TOKENS,
        _ => 100,
    };
    match misbehaviour {
        Misbehaviour::NoTerminal => {}
        Misbehaviour::Truncated => voice.say_half(&Beat::Finished(tokens))?,
        Misbehaviour::Failed => voice.say(&Beat::Failed("I could not do it"))?,
        _ => voice.say(&Beat::Finished(tokens))?,
    }
    if misbehaviour == Misbehaviour::HangAfter {
        hang();
    }
    Ok(ExitCode::SUCCESS)
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1_000));
    }
}

/// Hangs as a process that ignores the request to end.
fn hang_deaf() -> ! {
    let failed = crate::command("/bin/sh")
        .args(["-c", "trap '' TERM; exec sleep 100000"])
        .exec();
    panic!("there is no shell: {failed}");
}

/// Appends a row by which another issue is closed, past every lock and lease.
fn close_by_hand(stage: &Stage) -> io::Result<()> {
    let (Some(path), Some(victim)) = (&stage.issues, &stage.victim) else {
        return Err(io::Error::other("there is no issue memory"));
    };
    let rows = crate::last_rows(crate::parse_rows(&fs::read(path)?));
    let mut row = rows.get(victim).cloned();
    let row = row.as_mut().ok_or(io::ErrorKind::NotFound)?;
    row["status"] = "closed".into();
    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    file.write_all(format!("{row}\n").as_bytes())
}

/// Leaves processes behind that hold the agent's output open.
fn sleepers() -> io::Result<()> {
    let script = format!(
        "i=0; while [ $i -lt {SLEEPERS} ]; do sleep 100000 & setsid sleep 100000 & i=$((i+1)); done"
    );
    let ended = crate::command("/bin/sh")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .status()?;
    match ended.success() {
        true => Ok(()),
        false => Err(io::Error::other("the shell failed")),
    }
}

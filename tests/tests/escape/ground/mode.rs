//! The modes of confinement that the suite runs in.

use super::Ground;
use super::system::System;
use super::user::User;
use premath_tests::{Scratch, binaries, skipped};
use std::sync::OnceLock;

/// A list of modes to run; one that is named and does not work here fails.
const WANTED: &str = "PREMATH_ESCAPE_MODE";

/// What `--sandbox` takes of binaries that know no modes of ours.
const OLDER: &str = "PREMATH_ESCAPE_SANDBOX";

/// Returns what older binaries take for every mode; none where the binaries are
/// those of this commit.
pub(super) fn older() -> Option<String> {
    std::env::var(OLDER).ok()
}

/// A way of confining steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// User, mount, process and network namespaces.
    Namespaces,
    /// The kernel's Landlock.
    Landlock,
    /// Namespaces with the system folders of an image from podman.
    Container,
}

impl Mode {
    /// Returns the suite's name of the mode.
    const fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::Container => "container",
        }
    }

    /// Returns what `--sandbox` takes for it.
    pub(crate) fn value(self) -> String {
        older().unwrap_or_else(|| self.name().to_owned())
    }

    /// Returns whether the mode is to be run, and works here.
    fn is_run(self, attack: &str) -> bool {
        let test = format!("{attack} by {}", self.name());
        let wanted = std::env::var(WANTED).ok();
        let names = |wanted: &String| wanted.split(',').any(|name| name.trim() == self.name());
        let is_named = wanted.as_ref().is_some_and(names);
        if wanted.is_some() && !is_named {
            return false;
        }
        match self.works() {
            Ok(()) => true,
            Err(why) if is_named => panic!("{test}: {why}, and {WANTED} names it"),
            Err(why) => {
                skipped(&test, why);
                false
            }
        }
    }

    /// Reports what is in the mode's way here, tried once.
    fn works(self) -> Result<(), &'static str> {
        static TRIED: [OnceLock<Result<(), String>>; 3] = [const { OnceLock::new() }; 3];
        let tried = TRIED[self as usize].get_or_init(|| self.tried());
        tried.as_ref().copied().map_err(String::as_str)
    }

    fn tried(self) -> Result<(), String> {
        if self == Self::Container {
            if !is_known("container") {
                return Err("the harness has no such mode".to_owned());
            }
            System::get().as_ref().map_err(Clone::clone)?;
        }
        let ground = Ground::new(self);
        ground.write_issues();
        let ended = ground.harness().end();
        let refusal = |line: &&str| line.contains("does not work here");
        match ended.stderr.lines().find(refusal) {
            Some(refusal) => Err(refusal.to_owned()),
            None => {
                ended.exits(0);
                Ok(())
            }
        }
    }
}

/// Returns whether the harness knows a mode by a name.
fn is_known(name: &str) -> bool {
    static HELP: OnceLock<String> = OnceLock::new();
    let help = HELP.get_or_init(|| {
        let scratch = Scratch::new(0);
        scratch
            .run(&binaries().coordinator)
            .arg("--help")
            .end()
            .stdout
    });
    let sandbox = help.split("--sandbox").nth(1).unwrap_or_default();
    sandbox
        .split("\n\n")
        .next()
        .is_some_and(|text| text.contains(name))
}

/// What Landlock leaves open, by the end of the test's name: it restricts files
/// alone, and a step shares everything else with its user. `SECURITY.md` lists
/// it. Each is reported as skipped, with its reason.
const OPEN_IN_LANDLOCK: [(&str, &str); 4] = [
    ("a_terminal_of_the_users_is_written_to", TERMINALS),
    ("a_remote_by_network_is_not_pushed_to", NETWORK),
    ("objects_cannot_be_read", RIGHTS),
    ("a_lock_of_the_harnesss_is_not_held", LOCKS),
];

const TERMINALS: &str = "a limit of the mode: Landlock gives no terminals of a command's own";
const NETWORK: &str = "a limit of the mode: Landlock knows ports and no addresses";
const RIGHTS: &str = "a limit of the mode: Landlock does not restrict a change of rights";
const LOCKS: &str = "a limit of the mode: what may be read may be locked";

/// Says why an attack succeeds in a mode.
fn gap(mode: Mode, name: &str) -> Option<&'static str> {
    let known = OPEN_IN_LANDLOCK
        .iter()
        .find(|(end, _)| mode == Mode::Landlock && name.rsplit("::").next() == Some(*end));
    known.map(|(_, why)| *why)
}

/// Runs an attack in a mode, where that is asked for and works.
pub(crate) fn run(mode: Mode, name: &str, attack: fn(&mut Ground)) {
    if let Some(why) = gap(mode, name) {
        skipped(&format!("{name} by {}", mode.name()), why);
        return;
    }
    if mode.is_run(name) {
        let mut ground = Ground::new(mode);
        attack(&mut ground);
        ground.verdict(name);
    }
}

/// Returns whether signals and limits of this user's number reach this test's
/// processes alone.
pub(crate) fn is_alone(user: User, attack: &str) -> bool {
    if !user.is_own() {
        skipped(attack, "it needs a user of its own, which root can give it");
    }
    user.is_own()
}

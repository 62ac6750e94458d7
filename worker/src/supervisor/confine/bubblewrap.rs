//! Confinement by `bwrap`: the command sees the files as they are, read-only
//! but for a list, and in that list read-only again what it must not touch.

use crate::supervisor::CommandSpec;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = "bwrap";

/// What of root's power a command keeps, where the harness runs as root: that
/// over files and its own processes. With the rest it could mount its way out,
/// or go through a process outside.
const KEPT_BY_ROOT: [&str; 7] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
];

/// The options that come first: everything is there, and read-only. Its `/dev`
/// is a new one, with what a program needs of it.
fn first_options() -> Vec<OsString> {
    let mut options = vec!["--ro-bind", "/", "/", "--dev", "/dev"];
    if rustix::process::geteuid().is_root() {
        options.extend(["--cap-drop", "ALL"]);
        options.extend(KEPT_BY_ROOT.iter().flat_map(|name| ["--cap-add", *name]));
    }
    options.into_iter().map(OsString::from).collect()
}

/// Finds `bwrap`, and tries that it works for this user.
///
/// # Errors
///
/// What is in its way, in a few words.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the supervisor's module; the trial ends before any lane begins"
)]
pub fn find() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path)
        .map(|folder| folder.join(PROGRAM))
        .find(|program| program.is_absolute() && program.is_file())
        .ok_or_else(|| format!("`{PROGRAM}` is not installed"))?;
    let trial = Command::new(&program)
        .args(first_options())
        .args(["--", "/bin/sh", "-c", ":"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{PROGRAM}` cannot be started: {error}"))?;
    if trial.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&trial.stderr);
    let said = said.lines().next().unwrap_or("it says nothing").trim();
    Err(format!("`{PROGRAM}` does not work for this user: {said}"))
}

/// What a command sees that is not as everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// What may be written.
    pub writable: Vec<PathBuf>,
    /// What in it may not.
    pub read_only: Vec<PathBuf>,
    /// What in that may be written after all.
    pub reopened: Vec<PathBuf>,
}

impl View {
    /// Makes a command one that `bwrap` runs in this view.
    pub fn wrap(&self, program: &Path, spec: &mut CommandSpec) {
        let mut args = first_options();
        let layers = [
            ("--bind", &self.writable),
            ("--ro-bind", &self.read_only),
            ("--bind", &self.reopened),
        ];
        for (option, paths) in layers {
            for path in paths {
                if path.exists() && !path.starts_with("/dev") {
                    args.extend([option.into(), path.into(), path.into()]);
                }
            }
        }
        args.extend(["--chdir".into(), spec.cwd.clone().into(), "--".into()]);
        args.push(std::mem::replace(&mut spec.program, program.into()));
        args.append(&mut spec.args);
        spec.args = args;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::shell;

    #[test]
    fn a_command_is_wrapped_with_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let [open, shut] = ["open", "open/shut"].map(|name| folder.path().join(name));
        std::fs::create_dir_all(&shut).unwrap();
        let view = View {
            writable: vec![open.clone(), folder.path().join("gone"), "/dev/null".into()],
            read_only: vec![shut.clone()],
            reopened: Vec::new(),
        };
        let mut spec = shell("true");
        spec.cwd = open.clone();
        view.wrap(Path::new("/usr/bin/bwrap"), &mut spec);
        assert_eq!(spec.program, "/usr/bin/bwrap");
        let expected: Vec<OsString> = first_options()
            .into_iter()
            .chain(["--bind".into()])
            .chain([open.clone().into(), open.clone().into()])
            .chain(["--ro-bind".into(), shut.clone().into(), shut.into()])
            .chain(["--chdir".into(), open.into()])
            .chain(["--", "/bin/sh", "-c", "true"].map(OsString::from))
            .collect();
        assert_eq!(spec.args, expected);
    }
}

//! The binaries that are measured, and how they are run.

use crate::figure::{IS_DEBUG, Wrong};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The binaries, freshly built.
#[derive(Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Has cargo build them into the folder of this program.
    pub(crate) fn build() -> Result<Self, Wrong> {
        let here = std::env::current_exe()?;
        let folder = here.parent().map(Path::to_path_buf).unwrap_or_default();
        let target = folder.parent().unwrap_or(&folder);
        let built = premath_tests::cargo()
            .args(["build", "--quiet", "--locked", "--workspace"])
            .args((!IS_DEBUG).then_some("--release"))
            .args(["--bin", "harness-coordinator", "--bin", "premath"])
            .args(["--bin", "premath-hook"])
            .args([
                "--bin",
                "premath-bench-gate",
                "--bin",
                "premath-bench-stream",
            ])
            .arg("--target-dir")
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()?;
        if !built.success() {
            return Err(Wrong::because("the binaries were not built"));
        }
        Ok(Self { folder })
    }

    /// Returns the folder that they are in.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a command of one of them, without what the caller's environment
    /// would tell it.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = command(self.folder.join(name));
        for (variable, _) in std::env::vars_os() {
            let text = variable.to_string_lossy();
            if text.starts_with("PREMATH_") || text.starts_with("GIT_") {
                command.env_remove(&variable);
            }
        }
        command
    }
}

/// Makes a command that has no input.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "the benchmark plays the shell that runs the binaries"
    )]
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end; any but success is wrong.
pub(crate) fn run(command: &mut Command) -> Result<Output, Wrong> {
    exits(command, 0)
}

/// Runs a command to its end; any exit code but this one is wrong.
pub(crate) fn exits(command: &mut Command, code: i32) -> Result<Output, Wrong> {
    let output = command.output()?;
    if output.status.code() == Some(code) {
        return Ok(output);
    }
    Err(Wrong::because(format!(
        "{:?} ended with {}: {}",
        command.get_program(),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end()
    )))
}

//! The hook program on this machine.

use std::env;
use std::io;
use std::path::PathBuf;

/// The program's name, beside the binary that runs.
const NAME: &str = "premath-hook";

/// The program that agents are wired to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookProgram {
    /// Its file.
    pub(crate) file: PathBuf,
    /// The argument that makes it the hook program, where it is another binary.
    pub(crate) mode: Option<&'static str>,
}

impl HookProgram {
    /// Finds the program: the small binary beside the one that runs, which starts
    /// several times as fast, or the one that runs.
    ///
    /// # Errors
    ///
    /// The place of the binary that runs is not known.
    pub(crate) fn find() -> io::Result<Self> {
        let own = env::current_exe()?;
        let beside = own.with_file_name(NAME);
        Ok(match beside.is_file().then_some(beside) {
            Some(file) => Self { file, mode: None },
            None => Self {
                file: own,
                mode: Some(premath_hook::MODE),
            },
        })
    }
}

//! Wires the hooks of an agent into the command that starts it.

use super::{HookProgram, random_name};
use crate::sandbox::set;
use crate::supervisor::CommandSpec;
use premath_evidence::{Agent, HookPlace};
use std::fs;
use std::io;
use std::path::Path;

/// Where the things of the hooks are, as the command sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookSite<'a> {
    /// The hook program.
    pub(crate) program: &'a HookProgram,
    /// Its file.
    pub(crate) file: &'a Path,
    /// The socket.
    pub(crate) socket: &'a Path,
    /// The folder with the files of the wiring.
    pub(crate) folder: &'a Path,
}

/// Wires the hooks of an agent into its command; the files are put into `folder`.
///
/// # Errors
///
/// What the system says.
pub(crate) fn wire(
    agent: Agent,
    site: &HookSite<'_>,
    folder: &Path,
    spec: &mut CommandSpec,
) -> io::Result<()> {
    let name = format!("premath-{}", random_name()?);
    let wiring = (agent.spec().hooks.wiring)(&HookPlace {
        program: &site.file.to_string_lossy(),
        mode: site.program.mode,
        socket: &site.socket.to_string_lossy(),
        folder: &site.folder.to_string_lossy(),
        name: &name,
    });
    for file in &wiring.files {
        fs::write(folder.join(file.name), &file.content)?;
    }
    for (name, value) in &wiring.variables {
        set(spec, name, value);
    }
    if let Some(command) = spec.args.last_mut()
        && let Some(text) = command.to_str()
    {
        *command = agent.spec().with_arguments(text, &wiring.arguments).into();
    }
    Ok(())
}

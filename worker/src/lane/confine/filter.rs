//! How the operator's git filters are confined: like a command of a step, with
//! no folder of the step's and without network.

use super::{ConfineError, Confinement, DEVICES, SYSTEM};
use crate::batch::Batch;
use crate::sandbox::{HostAccess, PrivateHome, Scene, set, set_home};
use crate::supervisor::CommandSpec;
use crate::supervisor::confine::landlock::Lists;
use crate::supervisor::confine::namespaces::{CommandBounds, Loopback};
use crate::supervisor::confine::scratch::Scratch;
use premath_kernel::policy::sandbox::{SandboxMode, outermost};
use premath_worktree::tree::FilterRun;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How the filters of a lane are confined.
#[derive(Debug)]
pub(in crate::lane) struct FilterConfinement {
    mode: SandboxMode,
    host: HostAccess,
}

impl Confinement {
    /// Returns how the filters of the lane are confined.
    pub(in crate::lane) fn of_filters(&self) -> FilterConfinement {
        let mut host = self.host.clone();
        // No build tool runs.
        host.caches.clear();
        FilterConfinement {
            mode: self.mode,
            host,
        }
    }
}

impl FilterConfinement {
    /// Confines a run; returns its private folders.
    pub(in crate::lane) fn confine(
        &self,
        batch: &Batch,
        run: &FilterRun<'_>,
        spec: &mut CommandSpec,
    ) -> Result<Scratch, ConfineError> {
        let scratch = Scratch::make().map_err(ConfineError::Scratch)?;
        spec.scratch.push(scratch.path().to_path_buf());
        if self.mode == SandboxMode::None {
            return Ok(scratch);
        }
        let home = PrivateHome::make(scratch.path()).map_err(ConfineError::Scratch)?;
        let resources = &batch.settings.resources;
        spec.ceilings.memory = resources.memory;
        spec.ceilings.processes = resources.processes;
        spec.ceilings.disk = resources.disk;
        let mut written = home.written(0);
        written.push(run.folder.to_path_buf());
        spec.ceilings.measure(written.iter().map(PathBuf::as_path));
        if self.mode.has_view() {
            let scene = Scene {
                host: &self.host,
                wished: &BTreeSet::new(),
                open_home: None,
                folder: run.folder,
                at: run.folder,
                stack: None,
                seeds: Vec::new(),
                git: None,
                covered: Vec::new(),
                hidden: Vec::new(),
                emptied: Vec::new(),
                writable: Vec::new(),
                readable: run.readable.to_vec(),
            };
            let given = scene.give(&home, Some(Loopback::default()), resources, spec);
            given.map_err(ConfineError::Scratch)?;
        } else {
            self.open_by_landlock(run, &home, spec);
            spec.bounds = CommandBounds {
                processes: None,
                open_files: resources.open_files,
                file_bytes: resources.disk,
            };
        }
        for (name, value) in &self.host.variables {
            set(spec, name, value);
        }
        spec.env.sort();
        Ok(scratch)
    }

    fn open_by_landlock(&self, run: &FilterRun<'_>, home: &PrivateHome, spec: &mut CommandSpec) {
        set_home(spec, None, &home.home(), &home.temporary());
        let mut writable = vec![run.folder.to_path_buf(), home.home(), home.temporary()];
        writable.extend(DEVICES.map(PathBuf::from));
        let mut readable: Vec<PathBuf> = self.host.read.keys().cloned().collect();
        readable.extend(SYSTEM.map(PathBuf::from));
        readable.extend(run.readable.iter().cloned());
        let writable = outermost(writable);
        spec.lists = Some(Lists::new(
            writable.iter().map(PathBuf::as_path),
            readable.iter().map(Path::new),
        ));
    }
}

//! The transport to another repository on this machine.

use premath_kernel::canonical::{canonical_value, sha256_hex, value_of};
use premath_kernel::instruction::InstructionPolicy;
use premath_kernel::token::encode;
use premath_kernel::world::{
    Carried, DestinationGate, Judged, NotCarried, Transport, WORLD_FILE, WorldProfile,
};
use premath_memory::instruction::ActivePolicy;
use premath_memory::roots::MemoryRoots;
use premath_memory::{StoreError, artifact, projection};
use serde::Serialize;
use std::error::Error;
use std::path::Path;

/// The transport's id.
const TRANSPORT_ID: &str = "transport.local_root.v1";

/// The way to another repository; `Err` is why that is no world.
pub(super) struct LocalRoot<'a>(pub(super) &'a Result<LocalWorld, String>);

impl Transport for LocalRoot<'_> {
    fn id(&self) -> &str {
        TRANSPORT_ID
    }

    fn destination(&self) -> Result<&WorldProfile, &str> {
        match self.0 {
            Ok(world) => Ok(&world.profile),
            Err(detail) => Err(detail),
        }
    }

    fn deliver(&self, carried: Carried) -> Result<Judged, NotCarried> {
        match self.0 {
            Ok(world) => Ok(carried.judge(&DestinationGate {
                world: &world.profile,
                policy: &world.policy,
            })),
            Err(detail) => Err(carried.lost(detail.as_str())),
        }
    }
}

/// A repository as a world.
pub(super) struct LocalWorld {
    pub(super) roots: MemoryRoots,
    pub(super) profile: WorldProfile,
    pub(super) policy: InstructionPolicy,
}

impl LocalWorld {
    /// Finds the world that a folder belongs to.
    ///
    /// # Errors
    ///
    /// Why it is none, in a line.
    pub(super) fn find(folder: &Path) -> Result<Self, String> {
        if !folder.is_dir() {
            return Err(format!("{} is no folder", folder.display()));
        }
        let roots = MemoryRoots::discover(folder).map_err(|error| chain(&error))?;
        let path = roots.repository.join(WORLD_FILE);
        let bytes = match artifact::read(&path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(format!("there is no {}", path.display())),
            Err(error) => return Err(chain(&error)),
        };
        let profile = WorldProfile::parse(&bytes)
            .map_err(|error| format!("{}: {}", path.display(), chain(&error)))?;
        let active = ActivePolicy::find(None, &roots.repository).map_err(|error| chain(&error))?;
        Ok(Self {
            roots,
            profile,
            policy: active.policy,
        })
    }

    /// Writes a crossing's witness into the world; returns its reference.
    pub(super) fn keep(
        &self,
        step_id: &str,
        phase: &str,
        other: &str,
        witness: &impl Serialize,
    ) -> Result<String, StoreError> {
        let document = value_of(witness);
        let digest = sha256_hex(canonical_value(&document).as_bytes());
        // Two crossings of one step leave two files; a name too long for the
        // disk is its digest's.
        let mut stem = format!("{}.{}", encode(step_id), encode(other));
        if stem.len() > 160 {
            stem = sha256_hex(stem.as_bytes());
        }
        let name = format!("{stem}.{phase}-{}.json", &digest[..16]);
        projection::write_value(&self.roots.witnesses.join(name), &document)?;
        Ok(format!("ciwitness://{}/{phase}/{digest}", encode(step_id)))
    }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

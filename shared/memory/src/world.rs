//! The transport to another repository on this machine, and what a crossing
//! leaves in both.

use crate::cause::chain;
use crate::error::StoreError;
use crate::instruction::ActivePolicy;
use crate::projection;
use crate::roots::MemoryRoots;
use crate::untrusted::{SETTINGS_MAX, read_in_checkout};
use premath_kernel::authority::instruction::InstructionPolicy;
use premath_kernel::json::canonical::{canonical_value, sha256_hex, value_of};
use premath_kernel::json::id::StepId;
use premath_kernel::json::reference::RefSet;
use premath_kernel::json::token::encode;
use premath_kernel::record::world::{
    Carried, Crossing, DestinationGate, Judged, NotCarried, Transport, WORLD_FILE, WorkContext,
    WorldProfile, cross,
};
use serde::Serialize;
use std::path::Path;

/// The transport's id.
const TRANSPORT_ID: &str = "transport.local_root.v1";

/// The way to another repository; `Err` is why that is not a world.
#[derive(Debug)]
pub(crate) struct LocalRoot<'a>(pub &'a Result<LocalWorld, String>);

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
#[derive(Debug)]
pub struct LocalWorld {
    /// The places of the world's files.
    pub roots: MemoryRoots,
    /// What it reports about itself.
    pub profile: WorldProfile,
    /// The instruction policy that is active in it.
    pub policy: InstructionPolicy,
}

impl LocalWorld {
    /// Finds the world that a folder belongs to.
    ///
    /// # Errors
    ///
    /// Why it is none, in a line.
    pub fn find(folder: &Path) -> Result<Self, String> {
        if !folder.is_dir() {
            return Err(format!("{} is not a folder", folder.display()));
        }
        let roots = MemoryRoots::discover(folder).map_err(|error| chain(&error))?;
        let path = roots.repository.join(WORLD_FILE);
        let file = Path::new(WORLD_FILE);
        let bytes = match read_in_checkout(&roots.repository, file, SETTINGS_MAX) {
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
    fn keep(
        &self,
        step_id: &StepId,
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

/// Takes a turn from a repository to another one; a side that is not a world is
/// given with the reason.
pub fn cross_to(
    context: WorkContext,
    from: &Result<LocalWorld, String>,
    to: &Result<LocalWorld, String>,
) -> Crossing {
    let policy = from
        .as_ref()
        .map_or("", |world| world.policy.policy_digest());
    let source = from.as_ref().map(|world| &world.profile);
    cross(
        context,
        source.map_err(String::as_str),
        policy,
        &LocalRoot(to),
    )
}

/// Writes the outcome of a crossing: the transport's witness into the world
/// that the turn comes from, the gate's into both. Returns their references.
///
/// What has no world of its own to be kept in is kept by the caller.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn keep_crossing(
    crossing: &Crossing,
    from: &Result<LocalWorld, String>,
    to: &Result<LocalWorld, String>,
) -> Result<RefSet, StoreError> {
    let transport = &crossing.transport;
    let step = &transport.step_id;
    let there = transport.to_world.as_deref().unwrap_or("unknown");
    let here = transport.from_world.as_deref().unwrap_or("unknown");
    let mut references = RefSet::new();
    if let Ok(from) = from {
        references.insert(from.keep(step, "transport", there, transport)?);
    }
    if let Some(gate) = &crossing.gate {
        for world in [from, to].into_iter().flatten() {
            let other = if world.profile.world_id == there {
                here
            } else {
                there
            };
            references.insert(world.keep(step, "gate", other, gate)?);
        }
    }
    Ok(references)
}

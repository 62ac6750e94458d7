//! The seam: what a way to another world has to do.

use super::carry::{Carried, NotCarried};
use super::context::WorkContext;
use super::judge::{Crossing, Judged};
use super::profile::WorldProfile;

/// A way to another world: to a repository on this machine, and one day to
/// another machine.
///
/// It says what the other world is, and brings what was carried before that
/// world's own gate. The map between the two is the kernel's, and so is the
/// order.
pub trait Transport {
    /// Returns the transport's id, as in `transport.local_root.v1`.
    fn id(&self) -> &str;

    /// Returns what the other world reports about itself now.
    ///
    /// # Errors
    ///
    /// Why that cannot be had, in a line.
    fn destination(&self) -> Result<&WorldProfile, &str>;

    /// Brings a turn before the other world's gate.
    ///
    /// # Errors
    ///
    /// [`Carried::lost`] where it does not get there.
    fn deliver(&self, carried: Carried) -> Result<Judged, NotCarried>;
}

/// Takes a turn across: the transport maps, the destination's gate judges, and
/// what both said is there to be recorded (HARNESS-RUNTIME 1.2).
pub fn cross(
    context: WorkContext,
    from: Result<&WorldProfile, &str>,
    policy_digest: &str,
    transport: &impl Transport,
) -> Crossing {
    let carried = context.carry(transport.id(), from, transport.destination(), policy_digest);
    match carried.and_then(|carried| transport.deliver(carried)) {
        Ok(judged) => judged.into(),
        Err(lost) => lost.into(),
    }
}

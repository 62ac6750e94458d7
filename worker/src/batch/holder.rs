//! This process as a batch's holder, and the life of others.

use premath_kernel::issue::Holder;
use premath_kernel::record::trajectory::BatchHolder;
use premath_memory::clock;

/// Makes the record of who runs a batch.
pub(crate) fn batch_holder(holder: Option<&Holder>) -> BatchHolder {
    BatchHolder {
        host: clock::host_name().to_owned(),
        boot_id: holder.map_or_else(String::new, |holder| holder.boot_id.to_string()),
        pid: std::process::id(),
        started: holder.map_or(0, |holder| holder.started),
        pid_ns: holder.and_then(|holder| holder.pid_ns.as_deref().map(str::to_owned)),
    }
}

/// Returns whether a batch's coordinator may still run, as far as can be seen.
pub(super) fn is_alive(holder: &BatchHolder) -> bool {
    holder.may_live(clock::this_process().as_ref(), &clock::life)
}

//! The profile that the witnesses of a lane's commands refer to.

use super::{DEVICES, SYSTEM};
use crate::sandbox::HostAccess;
use crate::settings::Settings;
use premath_kernel::policy::sandbox::SandboxMode;
use premath_kernel::record::sandbox_profile::SandboxProfile;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Names of what is a lane's or a command's own, so that the profile is the
/// same in every lane and step.
const OWN: [&str; 5] = ["{worktree}", "{step}", "{git}", "{home}", "{temporary}"];

/// Writes down what commands may do.
pub(super) fn of(
    mode: SandboxMode,
    host: &HostAccess,
    wished: &BTreeSet<PathBuf>,
    settings: &Settings,
) -> SandboxProfile {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut write: BTreeSet<String> = wished.iter().map(|path| text(path)).collect();
    write.extend(OWN.map(str::to_owned));
    let mut read = BTreeSet::new();
    read.extend(host.read.keys().map(|path| text(path)));
    read.extend(host.caches.iter().map(|cache| text(&cache.folder)));
    if let Some(image) = &host.image {
        let entries = image.entries.iter();
        read.extend(entries.map(|entry| format!("{{image}}{}", text(entry.at()))));
        read.extend(image.names.iter().map(|(from, _)| text(from)));
    }
    if mode == SandboxMode::Landlock {
        write.extend(DEVICES.map(str::to_owned));
        read.extend(SYSTEM.map(str::to_owned));
    }
    let mut profile = SandboxProfile::new(mode, write, read, settings.network.choice);
    profile.image = settings.sandbox.choice.image.clone();
    profile
}

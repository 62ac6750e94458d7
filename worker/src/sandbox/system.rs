//! The folders of the operating system.

use super::{HostAccess, ReadReason};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Folders that programs are installed to and configured in.
const FOLDERS: [&str; 13] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    MACHINE,
];

/// What of them is a secret of the machine. An ordinary user cannot read most of
/// it either; root can.
const SECRETS: [&str; 9] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/krb5.keytab",
    "/etc/ssl/private",
    "/etc/NetworkManager/system-connections",
    "/etc/wireguard",
];

/// Where the keys of the machine are, by the start of their names.
const KEYS: (&str, &str) = ("/etc/ssh", "ssh_host_");

/// The part of the kernel's `/sys` that programs read for the number of
/// processors and their caches.
const MACHINE: &str = "/sys/devices/system";

/// By these files programs find hosts.
const NAMES: [&str; 2] = ["/etc/hosts", "/etc/resolv.conf"];

/// Returns whether a path is in a folder that belongs to the system.
pub(super) fn is_of_the_system(path: &Path) -> bool {
    FOLDERS.iter().any(|folder| path.starts_with(folder))
}

/// Adds what belongs to the machine where the rest of the system is an image's.
pub(super) fn add_machine(host: &mut HostAccess) {
    host.reads(Path::new(MACHINE), ReadReason::System);
}

/// Returns the files by which programs find hosts: where they are, and where
/// programs look for them.
pub(super) fn names() -> Vec<(PathBuf, PathBuf)> {
    let found = NAMES.iter().map(PathBuf::from).filter_map(|at| {
        let from = std::fs::canonicalize(&at).ok()?;
        from.is_file().then_some((from, at))
    });
    found.collect()
}

pub(super) fn add(host: &mut HostAccess) {
    for folder in FOLDERS.map(Path::new) {
        match std::fs::read_link(folder) {
            Ok(to) => {
                host.links.insert(folder.to_path_buf(), to);
            }
            Err(_) => host.reads(folder, ReadReason::System),
        }
    }
    // It is a link as a rule; the names of hosts stand where it leads.
    if let Ok(names) = std::fs::canonicalize("/etc/resolv.conf") {
        host.reads(&names, ReadReason::System);
    }
    let there = SECRETS.iter().map(PathBuf::from);
    host.hidden = there.filter(|path| path.exists()).collect();
    let (folder, start) = KEYS;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let keys = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    host.hidden.extend(keys.map(|entry| entry.path()));
    if rustix::process::geteuid().is_root() {
        let mut left = ENTRIES_MAX;
        shut(Path::new("/etc"), &mut left, &mut host.hidden);
    }
    host.hidden.retain(|path| !path.is_symlink());
    host.hidden.sort();
    host.hidden.dedup();
    // A name in a folder that is hidden is not there to be hidden.
    let hidden = host.hidden.clone();
    let is_below = |path: &PathBuf| {
        path.ancestors()
            .skip(1)
            .any(|above| hidden.contains(&above.to_path_buf()))
    };
    host.hidden.retain(|path| !is_below(path));
}

/// How many files are looked at.
const ENTRIES_MAX: usize = 20_000;

/// Finds what of a folder others than its owner and group may not read: root
/// reads it all the same.
fn shut(folder: &Path, left: &mut usize, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Some(less) = left.checked_sub(1) else {
            return;
        };
        *left = less;
        let Ok(meta) = entry.metadata() else { continue };
        let needed = if meta.is_dir() { 0o5 } else { 0o4 };
        if meta.is_symlink() {
            continue;
        }
        if meta.mode() & needed != needed {
            found.push(entry.path());
        } else if meta.is_dir() {
            shut(&entry.path(), left, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_others_may_not_read_is_shut() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, mode) in [("open", 0o755), ("closed", 0o750)] {
            fs::create_dir(at(name)).unwrap();
            for (file, mode) in [("public", 0o644), ("secret", 0o640)] {
                let file = at(name).join(file);
                fs::write(&file, "x").unwrap();
                fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
            }
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink("closed", at("link")).unwrap();
        let mut found = Vec::new();
        shut(folder.path(), &mut 100, &mut found);
        found.sort();
        assert_eq!(found, [at("closed"), at("open/secret")]);
    }
}

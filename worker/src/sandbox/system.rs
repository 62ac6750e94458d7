//! The folders of the operating system.

use super::{Host, Source};
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
    "/sys/devices/system",
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

pub(super) fn add(host: &mut Host) {
    for folder in FOLDERS.map(Path::new) {
        match std::fs::read_link(folder) {
            Ok(to) => {
                host.links.insert(folder.to_path_buf(), to);
            }
            Err(_) => host.reads(folder, Source::System),
        }
    }
    // It is a link as a rule; the names of hosts stand where it leads.
    if let Ok(names) = std::fs::canonicalize("/etc/resolv.conf") {
        host.reads(&names, Source::System);
    }
    let there = SECRETS.iter().map(PathBuf::from);
    host.hidden = there.filter(|path| path.exists()).collect();
    let (folder, start) = KEYS;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let keys = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    host.hidden.extend(keys.map(|entry| entry.path()));
    host.hidden.retain(|path| !path.is_symlink());
    host.hidden.sort();
}

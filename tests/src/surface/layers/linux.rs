//! What only Linux has is used in few places, so that a port knows what to
//! write.

use super::super::{Fault, files, text_of};
use super::CRATES;
use std::path::Path;

/// Where it may be used: the interface, and the confinement of commands.
const PLACES: [&str; 3] = [
    "shared/platform/src/",
    "worker/src/supervisor/confine/",
    "worker/src/supervisor/usage/",
];

/// Names that are allowed in a file, with the reason.
const ALLOWED: [(&str, &str, &str); 2] = [
    (
        "worker/src/lane/confine/mod.rs",
        "\"/proc\"",
        "a confined command may read it; it is not opened here",
    ),
    (
        "worker/src/sandbox/words.rs",
        "\"/proc\"",
        "a command line may name it; it is not opened here",
    ),
];

/// Names of calls, types and files that other systems do not have.
const NAMES: [&str; 27] = [
    "\"/proc\"",
    "\"/proc/",
    "IFlags",
    "MemfdFlags",
    "MountFlags",
    "OFlags::PATH",
    "PidfdFlags",
    "RawDir",
    "RenameFlags",
    "ResolveFlags",
    "StatxFlags",
    "Statx",
    "inotify",
    "ioctl_getflags",
    "ioctl_setflags",
    "memfd_create",
    "openat2",
    "pidfd_open",
    "prctl",
    "prlimit",
    "seccompiler",
    "set_child_subreaper",
    "setns",
    "statfs",
    "sysinfo",
    "thread::set_name",
    "unshare",
];

/// Reports every use elsewhere, code of tests left out.
pub(super) fn faults(root: &Path, found: &mut Vec<Fault>) {
    let is_checked = |name: &String| {
        let is_source = CRATES.iter().any(|folder| name.starts_with(folder));
        let is_test = name.split('/').any(|part| part.starts_with("tests"));
        let is_place = PLACES.iter().any(|place| name.starts_with(place));
        is_source && name.ends_with(".rs") && !is_test && !is_place
    };
    for name in files(root).iter().filter(|name| is_checked(name)) {
        let text = text_of(root, name);
        let code = text.split("#[cfg(test)]\nmod tests").next();
        for (number, line) in (1..).zip(code.unwrap_or_default().lines()) {
            let line = line.split("//").next().unwrap_or_default();
            let mut words = NAMES.iter().filter(|word| holds(line, word));
            if let Some(word) = words.find(|word| !is_allowed(name, word)) {
                let detail = format!("`{word}` is of Linux alone: add it to shared/platform");
                found.push(Fault::at(name, number, detail));
            }
        }
    }
}

fn is_allowed(file: &str, name: &str) -> bool {
    let mut allowed = ALLOWED.iter();
    allowed.any(|(place, word, _)| (*place, *word) == (file, name))
}

/// Returns whether a line has a name that is not part of a longer one.
fn holds(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line
            .get(at + name.len()..)
            .and_then(|text| text.chars().next());
        name.starts_with('"') || (!before.is_some_and(is_part) && !after.is_some_and(is_part))
    })
}

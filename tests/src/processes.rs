//! Processes that belong to a folder.

use std::fs;
use std::path::Path;

/// Returns the processes whose environment, arguments or working directory
/// name the folder: what a scratch started and what that started.
pub fn processes_in(folder: &Path) -> Vec<String> {
    let needle = folder.as_os_str().as_encoded_bytes();
    let names = |bytes: &[u8]| bytes.windows(needle.len()).any(|part| part == needle);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc is there").flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else {
            continue;
        };
        let of = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let arguments = of("cmdline");
        let belongs = names(&of("environ"))
            || names(&arguments)
            || fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        // What is dead and not yet reaped by its parent runs no more.
        let dead = is_dead(&of("stat"));
        if belongs && !dead {
            let arguments = String::from_utf8_lossy(&arguments).replace('\0', " ");
            found.push(format!("{pid} {}", arguments.trim_end()));
        }
    }
    found
}

fn is_dead(stat: &[u8]) -> bool {
    let text = String::from_utf8_lossy(stat);
    match text.rsplit_once(')') {
        Some((_, rest)) => matches!(rest.trim_start().chars().next(), Some('Z' | 'X')),
        None => true,
    }
}

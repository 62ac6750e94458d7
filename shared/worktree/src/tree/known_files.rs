//! Which tracked files are as the index knows them, looked at by several threads
//! where there are many.

use super::beneath::{Beneath, kind};
use super::descent::Descent;
use super::files::{is_as_known, is_left_out};
use crate::mode::{SUBMODULE, is_kind};
use git2::IndexEntry;
use rustix::fs::FileType;
use std::sync::Mutex;
use std::thread;

/// How many files make a thread of their own worth its start.
const SHARE: usize = 2_000;
/// More threads would mostly wait for each other in the kernel.
const THREADS_MAX: usize = 8;
/// How many folders deep a file may lie. A thread holds a descriptor for each of them:
/// without a bound a step's index could use up those of the process.
const FOLDERS_MAX: usize = 32;
/// Held by the look that has threads. Several at once would gain nothing, and could
/// together use up the descriptors of the process.
static THREADS: Mutex<()> = Mutex::new(());

/// Returns for each entry of an index whether its file is certainly as the index knows
/// it, and has one name. The caller looks at the others. Where one thread is as fast, all
/// are `false`; so they are while another look has threads.
///
/// `written` is when the index was modified.
pub(super) fn known_files(
    root: &Beneath,
    entries: &[IndexEntry],
    written: Option<(i64, u64)>,
) -> Vec<bool> {
    let mut known = vec![false; entries.len()];
    let threads = threads_for(entries.len());
    if threads < 2 {
        return known;
    }
    let Ok(_threads) = THREADS.try_lock() else {
        return known;
    };
    let share = entries.len().div_ceil(threads);
    thread::scope(|scope| {
        let mut shares = entries.chunks(share).zip(known.chunks_mut(share));
        let own = shares.next();
        for (entries, known) in shares {
            let look = move || look_at(root, entries, written, known);
            // Where no thread can be started the caller looks at these.
            let _ = thread::Builder::new().spawn_scoped(scope, look);
        }
        if let Some((entries, known)) = own {
            look_at(root, entries, written, known);
        }
    });
    known
}

fn threads_for(files: usize) -> usize {
    let most = files / SHARE;
    if most < 2 {
        return 1;
    }
    let processors = thread::available_parallelism().map_or(1, usize::from);
    most.min(processors).min(THREADS_MAX)
}

fn look_at(
    root: &Beneath,
    entries: &[IndexEntry],
    written: Option<(i64, u64)>,
    known: &mut [bool],
) {
    let Ok(root) = root.folder() else {
        return;
    };
    let mut descent = Descent::new(root);
    for (entry, known) in entries.iter().zip(known) {
        let folders = entry.path.iter().filter(|byte| **byte == b'/').count();
        if is_left_out(entry) || is_kind(entry.mode, SUBMODULE) || folders > FOLDERS_MAX {
            continue;
        }
        if let Ok(Some(stat)) = descent.look(&entry.path) {
            let is_linked = stat.st_nlink > 1 && kind(&stat) == FileType::RegularFile;
            *known = !is_linked && is_as_known(entry, &stat, written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::beneath::path;
    use super::super::scan::index_entry;
    use super::*;
    use git2::{IndexEntryExtendedFlag, Oid};
    use rustix::fs::lstat;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Later than any file is modified.
    const WRITTEN: Option<(i64, u64)> = Some((i64::MAX, 0));

    #[test]
    fn only_what_is_as_the_index_knows_it_is_known_whichever_thread_looks() {
        const FOLDERS: usize = 8;
        const FILES: usize = 1_000;
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let entry = |name: &str| {
            let leaf = (0o100_644, Oid::ZERO_SHA1);
            index_entry(name.as_bytes(), leaf, &lstat(at(name)).unwrap())
        };
        let mut entries = Vec::new();
        for number in 0..FOLDERS {
            fs::create_dir(at(&format!("{number}"))).unwrap();
            for file in 0..FILES {
                let name = format!("{number}/{file:04}");
                fs::write(at(&name), "content").unwrap();
                entries.push(entry(&name));
            }
        }
        let skipped = IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
        entries[5].flags_extended |= skipped;
        let deep = format!("6/{}file", "d/".repeat(FOLDERS_MAX));
        fs::create_dir_all(at(&deep).parent().unwrap()).unwrap();
        fs::rename(at("6/0000"), at(&deep)).unwrap();
        entries[6 * FILES] = entry(&deep);
        fs::remove_file(at("0/0010")).unwrap();
        fs::write(at("3/0999"), "longer content").unwrap();
        fs::hard_link(at("4/0000"), at("another")).unwrap();
        fs::remove_file(at("7/0999")).unwrap();
        symlink("0998", at("7/0999")).unwrap();
        fs::rename(at("5"), at("moved")).unwrap();
        symlink("moved", at("5")).unwrap();

        let beneath = Beneath::open(root.path()).unwrap();
        // Another test may have the threads.
        let threads = THREADS.lock().unwrap();
        assert!(!known_files(&beneath, &entries, WRITTEN).contains(&true));
        drop(threads);
        let mut known = known_files(&beneath, &entries, WRITTEN);
        while threads_for(entries.len()) > 1 && !known.contains(&true) {
            known = known_files(&beneath, &entries, WRITTEN);
        }
        assert_eq!(known.len(), entries.len());
        if threads_for(entries.len()) < 2 {
            assert!(!known.contains(&true));
            return;
        }
        for (entry, known) in entries.iter().zip(known) {
            let name = path(&entry.path).to_str().unwrap();
            let others = ["0/0005", "0/0010", "3/0999", "4/0000", &deep, "7/0999"];
            let is_expected = !others.contains(&name) && !name.starts_with("5/");
            assert_eq!(known, is_expected, "{name}");
        }
        // Nothing is certain of what may have changed after the index was written.
        assert!(!known_files(&beneath, &entries, Some((0, 0))).contains(&true));
        assert!(!known_files(&beneath, &entries[..100], WRITTEN).contains(&true));
    }
}

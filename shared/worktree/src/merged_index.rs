//! The index that a merge of libgit2 leaves.

use git2::Index;
use std::collections::BTreeSet;

/// Returns the paths that do not go together, sorted: those that conflict, and each
/// file at whose path others have a folder, with what is in it. libgit2 reports no
/// conflict where one side puts a file in the place of a folder and the other one adds
/// to the folder, and a tree that is written from such an index lacks the file.
pub(crate) fn clashes(index: &Index) -> Result<BTreeSet<String>, git2::Error> {
    let mut clashes = BTreeSet::new();
    let mut note = |path: &[u8]| {
        clashes.insert(String::from_utf8_lossy(path).into_owned());
    };
    if index.has_conflicts() {
        for conflict in index.conflicts()? {
            let conflict = conflict?;
            let sides = [conflict.ancestor, conflict.our, conflict.their];
            sides.iter().flatten().for_each(|entry| note(&entry.path));
        }
    }
    // The entries are sorted by their bytes: what begins with a path follows it, though
    // not at once.
    let mut begun: Vec<Vec<u8>> = Vec::new();
    for entry in index.iter() {
        let is_begun = |path: &Vec<u8>| entry.path.starts_with(path);
        while begun.last().is_some_and(|path| !is_begun(path)) {
            begun.pop();
        }
        for file in &begun {
            if entry.path[file.len()..].starts_with(b"/") {
                note(file);
                note(&entry.path);
            }
        }
        begun.push(entry.path);
    }
    Ok(clashes)
}

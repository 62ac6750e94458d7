//! What a tree may hold that was made of a step's files, said a second time
//! and without the rules that are tested.

use git2::{ObjectType, Oid, Repository, Tree};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many links are followed, one through the other.
const HOPS_MAX: u32 = 40;

/// Checks each entry of a tree, and those below it.
pub fn is_fit(git: &Repository, tree: &str) {
    let tree = Oid::from_str(tree).expect("a tree has a name");
    let root = git.find_tree(tree).expect("every tree is stored");
    let mut all = All { git, root: &root };
    all.check(&root, &mut Vec::new());
}

/// A whole tree, in which links are followed.
struct All<'a> {
    git: &'a Repository,
    root: &'a Tree<'a>,
}

impl All<'_> {
    fn check(&mut self, tree: &Tree<'_>, place: &mut Vec<Vec<u8>>) {
        assert!(place.len() < 256, "folders are nested too deep");
        for entry in tree {
            let name = entry.name_bytes();
            assert!(is_fit_name(name), "{:?}", String::from_utf8_lossy(name));
            assert!(!place.is_empty() || !is_ours(name), "ours is taken");
            match (entry.filemode(), entry.kind()) {
                (0o040_000, Some(ObjectType::Tree)) => {
                    let below = self
                        .git
                        .find_tree(entry.id())
                        .expect("every tree is stored");
                    place.push(name.to_vec());
                    self.check(&below, place);
                    place.pop();
                }
                (0o100_644 | 0o100_755, Some(ObjectType::Blob)) => {
                    self.git
                        .find_blob(entry.id())
                        .expect("every file is stored");
                }
                (0o120_000, Some(ObjectType::Blob)) => {
                    let link = self
                        .git
                        .find_blob(entry.id())
                        .expect("every link is stored");
                    let mut at = place.clone();
                    let stays = self.follow(&mut at, link.content(), &mut 0);
                    let target = String::from_utf8_lossy(link.content()).into_owned();
                    assert!(stays, "a link leads out: {place:?} {target:?}");
                    assert!(!at.iter().any(|part| !is_fit_name(part)), "{target:?}");
                    assert!(!at.first().is_some_and(|part| is_ours(part)), "{target:?}");
                }
                (mode, kind) => panic!("an entry is {mode:o}, {kind:?}"),
            }
        }
    }

    /// Goes where a link leads from a folder, by way of other links, as a
    /// checkout would; returns whether that stays in it.
    fn follow(&self, place: &mut Vec<Vec<u8>>, target: &[u8], hops: &mut u32) -> bool {
        if target.first() == Some(&b'/') {
            return false;
        }
        for part in target.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => continue,
                b".." if place.pop().is_none() => return false,
                b".." => continue,
                name => place.push(name.to_vec()),
            }
            let path = place.join(&b'/');
            let entry = self.root.get_path(Path::new(OsStr::from_bytes(&path))).ok();
            let Some(entry) = entry.filter(|entry| entry.filemode() == 0o120_000) else {
                continue;
            };
            *hops += 1;
            if *hops > HOPS_MAX {
                // A loop leads nowhere.
                return true;
            }
            let link = self
                .git
                .find_blob(entry.id())
                .expect("every link is stored");
            place.pop();
            if !self.follow(place, link.content(), hops) {
                return false;
            }
        }
        true
    }
}

/// Folders of the harness in a checkout.
fn is_ours(name: &[u8]) -> bool {
    name == b".premath" || name == b"artifacts"
}

/// No name that a file system takes for `.git`, or for a way out.
fn is_fit_name(name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(name).to_lowercase();
    let seen: String = text
        .chars()
        .filter(|c| !matches!(*c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'))
        .collect();
    let is_git = |part: &str| {
        let part = part.split(':').next().unwrap_or_default();
        let part = part.trim_end_matches([' ', '.']);
        part == ".git" || part == "git~1"
    };
    !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.contains(&b'/')
        && !name.contains(&0)
        && !seen.split('\\').any(is_git)
}

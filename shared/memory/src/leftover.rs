//! What the harness leaves in its folders and grows old: torn lines, temporary
//! files, the files of a step, the output of commands.
//!
//! Listings only look. What cannot be looked at is skipped: it belongs to a
//! user with more rights.

use crate::artifact;
use crate::error::StoreError;
use crate::lock::CacheLock;
use crate::roots::{LaneRoots, MemoryRoots};
use jiff::Timestamp;
use premath_kernel::issue::lease::Life;
use premath_kernel::policy::inventory::{CachedImage, LeftFile, LeftKind, StepOutput};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A lane's worktree, as far as its files are concerned.
#[derive(Clone, Copy, Debug)]
pub struct LaneWorktree<'a> {
    /// The worktree.
    pub worktree: &'a Path,
    /// Whether a step is under way in it, or was cut.
    pub under_way: bool,
}

/// Lists torn lines, temporary files and the files of steps, by path.
///
/// `further` are folders beside ours in which files are written by rename.
pub fn files(
    roots: &MemoryRoots,
    lanes: &[LaneWorktree<'_>],
    further: &[PathBuf],
) -> Vec<LeftFile> {
    let mut folders: Vec<PathBuf> = [&roots.issues, &roots.trajectory, &roots.observation]
        .into_iter()
        .filter_map(|path| path.parent())
        .map(Path::to_path_buf)
        .collect();
    folders.extend([
        roots.witnesses.clone(),
        roots.streams.clone(),
        roots.reports.clone(),
    ]);
    folders.extend_from_slice(further);
    let mut found = Vec::new();
    for lane in lanes {
        let roots = LaneRoots::at(lane.worktree);
        folders.extend(roots.session.parent().map(Path::to_path_buf));
        if fs::symlink_metadata(&roots.step).is_ok() {
            let kind = LeftKind::Step {
                under_way: lane.under_way,
            };
            found.extend(left(roots.step, kind));
        }
    }
    folders.sort();
    folders.dedup();
    for folder in folders {
        for entry in entries(&folder) {
            let name = entry.file_name();
            let kind = if let Some(life) = artifact::maker_of(&name) {
                let maker_lives = life == Life::Alive;
                LeftKind::Temporary { maker_lives }
            } else if is_torn(&name.to_string_lossy()) {
                LeftKind::Torn
            } else {
                continue;
            };
            found.extend(left(entry.path(), kind));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Lists what the commands of steps printed, by step.
pub fn outputs(roots: &MemoryRoots) -> Vec<StepOutput> {
    let mut steps: BTreeMap<String, StepOutput> = BTreeMap::new();
    for entry in entries(&roots.streams) {
        let name = entry.file_name().to_string_lossy().into_owned();
        // `<step>.<phase>.<stream>`
        let Some((step, _)) = name
            .strip_suffix(".stdout")
            .or_else(|| name.strip_suffix(".stdout.gz"))
            .or_else(|| name.strip_suffix(".stderr"))
            .or_else(|| name.strip_suffix(".prompt"))
            .and_then(|stem| stem.rsplit_once('.'))
        else {
            continue;
        };
        let Some((at, bytes)) = look(&entry.path()) else {
            continue;
        };
        let output = steps.entry(step.to_owned()).or_insert_with(|| StepOutput {
            step: step.to_owned(),
            files: Vec::new(),
            at,
            bytes: 0,
        });
        output.files.push(entry.path());
        output.at = output.at.max(at);
        output.bytes += bytes;
    }
    let mut outputs: Vec<StepOutput> = steps.into_values().collect();
    for output in &mut outputs {
        output.files.sort();
    }
    outputs
}

/// Lists the container images that were unpacked to a folder, by id.
pub fn images(cache: &Path) -> Vec<CachedImage> {
    let Ok(cache) = fs::canonicalize(cache) else {
        return Vec::new();
    };
    let mut folders: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for entry in entries(&cache) {
        let name = entry.file_name().to_string_lossy().into_owned();
        // One that a killed process was filling.
        let id = name.strip_suffix(UNFINISHED).unwrap_or(&name);
        if is_image_id(id) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            folders.entry(id.to_owned()).or_default().push(entry.path());
        }
    }
    let image = |(id, mut folders): (String, Vec<PathBuf>)| {
        folders.sort();
        let lock = cache.join(format!("{id}.flock"));
        let written = |path: &PathBuf| fs::symlink_metadata(path).ok()?.modified().ok();
        let used = written(&lock).or_else(|| folders.iter().filter_map(written).max())?;
        Some(CachedImage {
            is_used: !matches!(CacheLock::try_acquire(&lock), Ok(Some(_))),
            at: Timestamp::try_from(used).ok()?,
            bytes: folders.iter().map(|folder| size(folder)).sum(),
            id,
            folders,
            lock,
        })
    };
    folders.into_iter().filter_map(image).collect()
}

/// The end of the name of an image that is not whole.
const UNFINISHED: &str = ".new";

/// Returns whether a name is the digest that images are kept by.
fn is_image_id(name: &str) -> bool {
    name.len() == 64
        && name
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the size of a file, or of all files below a folder, in bytes; links
/// are not followed.
pub fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => entries(path).map(|entry| size(&entry.path())).sum(),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    }
}

/// Refuses the files of authority and trajectory, which no clean-up removes.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn refuse_locked(path: &Path) -> Result<(), StoreError> {
    artifact::refuse_locked(path)
}

/// `issues.jsonl.torn-<time>` and the like.
fn is_torn(name: &str) -> bool {
    name.split_once(".jsonl.torn-")
        .is_some_and(|(_, time)| !time.is_empty() && time.bytes().all(|b| b.is_ascii_digit()))
}

fn left(path: PathBuf, kind: LeftKind) -> Option<LeftFile> {
    let (at, bytes) = look(&path)?;
    Some(LeftFile {
        path,
        kind,
        at,
        bytes,
    })
}

/// Returns when a file or folder was last written, and its size.
fn look(path: &Path) -> Option<(Timestamp, u64)> {
    let modified = fs::symlink_metadata(path).ok()?.modified().ok()?;
    Some((Timestamp::try_from(modified).ok()?, size(path)))
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_is_listed_by_path_and_by_step() {
        let folder = tempfile::tempdir().unwrap();
        let roots = MemoryRoots::at(folder.path());
        let lane = folder.path().join("lane");
        for (path, text) in [
            (".premath/issues.jsonl", "{}"),
            (".premath/issues.jsonl.torn-17", "{"),
            (".premath/issues.jsonl.torn-x", "mine"),
            (".premath/.premath-tmp-4194300-1-0", "abc"),
            ("artifacts/streams/w.a.1.work.stdout", "12"),
            ("artifacts/streams/w.a.1.work.stderr", "3"),
            ("artifacts/streams/w.a.10.work.stderr", ""),
            ("artifacts/streams/w.a.10.work.stdout.gz", "gz"),
            ("artifacts/streams/w.a.10.work.prompt", "do"),
            ("artifacts/streams/mine.txt", ""),
            ("lane/.premath/step/prompt.md", "four"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let lanes = [LaneWorktree {
            worktree: &lane,
            under_way: false,
        }];
        let found: Vec<_> = files(&roots, &lanes, &[])
            .into_iter()
            .map(|file| {
                let path = file.path.strip_prefix(folder.path()).unwrap();
                (path.display().to_string(), file.kind, file.bytes)
            })
            .collect();
        let expected = [
            (
                ".premath/.premath-tmp-4194300-1-0",
                LeftKind::Temporary { maker_lives: false },
                3,
            ),
            (".premath/issues.jsonl.torn-17", LeftKind::Torn, 1),
            ("lane/.premath/step", LeftKind::Step { under_way: false }, 4),
        ];
        assert_eq!(
            found,
            expected.map(|(path, kind, bytes)| (path.to_owned(), kind, bytes))
        );
        let steps: Vec<_> = outputs(&roots)
            .into_iter()
            .map(|output| (output.step, output.files.len(), output.bytes))
            .collect();
        assert_eq!(
            steps,
            [("w.a.1".to_owned(), 2, 3), ("w.a.10".to_owned(), 3, 4)]
        );
    }
}

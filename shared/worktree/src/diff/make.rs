//! Makes a diff of pairs of contents, up to its bounds.

use super::{Compared, DiffSide, FILES_MAX, FileDiff, HunkLines, LINES_MAX, SideContent, WorkDiff};
use git2::{DiffOptions, Oid, Patch};

/// How far from its begin git looks for a NUL, which no text has.
const BINARY_LOOK: usize = 8_000;

/// Collects the files of a diff.
#[derive(Debug)]
pub(crate) struct WorkDiffMaker {
    diff: WorkDiff,
    /// How many bytes of lines there may still be.
    left: usize,
}

impl WorkDiffMaker {
    pub(crate) fn new(base: Oid) -> Self {
        Self {
            diff: WorkDiff {
                base: base.to_string(),
                ..WorkDiff::default()
            },
            left: LINES_MAX,
        }
    }

    /// Returns whether no further file is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.diff.files.len() >= FILES_MAX
    }

    /// Counts a file that is not taken.
    pub(crate) fn leave_out(&mut self) {
        self.diff.files_left_out += 1;
    }

    /// Notes what is no part of the work.
    pub(crate) fn set_apart<'a>(&mut self, paths: impl Iterator<Item = &'a Vec<u8>>) {
        let named = paths.map(|path| String::from_utf8_lossy(path).into_owned());
        self.diff.set_apart.extend(named.take(FILES_MAX));
    }

    /// Adds a file, unless nothing differs.
    pub(crate) fn add(&mut self, path: &[u8], old: Option<DiffSide>, new: Option<DiffSide>) {
        let is_comparable = |side: &DiffSide| matches!(side.content, SideContent::Bytes(_));
        if old == new && old.as_ref().is_none_or(is_comparable) {
            return;
        }
        let mut file = FileDiff {
            path: String::from_utf8_lossy(path).into_owned(),
            old_mode: old.as_ref().map(|side| side.mode),
            new_mode: new.as_ref().map(|side| side.mode),
            compared: compared([&old, &new]),
            hunks: Vec::new(),
            added: None,
            deleted: None,
        };
        if file.compared == Compared::Lines {
            self.compare(&mut file, [&old, &new]);
        }
        self.diff.files.push(file);
    }

    pub(crate) fn done(self) -> WorkDiff {
        self.diff
    }

    fn compare(&mut self, file: &mut FileDiff, sides: [&Option<DiffSide>; 2]) {
        let [old, new] = sides.map(|side| match side {
            Some(DiffSide {
                content: SideContent::Bytes(bytes),
                ..
            }) => &bytes[..],
            _ => &[],
        });
        let mut options = DiffOptions::new();
        options.force_text(true);
        let Ok(patch) = Patch::from_buffers(old, None, new, None, Some(&mut options)) else {
            file.compared = Compared::Unreadable;
            return;
        };
        let (_, added, deleted) = patch.line_stats().unwrap_or_default();
        file.added = Some(added as u64);
        file.deleted = Some(deleted as u64);
        match hunks(&patch, self.left) {
            Some((hunks, size)) => {
                self.left -= size;
                file.hunks = hunks;
            }
            None => file.compared = Compared::Counted,
        }
    }
}

fn compared(sides: [&Option<DiffSide>; 2]) -> Compared {
    let of = |side: &Option<DiffSide>| match side.as_ref().map(|side| &side.content) {
        None => Compared::Lines,
        Some(SideContent::Bytes(bytes)) => {
            let look = &bytes[..bytes.len().min(BINARY_LOOK)];
            match look.contains(&0) {
                true => Compared::Binary,
                false => Compared::Lines,
            }
        }
        Some(SideContent::TooLarge) => Compared::TooLarge,
        Some(SideContent::Filtered) => Compared::Filtered,
        Some(SideContent::Unreadable) => Compared::Unreadable,
    };
    let [old, new] = sides.map(of);
    match new {
        Compared::Lines => old,
        new => new,
    }
}

/// Returns the hunks of a patch and their size; `None` where that is more than
/// `most`.
fn hunks(patch: &Patch<'_>, most: usize) -> Option<(Vec<HunkLines>, usize)> {
    let mut size = 0;
    let mut hunks = Vec::new();
    for number in 0..patch.num_hunks() {
        let (hunk, count) = patch.hunk(number).ok()?;
        let mut lines = Vec::new();
        for line in 0..count {
            let line = patch.line_in_hunk(number, line).ok()?;
            let (sign, text) = match line.origin() {
                sign @ ('+' | '-' | ' ') => (sign, line.content()),
                // Which of both sides has no line end at its end.
                _ => ('\\', &b" No newline at end of file"[..]),
            };
            let text = text.strip_suffix(b"\n").unwrap_or(text);
            let text = format!("{sign}{}", String::from_utf8_lossy(text));
            size += text.len() + 1;
            if size > most {
                return None;
            }
            lines.push(text);
        }
        let place = String::from_utf8_lossy(hunk.header()).trim_end().to_owned();
        hunks.push(HunkLines { place, lines });
    }
    Some((hunks, size))
}

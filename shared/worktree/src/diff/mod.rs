//! What work changed: of a step that runs, by its files, and of one that is
//! over, by its commit or its salvage branch. Bounded in every direction.

mod commit;
mod difference;
mod make;

pub(crate) use commit::blob_content;
pub use commit::{CommitDiff, DiffError};
pub(crate) use difference::{Difference, UNKNOWN, may_be};
pub(crate) use make::WorkDiffMaker;

/// The largest content that is compared by its lines.
const CONTENT_MAX: usize = 1 << 20;
/// How many files a diff has at most.
const FILES_MAX: usize = 2_000;
/// How many bytes of lines a diff has at most.
const LINES_MAX: usize = 8 << 20;

/// What work changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkDiff {
    /// The commit that it is compared with.
    pub base: String,
    /// The changed files, by path.
    pub files: Vec<FileDiff>,
    /// How many changed files are left out, for they are too many.
    pub files_left_out: u64,
    /// What is no part of the work: nested repositories, and folders that lie
    /// too deep or cannot be read.
    pub set_apart: Vec<String>,
}

/// How a file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// The file, with replacement characters where it is not UTF-8.
    pub path: String,
    /// Its mode before; `None` where it was not there.
    pub old_mode: Option<u32>,
    /// Its mode after; `None` where it is not there.
    pub new_mode: Option<u32>,
    /// How its content is compared.
    pub compared: Compared,
    /// The changed lines with their surroundings.
    pub hunks: Vec<HunkLines>,
    /// How many lines were added; `None` where the content was not compared.
    pub added: Option<u64>,
    /// How many lines were deleted; `None` where the content was not compared.
    pub deleted: Option<u64>,
}

/// How the content of a file is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// By its lines.
    Lines,
    /// By its lines, but these are left out: the diff is too long.
    Counted,
    /// It is not text.
    Binary,
    /// It is too large.
    TooLarge,
    /// It goes through a filter of the operator's.
    Filtered,
    /// It cannot be read.
    Unreadable,
}

/// Changed lines with those around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLines {
    /// Where they are, as in `@@ -1,3 +1,4 @@`.
    pub place: String,
    /// The lines, each with its sign first: `+`, `-`, a space, or `\\` where the
    /// line before it has no end.
    pub lines: Vec<String>,
}

/// A file before or after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffSide {
    pub(crate) mode: u32,
    pub(crate) content: SideContent,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SideContent {
    Bytes(Vec<u8>),
    TooLarge,
    Filtered,
    Unreadable,
}

impl SideContent {
    /// Takes a content, unless it is too large to be compared.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        match bytes.len() > CONTENT_MAX {
            true => Self::TooLarge,
            false => Self::Bytes(bytes),
        }
    }
}

//! `premath diff`: what an attempt changed.

use crate::answer::{Answer, Finished};
use crate::attempt::Attempt;
use crate::error::{CliError, WorkError};
use crate::paths::variable;
use clap::Args;
use harness_worker::settings::{LoopFlags, Settings};
use premath_kernel::json::plain::plain;
use premath_kernel::policy::landing::DEFAULT_TARGET;
use premath_kernel::record::audit::WitnessRef;
use premath_kernel::record::salvage::{branches, folders, is_elsewhere};
use premath_kernel::record::trailers::LandingTrailers;
use premath_kernel::record::trajectory::StepRow;
use premath_memory::roots::MemoryRoots;
use premath_memory::{artifact, clock, witness};
use premath_view::diff::{
    DiffSource, DiffStyle, DiffView, FileStatus, FileView, HunkView, LeftOut,
};
use premath_worktree::diff::{CommitDiff, Compared, FileDiff, WorkDiff};
use premath_worktree::tree::Tree;
use serde_json::Value;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Arguments of `premath diff`.
///
/// Of an attempt that runs, these are its files as they are now; of one that is over, the
/// commit that holds its work, or the salvage branch.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The issue
    #[arg(value_name = "ISSUE")]
    issue: String,
    /// Print the changed files with how many lines changed
    #[arg(long)]
    stat: bool,
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
}

/// What is compared, and how it came out.
struct Compare {
    source: DiffSource,
    of: Option<String>,
    diff: WorkDiff,
}

impl DiffArgs {
    pub(crate) fn run(self) -> Finished {
        let folder = self.repo_root.as_deref().unwrap_or(Path::new("."));
        let roots = match MemoryRoots::discover(folder) {
            Ok(roots) => roots,
            Err(error) => return Finished::new("diff", Err(error.into())),
        };
        let root = roots.repository.clone();
        Finished::on("diff", "repository", Ok(root), |_| {
            let view = of_issue(&self.issue, &roots)?;
            let text = premath_view::diff::text(&view, self.style());
            let note = view
                .closed_unchanged()
                .then(|| format!("{} closed without changes", view.issue_id));
            let answer = Answer::new(view, text);
            Ok(match note {
                Some(note) => answer.note(note),
                None => answer,
            })
        })
    }

    fn style(&self) -> DiffStyle {
        let is_plain = ["NO_COLOR", "CI"]
            .iter()
            .any(|name| variable(name).is_some())
            || variable("CLICOLOR").is_some_and(|value| value == "0");
        DiffStyle {
            stat: self.stat,
            colour: io::stdout().is_terminal() && !is_plain,
        }
    }
}

/// Returns what the running or the last attempt of an issue changed.
///
/// # Errors
///
/// [`CliError`], also where there is no attempt, or none whose work is kept.
pub(crate) fn of_issue(issue: &str, roots: &MemoryRoots) -> Result<DiffView, CliError> {
    let attempt = Attempt::find(issue, roots)?;
    let compare = compare(&attempt, roots)?;
    Ok(view(attempt, compare))
}

fn compare(attempt: &Attempt, roots: &MemoryRoots) -> Result<Compare, CliError> {
    if let Some(worktree) = &attempt.worktree {
        let tree = Tree::open_to_look(&roots.repository, worktree)?;
        return Ok(Compare {
            source: DiffSource::Running,
            of: None,
            diff: tree.work_diff()?,
        });
    }
    match &attempt.row {
        Some(row) => left(row, roots),
        None => Err(WorkError::Nothing(attempt.step_id.clone()).into()),
    }
}

/// Compares what an attempt that is over left.
fn left(row: &StepRow, roots: &MemoryRoots) -> Result<Compare, CliError> {
    let commits = CommitDiff::open(&roots.repository)?;
    let close = close_of(row, roots);
    let closed = || row.commit(Some(close.as_ref()?));
    if let Some(commit) = landed(row, &commits).or_else(closed) {
        return committed(row, commit, &commits);
    }
    let named = row.salvage.as_deref().into_iter();
    let mut named = named.flat_map(branches).peekable();
    let first = named.peek().copied();
    if let Some(branch) = named.find(|branch| !commits.lacks_branch(branch)) {
        let target = target(roots);
        return Ok(Compare {
            source: DiffSource::Salvage,
            diff: commits.of_branch(branch, &["HEAD", &target])?,
            of: Some(branch.to_owned()),
        });
    }
    match (close, first) {
        (Some(close), _) if row.succeeded() => Ok(unchanged(&close)),
        (_, Some(branch)) => Err(gone(
            row,
            format!(
                "its salvage branch {branch} is gone; `premath clean --salvage` deletes such \
                 branches"
            ),
        )),
        (None, None) if row.succeeded() => {
            Err(gone(row, "the witness of its close is gone".to_owned()))
        }
        (_, None) => Err(nothing(row).into()),
    }
}

/// Reads the witness of a close; `None` where it is not there.
fn close_of(row: &StepRow, roots: &MemoryRoots) -> Option<Value> {
    let folder = &roots.witnesses;
    let path = artifact::of_step(folder, &row.step_id, WitnessRef::CLOSE, "json");
    witness::read(&roots.repository, &path)
}

/// Compares the commit that holds the work of an attempt, whether it landed or not.
fn committed(row: &StepRow, commit: String, commits: &CommitDiff) -> Result<Compare, CliError> {
    if commits.lacks_commit(&commit) {
        let detail = match &row.world {
            Some(world) => format!("its commit {commit} is in another repository ({world})"),
            None => format!("its commit {commit} is not in the repository"),
        };
        return Err(gone(row, detail));
    }
    Ok(Compare {
        source: DiffSource::Commit,
        diff: commits.of_commit(&commit)?,
        of: Some(commit),
    })
}

/// Returns the comparison of an attempt that closed its issue without changes.
fn unchanged(close: &Value) -> Compare {
    let base = close["before"]["head"].as_str().unwrap_or_default();
    Compare {
        source: DiffSource::Commit,
        of: None,
        diff: WorkDiff {
            base: base.to_owned(),
            ..WorkDiff::default()
        },
    }
}

/// Returns the error of an attempt that left no branch.
fn nothing(row: &StepRow) -> WorkError {
    let step_id = row.step_id.clone();
    let kept = row.salvage.as_deref().unwrap_or_default();
    if is_elsewhere(kept) {
        let detail = format!("its work is in another repository: {}", plain(kept));
        return WorkError::Gone { step_id, detail };
    }
    match folders(kept).find(|folder| !folder.is_empty()) {
        Some(folder) => WorkError::Aside {
            step_id,
            folder: plain(folder).into_owned(),
        },
        None => WorkError::Nothing(step_id),
    }
}

fn gone(row: &StepRow, detail: String) -> CliError {
    let step_id = row.step_id.clone();
    WorkError::Gone { step_id, detail }.into()
}

/// Returns the commit that an attempt landed, by its trailers: where there was nothing
/// to land, the row names one of other work.
fn landed(row: &StepRow, commits: &CommitDiff) -> Option<String> {
    let commit = &row.landing.as_ref()?.commit;
    let message = commits.message(commit).ok()?;
    let trailers = LandingTrailers::parse(&message).ok()??;
    let is_own = trailers.is_of(row.issue_id.as_ref()?, row.generation?);
    is_own.then(|| commit.clone())
}

/// Returns where work lands, by the settings as far as they can be read.
fn target(roots: &MemoryRoots) -> String {
    let flags = LoopFlags {
        repo_root: Some(roots.repository.clone()),
        ..LoopFlags::default()
    };
    let settings = Settings::resolve(&flags, clock::now().wall);
    settings.map_or_else(
        |_| DEFAULT_TARGET.to_owned(),
        |settings| settings.landing.target,
    )
}

fn view(attempt: Attempt, compare: Compare) -> DiffView {
    let Compare { source, of, diff } = compare;
    let files: Vec<FileView> = diff.files.into_iter().map(file).collect();
    DiffView {
        issue_id: attempt.issue_id,
        step_id: attempt.step_id,
        source,
        of,
        base: diff.base,
        added: files.iter().filter_map(|file| file.added).sum(),
        deleted: files.iter().filter_map(|file| file.deleted).sum(),
        files,
        files_left_out: diff.files_left_out,
        set_apart: diff.set_apart,
    }
}

fn file(file: FileDiff) -> FileView {
    /// The kind of a file, without its rights.
    const KIND: u32 = 0o170_000;
    let status = match (file.old_mode, file.new_mode) {
        (None, _) => FileStatus::Added,
        (_, None) => FileStatus::Deleted,
        (Some(old), Some(new)) if old & KIND != new & KIND => FileStatus::TypeChanged,
        _ => FileStatus::Modified,
    };
    let left_out = match file.compared {
        Compared::Lines => None,
        Compared::Counted => Some(LeftOut::TooLong),
        Compared::Binary => Some(LeftOut::Binary),
        Compared::TooLarge => Some(LeftOut::TooLarge),
        Compared::Filtered => Some(LeftOut::Filtered),
        Compared::Unreadable => Some(LeftOut::Unreadable),
    };
    let mode = |mode: u32| format!("{mode:06o}");
    let hunk = |hunk: premath_worktree::diff::HunkLines| HunkView {
        place: hunk.place,
        lines: hunk.lines,
    };
    FileView {
        path: file.path,
        status,
        old_mode: file.old_mode.map(mode),
        new_mode: file.new_mode.map(mode),
        added: file.added,
        deleted: file.deleted,
        left_out,
        hunks: file.hunks.into_iter().map(hunk).collect(),
    }
}

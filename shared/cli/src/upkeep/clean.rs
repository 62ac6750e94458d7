//! `premath clean`: removes what nothing needs any more.

use super::name;
use super::survey::{Survey, roots};
use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::operator;
use crate::terminal::plain;
use clap::Args;
use premath_kernel::json::size::Size;
use premath_kernel::policy::inventory::{InventoryItem, Kind, Standing, Terms, Thing, excess};
use premath_memory::clock;
use premath_worktree::provision::LaneWork;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `premath clean`.
#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
    /// Print what would be removed without removing it
    #[arg(long)]
    dry_run: bool,
    /// Remove only output, temporary files and salvage older than this
    #[arg(long, value_name = "AGE", default_value = "14d", value_parser = age)]
    older_than: Duration,
    /// Also remove salvage branches and folders of failed steps
    #[arg(long)]
    salvage: bool,
    /// Also remove free lanes without changes, and their checkouts for verification
    ///
    /// Only lanes that the harness made; the next batch makes them again.
    #[arg(long)]
    lanes: bool,
    /// Keep old output while everything fits in this size, for example 20GiB
    #[arg(long, value_name = "SIZE")]
    disk_budget: Option<Size>,
}

fn age(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| {
        format!(
            "invalid age `{text}`: expected for example 14d, 36h or 0s: \
                                 {error}"
        )
    })
}

/// The answer of `premath clean`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CleanAnswer {
    /// Whether nothing was changed.
    dry_run: bool,
    /// How many things went, or would go.
    count: usize,
    /// Their size in bytes, of those that have one of their own.
    bytes: u64,
    /// By how many bytes the budget is still exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    over_budget: Option<u64>,
    /// What went, or would go.
    items: Vec<InventoryItem>,
    /// What should have gone, and did not.
    failed: Vec<Failed>,
}

/// A thing that could not be removed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failed {
    /// The kind of the thing.
    kind: Kind,
    /// The name of the thing.
    pub(super) name: String,
    /// Why it is still there.
    pub(super) error: String,
}

impl CleanArgs {
    pub(crate) fn run(self) -> Finished {
        let roots = match roots(self.repo_root.as_deref()) {
            Ok(roots) => roots,
            Err(error) => return Finished::new("clean", Err(error)),
        };
        let root = roots.repository.clone();
        Finished::on("clean", "repository", Ok(root), |_| {
            // A step's command is not a person, and its harness cleans up after
            // it.
            if operator::is_inside_step() && !self.dry_run {
                return Err(CliError::CleanInsideStep);
            }
            let mut survey = Survey::of(roots)?;
            survey.whole()?;
            survey.find_images();
            self.clean(&survey)
        })
    }

    fn clean(self, survey: &Survey) -> Result<Answer, CliError> {
        let mut terms = Terms {
            older_than: self.older_than,
            salvage: self.salvage,
            lanes: self.lanes,
            ..Terms::at(clock::now().wall)
        };
        let mut items = survey.account(&terms);
        let above = self.disk_budget.map(|budget| {
            let above = excess(survey.used(), budget.0, &items);
            terms.excess = Some(above);
            items = survey.account(&terms);
            above
        });
        items.retain(|item| item.standing == Standing::Removable);
        items.sort_by_key(order);
        let over_budget = above.and_then(|above| {
            let outputs = items.iter().filter(|item| item.kind == Kind::StepOutput);
            let gone: u64 = outputs.filter_map(|item| item.bytes).sum();
            above.checked_sub(gone).filter(|over| *over > 0)
        });
        let mut failed = Vec::new();
        if !self.dry_run {
            let lanes = survey.hold_lanes()?;
            remove(survey, &mut items, &mut failed, LaneWork::Kept, |item| {
                !is_large(item)
            });
            // What takes its time keeps no lane waiting, and a lane is removed
            // under its own lock.
            drop(lanes);
            remove(survey, &mut items, &mut failed, LaneWork::Kept, is_large);
        }
        Ok(self.answer(survey, items, failed, over_budget))
    }

    fn answer(
        self,
        survey: &Survey,
        items: Vec<InventoryItem>,
        failed: Vec<Failed>,
        over_budget: Option<u64>,
    ) -> Answer {
        let bytes = items.iter().filter_map(|item| item.bytes).sum();
        let mut text = listing(&survey.roots.repository, &items);
        let _ = match (items.len(), self.dry_run) {
            (0, _) => writeln!(text, "nothing to remove"),
            (count, true) => writeln!(
                text,
                "{count} would be removed, {}; dry run, nothing changed",
                Size(bytes)
            ),
            (count, false) => writeln!(text, "{count} removed, {}", Size(bytes)),
        };
        let notes: Vec<String> = failed
            .iter()
            .map(|failed| format!("error: cannot remove {}: {}", failed.name, failed.error))
            .chain(over_budget.map(|over| {
                format!(
                    "hint: still {} over the budget; use a shorter --older-than, --salvage or \
                     fewer worktrees",
                    Size(over)
                )
            }))
            .collect();
        let refused = !failed.is_empty();
        let document = CleanAnswer {
            dry_run: self.dry_run,
            count: items.len(),
            bytes,
            over_budget,
            items,
            failed,
        };
        let answer = Answer::new(document, text).refused(refused);
        notes.into_iter().fold(answer, Answer::note)
    }
}

/// Orders a removal: a branch that is checked out in a worktree goes only after it.
pub(super) fn order(item: &InventoryItem) -> u8 {
    match item.thing {
        Some(Thing::Registration(_) | Thing::Lane(_)) => 0,
        _ => 1,
    }
}

/// Returns whether an item may be many files that no lane uses, or is a lane.
fn is_large(item: &InventoryItem) -> bool {
    matches!(item.thing, Some(Thing::Lane(_)))
        || matches!(
            item.kind,
            Kind::Checkout | Kind::SalvageFolder | Kind::StepOutput | Kind::Image
        )
}

/// Removes the items that are asked for; one that stays moves to `failed`.
pub(super) fn remove(
    survey: &Survey,
    items: &mut Vec<InventoryItem>,
    failed: &mut Vec<Failed>,
    work: LaneWork,
    which: impl Fn(&InventoryItem) -> bool,
) {
    items.retain(|item| {
        let Some(thing) = item.thing.as_ref().filter(|_| which(item)) else {
            return true;
        };
        match survey.inventory.remove_with(thing, work) {
            Ok(()) => true,
            Err(error) => {
                failed.push(Failed {
                    kind: item.kind,
                    name: item.name.clone(),
                    error: CliError::from(error).chain(),
                });
                false
            }
        }
    });
}

fn listing(root: &Path, items: &[InventoryItem]) -> String {
    let columns: Vec<[String; 3]> = items
        .iter()
        .map(|item| {
            let size = item
                .size()
                .map_or_else(String::new, |size| size.to_string());
            [
                name(item, root).into_owned(),
                size,
                plain(&item.reason).into_owned(),
            ]
        })
        .collect();
    let width = |column: usize, most: usize| {
        let cells = columns.iter().map(|cells| cells[column].chars().count());
        cells.max().unwrap_or(0).min(most)
    };
    let (names, sizes) = (width(0, 48), width(1, 12));
    columns
        .iter()
        .fold(String::new(), |mut text, [name, size, reason]| {
            let _ = writeln!(text, "{name:<names$}  {size:>sizes$}  {reason}");
            text
        })
}

#[cfg(test)]
mod tests {
    use premath_kernel::policy::inventory::AGE_DEFAULT;

    #[test]
    fn the_age_that_is_written_is_the_one_that_doctor_goes_by() {
        assert_eq!(humantime::parse_duration("14d"), Ok(AGE_DEFAULT));
    }
}

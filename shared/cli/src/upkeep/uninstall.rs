//! `premath uninstall`: removes what the harness has in a repository.

use super::survey::{Survey, roots};
use super::{clean, name};
use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::operator;
use crate::service::{OwnUnit, UnitFolder};
use crate::status::is_running;
use crate::terminal::{self, plain};
use clap::Args;
use premath_kernel::policy::inventory::{InventoryItem, Kind, Standing, Terms};
use premath_memory::live::LiveFolder;
use premath_memory::uninstall::OwnFiles;
use premath_memory::{RepositoryRemoval, clock};
use premath_worktree::inventory::OwnRef;
use premath_worktree::provision::LaneWork;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files of the harness that people keep in git.
const SHARED: [&str; 5] = [
    "harness.toml",
    "instructions",
    "policies/control/harness-instruction-policy-v1.json",
    "policies/control/harness-turn-policy-v1.json",
    ".premath",
];

/// Arguments of `premath uninstall`.
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
    /// Print what would be removed without removing it
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Also delete branches of the harness with commits that no other branch has
    #[arg(long)]
    discard_work: bool,
}

/// The answer of `premath uninstall`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UninstallAnswer {
    /// Whether it was done.
    result: UninstallResult,
    /// What goes, or went.
    removed: Vec<String>,
    /// What keeps the harness from being removed.
    obstacles: Vec<Obstacle>,
    /// What stays, and why.
    kept: Vec<Obstacle>,
}

/// Whether an uninstallation was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum UninstallResult {
    /// It was done.
    Done,
    /// Nothing was changed: it was not asked for, or not confirmed.
    Unchanged,
    /// Nothing was changed: something keeps the harness from being removed.
    Refused,
    /// Something could not be removed.
    Failed,
}

/// A thing, and why it stays.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Obstacle {
    /// The thing.
    name: String,
    /// Why it stays, and what can be done.
    reason: String,
}

fn obstacle(name: impl Into<String>, reason: impl Into<String>) -> Obstacle {
    Obstacle {
        name: name.into(),
        reason: reason.into(),
    }
}

impl UninstallArgs {
    pub(crate) fn run(self, json: bool) -> Finished {
        let roots = match roots(self.repo_root.as_deref()) {
            Ok(roots) => roots,
            Err(error) => return Finished::new("uninstall", Err(error)),
        };
        let root = roots.repository.clone();
        Finished::on("uninstall", "repository", Ok(root), |_| {
            if operator::is_inside_step() {
                return Err(CliError::CleanInsideStep);
            }
            let mut survey = Survey::of(roots)?;
            // Lines that cannot be read name no work.
            if !self.discard_work {
                survey.whole()?;
            }
            let plan = Removal::plan(survey)?;
            self.perform(plan, json)
        })
    }

    fn perform(self, plan: Removal, json: bool) -> Result<Answer, CliError> {
        let obstacles = plan.obstacles(self.discard_work)?;
        if !obstacles.is_empty() {
            return Ok(plan.answer(UninstallResult::Refused, obstacles));
        }
        if self.dry_run {
            return Ok(plan.answer(UninstallResult::Unchanged, Vec::new()));
        }
        let is_confirmed = self.yes
            || !json && {
                let question = "remove this from the repository?";
                let answer = terminal::ask(&plan.listing(), question);
                answer.unwrap_or(false)
            };
        if !is_confirmed {
            let answer = plan.answer(UninstallResult::Unchanged, Vec::new());
            let hint = "hint: `premath uninstall --yes` removes it without a question";
            return Ok(answer.note(hint.to_owned()).refused(true));
        }
        // From here on no batch begins, and there is no second removal.
        let repository = plan.survey.roots.repository.clone();
        let Some(_alone) = RepositoryRemoval::try_begin(&repository)? else {
            let reason = "a batch, or another `premath uninstall`, has it";
            let busy = obstacle(repository.display().to_string(), reason);
            return Ok(plan.answer(UninstallResult::Refused, vec![busy]));
        };
        // What came while the question was asked counts too.
        let mut plan = Removal::plan(Survey::of(plan.survey.roots)?)?;
        let obstacles = plan.obstacles(self.discard_work)?;
        if !obstacles.is_empty() {
            return Ok(plan.answer(UninstallResult::Refused, obstacles));
        }
        let work = match self.discard_work {
            true => LaneWork::Discarded,
            false => LaneWork::Kept,
        };
        let failed = plan.carry_out(work)?;
        let result = match failed.is_empty() {
            true => UninstallResult::Done,
            false => UninstallResult::Failed,
        };
        Ok(plan.answer(result, failed))
    }
}

/// What is removed.
struct Removal {
    survey: Survey,
    items: Vec<InventoryItem>,
    refs: Vec<OwnRef>,
    files: OwnFiles,
    /// The units of systemd that run its batches, and their folder.
    units: Option<(UnitFolder, Vec<OwnUnit>)>,
}

impl Removal {
    fn plan(survey: Survey) -> Result<Self, CliError> {
        let terms = Terms {
            older_than: Duration::ZERO,
            salvage: true,
            lanes: true,
            ..Terms::at(clock::now().wall)
        };
        let mut items = survey.account(&terms);
        items.sort_by_key(clean::order);
        let refs = survey.inventory.own_refs()?;
        let inventory = &survey.inventory;
        let files = OwnFiles::of(&survey.roots, |path| {
            inventory.is_tracked(path).map_err(CliError::from)
        })?;
        // Without a home there is no folder of units.
        let units = UnitFolder::of_user().ok();
        let units = units.map(|folder| {
            let found = folder.of_repository(&survey.roots.repository)?;
            Ok::<_, CliError>((folder, found))
        });
        Ok(Self {
            units: units.transpose()?,
            survey,
            items,
            refs,
            files,
        })
    }

    /// Returns what keeps the harness from being removed.
    fn obstacles(&self, discard_work: bool) -> Result<Vec<Obstacle>, CliError> {
        let published = LiveFolder::of(&self.survey.roots).read()?;
        let running = published.iter().filter(|live| is_running(live));
        let mut obstacles: Vec<Obstacle> = running
            .map(|live| {
                let reason = "it is running; end it with `premath batch drain`";
                obstacle(format!("batch {}", live.batch_id), reason)
            })
            .collect();
        obstacles.extend(self.units().filter_map(|(path, unit)| {
            let file = &unit.file;
            let reason = match (unit.is_active, unit.is_changed) {
                (true, _) => {
                    let state = if file.ends_with(".timer") {
                        "enabled"
                    } else {
                        "active"
                    };
                    format!("it is {state}; `systemctl --user disable --now {file}`")
                }
                (false, true) => {
                    let name = file.rsplit_once('.').map_or(&**file, |(name, _)| name);
                    format!(
                        "a person changed it; `premath service uninstall --force --name {name}` \
                         deletes it"
                    )
                }
                (false, false) => return None,
            };
            Some(obstacle(path, reason))
        }));
        let is_kept = |item: &&InventoryItem| {
            item.kind == Kind::Worktree
                && !matches!(item.standing, Standing::Removable | Standing::InOrder)
        };
        for item in self.items.iter().filter(is_kept) {
            let name = name(item, &self.survey.roots.repository).into_owned();
            obstacles.push(obstacle(name, item.reason.clone()));
        }
        let is_salvage = |item: &&InventoryItem| item.kind == Kind::SalvageFolder && !discard_work;
        for item in self.items.iter().filter(is_salvage) {
            let name = name(item, &self.survey.roots.repository).into_owned();
            let reason = "it has files of a failed attempt; copy them, or give --discard-work";
            obstacles.push(obstacle(name, reason));
        }
        let has_work = |own: &&OwnRef| !own.is_elsewhere && !discard_work;
        for own in self.refs.iter().filter(has_work) {
            let reason = "no other branch has its commits; merge it, or give --discard-work";
            obstacles.push(obstacle(short(&own.name), reason));
        }
        Ok(obstacles)
    }

    /// Returns the units with their paths.
    fn units(&self) -> impl Iterator<Item = (String, &OwnUnit)> {
        let all = self.units.iter();
        all.flat_map(|(folder, units)| units.iter().map(|unit| (folder.shown(&unit.file), unit)))
    }

    /// Deletes the units; returns those that are left.
    fn delete_units(&self) -> Vec<Obstacle> {
        let all = self.units.iter();
        let all = all.flat_map(|(folder, units)| units.iter().map(move |unit| (folder, unit)));
        all.filter_map(|(folder, unit)| {
            let error = folder.delete(&unit.file).err()?;
            Some(obstacle(folder.shown(&unit.file), error.chain()))
        })
        .collect()
    }

    fn carry_out(&mut self, work: LaneWork) -> Result<Vec<Obstacle>, CliError> {
        let lanes = self.survey.hold_lanes()?;
        drop(lanes);
        // Before anything that they would begin with is gone.
        let left = self.delete_units();
        if !left.is_empty() {
            return Ok(left);
        }
        let mut failed = Vec::new();
        self.items
            .retain(|item| item.standing == Standing::Removable);
        clean::remove(&self.survey, &mut self.items, &mut failed, work, |_| true);
        let mut failed: Vec<Obstacle> = failed
            .into_iter()
            .map(|failed| obstacle(failed.name, failed.error))
            .collect();
        for own in &self.refs {
            if let Err(error) = self.survey.inventory.remove_ref(own) {
                failed.push(obstacle(short(&own.name), CliError::from(error).chain()));
            }
        }
        // The records of lanes that are there lead to them.
        if failed.is_empty() {
            self.files.remove(&self.survey.roots)?;
        }
        Ok(failed)
    }

    fn removed(&self) -> Vec<String> {
        let root = &self.survey.roots.repository;
        let within = |path: &PathBuf| {
            let path = path.strip_prefix(root).unwrap_or(path);
            path.display().to_string()
        };
        let own = |item: &&InventoryItem| {
            item.standing == Standing::Removable
                && matches!(
                    item.kind,
                    Kind::Worktree | Kind::Checkout | Kind::SalvageFolder
                )
        };
        let items = self.items.iter().filter(own);
        let items = items.map(|item| name(item, root).into_owned());
        let refs = self.refs.iter().map(|own| short(&own.name).to_owned());
        let files = self.files.removed.iter().map(within);
        let units = self.units().map(|(path, _)| path);
        items.chain(refs).chain(files).chain(units).collect()
    }

    /// Returns what is left to a person.
    fn kept(&self) -> Vec<Obstacle> {
        let root = &self.survey.roots.repository;
        let mut kept = Vec::new();
        if self.files.issues.is_some() {
            let reason =
                "git does not track it, and nothing else has the issues; delete it yourself";
            kept.push(obstacle(".premath/issues.jsonl", reason));
        }
        let is_there = |path: &&str| root.join(path).symlink_metadata().is_ok();
        let is_shared = |path: &&str| *path != ".premath" || !self.files.tracked.is_empty();
        let shared: Vec<&str> = SHARED
            .into_iter()
            .filter(is_there)
            .filter(is_shared)
            .collect();
        for path in &shared {
            let reason = "it is part of your project; `git rm -r` removes it";
            kept.push(obstacle(*path, reason));
        }
        for path in &self.files.foreign {
            let path = path.strip_prefix(root).unwrap_or(path);
            let reason = "the harness did not make it";
            kept.push(obstacle(path.display().to_string(), reason));
        }
        if has_tasks(root) {
            kept.push(obstacle("mise.toml", "it has tasks of the harness"));
        }
        kept
    }

    fn listing(&self) -> String {
        let mut text = String::new();
        for removed in self.removed() {
            let _ = writeln!(text, "remove  {}", plain(&removed));
        }
        for kept in self.kept() {
            let _ = writeln!(text, "keep    {}: {}", plain(&kept.name), kept.reason);
        }
        text
    }

    fn answer(self, result: UninstallResult, obstacles: Vec<Obstacle>) -> Answer {
        let mut text = self.listing();
        let end = match result {
            UninstallResult::Done => "the harness is removed from the repository",
            UninstallResult::Unchanged => "nothing changed",
            UninstallResult::Refused => "nothing changed: there is work, or something in use",
            UninstallResult::Failed => "not everything was removed",
        };
        let _ = writeln!(text, "{end}");
        let notes: Vec<String> = obstacles
            .iter()
            .map(|one| format!("error: {}: {}", plain(&one.name), plain(&one.reason)))
            .collect();
        let document = UninstallAnswer {
            result,
            removed: self.removed(),
            kept: self.kept(),
            obstacles,
        };
        let answer = Answer::new(document, text).refused(!notes.is_empty());
        let reloads = result == UninstallResult::Done && self.units().next().is_some();
        let answer = match reloads {
            true => answer.note("hint: `systemctl --user daemon-reload`".to_owned()),
            false => answer,
        };
        notes.into_iter().fold(answer, Answer::note)
    }
}

/// Returns the name of a reference as git shows it.
fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// Returns whether `mise.toml` has tasks of the harness.
fn has_tasks(root: &Path) -> bool {
    let file = premath_memory::untrusted::read_file(root, &root.join("mise.toml"), 1 << 20);
    let text = file.unwrap_or_default();
    String::from_utf8_lossy(&text).contains("harness-coordinator-loop")
}

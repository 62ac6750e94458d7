//! `premath doctor`: is closed landed, and is everything accounted for?

use super::fix::{Repaired, fix};
use super::name;
use super::survey::{Survey, roots};
use crate::answer::{Answer, CheckVerdict, Finished};
use crate::error::CliError;
use crate::operator::is_inside_step;
use crate::terminal::plain;
use clap::Args;
use harness_worker::settings::{FileSettings, Sandbox};
use premath_kernel::json::plain::counted;
use premath_kernel::json::size::Size;
use premath_kernel::policy::health::{
    BaselineFacts, HealthFinding, SANDBOX_UNAVAILABLE, SETTINGS_INVALID, Severity, examine, of_item,
};
use premath_kernel::policy::inventory::{InventoryItem, Kind, Standing, Terms};
use premath_kernel::policy::sandbox::SandboxMode;
use premath_memory::roots::MemoryRoots;
use premath_memory::{clock, repair_issues};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `premath doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
    /// Repair what can be repaired safely, and say what is left
    #[arg(long)]
    fix: bool,
    /// Run the verification without any work, also where `startup` is off
    #[arg(long)]
    verify: bool,
    /// Write the readable rows of the issue store into this new file
    #[arg(long, value_name = "FILE")]
    repair_into: Option<PathBuf>,
}

/// The answer of `premath doctor`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoctorAnswer {
    /// Whether there are no findings but warnings.
    result: CheckVerdict,
    /// How many findings are errors.
    finding_count: usize,
    /// How many findings are warnings.
    warning_count: usize,
    /// How many of them `premath clean` removes.
    removable_count: usize,
    /// What is wrong, what is left over and what to do about it. Of the items,
    /// those are findings that have the standing `finding`, and the `removable`
    /// ones but old step output.
    findings: Vec<HealthFinding>,
    /// What `--fix` did; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    repaired: Option<Vec<Repaired>>,
    /// Everything that the harness has in the repository, and why.
    items: Vec<InventoryItem>,
    /// Why `harness.toml` cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings_error: Option<String>,
    /// How commands would be confined here, and what keeps a stronger way from
    /// working.
    sandbox: SandboxCheck,
    /// Whether the verification passes without any work.
    verification: VerificationState,
    /// What was written for `--repair-into`.
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<Repair>,
}

/// Whether the verification passes without any work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum VerificationState {
    /// It was not run: `--verify` runs it.
    NotRun,
    /// It passed.
    Passed,
    /// It did not pass; a finding says more.
    Failed,
    /// It could not be run; a finding says why.
    Unrun,
}

impl VerificationState {
    fn of(facts: &BaselineFacts) -> Self {
        match facts {
            BaselineFacts::NotRun | BaselineFacts::KnownRed(_) => Self::NotRun,
            BaselineFacts::Passed => Self::Passed,
            BaselineFacts::Red(_) => Self::Failed,
            BaselineFacts::Unrun(_) => Self::Unrun,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::NotRun => "not run; `premath doctor --verify` runs it without any work",
            Self::Passed => "it passed without any work",
            Self::Failed => "it failed without any work",
            Self::Unrun => "it could not be run",
        }
    }
}

/// How commands would be confined.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SandboxCheck {
    /// The mode; absent where none works and a batch is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<SandboxMode>,
    /// The same in a sentence, with what to do about a mode that does not work.
    detail: String,
}

impl SandboxCheck {
    /// Tries the mode that the repository asks for; without one the modes, the
    /// strongest first.
    fn here(root: &Path) -> Self {
        match Sandbox::look(root) {
            Ok(choice) => Self {
                mode: Some(choice.mode),
                detail: choice.describe(),
            },
            Err(error) => Self {
                mode: None,
                detail: error.to_string(),
            },
        }
    }
}

/// A copy of the issue store with the lines that can be read.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Repair {
    /// The new file.
    path: String,
    /// How many rows are in it.
    row_count: usize,
    /// The lines that were left out.
    left_out: Vec<u64>,
}

impl DoctorArgs {
    pub(crate) fn run(self) -> Finished {
        let roots = match roots(self.repo_root.as_deref()) {
            Ok(roots) => roots,
            Err(error) => return Finished::new("doctor", Err(error)),
        };
        let root = roots.repository.clone();
        Finished::on("doctor", "repository", Ok(root), |root| {
            let repair = self.repair_into.as_deref();
            let repair = repair
                .map(|new| repair_into(&roots.issues, new))
                .transpose()?;
            if self.verify && is_inside_step() {
                let refused = "cannot run the verification inside a step: only an operator may";
                return Err(CliError::Usage(refused.to_owned()));
            }
            if self.verify && has_no_verification(root) {
                return Err(CliError::Usage(NO_VERIFICATION.to_owned()));
            }
            let terms = Terms::at(clock::now().wall);
            // It is run once, on what is repaired.
            let verify_now = self.verify && !self.fix;
            let mut state = State::of(roots.clone(), &terms, verify_now)?;
            let repaired = match self.fix {
                true => {
                    let (items, findings) = (&state.items, &state.findings);
                    let repaired = fix(&mut state.survey, items, findings)?;
                    state = State::of(roots, &terms, self.verify)?;
                    Some(repaired)
                }
                false => None,
            };
            Ok(report(root, state, repaired, repair))
        })
    }
}

/// Why `--verify` is refused under [`has_no_verification`].
const NO_VERIFICATION: &str = "--verify is not available in the sandbox mode `landlock`: it runs \
    in the main worktree, whose git folder this mode cannot protect. Without --verify everything \
    else is examined; a batch runs its startup verification in its lanes";

/// Returns whether the commands of a repository would be confined in a way in which
/// the main worktree cannot be a lane.
fn has_no_verification(root: &Path) -> bool {
    Sandbox::look(root).is_ok_and(|choice| choice.mode == SandboxMode::Landlock)
}

/// A repository as it is, and what is wrong with it.
struct State {
    survey: Survey,
    items: Vec<InventoryItem>,
    findings: Vec<HealthFinding>,
    sandbox: SandboxCheck,
    verification: VerificationState,
}

impl State {
    fn of(roots: MemoryRoots, terms: &Terms, verify: bool) -> Result<Self, CliError> {
        let survey = Survey::of(roots)?;
        let items = survey.account(terms);
        let sandbox = SandboxCheck::here(&survey.roots.repository);
        let unavailable = sandbox.mode.is_none().then(|| sandbox.detail.clone());
        let facts = super::health::look(&survey, unavailable, verify)?;
        let mut findings = examine(&facts);
        findings.extend(items.iter().filter_map(of_item));
        findings.sort_by_key(HealthFinding::place);
        Ok(Self {
            survey,
            items,
            findings,
            sandbox,
            verification: VerificationState::of(&facts.baseline),
        })
    }

    fn count(&self, severity: Severity) -> usize {
        let findings = self.findings.iter();
        findings
            .filter(|finding| finding.severity == severity)
            .count()
    }
}

fn repair_into(issues: &Path, new: &Path) -> Result<Repair, CliError> {
    let repaired = repair_issues(issues, new)?;
    Ok(Repair {
        path: new.display().to_string(),
        row_count: repaired.rows,
        left_out: repaired.faults.iter().map(|fault| fault.line).collect(),
    })
}

fn report(
    root: &Path,
    state: State,
    repaired: Option<Vec<Repaired>>,
    repair: Option<Repair>,
) -> Answer {
    let settings_error = settings_error(root);
    let removable = state.items.iter().filter(|item| item.is_finding());
    let removable = removable.filter(|item| item.standing == Standing::Removable);
    let removable_count = removable.count();
    let (finding_count, warning_count) =
        (state.count(Severity::Error), state.count(Severity::Warning));
    let mut text = repaired.as_deref().map_or_else(String::new, repairs);
    text.push_str(&sections(root, &state, settings_error.as_deref()));
    let is_readable = !state.items.iter().any(|item| item.kind == Kind::Memory);
    let counts = Counts {
        findings: finding_count,
        warnings: warning_count,
        removable: removable_count,
    };
    text.push_str(&if is_readable {
        verdict(&state.survey.landed(), &counts)
    } else {
        let findings = counted(finding_count as u64, "finding");
        let until = "nothing is removed until every line can be read";
        format!("{findings}; {until}{}\n", counts.of_warnings())
    });
    let note = repair.as_ref().map(|repair| {
        format!(
            "wrote {} rows to {}; skipped lines: {}",
            repair.row_count,
            repair.path,
            repair.left_out.len()
        )
    });
    let document = DoctorAnswer {
        result: CheckVerdict::of(finding_count == 0),
        finding_count,
        warning_count,
        removable_count,
        findings: state.findings,
        repaired,
        items: state.items,
        settings_error,
        sandbox: state.sandbox,
        verification: state.verification,
        repair,
    };
    let answer = Answer::new(document, text).refused(finding_count > 0);
    match note {
        Some(note) => answer.note(note),
        None => answer,
    }
}

/// Says what `--fix` did.
fn repairs(repaired: &[Repaired]) -> String {
    let mut text = String::from("repairs\n");
    for one in repaired {
        let subject = plain(&one.subject);
        let _ = match &one.left {
            None => writeln!(text, "  fixed    {}  {subject}", one.id),
            Some(why) => writeln!(text, "  left     {}  {subject}: {}", one.id, plain(why)),
        };
    }
    if repaired.is_empty() {
        text.push_str("  nothing to repair safely\n");
    }
    text
}

/// Lists what is there by sections, findings among it.
fn sections(root: &Path, state: &State, settings_error: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(error) = settings_error {
        let _ = writeln!(text, "settings\n  finding  {}", plain(error));
    }
    for (title, kinds) in GROUPS {
        let of_group: Vec<&InventoryItem> = state
            .items
            .iter()
            .filter(|item| kinds.contains(&item.kind))
            .collect();
        let mut lines = lines(root, &of_group);
        if *title == "files" {
            lines.extend(printed(&state.items));
        }
        if !lines.is_empty() {
            let _ = writeln!(text, "{title}");
            text.extend(lines);
        }
    }
    text.push_str(&checks(state, settings_error.is_some()));
    let _ = writeln!(text, "verification\n  {}", state.verification.word());
    let _ = writeln!(text, "sandbox\n  {}", state.sandbox.detail);
    text
}

/// Lists the findings that no other section has.
fn checks(state: &State, has_settings_error: bool) -> String {
    let of_items: Vec<HealthFinding> = state.items.iter().filter_map(of_item).collect();
    let mut text = String::new();
    for finding in &state.findings {
        let is_shown = of_items.contains(finding)
            || finding.id == SANDBOX_UNAVAILABLE.id
            || (has_settings_error && finding.id == SETTINGS_INVALID.id);
        if is_shown {
            continue;
        }
        if text.is_empty() {
            text.push_str("checks\n");
        }
        let word = match finding.severity {
            Severity::Error => "finding",
            Severity::Warning => "warning",
        };
        let _ = writeln!(
            text,
            "  {word:<8} {}  {}: {}; {}",
            finding.id,
            plain(&finding.subject),
            plain(finding.problem.trim_end_matches('.')),
            plain(&finding.next)
        );
    }
    text
}

/// Returns why `harness.toml` cannot be read, with the hint.
fn settings_error(root: &Path) -> Option<String> {
    let error = FileSettings::load(None, root).err()?;
    Some(match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}

/// What is under which title.
const GROUPS: &[(&str, &[Kind])] = &[
    ("issues", &[Kind::Memory, Kind::Issue, Kind::Batch]),
    ("landing", &[Kind::Target, Kind::Mark]),
    ("worktrees", &[Kind::Worktree, Kind::Checkout]),
    (
        "branches",
        &[Kind::StepBranch, Kind::SalvageBranch, Kind::Branch],
    ),
    ("locks", &[Kind::Lock]),
    ("files", &[Kind::SalvageFolder, Kind::Torn, Kind::Temporary]),
];

/// How many lines things of one kind that are not findings get, before they are
/// counted.
const SHOWN: usize = 6;

fn lines(root: &Path, items: &[&InventoryItem]) -> Vec<String> {
    let mut lines = Vec::new();
    let width = items
        .iter()
        .map(|item| name(item, root).chars().count())
        .max()
        .unwrap_or(0)
        .min(40);
    let mut shown: Vec<((Kind, Standing), usize)> = Vec::new();
    for item in items {
        let sort = (item.kind, item.standing);
        match shown.iter_mut().find(|(of, _)| *of == sort) {
            Some((_, count)) => *count += 1,
            None => shown.push((sort, 1)),
        }
        let count = shown
            .iter()
            .find(|(of, _)| *of == sort)
            .map_or(0, |(_, n)| *n);
        if item.is_finding() || count <= SHOWN {
            let mut line = format!(
                "  {:<8} {:<width$}  {}",
                word(item),
                name(item, root),
                plain(&item.reason)
            );
            if let Some(advice) = advice(item) {
                let _ = write!(line, "; {}", plain(&advice));
            }
            lines.push(line + "\n");
        }
    }
    for ((kind, standing), count) in shown {
        let is_finding = items
            .iter()
            .any(|item| (item.kind, item.standing) == (kind, standing) && item.is_finding());
        if !is_finding && count > SHOWN {
            lines.push(format!(
                "  {:<8} and {} more of the kind\n",
                standing_word(standing),
                count - SHOWN
            ));
        }
    }
    lines
}

fn word(item: &InventoryItem) -> &'static str {
    if item.is_finding() {
        "finding"
    } else {
        standing_word(item.standing)
    }
}

const fn standing_word(standing: Standing) -> &'static str {
    match standing {
        Standing::InOrder => "ok",
        Standing::InUse => "in use",
        Standing::Kept => "kept",
        Standing::Removable => "old",
        Standing::Finding => "finding",
    }
}

fn advice(item: &InventoryItem) -> Option<String> {
    match item.standing {
        Standing::Removable => Some("remove it with `premath clean`".to_owned()),
        Standing::Finding => item.advice.clone(),
        Standing::InOrder | Standing::InUse | Standing::Kept => None,
    }
}

/// Says in a line what commands printed.
fn printed(items: &[InventoryItem]) -> Option<String> {
    let outputs = || items.iter().filter(|item| item.kind == Kind::StepOutput);
    let bytes = |items: &mut dyn Iterator<Item = &InventoryItem>| {
        Size(items.filter_map(|item| item.bytes).sum())
    };
    let count = outputs().count();
    if count == 0 {
        return None;
    }
    let old = || outputs().filter(|item| item.standing == Standing::Removable);
    let mut line = format!(
        "  {:<8} output of {count} attempt(s) and boot(s), {}",
        "ok",
        bytes(&mut outputs())
    );
    if old().count() > 0 {
        let _ = write!(
            line,
            "; {} old one(s) can be removed with `premath clean`, {}",
            old().count(),
            bytes(&mut old())
        );
    }
    Some(line + "\n")
}

/// How many there are of each kind.
struct Counts {
    findings: usize,
    warnings: usize,
    removable: usize,
}

impl Counts {
    /// Returns the warnings as the end of a line.
    fn of_warnings(&self) -> String {
        match self.warnings {
            0 => String::new(),
            count => format!("; {}", counted(count as u64, "warning")),
        }
    }
}

fn verdict(landed: &BTreeMap<&str, usize>, counts: &Counts) -> String {
    let landed: Vec<String> = landed
        .iter()
        .map(|(target, count)| {
            let issues = if *count == 1 {
                "issue is"
            } else {
                "issues are"
            };
            format!("{count} closed {issues} on {}", plain(target))
        })
        .collect();
    let findings = counted(counts.findings as u64, "finding");
    let said = match (counts.findings, counts.removable) {
        (0, _) => {
            let none = match counts.warnings {
                0 => "no findings".to_owned(),
                count => format!("no errors, {}", counted(count as u64, "warning")),
            };
            return match landed.is_empty() {
                true => format!("{none}\n"),
                false => format!("{none}: {}\n", landed.join(", ")),
            };
        }
        (_, 0) => findings,
        (1, _) => format!("{findings}; remove it with `premath clean`"),
        (all, removable) if removable == all => {
            format!("{findings}; remove them with `premath clean`")
        }
        (_, removable) => format!("{findings}; remove {removable} of them with `premath clean`"),
    };
    format!("{said}{}\n", counts.of_warnings())
}

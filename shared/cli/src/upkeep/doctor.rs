//! `premath doctor`: is closed landed, and is everything accounted for?

use super::fix::{Repaired, fix};
use super::name;
use super::survey::{Survey, roots};
use crate::answer::{Answer, CheckVerdict, Finished};
use crate::error::CliError;
use crate::terminal::plain;
use clap::Args;
use harness_worker::settings::{FileSettings, Sandbox};
use premath_kernel::json::size::Size;
use premath_kernel::policy::health::{
    HealthFinding, SANDBOX_UNAVAILABLE, SETTINGS_INVALID, Severity, examine, of_item,
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
    /// What was written for `--repair-into`.
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<Repair>,
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
    /// Tries the mode `container` where the repository asks for it; else the
    /// modes, the strongest first.
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
            let terms = Terms::at(clock::now().wall);
            let mut state = State::of(roots.clone(), &terms)?;
            let repaired = match self.fix {
                true => {
                    let (items, findings) = (&state.items, &state.findings);
                    let repaired = fix(&mut state.survey, items, findings)?;
                    state = State::of(roots, &terms)?;
                    Some(repaired)
                }
                false => None,
            };
            Ok(report(root, state, repaired, repair))
        })
    }
}

/// A repository as it is, and what is wrong with it.
struct State {
    survey: Survey,
    items: Vec<InventoryItem>,
    findings: Vec<HealthFinding>,
    sandbox: SandboxCheck,
}

impl State {
    fn of(roots: MemoryRoots, terms: &Terms) -> Result<Self, CliError> {
        let survey = Survey::of(roots)?;
        let items = survey.account(terms);
        let sandbox = SandboxCheck::here(&survey.roots.repository);
        let unavailable = sandbox.mode.is_none().then(|| sandbox.detail.clone());
        let facts = super::health::look(&survey, unavailable)?;
        let mut findings = examine(&facts);
        findings.extend(items.iter().filter_map(of_item));
        findings.sort_by_key(HealthFinding::place);
        Ok(Self {
            survey,
            items,
            findings,
            sandbox,
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
    text.push_str(&if is_readable {
        verdict(&state.survey.landed(), finding_count, removable_count)
    } else {
        let findings = if finding_count == 1 {
            "finding"
        } else {
            "findings"
        };
        format!("{finding_count} {findings}; nothing is removed until every line can be read\n")
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
    ("worktrees", &[Kind::Worktree]),
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

fn verdict(landed: &BTreeMap<&str, usize>, findings: usize, removable: usize) -> String {
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
    match (findings, removable) {
        (0, _) if landed.is_empty() => "no findings\n".to_owned(),
        (0, _) => format!("no findings: {}\n", landed.join(", ")),
        (1, 0) => "1 finding\n".to_owned(),
        (1, _) => "1 finding; remove it with `premath clean`\n".to_owned(),
        (_, 0) => format!("{findings} findings\n"),
        (_, removable) if removable == findings => {
            format!("{findings} findings; remove them with `premath clean`\n")
        }
        (_, removable) => {
            format!("{findings} findings; remove {removable} of them with `premath clean`\n")
        }
    }
}

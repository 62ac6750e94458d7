//! `premath logs`: what an attempt prints.

use crate::answer::{Answer, Finished, print_diagnostic, put_part};
use crate::attempt::Attempt;
use crate::error::CliError;
use crate::exit;
use clap::{Args, ValueEnum};
use premath_evidence::{Agent, transcript};
use premath_kernel::json::plain::plain_json;
use premath_kernel::record::audit::WitnessRef;
use premath_kernel::record::log::LogKind;
use premath_memory::StoreError;
use premath_memory::roots::MemoryRoots;
use premath_memory::step_output::{CommandOutput, OutputStream, StepOutput};
use premath_view::log::{LogLine, LogText, LogView};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How often a followed log is looked at.
const AGAIN: Duration = Duration::from_millis(200);

/// The most lines that are shown at once.
const LINES_MAX: usize = 20_000;

/// How much of a stream one look reads.
const PART_MAX: usize = 8 << 20;

/// Arguments of `premath logs`.
///
/// An agent's event stream is shown as what the agent said, its tool calls in a line each
/// and the first lines of their results. Output of other commands is shown as it is.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The issue, or the lane: its worker or the name of its worktree
    #[arg(value_name = "ISSUE|LANE")]
    name: String,
    /// Print what comes until the attempt ends
    #[arg(long, short)]
    follow: bool,
    /// Print only the last lines [default: 200]
    #[arg(
        long,
        short = 'n',
        value_name = "N",
        default_value_t = 200,
        hide_default_value = true
    )]
    lines: usize,
    /// Print one stream only
    #[arg(long, value_name = "STREAM")]
    stream: Option<WantedStream>,
    /// Print an agent's event stream as it is
    #[arg(long)]
    raw: bool,
    /// Use the repository that contains this folder [default: .]
    #[arg(long, value_name = "DIR")]
    repo_root: Option<PathBuf>,
}

/// Which stream is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WantedStream {
    /// The output
    Stdout,
    /// The error output
    Stderr,
}

/// Returns the last lines that the running or the last attempt of an issue printed.
///
/// # Errors
///
/// [`CliError`], also where there is no attempt.
pub(crate) fn of_issue(issue: &str, lines: usize) -> Result<LogView, CliError> {
    let wanted = LogsArgs {
        name: issue.to_owned(),
        follow: false,
        lines,
        stream: None,
        raw: false,
        repo_root: None,
    };
    let (mut log, _) = wanted.open()?;
    log.next(Some(lines))
}

impl LogsArgs {
    pub(crate) fn run(self) -> Finished {
        let mut text = log_text(self.raw);
        let opened = self.open();
        Finished::new(
            "logs",
            opened.and_then(|(mut log, _)| {
                let view = log.next(Some(self.lines))?;
                let silence = log.silence(&view)?;
                let answer = answer(view, &mut text);
                Ok(match silence {
                    Some(note) => answer.note(note),
                    None => answer,
                })
            }),
        )
    }

    /// Prints what an attempt prints until it ends; `None` where it is to be
    /// printed once.
    pub(crate) fn follow(&self, json: bool) -> Option<ExitCode> {
        if !self.follow {
            return None;
        }
        let (mut log, roots) = match self.open() {
            Ok(opened) => opened,
            Err(error) => return Some(failed(error, json)),
        };
        let mut text = log_text(self.raw);
        let mut most = Some(self.lines);
        let mut is_silent = true;
        loop {
            // Asked first: what is printed before the end is read after it.
            let view = log
                .attempt
                .runs(&roots)
                .and_then(|runs| log.looked(runs, most.take()));
            let view = match view {
                Ok(view) => view,
                Err(error) => return Some(failed(error, json)),
            };
            let runs = view.running;
            let silence = match is_silent && !runs {
                true => log.silence(&view).unwrap_or_default(),
                false => None,
            };
            if !view.lines.is_empty() {
                is_silent = false;
                let finished = Finished::new("logs", Ok(answer(view, &mut text)));
                match put_part(finished, json) {
                    Ok(true) => {}
                    Ok(false) => return Some(ExitCode::from(exit::OK)),
                    Err(code) => return Some(code),
                }
            }
            if !runs {
                if let Some(note) = silence {
                    print_diagnostic(&note);
                }
                return Some(ExitCode::from(exit::OK));
            }
            std::thread::sleep(AGAIN);
        }
    }

    fn open(&self) -> Result<(Log, MemoryRoots), CliError> {
        let folder = self.repo_root.as_deref().unwrap_or(Path::new("."));
        let roots = MemoryRoots::discover(folder)?;
        let wanted = self.stream.map(|stream| match stream {
            WantedStream::Stdout => OutputStream::Stdout,
            WantedStream::Stderr => OutputStream::Stderr,
        });
        let log = Log::open(&self.name, &roots, wanted, self.raw)?;
        Ok((log, roots))
    }
}

/// What an attempt prints, as the lines that `premath logs --follow` prints.
#[derive(Debug)]
pub(crate) struct FollowedLog {
    log: Log,
    text: LogText,
    most: Option<usize>,
}

impl FollowedLog {
    /// Begins with the last lines of an attempt of an issue or a lane.
    ///
    /// # Errors
    ///
    /// [`CliError`], also where there is no such attempt.
    pub(crate) fn open(name: &str, roots: &MemoryRoots, most: usize) -> Result<Self, CliError> {
        Ok(Self {
            log: Log::open(name, roots, None, false)?,
            text: LogText::default(),
            most: Some(most),
        })
    }

    /// Returns what was printed since the last look, and whether the attempt runs.
    ///
    /// # Errors
    ///
    /// [`CliError`] where its output cannot be read.
    pub(crate) fn read(&mut self) -> Result<(String, bool), CliError> {
        let view = self.log.next(self.most.take())?;
        let runs = view.running;
        Ok((shown(&view, &mut self.text), runs))
    }
}

fn failed(error: CliError, json: bool) -> ExitCode {
    crate::answer::deliver(Finished::new("logs", Err(error)), json)
}

fn answer(view: LogView, text: &mut LogText) -> Answer {
    let shown = shown(&view, text);
    Answer::new(view, shown)
}

/// Returns lines of a log for a person.
fn shown(view: &LogView, text: &mut LogText) -> String {
    let mut shown = String::new();
    if view.skipped_bytes > 0 {
        shown.push_str(&format!(
            "... {} bytes before are left out\n",
            view.skipped_bytes
        ));
    }
    if view.skipped_lines > 0 {
        shown.push_str(&format!(
            "... {} lines before are left out; print more with --lines\n",
            view.skipped_lines
        ));
    }
    shown.push_str(&text.text(&view.lines));
    shown
}

/// Where a stream was read to.
#[derive(Debug, Default)]
struct Place {
    end: u64,
    /// The begin of a line whose end is not there yet.
    rest: Vec<u8>,
    /// Whether the line that is read is not there from its begin.
    is_torn: bool,
}

/// What an attempt prints, read on.
#[derive(Debug)]
struct Log {
    attempt: Attempt,
    output: StepOutput,
    wanted: Option<OutputStream>,
    agent: Option<Agent>,
    raw: bool,
    roots: MemoryRoots,
    places: BTreeMap<CommandOutput, Place>,
}

impl Log {
    fn open(
        name: &str,
        roots: &MemoryRoots,
        wanted: Option<OutputStream>,
        raw: bool,
    ) -> Result<Self, CliError> {
        let attempt = Attempt::find(name, roots)?;
        let output = StepOutput::open(roots, &attempt.step_id).map_err(StoreError::from)?;
        let agent = attempt.agent.as_deref().and_then(Agent::named);
        Ok(Self {
            output,
            attempt,
            wanted,
            agent: agent.filter(|_| !raw),
            raw,
            roots: roots.clone(),
            places: BTreeMap::new(),
        })
    }

    fn next(&mut self, most: Option<usize>) -> Result<LogView, CliError> {
        let runs = self.attempt.worktree.is_some() && self.attempt.runs(&self.roots)?;
        self.looked(runs, most)
    }

    /// Reads what was printed since the last look; of it, the last `most` lines.
    fn looked(&mut self, running: bool, most: Option<usize>) -> Result<LogView, CliError> {
        if self.places.is_empty() {
            // The folder is made by the first command that prints.
            let opened = StepOutput::open(&self.roots, &self.attempt.step_id);
            self.output = opened.map_err(StoreError::from)?;
        }
        let most = most.unwrap_or(LINES_MAX).min(LINES_MAX);
        let mut lines = Vec::new();
        let (mut skipped_bytes, mut skipped) = (0, 0);
        for output in self.output.list().map_err(StoreError::from)? {
            if self.wanted.is_none_or(|wanted| wanted == output.stream) {
                let (bytes, before) = self.read(&output, running, &mut lines)?;
                skipped_bytes += bytes;
                let surplus = lines.len().saturating_sub(most);
                lines.drain(..surplus);
                skipped += before + surplus;
            }
        }
        Ok(LogView {
            issue_id: self.attempt.issue_id.clone(),
            step_id: self.attempt.step_id.clone(),
            worker_id: self.attempt.worker_id.clone(),
            running,
            skipped_bytes,
            skipped_lines: skipped as u64,
            lines,
        })
    }

    /// Returns why a view of the whole output has no lines; `None` where it has some.
    fn silence(&self, view: &LogView) -> Result<Option<String>, CliError> {
        if !view.lines.is_empty() || view.skipped_lines > 0 || view.skipped_bytes > 0 {
            return Ok(None);
        }
        let id = &self.attempt.step_id;
        let streams = self.output.list().map_err(StoreError::from)?;
        if streams.is_empty() && !view.running && self.ran_commands() {
            return Ok(Some(format!(
                "the output of attempt {id} is gone: `premath clean` deletes old output"
            )));
        }
        let until = if view.running { " so far" } else { "" };
        let on = self.wanted.map(|stream| format!(" on {}", stream.as_str()));
        let on = on.unwrap_or_default();
        Ok(Some(format!("attempt {id} printed nothing{on}{until}")))
    }

    /// Returns whether commands of the attempt ended, by their witnesses: each of them had
    /// files for its output.
    fn ran_commands(&self) -> bool {
        let row = self.attempt.row.as_ref();
        let references = row.into_iter().flat_map(|row| row.witness_refs.iter());
        let mut references = references.filter_map(WitnessRef::parse);
        references.any(|reference| {
            let is_other = reference.is_close() || reference.is_turn() || reference.is_shared();
            reference.is_of_step() && !is_other
        })
    }

    /// Reads on in a stream; returns how many bytes, and how many lines after them,
    /// were left out.
    fn read(
        &mut self,
        output: &CommandOutput,
        running: bool,
        lines: &mut Vec<LogLine>,
    ) -> Result<(u64, usize), CliError> {
        let place = self.places.entry(output.clone()).or_default();
        let part = self.output.read(output, place.end, PART_MAX);
        let part = part.map_err(StoreError::from)?;
        place.end = part.end;
        if part.skipped > 0 {
            place.rest.clear();
            place.is_torn = true;
        }
        let mut bytes = std::mem::take(&mut place.rest);
        bytes.extend_from_slice(&part.bytes);
        let whole = match running {
            true => bytes.iter().rposition(|byte| *byte == b'\n'),
            false => bytes.len().checked_sub(1),
        };
        let whole = whole.map_or(0, |at| at + 1);
        if bytes.len() - whole <= PART_MAX {
            place.rest = bytes.split_off(whole);
        }
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if bytes.is_empty() {
            return Ok((part.skipped, 0));
        }
        let is_torn = std::mem::take(&mut place.is_torn);
        let whole = || text.split(|byte| *byte == b'\n').skip(is_torn.into());
        let surplus = whole().count().saturating_sub(LINES_MAX);
        for line in whole().skip(surplus) {
            lines.extend(self.parts(output, line));
        }
        Ok((part.skipped, surplus))
    }

    /// Returns a line as it is shown.
    fn parts(&self, output: &CommandOutput, line: &[u8]) -> Vec<LogLine> {
        let is_of_agent = output.stream == OutputStream::Stdout
            && (output.phase == "work" || output.phase.starts_with("work-"));
        let read = self
            .agent
            .filter(|_| is_of_agent)
            .and_then(|agent| transcript(agent, line));
        let parts = match read {
            Some(parts) => parts
                .into_iter()
                .map(|part| (part.kind, part.text))
                .collect(),
            None => {
                let text = String::from_utf8_lossy(line);
                let text = match self.raw {
                    true => plain_json(&text).into_owned(),
                    false => text.into_owned(),
                };
                vec![(LogKind::Output, text)]
            }
        };
        let line = |(kind, text)| LogLine {
            phase: output.phase.clone(),
            stream: output.stream.as_str().to_owned(),
            kind,
            text,
        };
        parts.into_iter().map(line).collect()
    }
}

fn log_text(raw: bool) -> LogText {
    match raw {
        true => LogText::raw(),
        false => LogText::default(),
    }
}

//! The command line as a whole.

use crate::agents::AgentsArgs;
use crate::answer::Finished;
use crate::audit::AuditArgs;
use crate::classes::ClassesArgs;
use crate::completions::{CompletionsArgs, ManArgs};
use crate::conformance::ConformanceArgs;
use crate::control::{BatchArgs, CancelArgs, SayArgs};
use crate::dep::DepArgs;
use crate::diff::DiffArgs;
use crate::doctrine::DoctrineArgs;
use crate::escalate::EscalateArgs;
use crate::feature::FeatureArgs;
use crate::init::InitArgs;
use crate::instruction::InstructionArgs;
use crate::issue::IssueArgs;
use crate::join_check::JoinCheckArgs;
use crate::kpi::KpiArgs;
use crate::logs::LogsArgs;
use crate::mcp::McpServeArgs;
use crate::observe::ObserveArgs;
use crate::plan::PlanArgs;
use crate::policy::PolicyArgs;
use crate::report::ReportArgs;
use crate::retry::RetryArgs;
use crate::review::ReviewArgs;
use crate::sandbox::SandboxArgs;
use crate::schema::SchemaArgs;
use crate::serve::ServeArgs;
use crate::service::ServiceArgs;
use crate::session::SessionArgs;
use crate::status::StatusArgs;
use crate::trajectory::TrajectoryArgs;
use crate::transport_dispatch::TransportDispatchArgs;
use crate::trust::TrustArgs;
use crate::upkeep::{CleanArgs, DoctorArgs, UninstallArgs};
use crate::watch::WatchArgs;
use crate::why::WhyArgs;
use crate::world::WorldArgs;
use clap::{CommandFactory, Parser, Subcommand};

/// Work with issues, sessions and evidence.
///
/// Issues live in `.premath/issues.jsonl` at the root of the repository, whichever
/// worktree a command runs in. `premath init` sets up a repository;
/// `harness-coordinator` then works through the issues.
#[derive(Debug, Parser)]
#[command(
    name = "premath",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 success, 1 refused or a check failed, 2 usage error or unreadable \
                 input."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Answer with one JSON document on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set up a repository: harness.toml, issue store, instruction, tasks
    Init(InitArgs),
    /// Check which coding agents are installed and usable
    Agents(AgentsArgs),
    /// List, show and change issues
    Issue(IssueArgs),
    /// Change dependencies between issues and diagnose the graph
    Dep(DepArgs),
    /// Write, check and show the instructions that authorise batches
    Instruction(InstructionArgs),
    /// Read and write a worktree's session
    HarnessSession(SessionArgs),
    /// Read, write and check a worktree's feature ledger
    HarnessFeature(FeatureArgs),
    /// Print what a batch would do now, and change nothing
    ///
    /// The lanes with their first issues, the order of the others, what would never run and why,
    /// the settings in force, and an estimate from earlier attempts.
    Plan(Box<PlanArgs>),
    /// Pause, resume, drain or stop the running batch; change its lanes
    ///
    /// The batch takes these requests from other terminals by a socket in the shared git folder.
    Batch(BatchArgs),
    /// End the running attempts of issues; their work is saved
    ///
    /// The attempt ends within its grace, uses up no attempt, and its work is kept on a salvage
    /// branch.
    Cancel(CancelArgs),
    /// Give the agent that works on an issue a text
    ///
    /// The agent reads it after its next tool call, where its hooks are wired. The command waits
    /// until then; interrupted, it takes nothing back.
    Say(SayArgs),
    /// Show the batches that run: lanes, queue, pace, cost
    Status(StatusArgs),
    /// Show the batch in a browser: a web page on loopback
    Serve(ServeArgs),
    /// Watch the batch that runs, and control it by keys
    ///
    /// Lanes, queue, last outcomes, pace and cost, and what a lane prints. ? shows the keys; q leaves
    /// the view, and the batch continues.
    Watch(WatchArgs),
    /// Say why an issue is not worked on, or why it did not close
    Why(WhyArgs),
    /// Print what an attempt of an issue, or a lane, prints
    Logs(LogsArgs),
    /// Show what an attempt of an issue changed, also while it runs
    Diff(DiffArgs),
    /// Print the report of a batch
    Report(ReportArgs),
    /// Go through what landed or was salvaged, one change at a time
    Review(ReviewArgs),
    /// Show what the last batch left, for the session that follows
    Observe(ObserveArgs),
    /// Show changed governing files and accept them
    Trust(TrustArgs),
    /// Show and try the sandbox of a step's commands
    Sandbox(SandboxArgs),
    /// Check that closed work has landed and that nothing is left over
    Doctor(DoctorArgs),
    /// Check that issues, rows, witnesses and commits agree
    Audit(AuditArgs),
    /// Remove unused branches, worktrees and old output
    Clean(CleanArgs),
    /// Remove what the harness has in a repository
    ///
    /// Lanes, branches, references, run log, evidence and ignore rules go; issues that git does not
    /// track and files that it tracks stay. Work that no other branch has keeps everything as it is.
    Uninstall(UninstallArgs),
    /// Append to the trajectory or query it
    HarnessTrajectory(TrajectoryArgs),
    /// Report the throughput of the worker loops from the trajectory
    Kpi(KpiArgs),
    /// Judge the evidence of one turn by the typestate gate
    HarnessJoinCheck(JoinCheckArgs),
    /// Perform a lease action on behalf of another program
    TransportDispatch(TransportDispatchArgs),
    /// Submit a step's turn to another repository on this machine
    World(WorldArgs),
    /// Serve the issue store over the Model Context Protocol
    McpServe(McpServeArgs),
    /// Check the table of operations against the contracts and the command line
    Doctrine(DoctrineArgs),
    /// Show, explain, check, compare and seal the policies of turns and retries
    Policy(PolicyArgs),
    /// Open issues for another attempt, or query the retry policy
    ///
    /// A running batch takes the issues again although their attempts are used up.
    Retry(RetryArgs),
    /// Escalate the active issue: block it or file a follow-up
    ///
    /// The issue is the one that PREMATH_ACTIVE_ISSUE_ID, PREMATH_ISSUE_ID or the session names,
    /// else the only one that is ready.
    Escalate(EscalateArgs),
    /// List the failure classes with their meaning and retry rule
    Classes(ClassesArgs),
    /// Print the JSON Schema of every document
    Schema(SchemaArgs),
    /// Run the conformance vectors of the gate
    Conformance(ConformanceArgs),
    /// Run batches as a service of systemd: write, delete or show its units
    Service(ServiceArgs),
    /// Print the completions of a program for a shell
    Completions(CompletionsArgs),
    /// Print a man page, or write all of them to a folder
    Man(ManArgs),
}

impl Command {
    /// Runs the command; `json` says which of its two forms the answer is
    /// read in, so that a long one is made in that form alone.
    pub(crate) fn run(self, json: bool) -> Finished {
        match self {
            Self::Init(args) => args.run(json),
            Self::Agents(args) => args.run(),
            Self::Issue(args) => args.run(json),
            Self::Dep(args) => args.run(),
            Self::Instruction(args) => args.run(),
            Self::HarnessSession(args) => args.run(),
            Self::HarnessFeature(args) => args.run(),
            Self::Plan(args) => args.run(),
            Self::Batch(args) => args.run(),
            Self::Cancel(args) => args.run(),
            Self::Say(args) => args.run(),
            Self::Status(args) => args.run(),
            Self::Serve(args) => args.run(json),
            Self::Watch(args) => args.run(),
            Self::Why(args) => args.run(),
            Self::Logs(args) => args.run(),
            Self::Diff(args) => args.run(),
            Self::Report(args) => args.run(json),
            Self::Review(args) => args.run(json),
            Self::Observe(args) => args.run(),
            Self::Trust(args) => args.run(json),
            Self::Sandbox(args) => args.run(),
            Self::Doctor(args) => args.run(),
            Self::Audit(args) => args.run(),
            Self::Clean(args) => args.run(),
            Self::Uninstall(args) => args.run(json),
            Self::HarnessTrajectory(args) => args.run(),
            Self::Kpi(args) => args.run(),
            Self::HarnessJoinCheck(args) => args.run(),
            Self::TransportDispatch(args) => args.run(),
            Self::World(args) => args.run(),
            Self::McpServe(args) => args.run(),
            Self::Doctrine(args) => args.run(&Cli::command()),
            Self::Policy(args) => args.run(),
            Self::Retry(args) => args.run(),
            Self::Escalate(args) => args.run(),
            Self::Classes(args) => args.run(),
            Self::Schema(args) => args.run(),
            Self::Conformance(args) => args.run(),
            Self::Service(args) => args.run(),
            Self::Completions(args) => args.run(),
            Self::Man(args) => args.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

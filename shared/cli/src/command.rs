//! The command line as a whole.

use crate::agents::AgentsArgs;
use crate::answer::Finished;
use crate::audit::AuditArgs;
use crate::classes::ClassesArgs;
use crate::conformance::ConformanceArgs;
use crate::dep::DepArgs;
use crate::doctrine::DoctrineArgs;
use crate::escalate::EscalateArgs;
use crate::feature::FeatureArgs;
use crate::init::InitArgs;
use crate::instruction::InstructionArgs;
use crate::issue::IssueArgs;
use crate::join_check::JoinCheckArgs;
use crate::kpi::KpiArgs;
use crate::mcp::McpServeArgs;
use crate::report::ReportArgs;
use crate::retry::RetryArgs;
use crate::sandbox::SandboxArgs;
use crate::schema::SchemaArgs;
use crate::session::SessionArgs;
use crate::trajectory::TrajectoryArgs;
use crate::transport_dispatch::TransportDispatchArgs;
use crate::trust::TrustArgs;
use crate::upkeep::{CleanArgs, DoctorArgs};
use crate::world::WorldArgs;
use clap::{CommandFactory, Parser, Subcommand};

/// Work with the issues, sessions and evidence of Premath Harness.
///
/// Issues live in `.premath/issues.jsonl` at the root of the repository, whichever
/// worktree a command runs in. `premath init` lays a repository out;
/// `harness-coordinator` then works through the issues.
#[derive(Debug, Parser)]
#[command(
    name = "premath",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done, 1 refused or a check failed, 2 usage or input that cannot be read."
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
    /// Lay out a repository: harness.toml, .premath/, the instruction policy with a first instruction, and the mise tasks
    Init(InitArgs),
    /// See which coding agents are installed and can be read
    Agents(AgentsArgs),
    /// Look at issues and change them
    Issue(IssueArgs),
    /// Change what issues wait for, and diagnose the graph
    Dep(DepArgs),
    /// Write, check and show the envelopes that authorise batches
    Instruction(InstructionArgs),
    /// Read and write a worktree's session, and see how to go on from it
    HarnessSession(SessionArgs),
    /// Read, write and check a worktree's feature ledger
    HarnessFeature(FeatureArgs),
    /// Show again what a batch came to
    Report(ReportArgs),
    /// See how the files that govern batches changed, and accept them
    Trust(TrustArgs),
    /// See what a command of a step may do, and try one there
    Sandbox(SandboxArgs),
    /// Check that closed work is on its target, and that nothing is left over
    Doctor(DoctorArgs),
    /// Check that rows, issues, witnesses and commits agree, from the files alone
    Audit(AuditArgs),
    /// Take away what nothing needs any more
    Clean(CleanArgs),
    /// Append to the trajectory of steps and query it
    HarnessTrajectory(TrajectoryArgs),
    /// Report the throughput of the worker loops from the trajectory
    Kpi(KpiArgs),
    /// Judge the evidence of one turn by the typestate gate
    HarnessJoinCheck(JoinCheckArgs),
    /// Carry out a lease action that somebody else dispatches
    TransportDispatch(TransportDispatchArgs),
    /// Hand what a step did to another repository on this machine, to be judged there
    World(WorldArgs),
    /// Serve issue memory to agents and editors by the Model Context Protocol
    McpServe(McpServeArgs),
    /// Check the table of operations against the contracts and the command line
    Doctrine(DoctrineArgs),
    /// Ask the retry policy what becomes of a failure
    Retry(RetryArgs),
    /// Hand the active issue up, as the retry policy says: block it, or file a follow-up
    ///
    /// The issue is the one that PREMATH_ACTIVE_ISSUE_ID, PREMATH_ISSUE_ID or the session names,
    /// else the only one that is ready.
    Escalate(EscalateArgs),
    /// List the failure classes: what each means, and what the retry policy says of it
    Classes(ClassesArgs),
    /// Show the form of every document that is read or written, as JSON Schema
    Schema(SchemaArgs),
    /// Judge the gate by its conformance vectors, and map them to the slices of the typestate
    Conformance(ConformanceArgs),
}

impl Command {
    /// Runs the command; `json` says which of its two forms the answer is
    /// read in, so that a long one is made in that form alone.
    pub(crate) fn run(self, json: bool) -> Finished {
        match self {
            Self::Init(args) => args.run(),
            Self::Agents(args) => args.run(),
            Self::Issue(args) => args.run(json),
            Self::Dep(args) => args.run(),
            Self::Instruction(args) => args.run(),
            Self::HarnessSession(args) => args.run(),
            Self::HarnessFeature(args) => args.run(),
            Self::Report(args) => args.run(),
            Self::Trust(args) => args.run(json),
            Self::Sandbox(args) => args.run(),
            Self::Doctor(args) => args.run(),
            Self::Audit(args) => args.run(),
            Self::Clean(args) => args.run(),
            Self::HarnessTrajectory(args) => args.run(),
            Self::Kpi(args) => args.run(),
            Self::HarnessJoinCheck(args) => args.run(),
            Self::TransportDispatch(args) => args.run(),
            Self::World(args) => args.run(),
            Self::McpServe(args) => args.run(),
            Self::Doctrine(args) => args.run(&Cli::command()),
            Self::Retry(args) => args.run(),
            Self::Escalate(args) => args.run(),
            Self::Classes(args) => args.run(),
            Self::Schema(args) => args.run(),
            Self::Conformance(args) => args.run(),
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

//! The `premath` command: the operator's and the agent's surface of the harness.

#![warn(clippy::too_many_lines)]

mod agents;
mod answer;
mod attempt;
mod audit;
mod classes;
mod command;
mod completions;
mod conformance;
mod control;
mod dep;
mod diff;
mod doctrine;
mod editor;
mod error;
mod escalate;
mod exit;
mod failure;
mod feature;
mod form;
mod http;
mod init;
mod instruction;
mod issue;
mod join_check;
mod kpi;
mod logs;
mod mcp;
mod observe;
mod operator;
mod paths;
mod plan;
mod policy;
mod policy_kind;
mod report;
mod retry;
mod review;
mod salvage;
mod sandbox;
mod schema;
mod serve;
mod service;
mod session;
mod status;
mod terminal;
mod trajectory;
mod transport_dispatch;
mod trust;
mod upkeep;
mod watch;
mod why;
mod world;

pub use watch::{Beside, HeldStream};

use clap::{CommandFactory, Parser};
use std::process::ExitCode;

/// Returns the command line.
pub fn command_line() -> clap::Command {
    command::Cli::command()
}

/// Runs the command that the arguments of this process ask for.
pub fn main() -> ExitCode {
    if let Some(ended) = harness_worker::supervisor::hidden_mode() {
        return ended;
    }
    let cli = command::Cli::parse();
    if let command::Command::Sandbox(sandbox) = &cli.command
        && let Some(ran) = sandbox.run_in_terminal()
    {
        return ran.unwrap_or_else(|finished| answer::deliver(finished, cli.json));
    }
    if let command::Command::Status(status) = &cli.command
        && let Some(ended) = status.watch(cli.json)
    {
        return ended;
    }
    if let command::Command::Logs(logs) = &cli.command
        && let Some(ended) = logs.follow(cli.json)
    {
        return ended;
    }
    if let command::Command::Watch(watch) = &cli.command
        && let Some(ended) = watch.show(cli.json)
    {
        return ended;
    }
    // A server's stdout is the protocol's.
    let json = cli.json && !matches!(cli.command, command::Command::McpServe(_));
    answer::deliver(cli.command.run(json), json)
}

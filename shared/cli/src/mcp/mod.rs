//! `premath mcp-serve`: issue memory for agents and editors, by the Model
//! Context Protocol.
//!
//! Every tool is an operation of the one table; what a tool answers is what its
//! command answers with `--json`. Reads are free. A change rests on an
//! instruction that claims it, or goes to a step's outbox; an operator override
//! is not available here.

mod bound;
mod context;
mod http;
mod server;
pub(crate) mod tool;

use self::http::Endpoint;
use crate::answer::{Answer, Finished, print_diagnostic};
use crate::error::CliError;
use crate::http::with_runtime;
use crate::paths;
use crate::policy::Configuration;
use bound::BoundLease;
use clap::Args;
use context::Context;
use premath_memory::roots::MemoryRoots;
use server::Server;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments of `premath mcp-serve`.
#[derive(Debug, Args)]
pub(crate) struct McpServeArgs {
    /// Serve this repository; relative paths are below it
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo_root: PathBuf,
    /// Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]
    #[arg(long, value_name = "PATH")]
    issues: Option<PathBuf>,
    /// Authorise changes by this instruction [default: $PREMATH_INSTRUCTION, else batch.instruction
    /// of harness.toml]; without one the tools only read
    #[arg(long, value_name = "FILE")]
    instruction: Option<PathBuf>,
    /// Serve one step: tools read everything, file follow-up issues in the step's outbox, and
    /// change nothing else; a `:` or `%` within a part is percent-encoded [default: the step that
    /// the environment names]
    #[arg(long, value_name = "ISSUE:LEASE_ID:GENERATION:OWNER")]
    lease: Option<String>,
    /// Serve HTTP at this loopback address instead of stdin and stdout; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
    /// Require the token in this file from every HTTP request; steps must not be able to read it
    /// [default: $PREMATH_MCP_TOKEN, else .premath/private/mcp-token, created if missing]
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
}

impl McpServeArgs {
    pub(crate) fn run(self) -> Finished {
        // Stdout is the protocol's: nothing is answered there.
        Finished::new("mcp-serve", self.serve().map(|()| Answer::new((), "")))
    }

    fn serve(self) -> Result<(), CliError> {
        std::env::set_current_dir(&self.repo_root)
            .map_err(CliError::file("find", &self.repo_root))?;
        if self.http.is_some() {
            // The private folder stays out of git's status.
            let _ = premath_memory::ignored::exclude_from_status(&paths::repository()?);
        }
        let endpoint = match self.http {
            Some(address) => Some(Endpoint::new(address, self.token_file.as_deref())?),
            None => None,
        };
        let context = Context {
            issues: paths::issues(self.issues)?,
            session: paths::session(None)?,
            trajectory: paths::trajectory(None)?,
            repository: paths::repository()?,
            witnesses: MemoryRoots::discover(Path::new("."))?.witnesses,
            instruction: instruction(self.instruction)?,
            bound: BoundLease::find(self.lease.as_deref())?,
            memory: Default::default(),
        };
        print_diagnostic(&context.describe());
        let server = Server::new(Arc::new(context));
        match endpoint {
            Some(endpoint) => with_runtime(endpoint.serve(server)),
            None => with_runtime(server.serve_stdio()),
        }
    }
}

/// Returns the envelope that changes rest on: the one given, that of the
/// environment, or that of the configuration.
fn instruction(given: Option<PathBuf>) -> Result<Option<PathBuf>, CliError> {
    let variable = || paths::variable("PREMATH_INSTRUCTION").map(PathBuf::from);
    if let Some(path) = given.or_else(variable) {
        return Ok(Some(path));
    }
    let root = paths::repository()?;
    let named = Configuration::read(None)?.instruction;
    let named = named.as_deref().map(str::trim).filter(|n| !n.is_empty());
    Ok(named.map(|name| root.join(Path::new(name))))
}

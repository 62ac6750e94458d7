//! What the servers of the command share: `mcp-serve --http` and `serve`. A
//! loopback address or TLS, a token that every request bears, and the Host and
//! Origin of a request.
//!
//! tokio is inside these modules and nowhere else in the command.

mod listen;
mod origin;
mod room;
mod tls;
mod token;

pub(crate) use listen::{Listening, loopback, with_runtime};
pub(crate) use origin::{Names, Stranger};
pub(crate) use room::Acquaintance;
pub(crate) use tls::Tls;
pub(crate) use token::{Secret, Token};

use crate::error::CliError;

/// Returns the error of an operation of a server that failed.
pub(crate) fn failed(operation: impl Into<String>) -> impl FnOnce(std::io::Error) -> CliError {
    let operation = operation.into();
    move |source| CliError::Serve { operation, source }
}

//! `premath mcp-serve`, spoken to by hand: JSON-RPC over stdin and stdout, and
//! over HTTP.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue ends, and says where"
)]

mod bound;
mod changes;
mod client;
mod http;
mod tools;

//! `premath serve`: the batch in a browser, on loopback.

mod control;
mod door;
mod issue;
mod pages;
mod site;
mod watch;
mod work;

use crate::answer::{Answer, Finished, print_diagnostic, put_part};
use crate::error::CliError;
use crate::http::{Listening, Token, with_runtime};
use crate::operator;
use crate::paths;
use clap::Args;
use premath_memory::ignored::exclude_from_status;
use schemars::JsonSchema;
use serde::Serialize;
use site::Site;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `premath serve`.
///
/// The printed address has a token that every request needs; it is valid until the server
/// ends. Programs send it as `Authorization: Bearer TOKEN`, and can only read.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve this repository
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo_root: PathBuf,
    /// Listen at this port [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Listen at this loopback address, 127.0.0.1 or ::1
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS", value_parser = localhost)]
    bind: IpAddr,
    /// Let the page pause, resume, drain and stop the batch, cancel attempts and retry issues
    #[arg(long)]
    control: bool,
    /// Let programs read by the token in this file, which steps must not be able to read
    /// [default: the one of the printed address]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Reads an address that browsers know as `localhost`.
fn localhost(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|error| format!("{error}"))?;
    let known = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    match known.contains(&address) {
        true => Ok(address),
        false => Err(
            "expected 127.0.0.1 or ::1; from another machine, forward the port by ssh".to_owned(),
        ),
    }
}

/// What `premath serve` prints when it listens.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServeAnswer {
    /// The address to open in a browser, with the token.
    url: String,
    /// The address for programs, which send the token as a header.
    origin: String,
    /// Whether the page controls the batch.
    control: bool,
}

impl ServeArgs {
    /// Serves until the process is ended.
    pub(crate) fn run(self, json: bool) -> Finished {
        // The address is printed while it serves.
        Finished::new("serve", self.serve(json).map(|()| Answer::new((), "")))
    }

    fn serve(self, json: bool) -> Result<(), CliError> {
        let address = SocketAddr::new(self.bind, self.port);
        if self.control && operator::is_inside_step() {
            return Err(CliError::ControlInsideStep);
        }
        std::env::set_current_dir(&self.repo_root)
            .map_err(CliError::file("find", &self.repo_root))?;
        // The private folder stays out of git's status.
        let _ = exclude_from_status(&paths::repository()?);
        let token = match &self.token_file {
            Some(file) => Some(Token::of_file(file)?),
            None => None,
        };
        with_runtime(async move {
            let listening = Listening::at(address).await?;
            let site = Site::new(listening.address, token, self.control)?;
            let answer = ServeAnswer {
                url: site.door.url(),
                origin: format!("http://{}", listening.address),
                control: self.control,
            };
            let text = format!("{}\n", answer.url);
            let shown = Finished::new("serve", Ok(Answer::new(answer, text)));
            // Who cannot read the address cannot use it, and the server is of no use.
            if !put_part(shown, json).unwrap_or(false) {
                return Ok(());
            }
            print_diagnostic("serving until interrupted (Ctrl-C)");
            listening.serve(Arc::new(site).service()).await
        })
    }
}

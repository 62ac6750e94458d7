//! `premath serve`: the batch in a browser, on loopback or by TLS.

mod control;
mod door;
mod issue;
mod pages;
mod site;
mod watch;
mod work;

use crate::answer::{Answer, Finished, print_diagnostic, put_part};
use crate::error::CliError;
use crate::http::{Listening, Tls, Token, with_runtime};
use crate::operator;
use crate::paths;
use clap::Args;
use door::Door;
use premath_memory::ignored::exclude_from_status;
use schemars::JsonSchema;
use serde::Serialize;
use site::Site;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// The longest name of a host.
const HOST_MAX: usize = 253;

/// Arguments of `premath serve`.
///
/// The printed address has a token that gives a browser its cookie; it is valid until the
/// server ends. Programs send it, or that of --token-file, as `Authorization: Bearer
/// TOKEN`, and can only read. With TLS they need --token-file.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve this repository
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo_root: PathBuf,
    /// Listen at this port [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Listen at this address: 127.0.0.1 or ::1, or with --tls-cert any
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS")]
    bind: IpAddr,
    /// Serve by TLS, with the certificate chain in this PEM file
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "host"])]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, in a PEM file that others and steps cannot read
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The name by which browsers reach the server, as in the certificate
    #[arg(long, value_name = "NAME", requires = "tls_cert", value_parser = host_name)]
    host: Option<String>,
    /// Let the page pause, resume, drain and stop the batch, cancel attempts and retry issues
    #[arg(long)]
    control: bool,
    /// Let programs read by the token in this file, which steps must not be able to read
    /// [default: the one of the printed address]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Reads the name of a host, or its address.
fn host_name(text: &str) -> Result<String, String> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_name = !text.is_empty() && text.len() <= HOST_MAX && text.bytes().all(is_letter);
    match text.parse::<Ipv6Addr>() {
        Ok(address) => Ok(format!("[{address}]")),
        Err(_) if is_name => Ok(text.to_ascii_lowercase()),
        Err(_) => Err("expected the name of a host, such as build.example, or its address".into()),
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

    /// Reads how the server is reached by TLS: the name, and the certificate.
    fn tls(&self) -> Result<Option<(String, Tls)>, CliError> {
        if let (Some(chain), Some(key), Some(host)) = (&self.tls_cert, &self.tls_key, &self.host) {
            return Ok(Some((host.clone(), Tls::read(chain, key)?)));
        }
        // Only these two are what browsers know as `localhost`.
        let known = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        match known.contains(&self.bind) {
            true => Ok(None),
            false => Err(CliError::Usage(format!(
                "--bind {} takes --tls-cert, --tls-key and --host; without TLS the address is \
                 127.0.0.1 or ::1, and ssh forwards its port to another machine",
                self.bind
            ))),
        }
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
        let (host, tls) = self.tls()?.unzip();
        with_runtime(async move {
            let listening = Listening::at(address).await?;
            let door = Door::new(listening.address, host.as_deref(), token)?;
            let site = Site::new(door, self.control)?;
            let answer = ServeAnswer {
                url: site.door.url(),
                origin: site.door.origin(),
                control: self.control,
            };
            let text = format!("{}\n", answer.url);
            let shown = Finished::new("serve", Ok(Answer::new(answer, text)));
            // Who cannot read the address cannot use it, and the server is of no use.
            if !put_part(shown, json).unwrap_or(false) {
                return Ok(());
            }
            print_diagnostic("serving until interrupted (Ctrl-C)");
            listening.serve(Arc::new(site).service(), tls).await
        })
    }
}

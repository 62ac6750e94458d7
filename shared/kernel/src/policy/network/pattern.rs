//! Entries of a list of hosts.

use super::host::{self, Host, HostError, HostName, Target};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// An entry of a list: `example.com`, `*.example.com`, an address, each with
/// or without a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPattern {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hosts {
    One(Host),
    /// The names below a name, not itself.
    Below(HostName),
}

/// Which addresses an entry opens for a host that it matches; a later one
/// opens more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Opening {
    /// Public addresses.
    Public,
    /// Private ones too: the entry names host and port.
    Named,
    /// Loopback ones: the entry names `localhost`.
    Localhost,
    /// The very address, whatever its range.
    Address,
    /// All addresses.
    All,
}

impl HostPattern {
    /// Returns whether the entry has the host, whatever the port.
    pub(super) fn matches_host(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::One(one), host) => one == host,
            (Hosts::Below(above), Host::Name(name)) => name.is_below(above),
            (Hosts::Below(_), Host::Address(_)) => false,
        }
    }

    /// Returns which addresses are open for a target; `None` where the entry
    /// does not match. An entry without a port matches the usual ports.
    pub(super) fn opens(&self, target: &Target, is_usual: impl Fn(u16) -> bool) -> Option<Opening> {
        let port = target.port;
        let is_port = self.port.map_or_else(|| is_usual(port), |own| own == port);
        if !is_port || !self.matches_host(&target.host) {
            return None;
        }
        Some(match &self.hosts {
            Hosts::One(Host::Address(_)) => Opening::Address,
            Hosts::One(Host::Name(name)) if name.is_localhost() => Opening::Localhost,
            Hosts::One(Host::Name(_)) if self.port.is_some() => Opening::Named,
            Hosts::One(Host::Name(_)) | Hosts::Below(_) => Opening::Public,
        })
    }

    /// Returns the target of an entry that names a service on this machine.
    pub(super) fn loopback(&self) -> Option<Target> {
        let port = self.port?;
        let Hosts::One(host) = &self.hosts else {
            return None;
        };
        let is_loopback = match host {
            Host::Address(address) => address.is_loopback(),
            Host::Name(name) => name.is_localhost(),
        };
        is_loopback.then(|| Target {
            host: host.clone(),
            port,
        })
    }
}

impl From<HostName> for HostPattern {
    fn from(name: HostName) -> Self {
        Self {
            hosts: Hosts::One(Host::Name(name)),
            port: None,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::One(host) => write!(f, "{host}")?,
            Hosts::Below(name) => write!(f, "*.{}", name.as_str())?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// An entry names no hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid host `{text}`: {fault}; expected for example `example.com`, `*.example.com` or \
        `10.0.0.7:8080`"
)]
pub struct HostPatternError {
    /// The entry.
    pub text: String,
    /// What is wrong with it.
    pub fault: PatternFault,
}

/// What is wrong with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// It is an address of the web.
    #[error("leave out the scheme and the path")]
    Url,
    /// The entry is a network.
    #[error("networks are not supported; list each address")]
    Network,
    /// The entry matches every host.
    #[error("for every host use `public` or `open`, not a list entry")]
    Everything,
    /// The star does not represent the first labels.
    #[error("a star is allowed only at the beginning, before a dot")]
    Star,
    /// Its host or port does not fit.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        read(text.trim()).map_err(|fault| HostPatternError {
            text: text.to_owned(),
            fault,
        })
    }
}

fn read(text: &str) -> Result<HostPattern, PatternFault> {
    if text.contains("://") {
        return Err(PatternFault::Url);
    }
    if let Some((host, _)) = text.split_once('/') {
        let is_network = host.parse::<IpAddr>().is_ok();
        return Err(if is_network {
            PatternFault::Network
        } else {
            PatternFault::Url
        });
    }
    // An IPv6 address without a port needs no brackets here.
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(HostPattern {
            hosts: Hosts::One(Host::Address(address.to_canonical())),
            port: None,
        });
    }
    let (host, port) = host::split(text)?;
    let hosts = match host.strip_prefix('*') {
        None if host.contains('*') => return Err(PatternFault::Star),
        None => Hosts::One(Host::parse(host)?),
        Some("") => return Err(PatternFault::Everything),
        Some(rest) => {
            let below = rest.strip_prefix('.').ok_or(PatternFault::Star)?;
            if below.contains('*') {
                return Err(PatternFault::Star);
            }
            Hosts::Below(HostName::parse(below)?)
        }
    };
    Ok(HostPattern { hosts, port })
}

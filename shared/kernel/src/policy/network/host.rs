//! Hosts as commands name them: a strict reader of `host:port`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most characters of a host name (RFC 1035).
const NAME_MAX: usize = 253;
/// The most characters of a label.
const LABEL_MAX: usize = 63;

/// A host name: lower-case ASCII, without a dot at the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

impl HostName {
    /// Reads a name; one dot at the end is dropped.
    ///
    /// # Errors
    ///
    /// [`HostError`] for everything that is not letters, digits, hyphens and
    /// underscores in labels, and for a name that C libraries read as an
    /// address, such as `127.1` or `0x7f000001`.
    pub(crate) fn parse(text: &str) -> Result<Self, HostError> {
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.is_empty() {
            return Err(HostError::Empty);
        }
        if name.len() > NAME_MAX {
            return Err(HostError::Long);
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if let Some(other) = name.chars().find(|c| !allowed(*c)) {
            return Err(HostError::Character(other));
        }
        for label in name.split('.') {
            let hyphen = label.starts_with('-') || label.ends_with('-');
            if label.is_empty() || label.len() > LABEL_MAX || hyphen {
                return Err(HostError::Label);
            }
        }
        let last = name.rsplit('.').next().unwrap_or(name);
        if last.chars().all(|c| c.is_ascii_digit()) || is_hexadecimal(last) {
            return Err(HostError::Number);
        }
        Ok(Self(name.to_ascii_lowercase()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the name is `localhost`.
    pub(crate) fn is_localhost(&self) -> bool {
        self.0 == "localhost"
    }

    /// Returns whether the name is below another one, at any depth.
    pub(super) fn is_below(&self, other: &Self) -> bool {
        let head = self.0.strip_suffix(&other.0);
        head.is_some_and(|head| head.len() > 1 && head.ends_with('.'))
    }
}

/// Returns whether a label is a hexadecimal number as C libraries read it.
fn is_hexadecimal(label: &str) -> bool {
    let digits = label.strip_prefix("0x").or(label.strip_prefix("0X"));
    digits.is_some_and(|digits| digits.chars().all(|c| c.is_ascii_hexdigit()))
}

/// A host: a name or an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// An address; an IPv4 address that was written as IPv6 is IPv4.
    Address(IpAddr),
    /// A name, still to be resolved.
    Name(HostName),
}

impl Host {
    /// Reads a host: a name, an IPv4 address, or an IPv6 address in brackets.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub(crate) fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(rest) = text.strip_prefix('[') {
            let inner = rest.strip_suffix(']').ok_or(HostError::Brackets)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Brackets)?;
            return Ok(Self::Address(address.to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        HostName::parse(text).map(Self::Name)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name.as_str()),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// What a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port, from 1.
    pub port: u16,
}

impl Target {
    /// Reads `host:port`, as in the request line of CONNECT (RFC 9110 9.3.6).
    ///
    /// # Errors
    ///
    /// [`HostError`], also for user information, paths, zones, percent signs,
    /// spaces and a missing port.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let (host, port) = split(text)?;
        Ok(Self {
            host: Host::parse(host)?,
            port: port.ok_or(HostError::PortMissing)?,
        })
    }

    /// Reads the authority of an `http://` address, where the port may be
    /// left out.
    ///
    /// # Errors
    ///
    /// [`HostError`].
    pub fn parse_http(text: &str) -> Result<Self, HostError> {
        let (host, port) = split(text)?;
        Ok(Self {
            host: Host::parse(host)?,
            port: port.unwrap_or(80),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Splits the port off.
pub(super) fn split(text: &str) -> Result<(&str, Option<u16>), HostError> {
    if !text.is_ascii() {
        return Err(HostError::NotAscii);
    }
    // The colons within brackets belong to the address.
    let from = text.find(']').unwrap_or(0);
    let Some(colon) = text.get(from..).and_then(|rest| rest.find(':')) else {
        return Ok((text, None));
    };
    let (host, port) = text.split_at(from + colon);
    Ok((host, Some(port_of(port.get(1..).unwrap_or_default())?)))
}

/// Reads a port: decimal digits, without a sign or leading zeros.
fn port_of(text: &str) -> Result<u16, HostError> {
    let is_plain = text.chars().all(|c| c.is_ascii_digit()) && !text.starts_with('0');
    match text.parse() {
        Ok(port) if is_plain => Ok(port),
        _ => Err(HostError::Port),
    }
}

/// A text names no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The host is empty.
    #[error("the host is empty")]
    Empty,
    /// It has characters beyond ASCII.
    #[error("the host is not ASCII; an international name is written in its xn-- form")]
    NotAscii,
    /// It has a character that no host name has.
    #[error("a host name cannot contain {0:?}")]
    Character(char),
    /// The name is too long.
    #[error("the host name is longer than {NAME_MAX} characters")]
    Long,
    /// A label does not fit.
    #[error("a label of the host name is empty, too long, or has a hyphen at an end")]
    Label,
    /// It is an address in a form that only some programs read.
    #[error("the host name ends in a number and is not an IPv4 address in four decimal parts")]
    Number,
    /// The brackets hold no IPv6 address.
    #[error("the brackets hold no IPv6 address")]
    Brackets,
    /// The port is missing.
    #[error("the port is missing")]
    PortMissing,
    /// The port is not one.
    #[error("the port is not a number from 1 to 65535")]
    Port,
}

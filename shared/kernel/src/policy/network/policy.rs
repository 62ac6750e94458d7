//! The policy, and the decision about one connection.

use super::address::AddressRange;
use super::host::{Host, HostName, Target};
use super::pattern::{HostPattern, Opening};
use super::registries::REGISTRIES;
use super::word::NetworkWord;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

/// What commands are run for; each has a policy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPhase {
    /// The work, and the setup and hooks around it.
    Work,
    /// The verification.
    Verify,
}

impl NetworkPhase {
    /// Returns the key of the policy's word under `[network]`.
    pub(crate) const fn policy_key(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Verify => "verify",
        }
    }

    /// Returns the key of the list of hosts.
    pub const fn list_key(self) -> &'static str {
        match self {
            Self::Work => "allow",
            Self::Verify => "verify_allow",
        }
    }
}

/// The ports that hosts are reached at where an entry names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(BTreeSet<u16>);

impl Default for Ports {
    /// HTTP and HTTPS: registries, forges and models need no other, and a
    /// port of SSH or mail carries what no log shows.
    fn default() -> Self {
        Self(BTreeSet::from([80, 443]))
    }
}

impl FromIterator<u16> for Ports {
    fn from_iter<I: IntoIterator<Item = u16>>(ports: I) -> Self {
        Self(ports.into_iter().collect())
    }
}

impl Ports {
    /// Returns the ports in their order.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        self.0.iter().copied()
    }

    fn has(&self, port: u16) -> bool {
        self.0.contains(&port)
    }
}

/// Hosts of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostList {
    /// The entries.
    pub hosts: Vec<HostPattern>,
    /// The ports of entries that name none.
    pub ports: Ports,
}

/// The hosts that commands may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// No host.
    Off,
    /// The listed hosts.
    Allow(HostList),
    /// Every host with a public address at the list's ports, and the listed
    /// hosts.
    Public(HostList),
    /// Everything.
    Open,
}

/// A policy that admits listed hosts has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy `allow` has no hosts; list some, or use `off`")]
pub struct ListMissing;

impl NetworkPolicy {
    /// Makes the policy of a word with its list, which `off` and `open` do not
    /// need.
    ///
    /// # Errors
    ///
    /// [`ListMissing`] for `allow` without a host.
    pub fn of(word: NetworkWord, mut list: HostList) -> Result<Self, ListMissing> {
        Ok(match word {
            NetworkWord::Off => Self::Off,
            NetworkWord::Allow if list.hosts.is_empty() => return Err(ListMissing),
            NetworkWord::Allow => Self::Allow(list),
            NetworkWord::Registries => {
                let names = REGISTRIES.iter().filter_map(|name| {
                    let name = HostName::parse(name).ok()?;
                    Some(HostPattern::from(name))
                });
                list.hosts.extend(names);
                Self::Allow(list)
            }
            NetworkWord::Public => Self::Public(list),
            NetworkWord::Open => Self::Open,
        })
    }

    /// Looks at a target before its name is resolved.
    ///
    /// # Errors
    ///
    /// [`Denial`], where no address could make the target admissible.
    pub fn consider<'t>(&self, target: &'t Target) -> Result<Candidate<'t>, Denial> {
        let refused = |reason| Err(Denial::of(target, reason, self.is_usual(target.port)));
        let listed = |list: &HostList| {
            let entries = list.hosts.iter();
            entries
                .filter_map(|entry| entry.opens(target, |port| list.ports.has(port)))
                .max()
        };
        let opening = match self {
            Self::Off => return refused(DenialReason::Off),
            Self::Open => Opening::All,
            Self::Allow(list) => match listed(list) {
                Some(opening) => opening,
                None if list.hosts.iter().any(|one| one.matches_host(&target.host)) => {
                    return refused(DenialReason::Port);
                }
                None => return refused(DenialReason::NotListed),
            },
            Self::Public(list) => match listed(list) {
                Some(opening) => opening,
                None if list.ports.has(target.port) => Opening::Public,
                None => return refused(DenialReason::Port),
            },
        };
        let is_usual = self.is_usual(target.port);
        Ok(Candidate {
            target,
            opening,
            is_usual,
        })
    }

    /// Returns whether entries without a port admit the port.
    fn is_usual(&self, port: u16) -> bool {
        match self {
            Self::Off | Self::Open => true,
            Self::Allow(list) | Self::Public(list) => list.ports.has(port),
        }
    }

    /// Returns the services of this machine that the list names with a port,
    /// as in `127.0.0.1:8080`.
    ///
    /// Programs do not use a proxy for loopback addresses, so that the creator
    /// of the network namespace must forward these ports itself.
    pub fn loopback_services(&self) -> BTreeSet<Target> {
        match self {
            Self::Off | Self::Open => BTreeSet::new(),
            Self::Allow(list) | Self::Public(list) => list
                .hosts
                .iter()
                .filter_map(HostPattern::loopback)
                .collect(),
        }
    }
}

/// A target whose name may be resolved; its addresses are still to be judged.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Candidate<'t> {
    target: &'t Target,
    opening: Opening,
    is_usual: bool,
}

impl Candidate<'_> {
    /// Returns those of the resolved addresses that may be connected to, in
    /// their order and each in its canonical form.
    ///
    /// `own` are the addresses among them that belong to this machine.
    ///
    /// # Errors
    ///
    /// [`Denial`] where there is none, by the first address.
    pub fn judge(self, resolved: &[IpAddr], own: &[IpAddr]) -> Result<Vec<IpAddr>, Denial> {
        let mut first = None;
        let mut admitted = Vec::new();
        for address in resolved {
            let address = address.to_canonical();
            let is_own = own.iter().any(|own| own.to_canonical() == address);
            match self.refuses(address, is_own) {
                None => admitted.push(address),
                Some(reason) => {
                    first.get_or_insert(reason);
                }
            }
        }
        if admitted.is_empty() {
            let reason = first.unwrap_or(DenialReason::Unresolved);
            return Err(Denial::of(self.target, reason, self.is_usual));
        }
        Ok(admitted)
    }

    fn refuses(self, address: IpAddr, is_own: bool) -> Option<DenialReason> {
        let range = AddressRange::of(address);
        let is_open = match self.opening {
            Opening::All | Opening::Address => true,
            Opening::Localhost => range == AddressRange::Loopback,
            Opening::Named => matches!(range, AddressRange::Public | AddressRange::Private),
            Opening::Public => range == AddressRange::Public && !is_own,
        };
        if is_open {
            None
        } else if range == AddressRange::Public {
            Some(DenialReason::OwnAddress { address })
        } else {
            Some(DenialReason::Address { address, range })
        }
    }
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    tag = "class"
)]
pub enum DenialReason {
    /// The network is off.
    Off,
    /// The host is not listed.
    NotListed,
    /// The port is not admitted for the host.
    Port,
    /// The host's address is not public.
    Address {
        /// The address.
        address: IpAddr,
        /// The range of the address.
        range: AddressRange,
    },
    /// The host's address belongs to this machine.
    OwnAddress {
        /// The address.
        address: IpAddr,
    },
    /// The name has no address.
    Unresolved,
}

/// A refused connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The target of the refused connection.
    pub target: Target,
    /// The reason of the denial.
    pub reason: DenialReason,
    /// Whether an entry without a port would admit the port.
    is_usual: bool,
}

impl Denial {
    fn of(target: &Target, reason: DenialReason, is_usual: bool) -> Self {
        Self {
            target: target.clone(),
            reason,
            is_usual,
        }
    }

    /// Says in a line of ASCII why the connection is refused, and which key of
    /// `harness.toml` decides.
    pub fn message(&self, phase: NetworkPhase) -> String {
        let Target { host, port } = &self.target;
        let word = phase.policy_key();
        let list = phase.list_key();
        let allow = |entry: &dyn fmt::Display| {
            format!("allow it with \"{entry}\" in `{list}` under [network] in harness.toml")
        };
        match &self.reason {
            DenialReason::Off => {
                format!("the network is off: `{word}` under [network] in harness.toml")
            }
            DenialReason::NotListed if self.is_usual => {
                format!("{host} is not listed; {}", allow(host))
            }
            DenialReason::NotListed => {
                format!("{host} is not listed; {}", allow(&self.target))
            }
            DenialReason::Port => {
                format!(
                    "port {port} of {host} is not allowed; {}",
                    allow(&self.target)
                )
            }
            DenialReason::Address { address, range } => {
                let named = self.named(*address, *range);
                format!("{host} is {address}, {range}; {}", allow(&named))
            }
            DenialReason::OwnAddress { address } => {
                let named = self.named(*address, AddressRange::Public);
                format!("{host} is {address}, this machine; {}", allow(&named))
            }
            DenialReason::Unresolved => format!("{host} has no address"),
        }
    }

    /// Returns the entry that would admit an address.
    fn named(&self, address: IpAddr, range: AddressRange) -> Target {
        let by_name = matches!(range, AddressRange::Public | AddressRange::Private);
        let host = if by_name {
            self.target.host.clone()
        } else {
            Host::Address(address)
        };
        let port = self.target.port;
        Target { host, port }
    }
}

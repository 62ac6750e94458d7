mod choice;
mod decision;
mod host;
mod property;
mod record;

use super::*;
use std::net::IpAddr;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn list(entries: &[&str]) -> HostList {
    HostList {
        hosts: entries.iter().map(|one| one.parse().unwrap()).collect(),
        ports: Ports::default(),
    }
}

fn allow(entries: &[&str]) -> NetworkPolicy {
    NetworkPolicy::of(NetworkWord::Allow, list(entries)).unwrap()
}

fn public(entries: &[&str]) -> NetworkPolicy {
    NetworkPolicy::of(NetworkWord::Public, list(entries)).unwrap()
}

/// Judges a target by its address, or by those that its name resolves to.
fn decide(
    policy: &NetworkPolicy,
    target: &Target,
    resolved: &[IpAddr],
    own: &[IpAddr],
) -> Result<Vec<IpAddr>, Denial> {
    let candidate = policy.consider(target)?;
    match target.host {
        Host::Address(address) => candidate.judge(&[address], own),
        Host::Name(_) => candidate.judge(resolved, own),
    }
}

/// Decides about a target whose name resolves to the addresses.
fn decided(policy: &NetworkPolicy, target: &str, resolved: &[&str]) -> Result<Vec<IpAddr>, Denial> {
    let resolved: Vec<_> = resolved.iter().map(|one| address(one)).collect();
    decide(policy, &Target::parse(target).unwrap(), &resolved, &[])
}

fn admits(policy: &NetworkPolicy, target: &str, resolved: &[&str]) -> bool {
    decided(policy, target, resolved).is_ok()
}

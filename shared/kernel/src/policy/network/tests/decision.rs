//! The decision about one connection.

use super::*;
use crate::policy::network::registries::REGISTRIES;

#[test]
fn off_refuses_and_open_admits_everything() {
    for resolved in ["1.1.1.1", "127.0.0.1", "169.254.169.254"] {
        assert!(!admits(&NetworkPolicy::Off, "a.example:443", &[resolved]));
        assert!(admits(&NetworkPolicy::Open, "a.example:25", &[resolved]));
    }
}

#[test]
fn public_admits_public_addresses_at_the_usual_ports() {
    let policy = public(&[]);
    for (target, resolved, admitted) in [
        ("a.example:443", "1.1.1.1", true),
        ("a.example:80", "2606:4700::1111", true),
        ("a.example:22", "1.1.1.1", false),
        ("a.example:8080", "1.1.1.1", false),
        ("a.example:443", "10.0.0.1", false),
        ("a.example:443", "::ffff:10.0.0.1", false),
        ("metadata.example:80", "169.254.169.254", false),
        ("localhost:80", "127.0.0.1", false),
        ("127.0.0.1:80", "1.1.1.1", false),
        ("[::1]:80", "1.1.1.1", false),
        ("[::ffff:127.0.0.1]:80", "1.1.1.1", false),
        ("1.1.1.1:443", "127.0.0.1", true),
    ] {
        let what = format!("{target} at {resolved}");
        assert_eq!(admits(&policy, target, &[resolved]), admitted, "{what}");
    }
}

#[test]
fn only_the_judged_addresses_are_returned() {
    let verdict = decided(
        &public(&[]),
        "a.example:443",
        &["10.0.0.1", "1.1.1.1", "::1", "::ffff:8.8.8.8"],
    );
    let admitted = vec![address("1.1.1.1"), address("8.8.8.8")];
    assert_eq!(verdict, Ok(admitted));
}

#[test]
fn the_machine_is_not_public_at_its_own_public_address() {
    let target = Target::parse("me.example:443").unwrap();
    let (own, other) = (address("198.41.0.4"), address("1.1.1.1"));
    let judged = |policy: &NetworkPolicy, resolved: &[IpAddr], own: &[IpAddr]| {
        decide(policy, &target, resolved, own)
    };
    let mapped = address("::ffff:198.41.0.4");
    for own in [own, mapped] {
        let verdict = judged(&public(&[]), &[address("198.41.0.4")], &[own]);
        let Err(denial) = verdict else {
            panic!("{verdict:?}");
        };
        let address = address("198.41.0.4");
        assert_eq!(denial.reason, DenialReason::OwnAddress { address });
    }
    assert_eq!(judged(&public(&[]), &[own, other], &[own]), Ok(vec![other]));
    assert_eq!(
        judged(&public(&["me.example:443"]), &[own], &[own]),
        Ok(vec![own])
    );
}

#[test]
fn allow_admits_listed_hosts_alone() {
    let policy = allow(&[
        "example.com",
        "*.example.org",
        "api.example.net:8443",
        "1.2.3.4",
    ]);
    for (target, admitted) in [
        ("example.com:443", true),
        ("EXAMPLE.com.:80", true),
        ("example.com:8443", false),
        ("sub.example.com:443", false),
        ("example.com.evil.example:443", false),
        ("notexample.com:443", false),
        ("example.org:443", false),
        ("a.example.org:443", true),
        ("a.b.example.org:443", true),
        ("aexample.org:443", false),
        ("api.example.net:8443", true),
        ("api.example.net:443", false),
        ("1.2.3.4:443", true),
        ("1.2.3.5:443", false),
        ("[::ffff:1.2.3.4]:443", true),
    ] {
        assert_eq!(admits(&policy, target, &["1.1.1.1"]), admitted, "{target}");
    }
}

#[test]
fn a_listed_host_with_a_private_address_must_be_named_explicitly() {
    for (entry, target, resolved, admitted) in [
        ("corp.example", "corp.example:443", "10.0.0.1", false),
        (
            "*.corp.example:443",
            "a.corp.example:443",
            "10.0.0.1",
            false,
        ),
        ("corp.example:443", "corp.example:443", "10.0.0.1", true),
        ("corp.example:443", "corp.example:443", "fd00::1", true),
        ("corp.example:443", "corp.example:443", "127.0.0.1", false),
        (
            "corp.example:443",
            "corp.example:443",
            "169.254.169.254",
            false,
        ),
        ("corp.example:443", "corp.example:443", "0.0.0.0", false),
        ("10.0.0.1", "10.0.0.1:443", "10.0.0.1", true),
        ("10.0.0.1", "10.0.0.1:22", "10.0.0.1", false),
        ("10.0.0.1:22", "10.0.0.1:22", "10.0.0.1", true),
        ("10.0.0.1", "corp.example:443", "10.0.0.1", false),
        ("169.254.169.254:80", "169.254.169.254:80", "", true),
        ("127.0.0.1:8080", "127.0.0.1:8080", "", true),
        ("127.0.0.1:8080", "127.0.0.1:8081", "", false),
        ("127.0.0.1:8080", "127.0.0.2:8080", "", false),
        ("127.0.0.1:8080", "localhost:8080", "127.0.0.1", false),
        ("[::1]:8080", "[::1]:8080", "", true),
        ("localhost:8080", "localhost:8080", "127.0.0.1", true),
        ("localhost:8080", "localhost:8080", "::1", true),
        ("localhost", "localhost:80", "127.0.0.1", true),
        // A resolver that points the name elsewhere gains nothing.
        ("localhost:8080", "localhost:8080", "10.0.0.1", false),
        ("localhost:8080", "localhost:8080", "1.1.1.1", false),
        ("*.localhost:8080", "a.localhost:8080", "127.0.0.1", false),
    ] {
        let resolved: &[&str] = if resolved.is_empty() {
            &[]
        } else {
            &[resolved]
        };
        let what = format!("{entry}: {target} at {resolved:?}");
        assert_eq!(
            admits(&allow(&[entry]), target, resolved),
            admitted,
            "{what}"
        );
        assert_eq!(
            admits(&public(&[entry]), target, resolved),
            admitted || (resolved == ["1.1.1.1"] && target.ends_with(":443")),
            "public with {what}"
        );
    }
}

#[test]
fn the_strongest_of_several_entries_counts() {
    let policy = allow(&["*.corp.example", "git.corp.example:443", "git.corp.example"]);
    assert!(admits(&policy, "git.corp.example:443", &["10.0.0.1"]));
    assert!(!admits(&policy, "git.corp.example:80", &["10.0.0.1"]));
    assert!(admits(&policy, "git.corp.example:80", &["1.1.1.1"]));
}

#[test]
fn the_ports_are_configurable() {
    let ports: Ports = [443, 8443].into_iter().collect();
    let hosts = Vec::new();
    let policy = NetworkPolicy::of(NetworkWord::Public, HostList { hosts, ports }).unwrap();
    assert!(admits(&policy, "a.example:8443", &["1.1.1.1"]));
    assert!(!admits(&policy, "a.example:80", &["1.1.1.1"]));
}

#[test]
fn a_host_that_is_not_listed_is_refused_before_it_is_resolved() {
    let target = Target::parse("evil.example:443").unwrap();
    for (policy, reason) in [
        (NetworkPolicy::Off, DenialReason::Off),
        (allow(&["example.com"]), DenialReason::NotListed),
        (allow(&["evil.example:80"]), DenialReason::Port),
    ] {
        assert_eq!(policy.consider(&target).unwrap_err().reason, reason);
    }
}

#[test]
fn registries_are_names_that_the_group_admits_with_the_list() {
    let policy = NetworkPolicy::of(NetworkWord::Registries, list(&["example.com"])).unwrap();
    let NetworkPolicy::Allow(hosts) = &policy else {
        panic!("{policy:?}");
    };
    assert_eq!(
        hosts.hosts.len(),
        REGISTRIES.len() + 1,
        "each name is valid"
    );
    for target in ["index.crates.io:443", "pypi.org:443", "example.com:443"] {
        assert!(admits(&policy, target, &["1.1.1.1"]), "{target}");
    }
    assert!(!admits(&policy, "other.example:443", &["1.1.1.1"]));
    assert!(!admits(&policy, "pypi.org:443", &["10.0.0.1"]));
}

#[test]
fn allow_without_a_host_is_an_error() {
    let policy = NetworkPolicy::of(NetworkWord::Allow, HostList::default());
    assert_eq!(policy, Err(ListMissing));
}

#[test]
fn a_denial_names_the_key_that_decides() {
    use NetworkPhase::{Verify, Work};
    let message = |policy: &NetworkPolicy, target: &str, resolved: &[&str], phase| match decided(
        policy, target, resolved,
    ) {
        Err(denial) => denial.message(phase),
        Ok(addresses) => panic!("{addresses:?}"),
    };
    assert_eq!(
        message(&NetworkPolicy::Off, "a.example:443", &[], Verify),
        "the network is off: `verify` under [network] in harness.toml"
    );
    assert_eq!(
        message(&allow(&["b.example"]), "A.example:443", &[], Verify),
        "a.example is not listed; allow it with \"a.example\" in `verify_allow` under [network] in \
        harness.toml"
    );
    assert_eq!(
        message(&allow(&["b.example"]), "a.example:22", &[], Work),
        "a.example is not listed; allow it with \"a.example:22\" in `allow` under [network] in \
        harness.toml"
    );
    assert_eq!(
        message(&public(&[]), "a.example:22", &[], Work),
        "port 22 of a.example is not allowed; allow it with \"a.example:22\" in `allow` under \
        [network] in harness.toml"
    );
    assert_eq!(
        message(&public(&[]), "a.example:443", &["10.0.0.1"], Work),
        "a.example is 10.0.0.1, a private address; allow it with \"a.example:443\" in `allow` \
        under [network] in harness.toml"
    );
    assert_eq!(
        message(&public(&[]), "a.example:80", &["169.254.169.254"], Work),
        "a.example is 169.254.169.254, a link-local address; allow it with \"169.254.169.254:80\" \
        in `allow` under [network] in harness.toml"
    );
    assert_eq!(
        message(&public(&[]), "a.example:80", &[], Work),
        "a.example has no address"
    );
}

#[test]
fn the_services_of_the_machine_are_those_with_a_port() {
    let policy = public(&[
        "127.0.0.1:8080",
        "localhost:5432",
        "[::1]:9000",
        "127.0.0.1",
        "10.0.0.1:80",
        "example.com:443",
    ]);
    let services: Vec<_> = policy
        .loopback_services()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(services, ["127.0.0.1:8080", "[::1]:9000", "localhost:5432"]);
}

//! What the policy refuses.

use super::*;

#[test]
fn a_denied_host_gets_403_with_the_key_and_the_proxy_continues() {
    let (host, other) = (Host::echo(), Host::new());
    let setting = Setting::new(NetworkWord::Allow, &[host.name()]);
    for _ in 0..3 {
        let answer = setting.connect_answer(&other.name());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let port = other.port;
        let reason = format!(
            "denied by the network policy: port {port} of 127.0.0.1 is not allowed; allow it with \
             \"127.0.0.1:{port}\" in `allow` under [network] in harness.toml"
        );
        assert!(
            head.starts_with(&format!("HTTP/1.1 403 {reason}\r\n")),
            "{head}"
        );
        assert_eq!(body, format!("{reason}\n"));
        assert_eq!(body.len(), 1 + reason.len());
    }
    drop(setting.tunnel(&host.name()));
    let facts = setting.finish();
    assert_eq!(other.accepted(), 0);
    let denied: Vec<_> = facts.records.iter().filter(|one| !one.admitted).collect();
    let [denied] = &denied[..] else {
        panic!("{facts:?}");
    };
    assert_eq!((denied.port, denied.connections), (other.port, 3));
    assert_eq!(denied.reason, Some(DenialReason::Port));
}

#[test]
fn public_refuses_loopback_however_it_is_written() {
    let host = Host::new();
    let setting = Setting::new(NetworkWord::Public, &[]);
    // The port is refused first, so that the usual ones are asked for.
    for target in [
        "127.0.0.1:80",
        "[::1]:443",
        "[::ffff:127.0.0.1]:80",
        "localhost:80",
        "0.0.0.0:80",
        "169.254.169.254:80",
        "10.0.0.1:443",
        "[64:ff9b::a9fe:a9fe]:80",
    ] {
        let answer = setting.connect_answer(target);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{target}: {answer}");
    }
    for target in [
        "127.1:80",
        "0x7f000001:80",
        "2130706433:80",
        "a@127.0.0.1:80",
    ] {
        let answer = setting.connect_answer(target);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{target}: {answer}");
    }
    assert!(
        setting
            .connect_answer(&host.name())
            .starts_with("HTTP/1.1 403 ")
    );
    let facts = setting.finish();
    assert_eq!(facts.malformed, 4);
    assert!(facts.records.iter().all(|record| !record.admitted));
    assert_eq!(host.accepted(), 0);
}

#[test]
fn a_name_with_a_private_address_is_refused_under_public() {
    let (stub, asked) = Stub::new(&[&["10.1.2.3"]]);
    let setting = Setting::with(NetworkWord::Public, &[], stub, ProxyLimits::default());
    let answer = setting.connect_answer("corp.example:443");
    assert!(
        answer.contains("corp.example is 10.1.2.3, a private address"),
        "{answer}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let range = premath_kernel::policy::network::AddressRange::Private;
    let address = "10.1.2.3".parse().unwrap();
    let reason = DenialReason::Address { address, range };
    assert_eq!(only(&setting.finish()).reason, Some(reason));
}

#[test]
fn a_name_is_resolved_once_and_the_judged_address_is_connected_to() {
    let host = Host::new();
    // The first answer would be admitted, the second one is another address.
    let (stub, asked) = Stub::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let entry = format!("localhost:{}", host.port);
    let limits = ProxyLimits::default();
    let setting = Setting::with(
        NetworkWord::Allow,
        std::slice::from_ref(&entry),
        stub,
        limits,
    );
    drop(setting.tunnel(&entry));
    host.accept();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn a_listed_name_that_turns_to_loopback_is_refused() {
    let host = Host::new();
    let (stub, _) = Stub::new(&[&["127.0.0.1"]]);
    let entry = format!("corp.example:{}", host.port);
    let limits = ProxyLimits::default();
    let setting = Setting::with(
        NetworkWord::Allow,
        std::slice::from_ref(&entry),
        stub,
        limits,
    );
    let answer = setting.connect_answer(&entry);
    assert!(answer.contains("127.0.0.1, a loopback address"), "{answer}");
    drop(setting);
    assert_eq!(host.accepted(), 0);
}

#[test]
fn a_host_that_is_not_listed_is_not_resolved() {
    let (stub, asked) = Stub::new(&[&["1.1.1.1"]]);
    let entries = ["a.example".to_owned()];
    let setting = Setting::with(NetworkWord::Allow, &entries, stub, ProxyLimits::default());
    let secret = setting.connect_answer("secret.evil.example:443");
    assert!(secret.starts_with("HTTP/1.1 403 "), "{secret}");
    let port = setting.connect_answer("a.example:22");
    assert!(
        port.contains("port 22 of a.example is not allowed"),
        "{port}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[test]
fn a_name_without_an_address_and_a_closed_port_are_failures_and_no_denials() {
    let (stub, _) = Stub::new(&[&[]]);
    let setting = Setting::with(NetworkWord::Public, &[], stub, ProxyLimits::default());
    let answer = setting.connect_answer("gone.example:443");
    assert!(
        answer.starts_with("HTTP/1.1 502 gone.example has no address"),
        "{answer}"
    );
    let facts = setting.finish();
    assert_eq!((only(&facts).admitted, only(&facts).failures), (true, 1));

    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let setting = Setting::new(NetworkWord::Allow, std::slice::from_ref(&closed));
    let answer = setting.connect_answer(&closed);
    assert!(
        answer.starts_with("HTTP/1.1 502 cannot connect to"),
        "{answer}"
    );
    assert_eq!(only(&setting.finish()).failures, 1);
}

//! Slow, silent and many clients.

use super::*;

#[test]
fn a_resolver_that_hangs_costs_its_connection_a_bounded_time() {
    let host = Host::echo();
    let limits = ProxyLimits {
        resolve: Duration::from_millis(50),
        ..ProxyLimits::default()
    };
    let entries = ["a.example".to_owned(), host.name()];
    let setting = Setting::with(NetworkWord::Allow, &entries, Box::new(Hanging), limits);
    let answer = setting.connect_answer("a.example:443");
    assert!(
        answer.starts_with("HTTP/1.1 504 timed out resolving a.example"),
        "{answer}"
    );
    drop(setting.tunnel(&host.name()));
}

#[test]
fn a_slow_head_is_ended_at_its_bound() {
    let limits = ProxyLimits {
        head: Duration::from_millis(50),
        ..ProxyLimits::default()
    };
    let setting = Setting::with(NetworkWord::Open, &[], Box::new(SystemResolver), limits);
    let mut stream = setting.connect();
    stream.write_all(b"CONNECT a.exam").unwrap();
    assert!(read_all(&mut stream).starts_with("HTTP/1.1 408 "));
    assert_eq!(setting.finish().malformed, 1);
}

#[test]
fn a_head_may_come_byte_by_byte() {
    let host = Host::echo();
    let setting = Setting::new(NetworkWord::Allow, &[host.name()]);
    let mut stream = setting.connect();
    for byte in format!("CONNECT {} HTTP/1.1\r\n\r\n", host.name()).bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_silent_tunnel_is_ended_at_its_bound() {
    let host = Host::new();
    let limits = ProxyLimits {
        idle: Duration::from_millis(50),
        ..ProxyLimits::default()
    };
    let entries = [host.name()];
    let setting = Setting::with(
        NetworkWord::Allow,
        &entries,
        Box::new(SystemResolver),
        limits,
    );
    let mut stream = setting.tunnel(&host.name());
    let mut peer = host.accept();
    assert_eq!(read_all(&mut stream), "");
    assert_eq!(read_all(&mut peer), "");
}

#[test]
fn a_connection_too_many_waits_and_is_then_refused() {
    let host = Host::echo();
    let limits = ProxyLimits {
        connections: 2,
        queue: Duration::from_millis(50),
        ..ProxyLimits::default()
    };
    let entries = [host.name()];
    let setting = Setting::with(
        NetworkWord::Allow,
        &entries,
        Box::new(SystemResolver),
        limits,
    );
    let first = setting.tunnel(&host.name());
    let second = setting.tunnel(&host.name());
    let mut third = setting.connect();
    assert!(read_all(&mut third).starts_with("HTTP/1.1 503 too many connections"));
    // The end of one makes room again; until the proxy sees it, 503 continues.
    drop(first);
    let until = Instant::now() + PATIENCE;
    loop {
        let mut stream = setting.connect();
        let _ = write!(stream, "CONNECT {} HTTP/1.1\r\n\r\n", host.name());
        if read_head(&mut stream).starts_with("HTTP/1.1 200 ") {
            break;
        }
        assert!(Instant::now() < until, "there is no room again");
    }
    drop(second);
}

#[test]
fn many_connections_are_served() {
    let host = Host::echo();
    let setting = Setting::new(NetworkWord::Allow, &[host.name()]);
    thread::scope(|scope| {
        for number in 0..16 {
            let (setting, name) = (&setting, host.name());
            scope.spawn(move || {
                for round in 0..8 {
                    let mut stream = setting.tunnel(&name);
                    let text = format!("{number}/{round}");
                    stream.write_all(text.as_bytes()).unwrap();
                    stream.shutdown(Shutdown::Write).unwrap();
                    assert_eq!(read_all(&mut stream), text);
                }
            });
        }
    });
    assert_eq!(only(&setting.finish()).connections, 16 * 8);
}

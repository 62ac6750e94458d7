//! Plain requests, and what is not a request of a proxy.

use super::*;

#[test]
fn a_plain_request_is_forwarded_alone() {
    let host = Host::new();
    let setting = Setting::new(NetworkWord::Allow, &[host.name()]);
    let mut stream = setting.connect();
    // A second request follows in the same bytes.
    write!(
        stream,
        "POST http://{0}/a?b HTTP/1.1\r\nHost: other.example\r\nContent-Length: 4\r\n\
         Proxy-Connection: keep-alive\r\n\r\nbodyGET http://{0}/second HTTP/1.1\r\n\r\n",
        host.name()
    )
    .unwrap();
    let mut peer = host.accept();
    let head = read_head(&mut peer);
    assert_eq!(
        head,
        format!(
            "POST /a?b HTTP/1.1\r\nHost: {}\r\nContent-Length: 4\r\nConnection: close\r\n\r\n",
            host.name()
        )
    );
    let mut body = [0; 4];
    peer.read_exact(&mut body).unwrap();
    assert_eq!(&body, b"body");
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    peer.write_all(answer.as_bytes()).unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut stream), answer);
    drop(stream);
    assert_eq!(
        read_all(&mut peer),
        "",
        "the second request is not forwarded"
    );
    let facts = setting.finish();
    assert_eq!(only(&facts).bytes_down, answer.len() as u64);
    assert_eq!(only(&facts).bytes_up, (head.len() + 4) as u64);
}

#[test]
fn a_plain_request_that_is_cut_ends_the_connection_to_the_host() {
    let host = Host::new();
    let setting = Setting::new(NetworkWord::Allow, &[host.name()]);
    let mut stream = setting.connect();
    let name = host.name();
    write!(
        stream,
        "PUT http://{name}/ HTTP/1.1\r\nContent-Length: 9\r\n\r\npart"
    )
    .unwrap();
    let mut peer = host.accept();
    assert!(read_head(&mut peer).starts_with("PUT / HTTP/1.1"));
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut peer), "part");
    assert_eq!(read_all(&mut stream), "");
}

#[test]
fn a_plain_request_to_a_denied_host_gets_403() {
    let setting = Setting::new(NetworkWord::Off, &[]);
    let answer = setting.ask("GET http://a.example/ HTTP/1.1\r\n\r\n");
    assert!(
        answer.contains("the network is off: `work` under [network]"),
        "{answer}"
    );
}

#[test]
fn what_is_not_a_proxy_request_is_answered_and_counted() {
    let setting = Setting::new(NetworkWord::Open, &[]);
    let long = format!(
        "GET http://a.example/ HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(20_000)
    );
    let smuggled = "POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\
                    Content-Length: 3\r\n\r\n0\r\n\r\n";
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", 400),
        ("\x16\x03\x01\r\n\r\n", 400),
        ("CONNECT a.example HTTP/1.1\r\n\r\n", 400),
        (long.as_str(), 431),
        (smuggled, 411),
    ] {
        let answer = setting.ask(request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    // A client that connects and leaves asked for nothing.
    let mut stream = setting.connect();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut stream), "");
    let facts = setting.finish();
    assert_eq!(facts.malformed, 5);
    assert!(facts.records.is_empty(), "{facts:?}");
}

//! Tunnels.

use super::*;

#[test]
fn a_tunnel_to_a_listed_host_moves_bytes_and_counts_them() {
    let host = Host::echo();
    let setting = Setting::new(NetworkWord::Allow, &[host.name()]);
    let mut stream = setting.tunnel(&host.name());
    stream.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut stream), "");
    let facts = setting.finish();
    let record = only(&facts);
    assert_eq!(
        (record.host.as_str(), record.port),
        ("127.0.0.1", host.port)
    );
    assert!(record.admitted);
    assert_eq!((record.connections, record.failures), (1, 0));
    assert_eq!((record.bytes_up, record.bytes_down), (5, 5));
}

#[test]
fn a_side_that_ended_leaves_the_other_one_open() {
    let host = Host::new();
    let setting = Setting::new(NetworkWord::Allow, &[host.name()]);
    let mut stream = setting.tunnel(&host.name());
    stream.write_all(b"question").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut peer = host.accept();
    assert_eq!(read_all(&mut peer), "question");
    // The host answers after the client's end, and more than buffers hold.
    let answer = "x".repeat(4 << 20);
    let writer = thread::spawn(move || {
        peer.write_all(answer.as_bytes()).unwrap();
        answer.len()
    });
    assert_eq!(read_all(&mut stream).len(), writer.join().unwrap());
    assert_eq!(only(&setting.finish()).bytes_down, 4 << 20);
}

#[test]
fn a_host_that_ended_its_side_still_receives() {
    let host = Host::new();
    let setting = Setting::new(NetworkWord::Allow, &[host.name()]);
    let mut stream = setting.tunnel(&host.name());
    let mut peer = host.accept();
    peer.write_all(b"banner").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut stream), "banner");
    stream.write_all(b"late").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut peer), "late");
}

#[test]
fn bytes_that_follow_the_head_at_once_belong_to_the_tunnel() {
    let host = Host::echo();
    let setting = Setting::new(NetworkWord::Allow, &[host.name()]);
    let mut stream = setting.connect();
    write!(stream, "CONNECT {} HTTP/1.1\r\n\r\nearly", host.name()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200 "));
    assert_eq!(read_all(&mut stream), "early");
    assert_eq!(only(&setting.finish()).bytes_up, 5);
}

//! The sockets as files.

use super::*;

#[test]
fn a_service_goes_to_its_target_without_a_request() {
    let host = Host::echo();
    let folder = tempfile::tempdir().unwrap();
    let service = |name: &str, target: &str| Service {
        socket: folder.path().join("net").join(name),
        target: Target::parse(target).unwrap(),
    };
    let mut spec = spec(&folder, policy(NetworkWord::Allow, &[host.name()]));
    spec.services = vec![service("one", &host.name()), service("two", "127.0.0.1:9")];
    let proxy = Proxy::start(spec).unwrap();
    let ask = |name: &str| {
        let mut stream = UnixStream::connect(folder.path().join("net").join(name)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // A refused service ends the connection, maybe before the first byte.
        let _ = stream.write_all(b"hello");
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    };
    assert_eq!(ask("one"), "hello");
    assert_eq!(ask("two"), "");
    let facts = proxy.finish();
    assert_eq!(facts.records.len(), 2);
    assert!(!folder.path().join("net/one").exists());
}

#[test]
fn dropping_the_proxy_ends_connections_and_removes_its_socket_alone() {
    let host = Host::new();
    let setting = Setting::new(NetworkWord::Allow, &[host.name()]);
    let mut stream = setting.tunnel(&host.name());
    let mut peer = host.accept();
    let socket = setting.socket();
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let Setting { folder, proxy } = setting;
    drop(proxy);
    assert_eq!(read_all(&mut stream), "");
    assert_eq!(read_all(&mut peer), "");
    assert!(!socket.exists());

    let proxy = Proxy::start(spec(&folder, NetworkPolicy::Open)).unwrap();
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "not the socket").unwrap();
    drop(proxy);
    assert_eq!(fs::read_to_string(&socket).unwrap(), "not the socket");
    // A path that is taken is not replaced.
    let error = Proxy::start(spec(&folder, NetworkPolicy::Open)).unwrap_err();
    assert!(matches!(error, ProxyError::Bind { .. }), "{error}");
    assert_eq!(fs::read_to_string(&socket).unwrap(), "not the socket");
}

#[test]
fn a_folder_that_is_open_to_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let net = folder.path().join("net");
    fs::DirBuilder::new().mode(0o700).create(&net).unwrap();
    fs::set_permissions(&net, fs::Permissions::from_mode(0o750)).unwrap();
    let error = Proxy::start(spec(&folder, NetworkPolicy::Open)).unwrap_err();
    assert!(
        matches!(error, ProxyError::FolderNotPrivate { .. }),
        "{error}"
    );

    let other = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(other.path(), folder.path().join("link")).unwrap();
    let mut spec = spec(&folder, NetworkPolicy::Open);
    spec.socket = folder.path().join("link/proxy");
    let error = Proxy::start(spec).unwrap_err();
    assert!(
        matches!(error, ProxyError::FolderNotPrivate { .. }),
        "{error}"
    );
}

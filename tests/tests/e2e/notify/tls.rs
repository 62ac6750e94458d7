//! A webhook over TLS.

use super::{header, notified};
use premath_tests::{Ended, PATIENCE, Scratch, TlsReceiver, tls_receiver};
use std::fs;

/// Runs a batch that posts its end to a receiver by a name, and trusts an authority.
fn posts(receiver: &TlsReceiver, name: &str, authority: &str) -> (Scratch, Ended) {
    let port = receiver.address.port();
    let settings = format!(
        "[notify]\nwebhook = \"https://{name}:{port}/hook\"\nevents = [\"done\"]\n\
         timeout = \"20s\"\n"
    );
    let scratch = notified(&["a"], &settings);
    let file = scratch.home().join("authority.pem");
    fs::write(&file, authority).unwrap();
    let batch = scratch.batch("true", "true").env("SSL_CERT_FILE", file);
    let ended = batch.end().exits(0);
    (scratch, ended)
}

#[test]
fn a_certificate_of_a_trusted_authority_for_the_name_is_accepted() {
    let receiver = tls_receiver("localhost");
    let (_scratch, ended) = posts(&receiver, "localhost", &receiver.authority);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!said.contains("webhook"), "{said}");
    let posted = receiver.posted.recv_timeout(PATIENCE).unwrap();
    assert!(posted.0.starts_with("post /hook http/1.1"), "{}", posted.0);
    assert_eq!(header(&posted, "x-premath-event"), Some("done"));
}

#[test]
fn a_certificate_of_another_authority_or_name_is_refused() {
    let receiver = tls_receiver("localhost");
    let other = tls_receiver("localhost");
    let named = tls_receiver("elsewhere.example");
    for (receiver, authority, why) in [
        (&receiver, &other.authority, "UnknownIssuer"),
        (&named, &named.authority, "not valid for name"),
    ] {
        let (_scratch, ended) = posts(receiver, "localhost", authority);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        let expected = "webhook: the certificate of the receiver is refused: ";
        assert!(said.contains(expected), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(receiver.posted.try_recv().is_err(), "nothing was sent");
    }
}

//! Hosts, entries and addresses as they are written.

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
fn an_authority_is_read_strictly() {
    for (text, shown) in [
        ("example.com:443", "example.com:443"),
        ("EXAMPLE.Com:443", "example.com:443"),
        ("example.com.:443", "example.com:443"),
        ("my_host:8080", "my_host:8080"),
        ("localhost:1", "localhost:1"),
        ("10.0.0.1:65535", "10.0.0.1:65535"),
        ("[::1]:443", "[::1]:443"),
        ("[::ffff:10.0.0.1]:443", "10.0.0.1:443"),
        ("[2001:DB8::1]:443", "[2001:db8::1]:443"),
        ("xn--bcher-kva.example:443", "xn--bcher-kva.example:443"),
        ("1password.com:443", "1password.com:443"),
    ] {
        assert_eq!(Target::parse(text).unwrap().to_string(), shown, "{text}");
    }
    for (text, fault) in [
        ("", HostError::Empty),
        (":443", HostError::Empty),
        (".:443", HostError::Empty),
        ("example.com", HostError::PortMissing),
        ("example.com:", HostError::Port),
        ("example.com:0", HostError::Port),
        ("example.com:0443", HostError::Port),
        ("example.com:+443", HostError::Port),
        ("example.com:65536", HostError::Port),
        ("example.com:443:443", HostError::Port),
        ("example.com:44 3", HostError::Port),
        ("example.com:443/", HostError::Port),
        ("example.com:443#@evil.example", HostError::Port),
        ("user@example.com:443", HostError::Character('@')),
        ("user:pass@example.com:443", HostError::Port),
        ("http://example.com:443", HostError::Port),
        ("exam%70le.com:443", HostError::Character('%')),
        ("example.com%00.evil:443", HostError::Character('%')),
        ("example.com\\.evil:443", HostError::Character('\\')),
        ("example.com\0:443", HostError::Character('\0')),
        ("example.com\t:443", HostError::Character('\t')),
        (" example.com:443", HostError::Character(' ')),
        ("*.example.com:443", HostError::Character('*')),
        ("b\u{fc}cher.example:443", HostError::NotAscii),
        ("example\u{3002}com:443", HostError::NotAscii),
        ("example.com..:443", HostError::Label),
        ("a..example.com:443", HostError::Label),
        (".example.com:443", HostError::Label),
        ("-a.example.com:443", HostError::Label),
        ("a-.example.com:443", HostError::Label),
        ("127.1:443", HostError::Number),
        ("0177.0.0.1:443", HostError::Number),
        ("2130706433:443", HostError::Number),
        ("0x7f000001:443", HostError::Number),
        ("0x7f.1:443", HostError::Number),
        ("127.0.0.0x1:443", HostError::Number),
        ("1.2.3.4.:443", HostError::Number),
        ("1.2.3.4.5:443", HostError::Number),
        ("[::1:443", HostError::Port),
        ("[fe80::1%eth0]:443", HostError::Brackets),
        ("[127.0.0.1]:443", HostError::Brackets),
        ("[example.com]:443", HostError::Brackets),
        ("[::1]x:443", HostError::Brackets),
        ("::1:443", HostError::Port),
    ] {
        assert_eq!(Target::parse(text), Err(fault), "{text}");
    }
    let long = format!("{}:443", "a.".repeat(127));
    assert_eq!(Target::parse(&long).unwrap().to_string().len(), 253 + 4);
    assert_eq!(
        Target::parse(&format!("a{long}")),
        Err(HostError::Long),
        "254 characters without the dot"
    );
    let label = format!("{}.example:443", "a".repeat(64));
    assert_eq!(Target::parse(&label), Err(HostError::Label));
    assert_eq!(Target::parse_http("example.com").unwrap().port, 80);
}

#[test]
#[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
fn an_address_has_the_range_that_its_registry_gives_it() {
    use AddressRange as R;
    for (text, range) in [
        ("0.0.0.0", R::Unspecified),
        ("0.1.2.3", R::Unspecified),
        ("9.255.255.255", R::Public),
        ("10.0.0.0", R::Private),
        ("10.255.255.255", R::Private),
        ("11.0.0.0", R::Public),
        ("100.63.255.255", R::Public),
        ("100.64.0.0", R::Private),
        ("100.127.255.255", R::Private),
        ("100.128.0.0", R::Public),
        ("126.255.255.255", R::Public),
        ("127.0.0.1", R::Loopback),
        ("127.255.255.255", R::Loopback),
        ("128.0.0.0", R::Public),
        ("168.63.129.16", R::Metadata),
        ("169.253.255.255", R::Public),
        ("169.254.169.254", R::LinkLocal),
        ("169.255.0.0", R::Public),
        ("172.15.255.255", R::Public),
        ("172.16.0.0", R::Private),
        ("172.31.255.255", R::Private),
        ("172.32.0.0", R::Public),
        ("192.0.0.192", R::Reserved),
        ("192.0.1.0", R::Public),
        ("192.0.2.1", R::Documentation),
        ("192.88.99.1", R::Reserved),
        ("192.167.255.255", R::Public),
        ("192.168.0.0", R::Private),
        ("192.169.0.0", R::Public),
        ("198.17.255.255", R::Public),
        ("198.18.0.0", R::Documentation),
        ("198.19.255.255", R::Documentation),
        ("198.51.100.1", R::Documentation),
        ("203.0.113.1", R::Documentation),
        ("223.255.255.255", R::Public),
        ("224.0.0.1", R::Multicast),
        ("240.0.0.1", R::Reserved),
        ("255.255.255.255", R::Multicast),
        ("::", R::Unspecified),
        ("::1", R::Loopback),
        ("::2", R::Reserved),
        ("::7f00:1", R::Reserved),
        ("::ffff:127.0.0.1", R::Loopback),
        ("::ffff:169.254.169.254", R::LinkLocal),
        ("::ffff:1.1.1.1", R::Public),
        ("64:ff9b::10.0.0.1", R::Private),
        ("64:ff9b::1.1.1.1", R::Public),
        ("64:ff9b:1::1.1.1.1", R::Reserved),
        ("100::1", R::Reserved),
        ("2001::1", R::Reserved),
        ("2001:2::1", R::Documentation),
        ("2001:1ff:ffff::", R::Reserved),
        ("2001:200::1", R::Public),
        ("2001:db8::1", R::Documentation),
        ("2002:7f00:1::", R::Loopback),
        ("2002:a00:1::", R::Private),
        ("2002:101:101::", R::Public),
        ("2606:4700::1111", R::Public),
        ("3fff:fff::1", R::Documentation),
        ("3fff:1000::1", R::Public),
        ("4000::1", R::Reserved),
        ("5f00::1", R::Reserved),
        ("fbff::1", R::Reserved),
        ("fc00::1", R::Private),
        ("fd00:ec2::254", R::Private),
        ("fe80::1", R::LinkLocal),
        ("febf::1", R::LinkLocal),
        ("fec0::1", R::Private),
        ("ff02::1", R::Multicast),
    ] {
        assert_eq!(AddressRange::of(address(text)), range, "{text}");
    }
}

#[test]
fn an_entry_is_read_or_says_what_is_wrong() {
    for (text, shown) in [
        ("Example.com", "example.com"),
        ("*.Example.com.", "*.example.com"),
        ("example.com:8443", "example.com:8443"),
        ("*.example.com:8443", "*.example.com:8443"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("::1", "[::1]"),
        ("[::1]:80", "[::1]:80"),
        (" localhost ", "localhost"),
    ] {
        let pattern: HostPattern = text.parse().unwrap();
        assert_eq!(pattern.to_string(), shown, "{text}");
    }
    for (text, said) in [
        ("https://example.com", "leave out the scheme and the path"),
        ("example.com/x", "leave out the scheme and the path"),
        ("10.0.0.0/8", "networks are not supported"),
        ("*", "for every host use `public` or `open`"),
        ("*:443", "for every host use `public` or `open`"),
        ("*example.com", "a star is allowed only at the beginning"),
        ("a.*.com", "a star is allowed only at the beginning"),
        ("*.*.com", "a star is allowed only at the beginning"),
        ("b\u{fc}cher.example", "in its xn-- form"),
        ("127.1", "ends in a number"),
        ("", "the host is empty"),
        ("example.com:https", "not a number from 1 to 65535"),
    ] {
        let error = text.parse::<HostPattern>().unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("invalid host `{text}`")),
            "{error}"
        );
        assert!(error.contains(said), "{error}");
    }
}

//! Properties over any address and any text.

use super::*;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Addresses near the ends of the special ranges, and any.
fn any_address() -> impl Strategy<Value = IpAddr> {
    let v4 = prop_oneof![
        any::<u32>(),
        (
            prop::sample::select(&[0_u8, 10, 100, 127, 169, 172, 192, 198, 203, 224][..]),
            any::<u32>()
        )
            .prop_map(|(first, rest)| u32::from(first) << 24 | rest >> 8),
    ]
    .prop_map(Ipv4Addr::from);
    prop_oneof![
        v4.clone().prop_map(IpAddr::from),
        v4.clone().prop_map(|v4| v4.to_ipv6_mapped().into()),
        v4.prop_map(|v4| Ipv6Addr::from((0x64_ff9b_u128 << 96) | u128::from(u32::from(v4))).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from(bits).into()),
    ]
}

/// Returns whether the standard library knows that an address is not public.
fn is_known_special(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_multicast()
                || v4.is_unspecified()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_multicast()
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
        }
    }
}

proptest! {
    #[test]
    fn public_never_admits_a_special_address(
        addresses in prop::collection::vec(any_address(), 0..6),
        own in prop::collection::vec(any_address(), 0..2),
        is_own in any::<bool>(),
    ) {
        let mut own = own;
        if is_own {
            own.extend(addresses.first());
        }
        let target = Target::parse("a.example:443").unwrap();
        if let Ok(admitted) = decide(&public(&[]), &target, &addresses, &own) {
            prop_assert!(!admitted.is_empty());
            for address in admitted {
                prop_assert!(!is_known_special(address), "{address}");
                prop_assert!(!own.iter().any(|own| own.to_canonical() == address));
                prop_assert!(addresses.iter().any(|one| one.to_canonical() == address));
            }
        }
    }

    #[test]
    fn an_address_and_its_mapped_form_are_judged_alike(bits in any::<u32>()) {
        let v4 = Ipv4Addr::from(bits);
        let mapped = IpAddr::from(v4.to_ipv6_mapped());
        prop_assert_eq!(AddressRange::of(v4.into()), AddressRange::of(mapped));
    }

    #[test]
    fn what_is_read_is_shown_and_read_as_the_same(text in "[a-zA-Z0-9.:\\[\\]_-]{0,24}") {
        if let Ok(target) = Target::parse(&text) {
            prop_assert_eq!(Target::parse(&target.to_string()), Ok(target));
        }
        if let Ok(pattern) = text.parse::<HostPattern>() {
            prop_assert_eq!(pattern.to_string().parse(), Ok(pattern));
        }
    }

    #[test]
    fn no_text_breaks_the_reader(text in any::<String>()) {
        if let Ok(target) = Target::parse(&text) {
            prop_assert!(target.to_string().bytes().all(|byte| byte.is_ascii_graphic()));
        }
        let _ = text.parse::<HostPattern>();
    }

    #[test]
    fn allow_admits_no_host_that_no_entry_matches(
        host in "[a-c]{1,2}(\\.[a-c]{1,2}){0,3}",
        entry in "(\\*\\.)?[a-c]{1,2}(\\.[a-c]{1,2}){0,2}",
    ) {
        let matches = match entry.strip_prefix("*.") {
            Some(above) => host.ends_with(&format!(".{above}")),
            None => host == entry,
        };
        let policy = allow(&[entry.as_str()]);
        let admitted = admits(&policy, &format!("{host}:443"), &["1.1.1.1"]);
        prop_assert_eq!(admitted, matches);
    }
}

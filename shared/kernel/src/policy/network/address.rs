//! Which range an address belongs to, by the special-purpose registries of
//! IANA (RFC 6890 and what followed it).

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AddressRange {
    /// Reachable from anywhere.
    Public,
    /// Loopback addresses of this machine.
    Loopback,
    /// A private network, or a provider's shared one.
    Private,
    /// The network segment, with the metadata services of clouds.
    LinkLocal,
    /// The service of a cloud for its machines, at a public address.
    Metadata,
    /// No address, or any address of this machine.
    Unspecified,
    /// Several receivers, or all of a segment.
    Multicast,
    /// Documentation and benchmarks.
    Documentation,
    /// Everything else that is not for public hosts.
    Reserved,
}

impl AddressRange {
    /// Returns the range of an address; an IPv6 address that embeds an IPv4
    /// address (mapped, NAT64, 6to4) has the range of that one.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// Returns the range as a phrase.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud's metadata service",
            Self::Unspecified => "an unspecified address",
            Self::Multicast => "a multicast address",
            Self::Documentation => "a documentation or benchmark address",
            Self::Reserved => "a reserved address",
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn of_v4(address: Ipv4Addr) -> AddressRange {
    match address.octets() {
        [0, ..] => AddressRange::Unspecified,
        [127, ..] => AddressRange::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => {
            AddressRange::Private
        }
        [169, 254, ..] => AddressRange::LinkLocal,
        // Azure's WireServer; other clouds use link-local or private addresses.
        [168, 63, 129, 16] => AddressRange::Metadata,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [198, 18..=19, ..] => {
            AddressRange::Documentation
        }
        // Protocol assignments, and relays of 6to4.
        [192, 0, 0, _] | [192, 88, 99, _] => AddressRange::Reserved,
        [224..=239, ..] | [255, 255, 255, 255] => AddressRange::Multicast,
        [240..=255, ..] => AddressRange::Reserved,
        _ => AddressRange::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressRange {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressRange::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressRange::Loopback,
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        [0xfc00..=0xfdff, ..] => AddressRange::Private,
        // fec0::/10 was site-local.
        [0xfec0..=0xfeff, ..] => AddressRange::Private,
        [0xfe80..=0xfebf, ..] => AddressRange::LinkLocal,
        [0xff00..=0xffff, ..] => AddressRange::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x2001, 2, 0, ..] => {
            AddressRange::Documentation
        }
        // Protocol assignments; Teredo embeds an IPv4 address in disguise.
        [0x2001, 0..=0x1ff, ..] => AddressRange::Reserved,
        [0x2000..=0x3fff, ..] => AddressRange::Public,
        // Also 64:ff9b:1::/48, where the length of the prefix is a local choice.
        _ => AddressRange::Reserved,
    }
}

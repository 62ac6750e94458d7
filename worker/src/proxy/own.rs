//! Which addresses belong to this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Returns those of the addresses that belong to this machine.
pub(super) fn among(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let own = addresses.iter().copied();
    own.filter(|address| is_own(address.to_canonical()))
        .collect()
}

/// Returns whether a socket can have the address: the kernel knows every
/// address of every interface, also one that was added a moment ago.
fn is_own(address: IpAddr) -> bool {
    can_bind(address) && (!binds_everything(address) || routes_to_itself(address))
}

fn can_bind(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Returns whether sockets may have any address (`ip_nonlocal_bind`), by an
/// address of the documentation, which no machine has.
fn binds_everything(address: IpAddr) -> bool {
    can_bind(match address {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    })
}

/// Returns whether the route to the address begins there. Sends nothing.
fn routes_to_itself(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let begin = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    begin.is_ok_and(|begin| begin.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_own_and_documentation_is_not() {
        let addresses = ["127.0.0.1", "192.0.2.1", "127.5.6.7", "::ffff:127.0.0.1"]
            .map(|text| text.parse::<IpAddr>().unwrap());
        let [one, _, two, mapped] = addresses;
        assert_eq!(among(&addresses), [one, two, mapped]);
        assert!(routes_to_itself(one));
        assert!(!routes_to_itself(addresses[1]));
    }
}

//! The loopback interface of a new network, which is down at first.
//!
//! Source: rtnetlink(7), netdevice(7).

use super::while_doing;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};
use std::io;

/// The interface's number: it is the first of every network.
const LOOPBACK: i32 = 1;
/// `RTM_NEWLINK`.
const NEW_LINK: u16 = 16;
/// `NLM_F_REQUEST | NLM_F_ACK`.
const REQUEST_ACK: u16 = 1 | 4;
/// `NLMSG_ERROR`, also of an answer without an error.
const ERROR: u16 = 2;
/// `IFF_UP`.
const UP: u32 = 1;
/// The bytes of a `struct nlmsghdr` and a `struct ifinfomsg`.
const LENGTH: u32 = 32;

/// Switches the loopback interface on.
pub(super) fn raise() -> io::Result<()> {
    let failed = "cannot switch the loopback interface on";
    let socket = while_doing(
        failed,
        socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // `NETLINK_ROUTE` is the protocol 0.
            None,
        ),
    )?;
    let mut request = Vec::with_capacity(LENGTH as usize);
    request.extend(LENGTH.to_ne_bytes());
    request.extend(NEW_LINK.to_ne_bytes());
    request.extend(REQUEST_ACK.to_ne_bytes());
    request.extend([0; 8]);
    // Family and kind of device: any.
    request.extend([0; 4]);
    request.extend(LOOPBACK.to_ne_bytes());
    request.extend(UP.to_ne_bytes());
    request.extend(UP.to_ne_bytes());
    let kernel = SocketAddrNetlink::new(0, 0);
    while_doing(
        failed,
        sendto(&socket, &request, SendFlags::empty(), &kernel),
    )?;
    let mut answer = [0; 64];
    let (length, _) = while_doing(failed, recv(&socket, &mut answer[..], RecvFlags::empty()))?;
    let answer = &answer[..length];
    let kind = answer
        .get(4..6)
        .map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    let code = answer
        .get(16..20)
        .map(|code| i32::from_ne_bytes([code[0], code[1], code[2], code[3]]));
    match (kind, code) {
        (Some(ERROR), Some(0)) => Ok(()),
        (Some(ERROR), Some(code)) => Err(io::Error::from_raw_os_error(-code)),
        _ => Err(io::Error::other(failed)),
    }
}

//! The proxy between one command and the network.

use super::PrivateHome;
use crate::environment::PROXY_PORT;
use crate::proxy::{Proxy, ProxyError, ProxySpec, Service};
use crate::supervisor::confine::namespaces::{Loopback, OWN, PortRelay};
use premath_kernel::policy::network::{NetworkPhase, NetworkPolicy};
use std::path::Path;

/// Starts the proxy of a command; returns it with the command's network, which
/// is absent where it is the host's.
///
/// # Errors
///
/// [`ProxyError`].
pub(crate) fn connect(
    policy: &NetworkPolicy,
    phase: NetworkPhase,
    home: &PrivateHome,
) -> Result<(Option<Proxy>, Option<Loopback>), ProxyError> {
    match policy {
        NetworkPolicy::Open => return Ok((None, None)),
        NetworkPolicy::Off => return Ok((None, Some(Loopback::default()))),
        NetworkPolicy::Allow(_) | NetworkPolicy::Public(_) => {}
    }
    let inside = Path::new(OWN).join("net");
    let mut relays = vec![PortRelay::new(PROXY_PORT, &inside.join("proxy"))];
    let mut services = Vec::new();
    for target in policy.loopback_services() {
        let name = format!("port-{}", target.port);
        relays.push(PortRelay::new(target.port, &inside.join(&name)));
        let socket = home.sockets().join(name);
        services.push(Service { socket, target });
    }
    let proxy = Proxy::start(ProxySpec {
        socket: home.sockets().join("proxy"),
        services,
        policy: policy.clone(),
        phase,
    })?;
    Ok((Some(proxy), Some(Loopback { relays })))
}

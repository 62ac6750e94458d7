//! The service manager that started this process: what sd_notify(3) sends, without
//! its library.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The variables by which a service manager is reached. They are this process's own:
/// nothing that it starts gets them.
pub const VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// The service manager, as its variables say how it is reached.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Finds it; `None` where no service manager started this process.
    ///
    /// # Errors
    ///
    /// The variable names no socket, or none can be made.
    pub fn find(variable: impl Fn(&str) -> Option<OsString>, pid: u32) -> io::Result<Option<Self>> {
        let Some(name) = variable("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        // The variables pass to children, whose watchdog it is not.
        let is_ours = number("WATCHDOG_PID").is_none_or(|of| of == u64::from(pid));
        let period = number("WATCHDOG_USEC").filter(|period| is_ours && *period > 0);
        let address = match name.as_bytes() {
            [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
            [b'/', ..] => SocketAddr::from_pathname(&name)?,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let socket = UnixDatagram::unbound()?;
        // A manager that reads nothing holds nothing up.
        socket.set_nonblocking(true)?;
        Ok(Some(Self {
            socket,
            address,
            watchdog: period.map(Duration::from_micros),
        }))
    }

    /// Returns how long this process may be silent; `None` where no watchdog waits.
    pub const fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Sends lines of `NAME=value`.
    ///
    /// # Errors
    ///
    /// The manager takes no message now.
    pub fn send(&self, lines: &str) -> io::Result<()> {
        self.socket
            .send_to_addr(lines.as_bytes(), &self.address)
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> io::Result<Option<ServiceManager>> {
        let of = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        ServiceManager::find(of, 7)
    }

    #[test]
    fn an_abstract_socket_is_reached() {
        let name = format!("premath-manager-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let receiver = UnixDatagram::bind_addr(&address).unwrap();
        let manager = find(&[("NOTIFY_SOCKET", &format!("@{name}"))]);
        let manager = manager.unwrap().unwrap();
        manager.send("READY=1\n").unwrap();
        let mut bytes = [0; 64];
        let length = receiver.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"READY=1\n");
        assert_eq!(manager.watchdog(), None);
    }

    #[test]
    fn the_watchdog_of_another_process_is_not_ours() {
        let watchdog = |pid: &[(&'static str, &'static str)]| {
            let mut all = vec![("NOTIFY_SOCKET", "/a"), ("WATCHDOG_USEC", "2500000")];
            all.extend(pid);
            find(&all).unwrap().unwrap().watchdog()
        };
        let period = Some(Duration::from_millis(2500));
        assert_eq!(watchdog(&[]), period);
        assert_eq!(watchdog(&[("WATCHDOG_PID", "7")]), period);
        assert_eq!(watchdog(&[("WATCHDOG_PID", "8")]), None);
    }

    #[test]
    fn without_a_manager_there_is_none_and_a_wrong_address_is_an_error() {
        assert!(find(&[]).unwrap().is_none());
        assert!(find(&[("NOTIFY_SOCKET", "")]).unwrap().is_none());
        assert!(find(&[("NOTIFY_SOCKET", "vsock:2:1234")]).is_err());
    }
}

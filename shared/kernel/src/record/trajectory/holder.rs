//! Which process runs a batch, and whether it still does.

use crate::issue::Holder;
use crate::issue::lease::Life;
use crate::json::read::{text, unless_blank};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which process runs a batch: alive or not decides whether it can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchHolder {
    /// The host's name.
    #[serde(deserialize_with = "text")]
    pub host: String,
    /// The id of the host's boot.
    #[serde(deserialize_with = "text")]
    pub boot_id: String,
    /// The process id.
    pub pid: u32,
    /// When the process started, in clock ticks since boot: pids come again.
    pub started: u64,
    /// The pid namespace that `pid` counts in, where it is known.
    #[serde(
        default,
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub pid_ns: Option<String>,
}

impl BatchHolder {
    /// Returns whether the process may still run, as seen from the process
    /// `here`; one that cannot be seen from there counts as alive, except under
    /// another boot of the same host.
    pub fn may_live(&self, here: Option<&Holder>, life: &dyn Fn(&Holder) -> Life) -> bool {
        let Some(here) = here else {
            return true;
        };
        let probe = Holder {
            host: self.host.as_str().into(),
            boot_id: self.boot_id.as_str().into(),
            pid: self.pid,
            started: self.started,
            deadline_ms: 0,
            pid_ns: self.pid_ns.as_deref().map(Into::into),
        };
        if probe.host == here.host && probe.boot_id != here.boot_id {
            return false;
        }
        life(&probe) != Life::Dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_gone_where_it_is_dead_or_its_host_booted_again() {
        let holder = BatchHolder {
            host: "h".into(),
            boot_id: "b".into(),
            pid: 1,
            started: 7,
            pid_ns: None,
        };
        let here = |host: &str, boot_id: &str| Holder {
            host: host.into(),
            boot_id: boot_id.into(),
            pid: 2,
            started: 9,
            deadline_ms: 0,
            pid_ns: None,
        };
        for (host, boot_id, life, expected) in [
            ("h", "b", Life::Alive, true),
            ("h", "b", Life::Unknown, true),
            ("h", "b", Life::Dead, false),
            ("h", "c", Life::Alive, false),
            ("h", "c", Life::Unknown, false),
            ("i", "c", Life::Unknown, true),
            ("i", "c", Life::Dead, false),
        ] {
            let seen = |probe: &Holder| {
                assert_eq!((probe.pid, probe.started), (1, 7));
                life
            };
            assert_eq!(
                holder.may_live(Some(&here(host, boot_id)), &seen),
                expected,
                "{host} {boot_id} {life:?}"
            );
        }
        assert!(holder.may_live(None, &|_| Life::Dead));
    }
}

//! What commands reached and were refused, counted.

use super::host::Target;
use super::policy::DenialReason;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The most distinct records; admitted and refused ones each have their own,
/// so that a flood of refused hosts hides no admitted one.
const RECORDS_MAX: usize = 256;

/// A host and port that commands asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkRecord {
    /// The host, in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the policy admitted it.
    pub admitted: bool,
    /// Why the policy refused it the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<DenialReason>,
    /// How many connections were asked for.
    pub connections: u64,
    /// How many admitted ones failed: no address, or no answer.
    pub failures: u64,
    /// Bytes from the command to the host.
    pub bytes_up: u64,
    /// Bytes from the host to the command.
    pub bytes_down: u64,
}

/// What commands did with the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkFacts {
    /// The hosts, sorted by host, port and admission.
    pub records: Vec<NetworkRecord>,
    /// Admitted connections to further hosts.
    pub further_admitted: u64,
    /// Refused connections to further hosts.
    pub further_denied: u64,
    /// Requests that were not proxy requests.
    pub malformed: u64,
}

/// A record of a [`NetworkLedger`]; traffic is counted by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordId(Option<Key>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    host: String,
    port: u16,
    admitted: bool,
}

/// Counts connections, in bounded space.
#[derive(Clone, Debug, Default)]
pub struct NetworkLedger {
    records: BTreeMap<Key, NetworkRecord>,
    admitted: usize,
    denied: usize,
    further_admitted: u64,
    further_denied: u64,
    malformed: u64,
}

impl NetworkLedger {
    /// Counts a connection, and why it was refused.
    pub fn asked(&mut self, target: &Target, refused: Option<DenialReason>) -> RecordId {
        let key = Key {
            host: target.host.to_string(),
            port: target.port,
            admitted: refused.is_none(),
        };
        if let Some(record) = self.records.get_mut(&key) {
            record.connections += 1;
            return RecordId(Some(key));
        }
        let (kept, further) = if key.admitted {
            (&mut self.admitted, &mut self.further_admitted)
        } else {
            (&mut self.denied, &mut self.further_denied)
        };
        if *kept >= RECORDS_MAX {
            *further += 1;
            return RecordId(None);
        }
        *kept += 1;
        let record = NetworkRecord {
            host: key.host.clone(),
            port: key.port,
            admitted: key.admitted,
            reason: refused,
            connections: 1,
            failures: 0,
            bytes_up: 0,
            bytes_down: 0,
        };
        self.records.insert(key.clone(), record);
        RecordId(Some(key))
    }

    /// Counts an admitted connection that failed.
    pub fn failed(&mut self, id: &RecordId) {
        if let Some(record) = self.record(id) {
            record.failures += 1;
        }
    }

    /// Counts bytes of a connection.
    pub fn moved(&mut self, id: &RecordId, up: u64, down: u64) {
        if let Some(record) = self.record(id) {
            record.bytes_up += up;
            record.bytes_down += down;
        }
    }

    /// Counts a request that was not a proxy request.
    pub const fn malformed(&mut self) {
        self.malformed += 1;
    }

    fn record(&mut self, id: &RecordId) -> Option<&mut NetworkRecord> {
        self.records.get_mut(id.0.as_ref()?)
    }

    /// Returns what was counted so far.
    pub fn facts(&self) -> NetworkFacts {
        NetworkFacts {
            records: self.records.values().cloned().collect(),
            further_admitted: self.further_admitted,
            further_denied: self.further_denied,
            malformed: self.malformed,
        }
    }
}

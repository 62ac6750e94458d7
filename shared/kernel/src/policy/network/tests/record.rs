//! What is counted.

use super::*;

#[test]
fn connections_are_counted_by_host_port_and_admission() {
    let mut ledger = NetworkLedger::default();
    let (b, a) = ("b.example:443", "A.example:443");
    let of = |text| Target::parse(text).unwrap();
    let first = ledger.asked(&of(b), None);
    ledger.moved(&first, 3, 5);
    ledger.moved(&first, 1, 0);
    let second = ledger.asked(&of(b), None);
    ledger.failed(&second);
    ledger.asked(&of(a), Some(DenialReason::NotListed));
    ledger.malformed();
    let facts = ledger.facts();
    let [denied, admitted] = &facts.records[..] else {
        panic!("{facts:?}");
    };
    assert_eq!(
        (denied.host.as_str(), denied.admitted),
        ("a.example", false)
    );
    assert_eq!(denied.reason, Some(DenialReason::NotListed));
    assert_eq!((admitted.connections, admitted.failures), (2, 1));
    assert_eq!((admitted.bytes_up, admitted.bytes_down), (4, 5));
    assert_eq!(facts.malformed, 1);
}

#[test]
fn a_flood_of_refused_hosts_hides_no_admitted_one() {
    let mut ledger = NetworkLedger::default();
    for number in 0..1_000 {
        let target = Target::parse(&format!("h{number}.example:443")).unwrap();
        let id = ledger.asked(&target, Some(DenialReason::NotListed));
        ledger.moved(&id, 1, 1);
    }
    let target = Target::parse("last.example:443").unwrap();
    ledger.asked(&target, None);
    let facts = ledger.facts();
    assert_eq!(facts.records.len(), 257);
    assert_eq!((facts.further_admitted, facts.further_denied), (0, 744));
    assert!(facts.records.iter().any(|record| record.admitted));
}

#[test]
fn a_reason_is_written_with_its_address() {
    let address = address("10.0.0.1");
    let range = AddressRange::Private;
    let reason = DenialReason::Address { address, range };
    assert_eq!(
        serde_json::to_value(reason).unwrap(),
        serde_json::json!({"class": "address", "address": "10.0.0.1", "range": "private"})
    );
}

use super::*;
use jiff::Timestamp;
use std::collections::BTreeSet;

fn ids(facts: &HealthFacts) -> Vec<String> {
    let found = examine(facts).into_iter();
    found.map(|finding| finding.id).collect()
}

/// A repository in which all is well.
fn well() -> HealthFacts {
    HealthFacts {
        has_settings: true,
        machine: MachineFacts {
            disk: Some(1 << 40),
            memory: Some(1 << 34),
            network: None,
            now: "2026-03-05T10:00:00Z".parse().unwrap(),
        },
        ..HealthFacts::default()
    }
}

#[test]
fn ids_are_unique_words_with_hyphens_and_sentences_end() {
    let ids: BTreeSet<&str> = CHECKS.iter().map(|check| check.id).collect();
    assert_eq!(ids.len(), CHECKS.len());
    for check in CHECKS {
        let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        assert!(check.id.bytes().all(is_fit), "{}", check.id);
        assert!(check.about.ends_with('.'), "{}", check.id);
    }
}

#[test]
fn a_healthy_repository_has_no_finding() {
    assert_eq!(ids(&well()), [""; 0]);
}

#[test]
fn the_machine_is_judged_by_its_bounds() {
    let with = |change: fn(&mut MachineFacts)| {
        let mut facts = well();
        change(&mut facts.machine);
        ids(&facts)
    };
    assert_eq!(with(|machine| machine.disk = Some(2 << 30)), [""; 0]);
    assert_eq!(
        with(|machine| machine.disk = Some((2 << 30) - 1)),
        ["disk-low"]
    );
    assert_eq!(with(|machine| machine.memory = Some(1)), ["memory-low"]);
    let network = with(|machine| machine.network = Some("NFS".to_owned()));
    assert_eq!(network, ["network-file-system"]);
    assert_eq!(
        with(|machine| machine.now = Timestamp::UNIX_EPOCH),
        ["clock-wrong"]
    );
}

#[test]
fn a_file_of_the_future_is_one_beyond_the_skew_of_clocks() {
    for (seconds, expected) in [(300, 0), (301, 1)] {
        let mut facts = well();
        let at = Timestamp::from_second(facts.machine.now.as_second() + seconds).unwrap();
        let path = "f".to_owned();
        facts.files.push(FileTime { path, at });
        assert_eq!(examine(&facts).len(), expected, "{seconds}");
    }
}

#[test]
fn what_is_fixable_names_the_one_command() {
    let mut facts = well();
    facts.shows_files = true;
    facts.issues = vec![IssueFault::Cycle(vec!["a".to_owned(), "b".to_owned()])];
    let found = examine(&facts);
    let next: Vec<_> = found.iter().map(|finding| &*finding.next).collect();
    assert_eq!(next, ["premath dep remove a b", "premath doctor --fix"]);
}

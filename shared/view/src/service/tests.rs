use super::*;

fn terms(schedule: ServiceSchedule) -> ServiceTerms {
    ServiceTerms {
        name: unit_name("parser"),
        repository: "/srv/ana/src/parser".into(),
        program: "/srv/ana/.cargo/bin/harness-coordinator".into(),
        flags: Vec::new(),
        path: "/srv/ana/.cargo/bin:/usr/bin:/bin".into(),
        schedule,
        drain: DrainTime {
            drain_grace: Duration::from_secs(600),
            grace: Duration::from_secs(10),
            notify: Duration::from_secs(10),
        },
    }
}

fn line_of<'a>(unit: &'a Unit, key: &str) -> &'a str {
    let start = format!("{key}=");
    let line = unit.text.lines().find(|line| line.starts_with(&start));
    line.unwrap_or_else(|| panic!("no {key}: {}", unit.text))
}

#[test]
fn the_units_of_every_night_are_these() {
    let units = terms(ServiceSchedule::EveryNight(22, 5)).units().unwrap();
    assert_eq!(units.len(), 2);
    assert_eq!(units[0].file, "premath-parser.service");
    let (_, text) = units[0].text.split_once('\n').unwrap();
    assert_eq!(text, include_str!("golden/every-night.service"));
    assert_eq!(units[1].file, "premath-parser.timer");
    let (_, text) = units[1].text.split_once('\n').unwrap();
    assert_eq!(text, include_str!("golden/every-night.timer"));
}

#[test]
fn a_service_that_stays_begins_with_the_session_and_needs_no_timer() {
    let forever = terms(ServiceSchedule::Forever);
    let units = forever.units().unwrap();
    assert_eq!(units.len(), 1);
    assert!(line_of(&units[0], "ExecStart").ends_with(r#"" "--until" "forever""#));
    assert!(
        units[0]
            .text
            .ends_with("[Install]\nWantedBy=default.target\n")
    );
    assert_eq!(forever.enabled().as_deref(), Some("premath-parser.service"));
    let by_hand = terms(ServiceSchedule::ByHand);
    assert_eq!(by_hand.enabled(), None);
    assert!(!by_hand.units().unwrap()[0].text.contains("[Install]"));
}

#[test]
fn what_systemd_would_read_in_another_way_is_escaped() {
    let mut terms = terms(ServiceSchedule::ByHand);
    terms.repository = r"/srv/a b/50%h\x".into();
    terms.program = "/opt/$HOME/a b/harness-coordinator".into();
    terms.path = r"/a b:/c%d:/e\f".into();
    terms.flags = vec!["--work-cmd".into(), "echo \"$X\" %i\n; 'y'\u{7}".into()];
    let unit = &terms.units().unwrap()[0];
    assert_eq!(
        line_of(unit, "WorkingDirectory"),
        r"WorkingDirectory=/srv/a b/50%%h\x"
    );
    assert_eq!(
        line_of(unit, "Environment"),
        r#"Environment="PATH=/a b:/c%%d:/e\\f""#
    );
    assert_eq!(
        line_of(unit, "ExecStart"),
        concat!(
            r#"ExecStart=:"/opt/$HOME/a b/harness-coordinator" "--work-cmd" "#,
            r#""echo \"$X\" %%i\n; 'y'\x07""#
        )
    );
}

#[test]
fn a_path_that_no_unit_holds_is_refused() {
    for path in [
        "/a\nExecStart=/bin/evil",
        "/a ",
        "/a\\",
        "relative",
        "/a\u{7}",
    ] {
        let mut terms = terms(ServiceSchedule::EveryNight(1, 2));
        terms.repository = path.into();
        let error = terms.units().unwrap_err();
        assert_eq!(error.what, "the repository's path", "{path:?}");
        assert!(!error.text.contains('\n'));
    }
    for path in ["/a'b/c", "/a\"/c", "/a\\b/c", "c"] {
        let mut terms = terms(ServiceSchedule::ByHand);
        terms.program = path.into();
        assert_eq!(terms.units().unwrap_err().what, "the program's path");
    }
}

#[test]
fn a_unit_that_a_person_changed_is_known() {
    let unit = &terms(ServiceSchedule::ByHand).units().unwrap()[0];
    assert_eq!(state_of(&unit.text), UnitState::Ours);
    let changed = unit.text.replace("KillMode=mixed", "KillMode=process");
    assert_ne!(changed, unit.text);
    for text in [
        changed.as_str(),
        "",
        "[Unit]\n",
        "# premath-service-v1 sha256:\n",
    ] {
        assert_eq!(state_of(text), UnitState::Changed);
    }
}

#[test]
fn the_stop_takes_as_long_as_the_drain_and_what_follows_it() {
    let drain = terms(ServiceSchedule::ByHand).drain;
    assert_eq!(drain.total().unwrap().as_secs(), 600 + 10 + 10 + 120 + 1);
    let endless = DrainTime {
        drain_grace: Duration::MAX,
        ..drain
    };
    assert_eq!(endless.total(), None);
    let mut terms = terms(ServiceSchedule::ByHand);
    terms.drain = endless;
    let unit = &terms.units().unwrap()[0];
    assert_eq!(line_of(unit, "TimeoutStopSec"), "TimeoutStopSec=infinity");
}

#[test]
fn a_name_of_a_folder_becomes_a_name_of_a_unit() {
    assert_eq!(unit_name("my repo/ü@1"), "premath-my-repo---1");
    assert!(is_unit_name(&unit_name("my repo/ü@1")));
    for name in ["", ".hidden", "a b", "a/b", "a@b", "a\n"] {
        assert!(!is_unit_name(name), "{name:?}");
    }
}

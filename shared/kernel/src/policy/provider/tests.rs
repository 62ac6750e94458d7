use super::*;
use proptest::prelude::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_780_000_000 + second).unwrap()
}

fn pool(own: &[&str], fallback: &[&str]) -> ProviderPool {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let rule = ProviderRule {
        own: names(own),
        fallback: names(fallback),
        pause: Duration::from_secs(3_600),
        limit_lines: LimitLines::Ignore,
    };
    ProviderPool::new(rule, 0, "hb1")
}

/// Seats the workers as a pass does: each that has a assignment begins.
fn seated(pool: &mut ProviderPool, workers: &[&str], now: i64) -> Vec<String> {
    let names: Vec<WorkerName> = workers.iter().map(|name| (*name).into()).collect();
    let assignments = pool.assignments(&names.iter().collect::<Vec<_>>(), at(now));
    let chosen = assignments.iter().map(|assignment| match assignment {
        None => "waits".to_owned(),
        Some(assignment) if assignment.probe => format!("asks {}", assignment.provider),
        Some(assignment) => assignment.provider.clone(),
    });
    let chosen = chosen.collect();
    for (worker, assignment) in names.iter().zip(assignments) {
        if let Some(assignment) = assignment {
            pool.take(worker, assignment);
        }
    }
    chosen
}

fn refused(resets_at: Option<i64>) -> ProviderAnswer {
    ProviderAnswer::Refused(UsageLimit {
        resets_at: resets_at.map(at),
    })
}

fn parked(provider: &str, until: i64) -> Option<ProviderChange> {
    Some(ProviderChange::Parked {
        provider: provider.into(),
        until: at(until),
    })
}

#[test]
fn a_limit_parks_until_its_reset_and_then_one_step_asks() {
    let mut pool = pool(&["a"], &[]);
    assert_eq!(seated(&mut pool, &["w.1", "w.2"], 0), ["a", "a"]);
    assert_eq!(
        pool.ended(&"w.1".into(), refused(Some(100)), at(10)),
        parked("a", 100)
    );
    // Steps that began earlier carry no information about the limit.
    assert_eq!(
        pool.ended(&"w.2".into(), ProviderAnswer::Answered, at(20)),
        None
    );
    assert_eq!(seated(&mut pool, &["w.1", "w.2"], 99), ["waits", "waits"]);
    assert_eq!(
        (pool.of(&"w.1".into(), at(99)), pool.next(&"w.1".into())),
        (None, Some(at(100)))
    );
    assert_eq!(seated(&mut pool, &["w.1", "w.2"], 100), ["asks a", "waits"]);
    assert_eq!(pool.next(&"w.2".into()), None);
    assert_eq!(seated(&mut pool, &["w.2"], 500), ["waits"]);
    let resumed = Some(ProviderChange::Resumed {
        provider: "a".into(),
    });
    assert_eq!(
        pool.ended(&"w.1".into(), ProviderAnswer::Answered, at(600)),
        resumed
    );
    assert_eq!(seated(&mut pool, &["w.1", "w.2"], 600), ["a", "a"]);
}

#[test]
fn a_reset_that_is_not_reported_or_cannot_be_waits_up_to_the_pause() {
    for stated in [None, Some(9 * 86_400)] {
        let mut pool = pool(&["a"], &[]);
        seated(&mut pool, &["w.1"], 0);
        let mut now = 0;
        let mut waits = Vec::new();
        for _ in 0..6 {
            let Some(ProviderChange::Parked { until, .. }) =
                pool.ended(&"w.1".into(), refused(stated), at(now))
            else {
                panic!("not parked");
            };
            let until = until.as_second() - at(0).as_second();
            waits.push(until - now);
            now = until;
            assert_eq!(seated(&mut pool, &["w.1"], now), ["asks a"]);
        }
        assert_eq!(waits, [300, 600, 1_200, 2_400, 3_600, 3_600]);
    }
}

/// Attack 17: a forged line parked the provider for an hour.
#[test]
fn a_first_parking_is_short_whatever_reset_is_stated() {
    let mut pool = pool(&["a"], &[]);
    seated(&mut pool, &["w.1"], 0);
    let week = Some(7 * 86_400);
    assert_eq!(
        pool.ended(&"w.1".into(), refused(week), at(0)),
        parked("a", 300)
    );
    assert_eq!(seated(&mut pool, &["w.1"], 300), ["asks a"]);
    let resumed = Some(ProviderChange::Resumed {
        provider: "a".into(),
    });
    assert_eq!(
        pool.ended(&"w.1".into(), ProviderAnswer::Answered, at(301)),
        resumed
    );
    // A provider that continues refusing is parked until the stated reset at
    // last.
    let mut now = 400;
    while now < 86_400 {
        seated(&mut pool, &["w.1"], now);
        let Some(ProviderChange::Parked { until, .. }) =
            pool.ended(&"w.1".into(), refused(Some(86_400)), at(now))
        else {
            panic!("not parked");
        };
        now = until.as_second() - at(0).as_second();
    }
    assert_eq!(now, 86_400);
}

#[test]
fn one_that_names_a_time_and_refuses_again_is_asked_more_rarely() {
    let mut pool = pool(&["a"], &[]);
    let mut now = 0;
    let mut waits = Vec::new();
    for _ in 0..15 {
        assert_ne!(seated(&mut pool, &["w.1"], now), ["waits"]);
        let Some(ProviderChange::Parked { until, .. }) =
            pool.ended(&"w.1".into(), refused(Some(now)), at(now))
        else {
            panic!("not parked");
        };
        let until = until.as_second() - at(0).as_second();
        waits.push(until - now);
        now = until;
    }
    assert_eq!(waits[..4], [1, 2, 4, 8]);
    assert_eq!(waits.last(), Some(&3_600));
}

#[test]
fn simultaneous_limits_are_one_parking() {
    let mut pool = pool(&["a"], &[]);
    seated(&mut pool, &["w.1", "w.2", "w.3", "w.4"], 0);
    assert_eq!(
        pool.ended(&"w.1".into(), refused(None), at(0)),
        parked("a", 300)
    );
    // A time that is reported is better than none, and the later is the safer.
    assert_eq!(
        pool.ended(&"w.2".into(), refused(Some(60)), at(1)),
        parked("a", 60)
    );
    assert_eq!(pool.ended(&"w.3".into(), refused(None), at(2)), None);
    assert_eq!(
        pool.ended(&"w.4".into(), refused(Some(90)), at(3)),
        parked("a", 90)
    );
}

#[test]
fn lanes_of_other_providers_continue_and_a_fallback_takes_the_rest() {
    let mut pool = pool(&["a", "b"], &["b", "c"]);
    let all = ["w.1", "w.2", "w.3"];
    assert_eq!(seated(&mut pool, &all, 0), ["a", "b", "a"]);
    pool.ended(&"w.1".into(), refused(Some(100)), at(0));
    assert_eq!(seated(&mut pool, &["w.1"], 1), ["b"]);
    pool.ended(&"w.1".into(), ProviderAnswer::Answered, at(2));
    pool.ended(&"w.2".into(), refused(Some(200)), at(3));
    pool.ended(&"w.3".into(), ProviderAnswer::Unknown, at(3));
    assert_eq!(seated(&mut pool, &all, 4), ["c", "c", "c"]);
    for worker in all {
        pool.ended(&worker.into(), ProviderAnswer::Answered, at(5));
    }
    // One asks the lane's own again, the others stay where they can work.
    assert_eq!(seated(&mut pool, &all, 100), ["asks a", "c", "c"]);
}

#[test]
fn a_probe_that_is_silent_leaves_the_provider_to_the_next() {
    let mut pool = pool(&["a"], &[]);
    pool.restore("a", at(100));
    assert_eq!(seated(&mut pool, &["w.1"], 99), ["waits"]);
    assert_eq!(seated(&mut pool, &["w.1"], 100), ["asks a"]);
    assert_eq!(
        pool.ended(&"w.1".into(), ProviderAnswer::Unknown, at(101)),
        None
    );
    assert_eq!(pool.next(&"w.2".into()), Some(at(100)));
    assert_eq!(seated(&mut pool, &["w.2"], 101), ["asks a"]);
    let parked: Vec<_> = pool.parked().collect();
    assert_eq!(parked, [("a", at(100))]);
}

#[test]
fn jitter_makes_a_parking_longer_by_a_tenth_at_most() {
    let mut pool = pool(&["a"], &[]);
    pool.jitter_percent = 10;
    seated(&mut pool, &["w.1"], 0);
    let until = |pool: &mut ProviderPool, reset: i64| match pool.clone().ended(
        &"w.1".into(),
        refused(Some(reset)),
        at(0),
    ) {
        Some(ProviderChange::Parked { until, .. }) => until,
        other => panic!("{other:?}"),
    };
    let far = until(&mut pool, 86_400);
    assert!(far > at(300) && far <= at(330), "{far}");
    assert_eq!(far, until(&mut pool, 86_400));
    assert!(until(&mut pool, 10) <= at(11));
}

#[test]
fn a_reset_is_read_as_commands_write_it() {
    let reset = |text: &str| UsageLimit::reported_in(text).resets_at;
    let expected: Timestamp = "2026-03-05T10:00:00Z".parse().unwrap();
    for text in [
        " resets at 2026-03-05T10:00:00Z",
        " resets at 2026-03-05T11:00:00+01:00.",
        " five hours used, resets at 1772704800 (try later)",
    ] {
        assert_eq!(reset(text), Some(expected), "{text}");
    }
    for text in ["", " resets at", " resets at noon", " resets soon"] {
        assert_eq!(reset(text), None, "{text}");
    }
    let lines = b"usage_limit: x\nnoise\nusage_limit: resets at 1772704800\nend\n";
    let limit = UsageLimit::named_in(lines).unwrap();
    assert_eq!(limit.resets_at, Some(expected));
    assert_eq!(UsageLimit::named_in(b"no usage_limit: here\n"), None);
}

proptest! {
    #[test]
    fn a_parked_provider_is_asked_by_one_at_a_time(
        acts in proptest::collection::vec((0usize..4, 0u8..4, 0i64..50), 1..60),
    ) {
        let mut pool = pool(&["a", "b"], &["c"]);
        let workers = ["w.1", "w.2", "w.3", "w.4"];
        let mut at_work = BTreeSet::new();
        let mut now = 0;
        for (lane, act, step) in acts {
            now += step;
            let worker = workers[lane];
            if at_work.remove(worker) {
                let answer = match act {
                    0 => refused(Some(now + 20)),
                    1 => refused(None),
                    2 => ProviderAnswer::Answered,
                    _ => ProviderAnswer::Unknown,
                };
                pool.ended(&worker.into(), answer, at(now));
            } else {
                let idle: Vec<&str> =
                    workers.into_iter().filter(|w| !at_work.contains(w)).collect();
                let names: Vec<WorkerName> = idle.iter().map(|name| (*name).into()).collect();
                let assignments = pool.assignments(&names.iter().collect::<Vec<_>>(), at(now));
                let mut probes: Vec<&str> = pool
                    .parked
                    .iter()
                    .filter(|(_, parked)| parked.probe.is_some())
                    .map(|(name, _)| name.as_str())
                    .collect();
                for assignment in assignments.iter().flatten() {
                    let parked = pool.parked.get(&assignment.provider);
                    prop_assert_eq!(assignment.probe, parked.is_some());
                    if assignment.probe {
                        prop_assert!(parked.unwrap().until <= at(now));
                        prop_assert!(!probes.contains(&assignment.provider.as_str()));
                        probes.push(&assignment.provider);
                    }
                }
                let assignment = assignments[idle.iter().position(|w| *w == worker).unwrap()].clone();
                if let Some(assignment) = assignment {
                    pool.take(&worker.into(), assignment);
                    at_work.insert(worker);
                }
            }
        }
    }
}

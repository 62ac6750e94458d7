//! Many processes claim from one file.

use premath_tests::{Length, Scratch, issue};
use std::collections::BTreeSet;
use std::sync::Barrier;

const PROCESSES: usize = 64;

#[test]
fn processes_in_a_race_claim_each_issue_once_and_all_are_served() {
    let count = Length::asked("the race on 2,000 issues").pick(400, 2000);
    let rows: Vec<_> = (0..count).map(|n| issue(&format!("r-{n:05}"))).collect();
    let scratch = Scratch::with_issues(0, &rows);
    let start = Barrier::new(PROCESSES);
    // Each claims until it is reported that nothing is left.
    let claimed: Vec<Vec<String>> = std::thread::scope(|threads| {
        let claimants: Vec<_> = (0..PROCESSES)
            .map(|number| {
                let (scratch, start) = (&scratch, &start);
                threads.spawn(move || {
                    let name = format!("claimant.{number}");
                    let mut mine = Vec::new();
                    start.wait();
                    loop {
                        let answer = scratch
                            .premath(["issue", "claim-next", "--assignee", &name, "--json"])
                            .end()
                            .exits(0)
                            .json();
                        if answer["claimed"] == false {
                            return mine;
                        }
                        assert_eq!(answer["issue"]["lease"]["owner"], *name);
                        mine.push(answer["issue"]["id"].as_str().unwrap().to_owned());
                    }
                })
            })
            .collect();
        claimants
            .into_iter()
            .map(|claimant| claimant.join().unwrap())
            .collect()
    });
    let all: Vec<&String> = claimed.iter().flatten().collect();
    let distinct: BTreeSet<&String> = all.iter().copied().collect();
    assert_eq!(all.len(), distinct.len(), "an issue was claimed twice");
    assert_eq!(distinct.len(), count);
    for row in scratch.issues().values() {
        assert_eq!(row["status"], "in_progress");
        assert_eq!(row["lease_generation"], 1, "{row}");
    }
}

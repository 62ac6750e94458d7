use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn issue(id: &str, status: &str, edges: &[(&str, &str)]) -> Issue {
    let dependencies: Vec<_> = edges
        .iter()
        .map(|(target, kind)| serde_json::json!({"issue_id": id, "depends_on_id": target, "type": kind}))
        .collect();
    serde_json::from_value(
        serde_json::json!({"id": id, "status": status, "dependencies": dependencies}),
    )
    .unwrap()
}

fn frontier(graph: &IssueGraph) -> Vec<&str> {
    graph.frontier().map(|id| &**id).collect()
}

fn graph(issues: &[Issue]) -> IssueGraph {
    IssueGraph::build(issues)
}

#[test]
fn blockers_hold_until_they_are_terminal_and_a_missing_one_holds_too() {
    let mut g = graph(&[
        issue("a", "open", &[]),
        issue("b", "open", &[("a", "blocks")]),
        issue("c", "open", &[("nowhere", "waits-for")]),
        issue(
            "d",
            "open",
            &[("a", "related"), ("gone", "discovered-from")],
        ),
        issue("e", "open", &[("t", "conditional-blocks")]),
        issue("t", "tombstone", &[]),
    ]);
    assert_eq!(frontier(&g), ["a", "d", "e"]);
    g.upsert(&issue("a", "closed", &[]));
    assert_eq!(frontier(&g), ["b", "d", "e"]);
    g.upsert(&issue("a", "open", &[]));
    assert_eq!(frontier(&g), ["a", "d", "e"]);
    g.upsert(&issue("nowhere", "closed", &[]));
    assert_eq!(frontier(&g), ["a", "c", "d", "e"]);
}

#[test]
fn the_frontier_goes_by_priority_then_id() {
    let mut first = issue("z", "open", &[]);
    first.priority = 0;
    let g = graph(&[issue("b", "open", &[]), issue("a", "open", &[]), first]);
    assert_eq!(frontier(&g), ["z", "a", "b"]);
}

#[test]
fn a_parent_waits_for_its_children() {
    let mut g = graph(&[
        issue("p", "open", &[]),
        issue("c", "open", &[("p", "parent-child")]),
    ]);
    assert_eq!(frontier(&g), ["c"]);
    g.upsert(&issue("c", "closed", &[("p", "parent-child")]));
    assert_eq!(frontier(&g), ["p"]);
}

#[test]
fn an_ancestors_outside_blocker_holds_the_subtree_but_an_inside_one_does_not() {
    let tree = |outside: &str| {
        vec![
            issue("p", "open", &[("x", "blocks"), ("c2", "blocks")]),
            issue("c1", "open", &[("p", "parent-child")]),
            issue("c2", "open", &[("p", "parent-child")]),
            issue("g", "open", &[("c1", "parent-child")]),
            issue("x", outside, &[]),
        ]
    };
    let g = graph(&tree("open"));
    assert_eq!(frontier(&g), ["x"]);
    assert_eq!(g.holds("g"), [Hold::Ancestor("p".into())]);
    let mut g = graph(&tree("closed"));
    assert_eq!(frontier(&g), ["c2", "g"]);
    g.upsert(&issue("x", "open", &[]));
    assert_eq!(frontier(&g), ["x"]);
    assert!(!g.diagnose(Scope::Active).has_cycle);
}

#[test]
fn a_cycle_is_named_from_its_smallest_member() {
    let g = graph(&[
        issue("c", "open", &[("a", "blocks")]),
        issue("b", "open", &[("c", "blocks")]),
        issue("a", "open", &[("b", "blocks")]),
        issue("d", "open", &[("a", "blocks")]),
        issue("e", "open", &[]),
    ]);
    let diagnosis = g.diagnose(Scope::Active);
    let path: Vec<&str> = diagnosis
        .cycle_path
        .as_ref()
        .unwrap()
        .iter()
        .map(|s| &**s)
        .collect();
    assert_eq!(path, ["a", "b", "c", "a"]);
    assert_eq!(diagnosis.cycles.len(), 1);
    let stuck: Vec<&str> = diagnosis.never_ready.iter().map(|s| &**s).collect();
    assert_eq!(stuck, ["a", "b", "c", "d"]);
    assert_eq!(frontier(&g), ["e"]);
}

#[test]
fn a_cycle_through_an_ancestors_blocker_is_found() {
    // The child waits for x by its parent, and x waits for the child.
    let g = graph(&[
        issue("p", "open", &[("x", "blocks")]),
        issue("c", "open", &[("p", "parent-child")]),
        issue("x", "open", &[("c", "blocks")]),
    ]);
    let diagnosis = g.diagnose(Scope::Active);
    let path: Vec<&str> = diagnosis
        .cycle_path
        .as_ref()
        .unwrap()
        .iter()
        .map(|s| &**s)
        .collect();
    assert_eq!(path, ["c", "x", "c"]);
}

#[test]
fn cycles_of_the_closed_are_for_the_full_scope_only() {
    let g = graph(&[
        issue("a", "closed", &[("b", "blocks")]),
        issue("b", "closed", &[("a", "blocks")]),
    ]);
    assert!(!g.diagnose(Scope::Active).has_cycle);
    assert!(g.diagnose(Scope::Full).has_cycle);
}

#[test]
fn loops_duplicates_and_dangling_edges_are_listed() {
    let g = graph(&[issue(
        "a",
        "open",
        &[("a", "blocks"), ("n", "blocks"), ("n", "blocks")],
    )]);
    let diagnosis = g.diagnose(Scope::Active);
    assert_eq!(&*diagnosis.self_loops[0], "a");
    assert_eq!(diagnosis.duplicate_edges[0].count, 2);
    assert_eq!(&*diagnosis.dangling[0].depends_on_id, "n");
    let path: Vec<&str> = diagnosis
        .cycle_path
        .as_ref()
        .unwrap()
        .iter()
        .map(|s| &**s)
        .collect();
    assert_eq!(path, ["a", "a"]);
}

#[test]
fn a_parent_that_is_its_own_ancestor_ends_the_walk_and_is_a_cycle() {
    let g = graph(&[
        issue("a", "open", &[("b", "parent-child")]),
        issue("b", "open", &[("a", "parent-child")]),
    ]);
    assert!(g.diagnose(Scope::Active).has_cycle);
    assert!(frontier(&g).is_empty());
}

/// Readiness straight from the contract's words, by brute force.
fn model(issues: &BTreeMap<String, Issue>) -> Vec<String> {
    fn parents(issue: &Issue) -> impl Iterator<Item = &str> {
        issue
            .dependencies
            .iter()
            .filter(|d| d.kind == EdgeKind::ParentChild)
            .map(|d| &*d.depends_on)
    }
    let ancestors = |id: &str| {
        let mut all = BTreeSet::new();
        let mut stack = vec![id.to_owned()];
        while let Some(at) = stack.pop() {
            for parent in issues.get(&at).into_iter().flat_map(parents) {
                if all.insert(parent.to_owned()) {
                    stack.push(parent.to_owned());
                }
            }
        }
        all
    };
    let open_holds = |issue: &Issue| -> Vec<String> {
        issue
            .dependencies
            .iter()
            .filter(|d| matches!(d.kind, EdgeKind::Holds(_)))
            .map(|d| d.depends_on.to_string())
            .filter(|t| issues.get(t).is_none_or(|t| !t.status.is_terminal()))
            .collect()
    };
    let mut ready: Vec<_> = issues
        .values()
        .filter(|issue| {
            issue.status == Status::Open
                && open_holds(issue).is_empty()
                && !issues
                    .values()
                    .any(|c| !c.status.is_terminal() && parents(c).any(|p| *p == *issue.id))
                && ancestors(&issue.id).iter().all(|ancestor| {
                    issues.get(ancestor).is_none_or(|a| {
                        a.status.is_terminal()
                            || open_holds(a)
                                .iter()
                                .all(|t| t == ancestor || ancestors(t).contains(ancestor))
                    })
                })
        })
        .map(|issue| (issue.priority, issue.id.to_string()))
        .collect();
    ready.sort();
    ready.into_iter().map(|(_, id)| id).collect()
}

fn any_issue() -> impl Strategy<Value = Issue> {
    let id = || (0..8u8).prop_map(|n| format!("i{n}"));
    let edge = (
        id(),
        prop_oneof![Just("blocks"), Just("parent-child"), Just("related")],
    );
    let status = prop_oneof![
        4 => Just("open"), 1 => Just("in_progress"), 2 => Just("closed"), 1 => Just("tombstone")
    ];
    (id(), status, prop::collection::vec(edge, 0..3), 0..3i64).prop_map(
        |(id, status, edges, priority)| {
            let edges: Vec<_> = edges.iter().map(|(t, k)| (t.as_str(), *k)).collect();
            let mut issue = issue(&id, status, &edges);
            issue.priority = priority;
            issue
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn readiness_step_by_step_is_readiness_by_the_words_of_the_contract(
        changes in prop::collection::vec(any_issue(), 1..25)
    ) {
        let mut graph = IssueGraph::default();
        let mut issues = BTreeMap::new();
        for change in changes {
            graph.upsert(&change);
            issues.insert(change.id.to_string(), change);
            let expected = model(&issues);
            prop_assert_eq!(frontier(&graph), expected.clone());
            let fresh = IssueGraph::build(issues.values());
            prop_assert_eq!(frontier(&fresh), expected);
            prop_assert_eq!(graph.diagnose(Scope::Active), fresh.diagnose(Scope::Active));
        }
    }

    #[test]
    fn without_a_cycle_and_a_missing_target_everything_open_can_be_closed(
        rows in prop::collection::vec(any_issue(), 1..12)
    ) {
        let mut issues: BTreeMap<String, Issue> =
            rows.into_iter().map(|i| (i.id.to_string(), i)).collect();
        for issue in issues.values_mut() {
            if issue.status == Status::InProgress {
                issue.status = Status::Open;
            }
        }
        let mut graph = IssueGraph::build(issues.values());
        let diagnosis = graph.diagnose(Scope::Active);
        loop {
            let Some(id) = graph.frontier().next().cloned() else {
                break;
            };
            let issue = issues.get_mut(&*id).unwrap();
            issue.status = Status::Closed;
            graph.upsert(issue);
        }
        let left: Vec<_> = issues
            .values()
            .filter(|i| !i.status.is_terminal())
            .map(|i| i.id.clone())
            .collect();
        // What is left is what the diagnosis named, to the letter.
        prop_assert_eq!(left, diagnosis.never_ready);
    }
}

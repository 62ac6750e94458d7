mod instructed;
mod retried;
mod sealed;

use super::*;
use premath_kernel::authority::MutationMode;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::lease::{AssigneeRule, TTL_DEFAULT};
use premath_kernel::json::id::IssueId;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

fn authority() -> LeaseAuthority {
    MutationMode::human_override("test", None, jiff::Timestamp::UNIX_EPOCH)
        .unwrap()
        .lease_authority()
}

fn wish(name: &str) -> ClaimRequest {
    ClaimRequest {
        claimant: name.to_owned(),
        lease_id: None,
        term: Term::Ttl(TTL_DEFAULT),
        assignees: AssigneeRule::Unassigned,
        holder: None,
        generation_floor: 0,
    }
}

struct Scratch {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new(content: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("issues.jsonl");
        fs::write(&path, content).unwrap();
        Self {
            _folder: folder,
            path,
        }
    }

    fn open(&self) -> IssueMemory {
        IssueMemory::open(&self.path, &OpenOptions::default()).unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }
}

fn rows(count: usize) -> String {
    (0..count)
        .map(|n| format!("{{\"id\":\"x-{n:04}\",\"title\":\"t\"}}\n"))
        .collect()
}

fn claim_one(memory: &IssueMemory, name: &str) -> Option<Claimed> {
    memory
        .claim_next(&authority(), vec![wish(name)], &ClaimScope::default())
        .unwrap()
        .pop()
        .unwrap()
}

#[test]
fn a_claim_beside_another_programs_row_is_made_once() {
    for (before, behind) in [(&b""[..], &b"{\"id\":\"x-0000\"}\n"[..]), (b"{}\n", b"")] {
        let scratch = Scratch::new(&rows(3));
        let memory = scratch.open();
        memory.state().journal.append_beside(before, behind);
        let claimed = claim_one(&memory, "w.1").unwrap();
        assert_eq!(claimed.claim.issue_id.as_str(), "x-0000");
        assert_eq!(scratch.text().matches("\"lease\"").count(), 1);
    }
}

#[test]
fn a_pass_claims_for_every_lane_in_order_with_one_write() {
    let scratch = Scratch::new(&rows(3));
    let memory = scratch.open();
    let wishes = ["w.1", "w.2", "w.3", "w.4"].map(wish).to_vec();
    let claims = memory
        .claim_next(&authority(), wishes, &ClaimScope::default())
        .unwrap();
    let ids: Vec<_> = claims
        .iter()
        .map(|c| c.as_ref().map(|c| c.claim.issue_id.as_str()))
        .collect();
    assert_eq!(ids, [Some("x-0000"), Some("x-0001"), Some("x-0002"), None]);
    assert_eq!(scratch.text().lines().count(), 6);
}

#[test]
fn two_processes_see_each_others_changes_without_reopening() {
    let scratch = Scratch::new(&rows(2));
    let (a, b) = (scratch.open(), scratch.open());
    let first = claim_one(&a, "a").unwrap();
    let second = claim_one(&b, "b").unwrap();
    assert_ne!(first.claim.issue_id, second.claim.issue_id);
    assert!(claim_one(&a, "a2").is_none());
    let released = b
        .release(
            &authority(),
            &second.claim.issue_id,
            second.claim.key(),
            None,
        )
        .unwrap();
    assert_eq!(released.issue.lease_generation, 1);
    assert_eq!(claim_one(&a, "a2").unwrap().claim.generation, 2);
}

#[test]
fn threads_of_one_process_share_the_queue_and_no_issue_is_claimed_twice() {
    let scratch = Scratch::new(&rows(200));
    let memory = Arc::new(scratch.open());
    let claimed: Vec<IssueId> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..8)
            .map(|n| {
                let memory = memory.clone();
                scope.spawn(move || {
                    let mut ids = Vec::new();
                    while let Some(claimed) = claim_one(&memory, &format!("w.{n}")) {
                        ids.push(claimed.claim.issue_id);
                    }
                    ids
                })
            })
            .collect();
        handles
            .into_iter()
            .flat_map(|h| h.join().unwrap())
            .collect()
    });
    let distinct: BTreeSet<_> = claimed.iter().collect();
    assert_eq!((claimed.len(), distinct.len()), (200, 200));
}

#[test]
fn a_corrupt_line_is_named_and_the_file_is_left_alone() {
    for (bad, column) in [
        ("{\"id\":\"b\",\"title\":}", 19),
        ("{\"id\":\"b\",\"priority\":\"high\"}", 27),
        ("[1]", 1),
        ("{\"id\":\"b\"}\u{0}", 11),
    ] {
        let content = format!("{}{bad}\n{}", rows(1), rows(1));
        let scratch = Scratch::new(&content);
        match IssueMemory::open(&scratch.path, &OpenOptions::default()) {
            Err(StoreError::Corrupt {
                line, column: at, ..
            }) => assert_eq!((line, at), (2, column), "{bad}"),
            other => panic!("{bad}: {other:?}"),
        }
        assert_eq!(scratch.text(), content);
    }
}

#[test]
fn bad_utf8_is_corrupt() {
    let scratch = Scratch::new("");
    fs::write(&scratch.path, b"{\"id\":\"a\",\"title\":\"\xff\"}\n").unwrap();
    assert!(matches!(
        IssueMemory::open(&scratch.path, &OpenOptions::default()),
        Err(StoreError::Corrupt { line: 1, .. })
    ));
}

#[test]
fn compaction_sorts_keeps_comments_and_leaves_rows_to_the_letter() {
    let odd = "{\"z\":1.0000000000000000001,\"id\":\"b\",\"title\":\"t\"}";
    let scratch = Scratch::new(&format!(
        "# head\n\n{odd}\n{{\"id\":\"a\",\"title\":\"old\"}}\n{{\"id\":\"a\",\"title\":\"new\"}}"
    ));
    let (a, b) = (scratch.open(), scratch.open());
    assert!(a.compact(CompactionRule::Now).unwrap());
    assert_eq!(
        scratch.text(),
        format!("# head\n{{\"id\":\"a\",\"title\":\"new\"}}\n{odd}\n")
    );
    assert!(!a.compact(CompactionRule::Now).unwrap());
    assert!(!a.compact(CompactionRule::WhereItPays).unwrap());
    // The other process detects the new file and uses it.
    assert_eq!(claim_one(&b, "b").unwrap().claim.issue_id, "a");
    assert_eq!(claim_one(&a, "a").unwrap().claim.issue_id, "b");
}

#[test]
fn a_branch_switch_under_the_process_is_noticed() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    claim_one(&memory, "a").unwrap();
    let other = scratch.path.with_extension("new");
    fs::write(&other, "{\"id\":\"q\",\"title\":\"t\"}\n").unwrap();
    fs::rename(&other, &scratch.path).unwrap();
    assert_eq!(claim_one(&memory, "a").unwrap().claim.issue_id, "q");
    assert_eq!(memory.view(|view| view.rows().count()).unwrap(), 1);
}

#[test]
fn a_torn_row_is_cut_off_by_the_next_holder_and_every_whole_row_stays() {
    let scratch = Scratch::new(&format!("{}{{\"id\":\"x-0000\",\"sta", rows(2)));
    let memory = scratch.open();
    assert_eq!(claim_one(&memory, "a").unwrap().claim.issue_id, "x-0000");
    assert_eq!(scratch.text().lines().count(), 3);
    let fresh = scratch.open();
    assert_eq!(fresh.view(|view| view.rows().count()).unwrap(), 2);
}

#[test]
fn an_operators_edge_that_closes_a_cycle_is_refused() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    let edit = |id: &str, on: &str| IssueChange::Dependency {
        id: id.into(),
        depends_on: on.into(),
        edit: DependencyEdit::Add {
            kind: "blocks".into(),
            created_by: None,
        },
    };
    #[expect(clippy::disallowed_methods, reason = "a test of operator overrides")]
    let operator = || OperatorOverride::new("ann", Some("because".into()));
    memory
        .operate(operator(), edit("x-0000", "x-0001"))
        .unwrap();
    let before = scratch.text();
    let error = memory
        .operate(operator(), edit("x-0001", "x-0000"))
        .unwrap_err();
    assert_eq!(error.class(), FailureClass::DependencyCycle);
    assert_eq!(scratch.text(), before);
    assert!(
        memory
            .operate(operator(), edit("x-0001", "x-0001"))
            .is_err()
    );
    assert!(
        memory
            .operate(operator(), edit("x-0001", "nowhere"))
            .is_err()
    );
    assert_eq!(claim_one(&memory, "a").unwrap().claim.issue_id, "x-0001");
}

#[test]
fn a_new_issue_gets_the_number_behind_the_highest_of_the_usual_prefix() {
    let scratch = Scratch::new(
        "{\"id\":\"bd-9\",\"title\":\"t\"}\n{\"id\":\"bd-12\",\"title\":\"t\"}\n{\"id\":\"wk-99\",\"title\":\"t\"}\n",
    );
    let memory = scratch.open();
    #[expect(clippy::disallowed_methods, reason = "a test of operator overrides")]
    let operator = OperatorOverride::new("ann", None);
    let row = memory
        .operate(
            operator,
            IssueChange::Add(NewIssue {
                title: "new".into(),
                ..NewIssue::default()
            }),
        )
        .unwrap();
    assert_eq!(&*row.issue.id, "bd-13");
    assert_eq!(row.value()["operator_override"]["operator"], "ann");
}

#[test]
fn a_transaction_that_panics_fails_its_callers_and_the_next_one_goes_through() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    let change = || IssueChange::Update {
        id: "panic".into(),
        edit: IssueEdit::default(),
    };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut state = memory.state();
        state.journal.panic_on_append();
        drop(state);
        claim_one(&memory, "a")
    }));
    assert!(panicked.is_err());
    #[expect(clippy::disallowed_methods, reason = "a test of operator overrides")]
    let operator = OperatorOverride::new("ann", None);
    assert!(memory.operate(operator, change()).is_err());
    assert_eq!(claim_one(&memory, "a").unwrap().claim.issue_id, "x-0000");
}

#[test]
fn after_a_failed_sync_what_is_seen_is_what_is_in_the_file() {
    let scratch = Scratch::new(&rows(2));
    let memory = scratch.open();
    memory.state().journal.fail_next_sync();
    let wish_one = || memory.claim_next(&authority(), vec![wish("a")], &ClaimScope::default());
    assert!(wish_one().is_err());
    let in_file = scratch.open().view(|view| view.leased().count()).unwrap();
    assert_eq!(memory.view(|view| view.leased().count()).unwrap(), in_file);
    assert!(matches!(
        wish_one(),
        Err(ChangeError::Store(StoreError::Poisoned { .. }))
    ));
    assert_eq!(memory.view(|view| view.leased().count()).unwrap(), in_file);
}

#[test]
fn a_link_and_its_target_are_one_memory() {
    let scratch = Scratch::new(&rows(2));
    let link = scratch.path.with_file_name("link.jsonl");
    std::os::unix::fs::symlink(&scratch.path, &link).unwrap();
    let by_link = IssueMemory::open(&link, &OpenOptions::default()).unwrap();
    let direct = scratch.open();
    claim_one(&by_link, "a").unwrap();
    assert_eq!(claim_one(&direct, "b").unwrap().claim.issue_id, "x-0001");
    assert!(by_link.compact(CompactionRule::Now).unwrap());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(scratch.text().lines().count(), 2);
}

#[test]
fn looking_needs_no_lock_file() {
    let scratch = Scratch::new(&rows(1));
    scratch.open().view(|view| view.rows().count()).unwrap();
    assert!(!scratch.path.with_file_name("issues.jsonl.flock").exists());
}

#[test]
fn an_edit_in_place_of_the_same_length_is_noticed() {
    let scratch = Scratch::new(&rows(40));
    let memory = scratch.open();
    let text = scratch.text().replacen("\"t\"", "\"u\"", 1);
    // The clock of the filesystem goes in ticks; an editor is slower.
    let before = fs::metadata(&scratch.path).unwrap().modified().unwrap();
    while fs::metadata(&scratch.path).unwrap().modified().unwrap() == before {
        fs::write(&scratch.path, &text).unwrap();
    }
    let title = memory.view(|view| view.row("x-0000").unwrap().text_of("title"));
    assert_eq!(title.unwrap(), "u");
}

#[test]
fn an_edge_may_be_taken_out_of_a_cycle_by_another_word() {
    let scratch = Scratch::new(concat!(
        "{\"id\":\"a\",\"dependencies\":[{\"depends_on_id\":\"b\"}]}\n",
        "{\"id\":\"b\",\"dependencies\":[{\"depends_on_id\":\"a\"}]}\n"
    ));
    let memory = scratch.open();
    #[expect(clippy::disallowed_methods, reason = "a test of operator overrides")]
    let operator = OperatorOverride::new("ann", None);
    let edit = IssueChange::Dependency {
        id: "a".into(),
        depends_on: "b".into(),
        edit: DependencyEdit::Replace {
            from: "blocks".into(),
            to: "related".into(),
            created_by: None,
        },
    };
    memory.operate(operator, edit).unwrap();
    assert!(!memory.diagnose(Scope::Active).unwrap().has_cycle);
}

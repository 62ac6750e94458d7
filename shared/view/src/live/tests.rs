use super::*;
use crate::figures::tokens;
use crate::fixture::{batch, now, step, viewer};
use crate::status::lines;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::live::{
    LiveBatch, LiveLaneState, LiveOutcome, LiveQueue, PauseEnd, PauseKind,
};
use ratatui_core::backend::TestBackend;
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;

fn outcome(number: u64) -> LiveOutcome {
    LiveOutcome {
        issue_id: format!("bd-{}", 100 + number).into(),
        title: format!("Outcome {number}"),
        step_id: format!("worker.1.bd-{}.1", 100 + number).into(),
        worker_id: "worker.1".into(),
        attempt: 1,
        closed: number != 1,
        ending: match number {
            1 => "to retry at 2026-03-05T12:20:00Z".to_owned(),
            _ => "closed".to_owned(),
        },
        failure_class: (number == 1).then(|| "verification_red".to_owned()),
        duration_ms: 61_000,
        at: Stamp::parse("2026-03-05T12:10:00Z").unwrap(),
    }
}

/// A batch of some lanes, each at work, with some outcomes.
fn live(lanes: u64, outcomes: u64) -> LiveBatch {
    let mut live = batch();
    for number in 1..=lanes {
        let lane = live.lane(&format!("worker.{number}").as_str().into());
        lane.state = LiveLaneState::Working;
        lane.step = Some(step(number, &format!("Title {number}")));
    }
    for number in (1..=outcomes).rev() {
        live.ended(outcome(number));
    }
    live.budget.cost_nano_usd = Some(25_000_000_000);
    live.totals.closed = 124;
    live.totals.closes.first_pass = 124;
    live.totals.attempts = 140;
    live.totals.used.cost_nano_usd = Some(2_000_000_000);
    live.queue = Some(LiveQueue {
        total: 200,
        ready: 40,
        waiting: 12,
        closed: 124,
        blocked: 3,
        in_progress: lanes,
        ..LiveQueue::default()
    });
    live
}

fn status(live: &LiveBatch) -> StatusView {
    StatusView::of(std::slice::from_ref(live), &|_| true, None, now())
}

fn none() -> StatusView {
    StatusView::of(&[], &|_| false, Some(LiveQueue::default()), now())
}

/// Paints a view on a terminal of a size.
fn painted(
    view: &mut LiveView,
    status: &StatusView,
    (width, height): (u16, u16),
) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| {
            let area = frame.area();
            if let Some(at) = view.render(status, &viewer(0), area, frame.buffer_mut()) {
                frame.set_cursor_position(at);
            }
        })
        .unwrap();
    terminal
}

/// Returns the rows of a picture, without spaces at their ends.
fn rows(view: &mut LiveView, status: &StatusView, size: (u16, u16)) -> Vec<String> {
    let terminal = painted(view, status, size);
    let buffer = terminal.backend().buffer();
    let text = |y: u16| {
        let mut row = String::new();
        let mut skip = 0;
        for x in 0..size.0 {
            let symbol = buffer[(x, y)].symbol();
            if skip == 0 {
                row.push_str(symbol);
                skip = crate::columns::width_of(symbol).saturating_sub(1);
            } else {
                skip -= 1;
            }
        }
        row.trim_end().to_owned()
    };
    (0..size.1).map(text).collect()
}

fn press(view: &mut LiveView, status: &StatusView, keys: &str) -> Option<Effect> {
    let mut last = None;
    for c in keys.chars() {
        last = view.key(
            match c {
                '\n' => Key::Enter,
                '\t' => Key::Tab,
                '\u{1b}' => Key::Escape,
                c => Key::Char(c),
            },
            status,
        );
    }
    last
}

fn request(operation: Operation) -> Option<Effect> {
    Some(Effect::Perform(Request {
        batch: Some("hb1_a".into()),
        operation,
    }))
}

#[test]
fn sixteen_lanes_on_a_small_terminal() {
    let status = status(&live(16, 6));
    let seen = rows(&mut LiveView::new(false), &status, (80, 24)).join("\n");
    assert_eq!(
        seen,
        "\
batch     hb1_a, running for 2h 13m since 10:00
issues    124 closed, 16 in progress, 40 ready, 12 waiting for others,
          3 blocked, 200 in all
pace      55.9 closed an hour, 68 issues left, done about 13:25 (in 1h 12m)
cost      21.68 of 25.00 USD, 1.9M tokens
attempts  140 ended, 124 closed at the first pass, 0 repair rounds,
          0 calls denied
── lanes: 16 of 16 at work, 1 to 8 are shown ───────────────────────────────────
  LANE       ISSUE  PHASE    TIME     LAST EVENT    TRY  CALLS   USD  TITLE
> worker.1   bd-1   working  12m/45m  Bash 10s ago    1     31  1.23  Title 1
  worker.2   bd-2   working  12m/45m  Bash 10s ago    1     32  1.23  Title 2
  worker.3   bd-3   working  12m/45m  Bash 10s ago    1     33  1.23  Title 3
  worker.4   bd-4   working  12m/45m  Bash 10s ago    1     34  1.23  Title 4
  worker.5   bd-5   working  12m/45m  Bash 10s ago    1     35  1.23  Title 5
  worker.6   bd-6   working  12m/45m  Bash 10s ago    1     36  1.23  Title 6
  worker.7   bd-7   working  12m/45m  Bash 10s ago    1     37  1.23  Title 7
  worker.8   bd-8   working  12m/45m  Bash 10s ago    1     38  1.23  Title 8
  bd-1: 31 calls, 120k tokens, 1.23 USD, lease 2m 00s/1h 00m, 13m in all
── ended last: 6 attempts, 1 to 3 are shown ────────────────────────────────────
  12:10  bd-101  retry at 12:20: verification_red  1m 01s    1  Outcome 1
  12:10  bd-102  closed                            1m 01s    1  Outcome 2
  12:10  bd-103  closed                            1m 01s    1  Outcome 3

q quit  Enter stream  p pause  r resume  d drain  c cancel  o reopen  ? keys"
    );
}

#[test]
fn a_large_terminal_shows_every_lane_outcome_and_figure() {
    let status = status(&live(16, 20));
    for size in [(120, 48), (200, 50)] {
        let seen = rows(&mut LiveView::new(false), &status, size);
        for number in 1..=16 {
            let lane = format!("worker.{number} ");
            assert!(
                seen.iter().any(|row| row.contains(&lane)),
                "{lane} {seen:#?}"
            );
        }
        for number in 1..=20 {
            let outcome = format!("bd-{} ", 100 + number);
            assert!(seen.iter().any(|row| row.contains(&outcome)), "{outcome}");
        }
        assert!(seen.iter().any(|row| row.contains("120k")), "{seen:#?}");
    }
}

#[test]
fn the_figures_are_those_that_the_status_prints() {
    let mut live = live(3, 2);
    live.pause(PauseKind::Operator, "alice", Some(PauseEnd(None)));
    live.totals.denials.insert("no_network".to_owned(), 3);
    let status = status(&live);
    let size = (160, 40);
    let seen = rows(&mut LiveView::new(false), &status, size);
    let words = |row: &str| -> Vec<String> {
        let row = row.trim_start_matches("> ");
        row.split_whitespace().map(str::to_owned).collect()
    };
    let shown: Vec<Vec<String>> = seen.iter().map(|row| words(row)).collect();
    for line in lines(&status, &viewer(usize::from(size.0))) {
        // Heads of columns are not figures.
        let of_status = words(&line);
        let is_head = line.starts_with("ENDED");
        assert!(
            is_head || of_status.is_empty() || shown.contains(&of_status),
            "{line}\n{seen:#?}"
        );
    }
    let tokens_in_all = tokens(status.batches[0].used.tokens.unwrap());
    assert!(seen.iter().any(|row| row.contains(&tokens_in_all)));
}

#[test]
fn every_size_is_painted_and_nothing_leaves_it() {
    let mut busy = live(16, 20);
    busy.pause(PauseKind::Room, "disk", Some(PauseEnd(None)));
    let (busy, none) = (status(&busy), none());
    let mut log = LiveView::new(true);
    press(&mut log, &busy, "l");
    log.printed(&"a line of the log\n".repeat(50), true);
    let mut asked = LiveView::new(true);
    press(&mut asked, &busy, "P");
    let mut help = LiveView::new(true);
    press(&mut help, &busy, "?");
    let mut fresh = LiveView::new(true);
    for width in [0, 1, 2, 3, 10, 20, 39, 40, 79, 80] {
        for height in [0, 1, 2, 3, 5, 7, 8, 12, 24] {
            for status in [&busy, &none] {
                for view in [&mut log, &mut asked, &mut help, &mut fresh] {
                    rows(view, status, (width, height));
                }
            }
        }
    }
    let least = rows(&mut fresh, &busy, (40, 8)).join("\n");
    assert!(least.contains("batch     hb1_a, running"), "{least}");
    assert!(least.contains("PAUSED"), "{least}");
    assert!(least.contains("worker.1"), "{least}");
}

#[test]
fn what_others_wrote_neither_acts_nor_moves_the_layout() {
    let hostile = [
        "a\u{1b}[2J\u{7}\u{9b}31m",
        "b\u{202e}evil\u{2066}",
        "\u{1f469}\u{200d}\u{1f4bb} code \u{2764}\u{fe0f} \u{1f44d}\u{1f3ff}",
        &format!("z{}", "\u{301}".repeat(300)),
        "\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{4f4f}\u{6240}\u{3092}\u{691c}\u{8a3c}",
        "line one\nline two\r\n\tthree",
    ];
    let mut live = live(6, 1);
    for (lane, title) in live.lanes.iter_mut().zip(hostile) {
        let step = lane.step.as_mut().unwrap();
        step.title = title.to_owned();
        step.agent.as_mut().unwrap().last_tool = Some(title.to_owned());
        lane.worktree = title.to_owned();
    }
    live.outcomes[0].title = hostile[0].to_owned();
    live.outcomes[0].ending = hostile[1].to_owned();
    let status = status(&live);
    for size in [(80, 24), (120, 40)] {
        let mut view = LiveView::new(true);
        view.refused(hostile[0]);
        let terminal = painted(&mut view, &status, size);
        for cell in terminal.backend().buffer().content() {
            let symbol = cell.symbol();
            assert!(symbol.chars().count() <= 4, "{symbol:?}");
            assert!(!symbol.chars().any(char::is_control), "{symbol:?}");
            assert!(!symbol.contains(['\u{202e}', '\u{2066}', '\u{200d}', '\u{fe0f}']));
        }
        let seen = rows(&mut view, &status, size);
        let time = |row: &String| row.find("12m/45m");
        let times: Vec<usize> = seen.iter().filter_map(time).collect();
        assert_eq!(times.len(), 6, "{seen:#?}");
        assert!(times.iter().all(|at| *at == times[0]), "{seen:#?}");
        assert!(seen.join("\n").contains("a\\u{1b}[2J"), "{seen:#?}");
    }
    let mut view = LiveView::new(true);
    press(&mut view, &status, "l");
    view.printed(&hostile.join("\n"), true);
    let seen = rows(&mut view, &status, (40, 20)).join("");
    assert!(!seen.chars().any(char::is_control), "{seen}");
}

#[test]
fn without_colour_no_cell_has_one_and_the_words_stay() {
    let mut live = live(4, 4);
    live.pause(PauseKind::Room, "disk", Some(PauseEnd(None)));
    let status = status(&live);
    let mut view = LiveView::new(false);
    view.refused("no");
    let terminal = painted(&mut view, &status, (100, 30));
    for cell in terminal.backend().buffer().content() {
        assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset));
    }
    let seen = rows(&mut view, &status, (100, 30)).join("\n");
    for word in [
        "PAUSED",
        "refused: no",
        "> worker.1",
        "retry at 12:20: verification_red",
    ] {
        assert!(seen.contains(word), "{word} in {seen}");
    }
    let mut coloured = LiveView::new(true);
    let terminal = painted(&mut coloured, &status, (100, 30));
    let cells = terminal.backend().buffer().content();
    assert!(cells.iter().any(|cell| cell.fg != Color::Reset));
    assert!(
        cells
            .iter()
            .any(|cell| cell.modifier.contains(Modifier::REVERSED))
    );
}

#[test]
fn where_nothing_runs_words_say_what_to_do() {
    let mut view = LiveView::new(false);
    let seen = rows(&mut view, &none(), (80, 24)).join("\n");
    assert!(
        seen.contains("no batch is running, and none ran before"),
        "{seen}"
    );
    assert!(seen.contains("harness-coordinator"), "{seen}");
    let mut live = live(2, 3);
    live.phase = premath_kernel::record::live::BatchPhase::Ended;
    live.ended_at = Some(Stamp::parse("2026-03-05T12:00:00Z").unwrap());
    live.exit_code = Some(1);
    let status = status(&live);
    let seen = rows(&mut view, &status, (80, 24)).join("\n");
    for words in [
        "ended 12:00 (13m ago) after 2h 13m, exit code 1",
        "no batch is running; this is the last one",
        "start one: harness-coordinator",
        "retry at 12:20: verification_red",
    ] {
        assert!(seen.contains(words), "{words} in {seen}");
    }
    // The outcomes are selected, since no lane runs.
    assert_eq!(
        press(&mut view, &status, "jl"),
        Some(Effect::Open("bd-102".to_owned()))
    );
    let booting = StatusView::of(&[self::live(0, 0)], &|_| true, None, now());
    let seen = rows(&mut LiveView::new(false), &booting, (80, 24)).join("\n");
    assert!(seen.contains("the lanes are being made"), "{seen}");
    assert!(seen.contains("no attempt has ended yet"), "{seen}");
}

#[test]
fn a_selected_lane_stays_selected_where_lanes_are_added() {
    let mut view = LiveView::new(false);
    press(&mut view, &status(&live(4, 0)), "jj");
    let mut more = live(4, 0);
    more.lane(&"worker.0".into());
    more.sort_lanes();
    let seen = rows(&mut view, &status(&more), (80, 24));
    assert!(
        seen.iter().any(|row| row.starts_with("> worker.3")),
        "{seen:#?}"
    );
}

#[test]
fn the_last_of_many_lanes_is_scrolled_into_sight() {
    let mut view = LiveView::new(false);
    let status = status(&live(16, 6));
    press(&mut view, &status, "G");
    let seen = rows(&mut view, &status, (80, 24));
    assert!(
        seen.iter().any(|row| row.starts_with("> worker.16")),
        "{seen:#?}"
    );
    assert!(seen.iter().any(|row| row.contains("9 to 16 are shown")));
}

#[test]
fn keys_ask_for_the_operations_of_the_commands() {
    let status = status(&live(3, 3));
    let mut view = LiveView::new(false);
    let mut pressed = |keys: &str| press(&mut view, &status, keys);
    assert_eq!(pressed("p"), request(Operation::Pause));
    assert_eq!(pressed("r"), request(Operation::Resume));
    assert_eq!(pressed("d"), None);
    assert_eq!(pressed("y"), request(Operation::Drain));
    assert_eq!(pressed("dn"), None);
    let cancel = |again| Operation::Cancel {
        issue: "bd-2".into(),
        again,
    };
    assert_eq!(pressed("jcy"), request(cancel(false)));
    assert_eq!(pressed("co"), request(cancel(true)));
    assert_eq!(pressed("cx"), None);
    let priority = |change| Operation::Priority {
        issue: "bd-2".into(),
        change,
    };
    assert_eq!(pressed("+"), request(priority(PriorityChange::Raise)));
    assert_eq!(pressed("-"), request(priority(PriorityChange::Lower)));
    assert_eq!(pressed("P0\n"), request(priority(PriorityChange::Set(0))));
    assert_eq!(pressed("P9\n"), None);
    assert_eq!(
        pressed("\tjoq?\n"),
        request(Operation::Reopen {
            issue: "bd-102".into(),
            note: Some("q?".to_owned()),
        })
    );
    assert_eq!(pressed("oabc\u{1b}"), None);
    assert_eq!(pressed("l"), Some(Effect::Open("bd-102".to_owned())));
    assert_eq!(pressed("q"), Some(Effect::Close));
    assert_eq!(pressed("?q"), None);
    assert_eq!(pressed("q"), Some(Effect::Quit));
}

#[test]
fn what_cannot_be_done_is_refused_without_a_request() {
    let status = none();
    for keys in ["c", "o", "+", "-", "l", "b"] {
        let mut view = LiveView::new(false);
        assert_eq!(press(&mut view, &status, keys), None, "{keys}");
        let seen = rows(&mut view, &status, (80, 24)).join("\n");
        assert!(seen.contains("refused: "), "{keys}: {seen}");
    }
    // Without a batch the request names none, and the answer is a refusal.
    let mut view = LiveView::new(false);
    let asked = Request {
        batch: None,
        operation: Operation::Pause,
    };
    assert_eq!(press(&mut view, &status, "p"), Some(Effect::Perform(asked)));
}

#[test]
fn one_of_several_batches_is_shown_and_asked() {
    let mut other = live(1, 0);
    other.batch_id = "hb1_b".into();
    let both = [live(1, 0), other];
    let status = StatusView::of(&both, &|_| true, None, now());
    let mut view = LiveView::new(false);
    let first = rows(&mut view, &status, (80, 24));
    assert!(first[0].contains("hb1_a"), "{first:#?}");
    assert!(first[1].contains("2 batches run"), "{first:#?}");
    let asked = press(&mut view, &status, "bp");
    assert!(
        matches!(asked, Some(Effect::Perform(request)) if request.batch == Some("hb1_b".into()))
    );
    assert!(rows(&mut view, &status, (80, 24))[0].contains("hb1_b"));
}

/// A view of a log of so many lines.
fn log(count: usize) -> (LiveView, StatusView) {
    let status = status(&live(1, 0));
    let mut view = LiveView::new(false);
    press(&mut view, &status, "l");
    let lines: Vec<String> = (1..=count)
        .map(|number| format!("line {number};"))
        .collect();
    view.printed(&lines.join("\n"), true);
    (view, status)
}

#[test]
fn a_log_is_followed_until_it_is_scrolled() {
    let (mut view, status) = log(100);
    let seen = |view: &mut LiveView| rows(view, &status, (60, 14)).join("\n");
    let end = seen(&mut view);
    assert!(
        end.contains("line 100;") && end.contains("following"),
        "{end}"
    );
    press(&mut view, &self::status(&live(1, 0)), "kk");
    view.printed("line 101;\n", true);
    let above = seen(&mut view);
    assert!(
        above.contains("line 98;") && !above.contains("line 101;"),
        "{above}"
    );
    assert!(above.contains("not following"), "{above}");
    press(&mut view, &self::status(&live(1, 0)), "G");
    view.printed("line 102;\n", true);
    assert!(seen(&mut view).contains("line 102;"));
    press(&mut view, &self::status(&live(1, 0)), "g");
    assert!(seen(&mut view).contains("line 1;"));
    press(&mut view, &self::status(&live(1, 0)), "f");
    view.printed("line 103;\n", false);
    let over = seen(&mut view);
    assert!(
        over.contains("line 103;") && over.contains("the attempt is over"),
        "{over}"
    );
}

#[test]
fn a_text_is_found_forward_and_backward_and_around_the_end() {
    let (mut view, status) = log(100);
    // A picture fits the log to its size.
    rows(&mut view, &status, (60, 14));
    let top = |view: &mut LiveView, keys: &str| {
        press(view, &status, keys);
        rows(view, &status, (60, 14))[2].clone()
    };
    assert_eq!(top(&mut view, "g"), "line 1;");
    assert_eq!(top(&mut view, "/LINE 2\n"), "line 1;");
    assert_eq!(top(&mut view, "/line 2\n"), "line 2;");
    assert_eq!(top(&mut view, "n"), "line 20;");
    assert_eq!(top(&mut view, "N"), "line 2;");
    assert_eq!(top(&mut view, "N"), "line 29;");
    let refused = rows(&mut view, &status, (60, 14));
    assert!(!refused.join("\n").contains("refused"));
    press(&mut view, &status, "/absent\n");
    let refused = rows(&mut view, &status, (60, 14)).join("\n");
    assert!(
        refused.contains("refused: no line has: absent"),
        "{refused}"
    );
}

#[test]
fn a_long_line_is_wrapped_and_old_lines_are_left_out() {
    let (mut view, status) = log(0);
    view.printed(&"word ".repeat(40), true);
    let seen = rows(&mut view, &status, (40, 14));
    assert_eq!(seen.iter().filter(|row| row.starts_with("word")).count(), 5);
    let many: Vec<String> = (1..=6_000)
        .map(|number| format!("line {number};"))
        .collect();
    view.printed(&many.join("\n"), true);
    let seen = rows(&mut view, &status, (80, 14)).join("\n");
    assert!(seen.contains("earlier lines are left out"), "{seen}");
    press(&mut view, &status, "g");
    let seen = rows(&mut view, &status, (80, 14)).join("\n");
    assert!(seen.contains("line 1001;"), "{seen}");
}

#[test]
fn a_typed_text_has_its_cursor_and_its_end_in_sight() {
    let (status, long) = (status(&live(1, 1)), "x".repeat(200));
    let mut view = LiveView::new(false);
    press(&mut view, &status, &format!("\to{long}end"));
    let mut buffer = Buffer::empty(Rect::new(0, 0, 60, 20));
    let area = buffer.area;
    let at = view.render(&status, &viewer(0), area, &mut buffer).unwrap();
    assert_eq!((at.x, at.y), (59, 18));
    assert_eq!(buffer[(at.x - 1, at.y)].symbol(), "d");
    let note = long + "end";
    let issue = "bd-101".into();
    let reopen = Operation::Reopen {
        issue,
        note: Some(note),
    };
    assert_eq!(press(&mut view, &status, "\n"), request(reopen));
}

#[test]
fn a_long_answer_has_two_rows() {
    let status = status(&live(1, 1));
    let mut view = LiveView::new(false);
    view.note(&format!("{} the end", "word ".repeat(10)));
    let seen = rows(&mut view, &status, (40, 20));
    assert_eq!(seen[17], "word word word word word word word word");
    assert_eq!(seen[18], "word word  the end");
}

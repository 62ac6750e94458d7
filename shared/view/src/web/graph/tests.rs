use super::layout::{BOX_WIDTH, layout};
use super::*;
use heights::BOX_HEIGHT;
use proptest::prelude::*;

fn titled(id: &str, title: &str, needs: &[&str]) -> GraphNode {
    GraphNode {
        id: id.to_owned(),
        title: title.to_owned(),
        state: "open".to_owned(),
        needs: needs.iter().map(|id| (*id).to_owned()).collect(),
    }
}

fn node(id: &str, needs: &[&str]) -> GraphNode {
    titled(id, &format!("<b>{id}</b>"), needs)
}

fn page(nodes: Vec<GraphNode>) -> String {
    graph(&GraphView::of(nodes))
}

type Corner = (f64, f64);

/// What a page draws, read from its SVG.
struct Seen {
    /// The id of each box, with its upper left corner.
    boxes: Vec<(String, Corner)>,
    /// The points of each line, near to each other.
    lines: Vec<Vec<Corner>>,
    turned: usize,
    size: Corner,
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let rest = text.split_once(begin).unwrap().1;
    rest.split_once(end).unwrap().0
}

fn figure_of(text: &str, name: &str) -> f64 {
    between(text, &format!("{name}=\""), "\"").parse().unwrap()
}

impl Seen {
    fn of(page: &str) -> Self {
        let svg = between(page, "<svg class=\"graph\"", "</svg></div>");
        let boxed = |part: &str| {
            let id = between(part, "<title>", ":").to_owned();
            let at = between(part, "<svg", ">");
            (id, (figure_of(at, " x"), figure_of(at, " y")))
        };
        let lines = svg.split("<path class=\"edge").skip(1);
        Self {
            boxes: svg.split("<a href").skip(1).map(boxed).collect(),
            turned: lines.clone().filter(|l| l.starts_with(" turned")).count(),
            lines: lines
                .map(|line| points(between(line, " d=\"", "\"")))
                .collect(),
            size: (figure_of(svg, " width"), figure_of(svg, " height")),
        }
    }

    /// Returns the place of the box whose border has a point.
    fn at_border(&self, (x, y): Corner, is_left: bool) -> Option<usize> {
        self.boxes.iter().position(|(_, (left, top))| {
            let border = if is_left { *left } else { left + WIDTH };
            (border - x).abs() < 0.5 && (*top..*top + HEIGHT).contains(&y)
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "small")]
const WIDTH: f64 = BOX_WIDTH as f64;
#[expect(clippy::cast_precision_loss, reason = "small")]
const HEIGHT: f64 = BOX_HEIGHT as f64;

/// Returns points of a path near to each other.
fn points(path: &str) -> Vec<Corner> {
    let mut points: Vec<Corner> = Vec::new();
    let starts: Vec<usize> = path
        .char_indices()
        .filter(|(_, c)| c.is_ascii_alphabetic())
        .map(|(at, _)| at)
        .chain([path.len()])
        .collect();
    for pair in starts.windows(2) {
        let (letter, rest) = path[pair[0]..pair[1]].split_at(1);
        let figures: Vec<f64> = rest.split(' ').map(|text| text.parse().unwrap()).collect();
        let last = points.last().copied().unwrap_or_default();
        match (letter, figures.as_slice()) {
            ("M", [x, y]) => points.push((*x, *y)),
            ("H", [x]) => {
                let step = |n: u32| last.0 + (x - last.0) * f64::from(n) / 24.0;
                points.extend((1..=24).map(|n| (step(n), last.1)));
            }
            ("C", [x1, y1, x2, y2, x, y]) => {
                let curve = |t: f64, a: f64, b: f64, c: f64, d: f64| {
                    let s = 1.0 - t;
                    s * s * s * a + 3.0 * s * s * t * b + 3.0 * s * t * t * c + t * t * t * d
                };
                let at = |n: u32| {
                    let t = f64::from(n) / 24.0;
                    (
                        curve(t, last.0, *x1, *x2, *x),
                        curve(t, last.1, *y1, *y2, *y),
                    )
                };
                points.extend((1..=24).map(at));
            }
            _ => panic!("{path}"),
        }
    }
    points
}

/// Says what is wrong with a drawing.
fn faults(seen: &Seen) -> Vec<String> {
    let mut faults = Vec::new();
    for (place, (id, (left, top))) in seen.boxes.iter().enumerate() {
        if *left < 0.0 || *top < 0.0 || left + WIDTH > seen.size.0 || top + HEIGHT > seen.size.1 {
            faults.push(format!("{id} is outside"));
        }
        for (other, (left2, top2)) in &seen.boxes[..place] {
            if (left - left2).abs() < WIDTH && (top - top2).abs() < HEIGHT + 8.0 {
                faults.push(format!("{id} overlaps {other}"));
            }
        }
        for line in &seen.lines {
            // The clear space around a box. At its two ends a line touches a box.
            let inner = &line[1..line.len() - 1];
            let hit = |(x, y): &&Corner| {
                (left + 0.5..left + WIDTH - 0.5).contains(x)
                    && (top - 8.0..top + HEIGHT + 8.0).contains(y)
            };
            if let Some(point) = inner.iter().find(hit) {
                faults.push(format!("a line crosses {id} at {point:?}"));
            }
        }
    }
    faults
}

/// Returns the arrows that a drawing shows, as ids: from the one that is needed.
fn arrows(seen: &Seen) -> BTreeSet<(String, String)> {
    let mut shown = BTreeSet::new();
    // A line that leaves another one begins where that one leads across a layer.
    let mut origin: Vec<(Corner, String)> = Vec::new();
    for line in &seen.lines {
        let (first, last) = (line[0], line[line.len() - 1]);
        let is_turned = first.0 > last.0;
        let to = seen.at_border(last, !is_turned).expect("ends at a box");
        let from = match seen.at_border(first, is_turned) {
            Some(place) => seen.boxes[place].0.clone(),
            None => {
                let (_, id) = origin.iter().find(|(at, _)| *at == first).expect("a line");
                id.clone()
            }
        };
        origin.extend(line.iter().map(|point| (*point, from.clone())));
        shown.insert((from, seen.boxes[to].0.clone()));
    }
    shown
}

/// Random issues with dependencies in any direction, so that there are cycles.
fn random() -> impl Strategy<Value = Vec<GraphNode>> {
    (2_usize..40).prop_flat_map(|count| {
        proptest::collection::vec((0..count, 0..count), 1..count * 3).prop_map(move |pairs| {
            let needs = |node: usize| {
                let own = pairs
                    .iter()
                    .filter(move |(to, from)| *to == node && from != to);
                own.map(|(_, from)| format!("n-{from}")).collect()
            };
            let one = |place: usize| GraphNode {
                needs: needs(place),
                ..node(&format!("n-{place}"), &[])
            };
            (0..count).map(one).collect()
        })
    })
}

proptest! {
    #[test]
    fn lines_cross_no_boxes_and_show_every_dependency(nodes in random(), turn in 0_usize..40) {
        let mut wanted = BTreeSet::new();
        for node in &nodes {
            wanted.extend(node.needs.iter().map(|from| (from.clone(), node.id.clone())));
        }
        let text = page(nodes.clone());
        if wanted.is_empty() {
            prop_assert!(!text.contains("<svg"));
            return Ok(());
        }
        let seen = Seen::of(&text);
        prop_assert_eq!(faults(&seen), Vec::<String>::new());
        prop_assert_eq!(arrows(&seen), wanted);
        // The same issues in another order are the same bytes.
        let mut turned = nodes;
        let by = turn % turned.len();
        turned.rotate_left(by);
        prop_assert_eq!(page(turned), text);
    }
}

#[test]
fn an_issue_is_drawn_behind_all_that_it_needs() {
    let text = page(vec![
        node("d", &["b", "c", "gone"]),
        node("b", &["a"]),
        node("c", &[]),
        node("a", &[]),
    ]);
    let seen = Seen::of(&text);
    let lefts: Vec<f64> = seen.boxes.iter().map(|(_, corner)| corner.0).collect();
    let order: Vec<&str> = seen.boxes.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(order, ["a", "b", "c", "d"]);
    assert!(lefts[0] == lefts[2] && lefts[1] > lefts[0] && lefts[3] > lefts[1]);
    assert_eq!(seen.turned, 0);
    assert!(
        !text.contains("cycle") && !text.contains("Not drawn"),
        "{text}"
    );
}

#[test]
fn an_arrow_that_goes_far_has_its_own_pass() {
    let text = page(vec![
        node("a", &[]),
        node("b", &["a"]),
        node("c", &["b", "a"]),
        node("d", &["c", "a"]),
    ]);
    let seen = Seen::of(&text);
    assert_eq!(faults(&seen), Vec::<String>::new());
    // The second arrow of the issue leaves the pass of the first one.
    assert_eq!(arrows(&seen).len(), 5);
    assert_eq!(text.matches("<path class=\"edge\"").count(), 5);
}

#[test]
fn only_an_edge_of_a_cycle_is_turned_and_words_state_it() {
    let text = page(vec![
        node("a", &["b"]),
        node("b", &["c"]),
        node("c", &["b"]),
        node("d", &["a"]),
    ]);
    assert!(text.contains("Issues wait for each other"), "{text}");
    let seen = Seen::of(&text);
    assert_eq!(seen.turned, 1);
    let wanted = [("b", "a"), ("c", "b"), ("b", "c"), ("a", "d")];
    let wanted = wanted.map(|(from, to)| (from.to_owned(), to.to_owned()));
    assert_eq!(arrows(&seen), BTreeSet::from(wanted));
}

#[test]
fn no_issues_and_no_dependencies_have_words() {
    let empty = page(Vec::new());
    assert!(empty.contains("The issue store has no issues."), "{empty}");
    let lone = page(vec![node("a", &[]), node("b", &["gone"])]);
    assert!(lone.contains("No issue waits for another one."), "{lone}");
    assert!(!lone.contains("<svg"), "{lone}");
}

#[test]
fn texts_are_escaped_and_cut_to_the_box_with_the_whole_in_the_title() {
    let long = format!("{}<script>\u{202e}", "W".repeat(60));
    let text = page(vec![
        titled(&"m".repeat(60), &long, &[]),
        node("b", &[&"m".repeat(60)]),
    ]);
    assert!(!text.contains("<b>") && !text.contains("<script"), "{text}");
    assert!(!text.contains('\u{202e}'), "{text}");
    let whole = format!("{}&lt;script&gt;\\u{{202e}}", "W".repeat(60));
    let title = between(&text, "<title>mmm", "</title>");
    assert!(title.contains(&whole), "{title}");
    let shown = text
        .split("<text")
        .skip(1)
        .map(|part| between(part, ">", "</text>"));
    for shown in shown {
        assert!(shown.chars().count() <= 30, "{shown}");
    }
    assert!(
        text.contains(&format!(">{}…</text>", "W".repeat(13))),
        "{text}"
    );
}

#[test]
fn a_title_has_two_lines_that_break_between_words() {
    let text = page(vec![
        titled("a", "Migrate files from version 1 to version 2", &["b"]),
        titled("b", "Short", &[]),
    ]);
    for line in ["Migrate files from version", "1 to version 2", "Short"] {
        assert!(text.contains(&format!(">{line}</text>")), "{line}: {text}");
    }
}

/// Issues that each need all those of `needs`.
fn many(count: usize, needs: impl Fn(usize) -> Vec<usize>) -> Vec<GraphNode> {
    let one = |place: usize| GraphNode {
        needs: needs(place).iter().map(usize::to_string).collect(),
        ..node(&place.to_string(), &[])
    };
    (0..count).map(one).collect()
}

#[test]
fn what_is_not_drawn_is_counted_in_words() {
    let mut nodes = many(DRAWN + 20, |place| {
        place.checked_sub(1).into_iter().collect()
    });
    nodes.push(node("lone", &[]));
    let text = page(nodes.clone());
    assert!(
        text.contains("Not drawn: 1 issue that no arrow joins; 20 issues that come last."),
        "{text}"
    );
    assert_eq!(Seen::of(&text).boxes.len(), DRAWN);
    for closed in &mut nodes[..30] {
        closed.state = "closed".to_owned();
    }
    let text = page(nodes);
    assert!(
        text.contains("Not drawn: 1 issue that no arrow joins; 30 closed issues."),
        "{text}"
    );
    let whole = page(many(120, |place| (0..place).collect()));
    assert!(whole.contains(" arrows, the longest ones.</p>"), "{whole}");
    assert_eq!(faults(&Seen::of(&whole)), Vec::<String>::new());
}

#[test]
fn of_too_many_issues_those_of_the_first_arrows_are_drawn() {
    // Of all that can be done first, no two are joined.
    let pairs = DRAWN + 50;
    let mut nodes = many(pairs, |_| Vec::new());
    for place in 0..pairs {
        nodes.push(node(&format!("b-{place}"), &[&place.to_string()]));
    }
    let text = page(nodes);
    let seen = Seen::of(&text);
    assert_eq!((seen.boxes.len(), seen.lines.len()), (DRAWN, DRAWN / 2));
    let left = 2 * pairs - DRAWN;
    assert!(text.contains(&format!("Not drawn: {left} issues that come last.")));
}

#[test]
fn more_issues_than_the_list_takes_are_counted() {
    let mut nodes = many(LISTED + 7, |_| vec![0]);
    let text = page(nodes.clone());
    assert!(text.contains("Not listed: 7 more issues"), "{text}");
    nodes[3].state = "closed".to_owned();
    let text = page(nodes);
    assert!(text.contains("Not listed: 1 closed issue.</p>"), "{text}");
    assert!(text.contains("Not listed: 6 more issues"), "{text}");
}

#[test]
fn parts_whose_issues_are_closed_come_last() {
    let mut nodes = vec![
        node("a", &[]),
        node("b", &["a"]),
        node("c", &[]),
        node("d", &["c"]),
    ];
    for node in &mut nodes[..2] {
        node.state = "closed".to_owned();
    }
    let seen = Seen::of(&page(nodes));
    let top = |place: usize| seen.boxes[place].1.1;
    assert!(top(2) < top(0) && top(3) < top(1));
}

#[test]
fn the_largest_drawings_are_bounded_and_clear() {
    for (name, nodes) in [
        ("dense", many(DRAWN, |place| (0..place).collect())),
        (
            "hub",
            many(DRAWN, |place| if place == 0 { vec![] } else { vec![0] }),
        ),
        ("ring", many(DRAWN, |place| vec![(place + 1) % DRAWN])),
        (
            "wide",
            many(DRAWN, |place| {
                if place < 150 {
                    vec![]
                } else {
                    (0..150).collect()
                }
            }),
        ),
        (
            "mixed",
            many(DRAWN, |place| {
                let from = |n: usize| (place * 7 + n * 31).checked_rem(place);
                (1..5).filter_map(from).collect()
            }),
        ),
    ] {
        let seen = Seen::of(&page(nodes.clone()));
        assert_eq!(faults(&seen), Vec::<String>::new(), "{name}");
        assert!(seen.lines.len() <= layers::ARROWS, "{name}");
        let drawn = Drawn::of(&nodes);
        let layout = layout(drawn.nodes.len(), &drawn.edges, &|_| false);
        let bends: usize = layout.lines.iter().map(|line| line.bends.len()).sum();
        assert!(bends <= layers::ARROWS + layers::ITEMS, "{name}: {bends}");
        // A drawing is not much higher than its fullest layer.
        let rows = f64::from(u32::try_from(layers::ROWS).unwrap());
        let high = rows * (HEIGHT + 16.0) + 150.0 * 13.0;
        assert!(seen.size.1 < 1.5 * high, "{name}: {:?}", seen.size);
    }
}

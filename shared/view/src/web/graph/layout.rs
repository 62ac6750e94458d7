//! Where the boxes and the lines of the drawing are.
//!
//! Invariant: a line leads across a layer only level, in a pass, and changes its height
//! only between two layers, where no box is. So no line crosses a box.

use super::heights::{BOX_HEIGHT, level};
use super::layers::{Edge, Layered, Route};
use super::order::ordered;
use std::collections::BTreeMap;

pub(super) const BOX_WIDTH: i64 = 204;
/// The space between layers: the least, the most, and that of each line.
const GAP: (i64, i64, i64) = (44, 104, 2);
/// The space between parts that no arrow joins.
const PART_GAP: i64 = 24;
const MARGIN: i64 = 8;
/// How far apart the ends of arrows at a box are, and all of them together.
const END_GAP: i64 = 9;
const ENDS: i64 = 40;

/// A point: from the left, and from the top.
pub(super) type Point = (i64, i64);

/// A line, as the pairs of points between two layers. Between the pairs it is level.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) bends: Vec<(Point, Point)>,
    /// Whether it closes a cycle.
    pub(super) is_turned: bool,
}

/// A drawing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) width: i64,
    pub(super) height: i64,
    /// The upper left corner of each box.
    pub(super) boxes: Vec<Point>,
    pub(super) lines: Vec<Line>,
    /// How many arrows are left out.
    pub(super) left_out: usize,
}

/// Places issues. `edges` are sorted; `is_last` says which parts of the drawing come
/// last, by their issues.
pub(super) fn layout(count: usize, edges: &[Edge], is_last: &dyn Fn(usize) -> bool) -> Layout {
    let layered = Layered::of(count, edges);
    let (middle, height) = stacked(&layered, count, is_last);
    let left = columns(&layered);
    let lines = layered.routes.iter().zip(ends(&layered, &middle));
    let lines = lines.map(|(route, end)| line(&layered, route, &left, &middle, end));
    let boxes = (0..count).map(|node| {
        let column = layered.items[node].layer;
        (left[column], middle[node] - BOX_HEIGHT / 2)
    });
    Layout {
        width: left.last().map_or(0, |left| left + BOX_WIDTH) + MARGIN,
        height,
        boxes: boxes.collect(),
        lines: lines.collect(),
        left_out: layered.left_out,
    }
}

/// Returns the middle of every item, with the parts of the drawing one below the other,
/// and the height of all.
fn stacked(layered: &Layered, count: usize, is_last: &dyn Fn(usize) -> bool) -> (Vec<i64>, i64) {
    let joined = layered.joined();
    let mut parts = ordered(layered, &joined);
    let comes_last = |layers: &Vec<Vec<usize>>| {
        let mut nodes = layers.iter().flatten().filter(|item| **item < count);
        nodes.all(|node| is_last(*node))
    };
    parts.sort_by_cached_key(comes_last);
    let half = |item: usize| match layered.items[item].is_pass {
        true => 0,
        false => BOX_HEIGHT / 2,
    };
    let mut middle = vec![0; layered.items.len()];
    let mut top = MARGIN;
    for layers in parts {
        level(layered, &joined, &layers, &mut middle);
        let items = || layers.iter().flatten().copied();
        let highest = items().map(|item| middle[item] - half(item)).min();
        let down = top - highest.unwrap_or(0);
        for item in items() {
            middle[item] += down;
            top = top.max(middle[item] + half(item));
        }
        top += PART_GAP;
    }
    (middle, top - PART_GAP + MARGIN)
}

/// Returns the left end of each layer. The more lines there are between two layers, the
/// more space they have.
fn columns(layered: &Layered) -> Vec<i64> {
    let depth = layered.items.iter().map(|item| item.layer + 1).max();
    let mut lines = vec![0; depth.unwrap_or(0)];
    for (from, _) in layered.steps() {
        lines[layered.items[from].layer] += 1;
    }
    let mut left = MARGIN;
    lines
        .iter()
        .map(|lines| {
            let own = left;
            left += BOX_WIDTH + (GAP.0 + lines * GAP.2).min(GAP.1);
            own
        })
        .collect()
}

/// Returns how far above or below the middle of its box each line ends.
fn ends(layered: &Layered, middle: &[i64]) -> Vec<i64> {
    let mut into: BTreeMap<usize, Vec<(i64, usize)>> = BTreeMap::new();
    for (route, Route { items, .. }) in layered.routes.iter().enumerate() {
        if let [.., from, to] = items[..] {
            into.entry(to).or_default().push((middle[from], route));
        }
    }
    let mut ends = vec![0; layered.routes.len()];
    for mut lines in into.into_values() {
        lines.sort_unstable();
        let gaps = i64::try_from(lines.len()).unwrap_or(i64::MAX).max(1) - 1;
        let whole = ENDS.min(gaps * END_GAP);
        for (place, (_, route)) in (0..).zip(lines) {
            let down = (place * whole).checked_div(gaps).unwrap_or(0);
            ends[route] = down - whole / 2;
        }
    }
    ends
}

/// Leads a line through the items of a route, to its end at the last one.
fn line(layered: &Layered, route: &Route, left: &[i64], middle: &[i64], end: i64) -> Line {
    let steps = route.items.windows(2);
    let last = steps.len() - 1;
    let bends = steps.enumerate().map(|(place, pair)| {
        let (from, to) = (pair[0], pair[1]);
        // The head of a turned arrow has a place of its own.
        let down = match route.is_turned && place == 0 {
            true => BOX_HEIGHT / 3,
            false => 0,
        };
        let end = if place == last { end } else { 0 };
        let layer = layered.items[from].layer;
        let begin = (left[layer] + BOX_WIDTH, middle[from] + down);
        (begin, (left[layer + 1], middle[to] + end))
    });
    Line {
        bends: bends.collect(),
        is_turned: route.is_turned,
    }
}

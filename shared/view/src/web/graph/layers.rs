//! Issues in layers, from what must be done first, and the passes of long arrows.
//!
//! An arrow that goes further than to the next layer has a pass in every layer
//! between: a place of its own, where no box is. All arrows that leave an issue
//! share their passes, so that there is one line that forks.

use std::collections::{BTreeMap, BTreeSet};

/// The most issues in a layer.
pub(super) const ROWS: usize = 24;
/// The most arrows that are drawn.
pub(super) const ARROWS: usize = 1_500;
/// The most issues and passes.
pub(super) const ITEMS: usize = 4_000;

/// From an issue to one that waits for it, as places in a list.
pub(super) type Edge = (usize, usize);

/// Edges of which each leads from a lower to a higher place of `order`.
pub(super) struct Forward {
    /// All issues, each behind those that it needs.
    pub(super) order: Vec<usize>,
    /// The edges, and whether one was turned round because it closes a cycle.
    pub(super) edges: Vec<(Edge, bool)>,
}

impl Forward {
    /// Turns an edge of each cycle round. `edges` are sorted.
    pub(super) fn of(count: usize, edges: &[Edge]) -> Self {
        let closing = closing(count, edges);
        let turned = |edge: &Edge| match closing.contains(edge) {
            true => ((edge.1, edge.0), true),
            false => (*edge, false),
        };
        let edges: Vec<(Edge, bool)> = edges.iter().map(turned).collect();
        let mut missing = vec![0_usize; count];
        let mut after = vec![Vec::new(); count];
        for ((from, to), _) in &edges {
            missing[*to] += 1;
            after[*from].push(*to);
        }
        let mut free: BTreeSet<usize> = (0..count).filter(|node| missing[*node] == 0).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(node) = free.pop_first() {
            order.push(node);
            for to in &after[node] {
                missing[*to] -= 1;
                if missing[*to] == 0 {
                    free.insert(*to);
                }
            }
        }
        Self { order, edges }
    }
}

/// Returns the edges that lead back to an issue on the path that is being walked.
fn closing(count: usize, edges: &[Edge]) -> BTreeSet<Edge> {
    #[derive(Clone, Copy, PartialEq)]
    enum Walk {
        Ahead,
        OnPath,
        Done,
    }
    let mut after = vec![Vec::new(); count];
    for (from, to) in edges {
        after[*from].push(*to);
    }
    let mut walk = vec![Walk::Ahead; count];
    let mut found = BTreeSet::new();
    for root in 0..count {
        if walk[root] != Walk::Ahead {
            continue;
        }
        let mut path = vec![(root, 0)];
        walk[root] = Walk::OnPath;
        while let Some((node, next)) = path.pop() {
            let Some(to) = after[node].get(next) else {
                walk[node] = Walk::Done;
                continue;
            };
            path.push((node, next + 1));
            match walk[*to] {
                Walk::Ahead => {
                    walk[*to] = Walk::OnPath;
                    path.push((*to, 0));
                }
                Walk::OnPath => {
                    found.insert((node, *to));
                }
                Walk::Done => {}
            }
        }
    }
    found
}

/// Returns the part of the drawing that each issue is in: the issues of a part are
/// joined by edges, and have the same number.
fn parts(count: usize, edges: &[(Edge, bool)]) -> Vec<usize> {
    let mut joined = vec![Vec::new(); count];
    for ((from, to), _) in edges {
        joined[*from].push(*to);
        joined[*to].push(*from);
    }
    let mut part = vec![usize::MAX; count];
    let mut parts = 0;
    for root in 0..count {
        if part[root] != usize::MAX {
            continue;
        }
        let mut ahead = vec![root];
        while let Some(node) = ahead.pop() {
            if part[node] == usize::MAX {
                part[node] = parts;
                ahead.extend(&joined[node]);
            }
        }
        parts += 1;
    }
    part
}

/// What has a place in a layer: an issue, or a pass of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) layer: usize,
    pub(super) part: usize,
    pub(super) is_pass: bool,
}

/// An arrow: the items that it leads through. It begins where it leaves the line of
/// another arrow from the same issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) items: Vec<usize>,
    /// Whether the head of the arrow is at the first item.
    pub(super) is_turned: bool,
}

/// Issues in layers. The first items are the issues in their order.
#[derive(Debug, Default)]
pub(super) struct Layered {
    pub(super) items: Vec<Item>,
    pub(super) routes: Vec<Route>,
    /// How many arrows are left out.
    pub(super) left_out: usize,
}

/// What each item is joined to: in the layer before, and in the next one.
pub(super) type Joined = [Vec<Vec<usize>>; 2];
pub(super) const BEFORE: usize = 0;
pub(super) const NEXT: usize = 1;

impl Layered {
    /// Puts each issue behind all that it needs. `edges` are sorted.
    pub(super) fn of(count: usize, edges: &[Edge]) -> Self {
        let forward = Forward::of(count, edges);
        let part = parts(count, &forward.edges);
        let layer = layers(&forward, &part);
        let item = |node: usize| Item {
            layer: layer[node],
            part: part[node],
            is_pass: false,
        };
        let mut layered = Self {
            items: (0..count).map(item).collect(),
            ..Self::default()
        };
        // The shortest come first: of too many, the longest are left out.
        let mut arrows = forward.edges;
        arrows.sort_by_key(|((from, to), _)| (layer[*to] - layer[*from], *from, *to));
        let mut lines: BTreeMap<(usize, Option<usize>), Vec<usize>> = BTreeMap::new();
        for (edge, is_turned) in arrows {
            // The line of a turned arrow leads to its issue, and is not shared.
            let line = lines.entry((edge.0, is_turned.then_some(edge.1)));
            let is_drawn = layered.lead(edge, is_turned, line.or_default());
            layered.left_out += usize::from(!is_drawn);
        }
        layered
    }

    /// Leads an arrow along a line, which is made longer where it has to be.
    fn lead(&mut self, (from, to): Edge, is_turned: bool, line: &mut Vec<usize>) -> bool {
        let between = self.items[to].layer - self.items[from].layer - 1;
        let new = between.saturating_sub(line.len());
        if self.routes.len() >= ARROWS || self.items.len() + new > ITEMS {
            return false;
        }
        let begin = match between.min(line.len()) {
            0 => from,
            shared => line[shared - 1],
        };
        let mut items = vec![begin];
        for _ in 0..new {
            let pass = Item {
                layer: self.items[from].layer + line.len() + 1,
                part: self.items[from].part,
                is_pass: true,
            };
            line.push(self.items.len());
            items.push(self.items.len());
            self.items.push(pass);
        }
        items.push(to);
        self.routes.push(Route { items, is_turned });
        true
    }

    /// Returns the steps of all arrows from one layer to the next.
    pub(super) fn steps(&self) -> impl Iterator<Item = Edge> {
        let routes = self.routes.iter();
        routes.flat_map(|route| route.items.windows(2).map(|pair| (pair[0], pair[1])))
    }

    /// Returns what each item is joined to.
    pub(super) fn joined(&self) -> Joined {
        let mut joined = [BEFORE, NEXT].map(|_| vec![Vec::new(); self.items.len()]);
        for (from, to) in self.steps() {
            joined[NEXT][from].push(to);
            joined[BEFORE][to].push(from);
        }
        joined
    }
}

/// Puts each issue behind all that it needs. A layer that is full continues in the next
/// one.
fn layers(forward: &Forward, part: &[usize]) -> Vec<usize> {
    let mut before = vec![Vec::new(); part.len()];
    for ((from, to), _) in &forward.edges {
        before[*to].push(*from);
    }
    let mut layer = vec![0; part.len()];
    let mut taken: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for node in &forward.order {
        let needed = before[*node].iter().map(|from| layer[*from] + 1);
        let mut place = needed.max().unwrap_or(0);
        loop {
            let rows = taken.entry((part[*node], place)).or_default();
            if *rows < ROWS {
                *rows += 1;
                break;
            }
            place += 1;
        }
        layer[*node] = place;
    }
    layer
}

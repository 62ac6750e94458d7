//! The order of the items of a layer, by which few lines cross.

use super::layers::{BEFORE, Edge, Joined, Layered, NEXT};

/// How often the order is improved, at most.
const SWEEPS: usize = 12;
/// How often neighbours change places after a sweep, at most.
const SWAPS: usize = 4;

/// The items of each layer, top down, and what each is joined to.
struct Order<'a> {
    layers: Vec<Vec<usize>>,
    /// The place of each item in its layer.
    place: &'a mut [usize],
    joined: &'a Joined,
}

/// Returns the items of each layer of each part, top down.
pub(super) fn ordered(layered: &Layered, joined: &Joined) -> Vec<Vec<Vec<usize>>> {
    let mut parts: Vec<Vec<Vec<usize>>> = Vec::new();
    for (id, item) in layered.items.iter().enumerate() {
        let whole = parts.len().max(item.part + 1);
        parts.resize_with(whole, Vec::new);
        let layers = &mut parts[item.part];
        let depth = layers.len().max(item.layer + 1);
        layers.resize_with(depth, Vec::new);
        layers[item.layer].push(id);
    }
    let mut place = vec![0; layered.items.len()];
    // What nothing else decides has its passes in the middle, so that they lead on
    // from there.
    for layer in parts.iter_mut().flatten() {
        let issues = layer.partition_point(|item| !layered.items[*item].is_pass);
        layer[issues / 2..].rotate_left(issues - issues / 2);
    }
    let parts = parts.into_iter();
    parts
        .map(|layers| of_part(layers, &mut place, joined))
        .collect()
}

fn of_part(layers: Vec<Vec<usize>>, place: &mut [usize], joined: &Joined) -> Vec<Vec<usize>> {
    let mut order = Order {
        layers,
        place,
        joined,
    };
    for layer in 0..order.layers.len() {
        order.number(layer);
    }
    order.sweep(BEFORE);
    let mut best = (order.crossings(), order.layers.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        order.sweep(if sweep % 2 == 0 { BEFORE } else { NEXT });
        for _ in 0..SWAPS {
            if !order.swap() {
                break;
            }
        }
        let crossings = order.crossings();
        if crossings < best.0 {
            best = (crossings, order.layers.clone());
        }
    }
    best.1
}

impl Order<'_> {
    /// Notes the places of a layer.
    fn number(&mut self, layer: usize) {
        for (place, item) in self.layers[layer].iter().enumerate() {
            self.place[*item] = place;
        }
    }

    /// Sorts each layer by the mean place of what its items are joined to on a side.
    fn sweep(&mut self, side: usize) {
        let depth = self.layers.len();
        for at in 1..depth {
            let layer = if side == BEFORE { at } else { depth - 1 - at };
            let mean = |item: usize| {
                let joined = &self.joined[side][item];
                let sum: usize = joined.iter().map(|other| self.place[*other]).sum();
                (sum * 1_000).checked_div(joined.len())
            };
            // What is joined to nothing on this side keeps its place.
            let items = &self.layers[layer];
            let mut sorted: Vec<(usize, usize)> = items
                .iter()
                .filter_map(|item| Some((mean(*item)?, *item)))
                .collect();
            sorted.sort_by_key(|(mean, item)| (*mean, self.place[*item]));
            let mut sorted = sorted.into_iter();
            let next = |item: &usize| match mean(*item) {
                Some(_) => sorted.next().map_or(*item, |(_, other)| other),
                None => *item,
            };
            self.layers[layer] = items.iter().map(next).collect();
            self.number(layer);
        }
    }

    /// Changes the places of neighbours where fewer lines cross then; returns whether
    /// any did.
    fn swap(&mut self) -> bool {
        let mut has_changed = false;
        for layer in 0..self.layers.len() {
            for at in 1..self.layers[layer].len() {
                let (upper, lower) = (self.layers[layer][at - 1], self.layers[layer][at]);
                let now: usize = self.between(upper, lower);
                if now > self.between(lower, upper) {
                    self.layers[layer].swap(at - 1, at);
                    self.place.swap(upper, lower);
                    has_changed = true;
                }
            }
        }
        has_changed
    }

    /// Counts the crossings of the lines of two items of a layer.
    fn between(&self, upper: usize, lower: usize) -> usize {
        let places = |joined: &[usize]| {
            let mut places: Vec<usize> = joined.iter().map(|item| self.place[*item]).collect();
            places.sort_unstable();
            places
        };
        let of_side = |joined: &Vec<Vec<usize>>| {
            let (upper, lower) = (places(&joined[upper]), places(&joined[lower]));
            let above = |place: &usize| lower.partition_point(|other| other < place);
            upper.iter().map(above).sum::<usize>()
        };
        self.joined.iter().map(of_side).sum()
    }

    /// Counts the crossings of all lines.
    fn crossings(&self) -> usize {
        self.layers
            .iter()
            .map(|layer| self.crossings_of(layer))
            .sum()
    }

    /// Counts the crossings behind a layer.
    fn crossings_of(&self, layer: &[usize]) -> usize {
        let mut ends: Vec<Edge> = Vec::new();
        for item in layer {
            let next = &self.joined[NEXT][*item];
            ends.extend(next.iter().map(|to| (self.place[*item], self.place[*to])));
        }
        ends.sort_unstable();
        // A tree of counts: how many of the lines so far end at or below a place.
        let size = ends.iter().map(|end| end.1 + 1).max().unwrap_or(0);
        let mut tree = vec![0_usize; size + 1];
        let mut crossings = 0;
        for (so_far, (_, place)) in ends.iter().enumerate() {
            let (mut at, mut above) = (place + 1, 0);
            while at > 0 {
                above += tree[at];
                at &= at - 1;
            }
            crossings += so_far - above;
            at = place + 1;
            while at <= size {
                tree[at] += 1;
                at += at & at.wrapping_neg();
            }
        }
        crossings
    }
}

//! How far down each item is: in the order of its layer, near what it is joined to.

use super::layers::{BEFORE, Joined, Layered, NEXT};

/// How high the box of an issue is.
pub(super) const BOX_HEIGHT: i64 = 62;
/// The space between boxes, and between what is next to a pass.
const BOX_GAP: i64 = 16;
const PASS_GAP: i64 = 13;
/// How often the heights are improved.
const ROUNDS: usize = 8;
/// How much a pass counts that continues in a straight line.
const STRAIGHT: i64 = 8;

/// Returns the least distance of the middles of an item and the next one.
fn apart(is_pass: bool, next_is_pass: bool) -> i64 {
    match (is_pass, next_is_pass) {
        (false, false) => BOX_HEIGHT + BOX_GAP,
        (true, true) => PASS_GAP,
        _ => BOX_HEIGHT / 2 + PASS_GAP,
    }
}

/// Finds the middle of each item of a part.
pub(super) fn level(layered: &Layered, joined: &Joined, layers: &[Vec<usize>], middle: &mut [i64]) {
    let is_pass = |item: usize| layered.items[item].is_pass;
    for layer in layers {
        let mut at = 0;
        for pair in layer.windows(2) {
            at += apart(is_pass(pair[0]), is_pass(pair[1]));
            middle[pair[1]] = at;
        }
    }
    for round in 0..ROUNDS {
        for at in 0..layers.len() {
            let (layer, side) = match round % 2 {
                0 => (&layers[at], &joined[BEFORE]),
                _ => (&layers[layers.len() - 1 - at], &joined[NEXT]),
            };
            let wishes: Vec<Wish> = layer
                .iter()
                .map(|item| wish(middle, &side[*item], *item, &is_pass))
                .collect();
            let gap = |pair: &[usize]| apart(is_pass(pair[0]), is_pass(pair[1]));
            let gaps: Vec<i64> = layer.windows(2).map(gap).collect();
            for (item, place) in layer.iter().zip(placed(&wishes, &gaps)) {
                middle[*item] = place;
            }
        }
    }
}

/// Where an item is best, and how much that counts.
type Wish = (i64, i64);

fn wish(middle: &[i64], joined: &[usize], item: usize, is_pass: &dyn Fn(usize) -> bool) -> Wish {
    let count = i64::try_from(joined.len()).unwrap_or(i64::MAX);
    let sum: i64 = joined.iter().map(|other| middle[*other]).sum();
    match sum.checked_div_euclid(count) {
        None => (middle[item], 1),
        Some(mean) if is_pass(item) && joined.iter().any(|other| is_pass(*other)) => {
            (mean, STRAIGHT)
        }
        Some(mean) => (mean, 2),
    }
}

/// Returns the places that are nearest to the wishes (by the squares of the distances)
/// and keep the gaps: neighbours that are too near become a group with one wish.
fn placed(wishes: &[Wish], gaps: &[i64]) -> Vec<i64> {
    struct Group {
        weighted: i64,
        weight: i64,
        items: usize,
    }
    impl Group {
        fn mean(&self) -> i64 {
            self.weighted.div_euclid(self.weight)
        }
    }
    let offsets: Vec<i64> = std::iter::once(0)
        .chain(gaps.iter().scan(0, |sum, gap| {
            *sum += gap;
            Some(*sum)
        }))
        .collect();
    let mut groups: Vec<Group> = Vec::new();
    for ((wish, weight), offset) in wishes.iter().zip(&offsets) {
        let mut group = Group {
            weighted: (wish - offset) * weight,
            weight: *weight,
            items: 1,
        };
        while let Some(upper) = groups.pop_if(|upper| upper.mean() >= group.mean()) {
            group.weighted += upper.weighted;
            group.weight += upper.weight;
            group.items += upper.items;
        }
        groups.push(group);
    }
    let means = groups
        .iter()
        .flat_map(|group| std::iter::repeat_n(group.mean(), group.items));
    means
        .zip(&offsets)
        .map(|(mean, offset)| mean + offset)
        .collect()
}

//! The order of ids for a reader: `bd-2` before `bd-10`.
//!
//! What the contracts order by id, such as the ready issues, is ordered by bytes.

use std::cmp::Ordering;

/// Compares two ids: runs of digits by their value, all else by bytes. Ids that
/// differ only in leading zeros are ordered by bytes, so that the order is total.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while !left.is_empty() && !right.is_empty() {
        let (one, rest_left) = run(left);
        let (other, rest_right) = run(right);
        let order = match (is_number(one), is_number(other)) {
            (true, true) => by_value(one, other),
            _ => one.cmp(other),
        };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (rest_left, rest_right);
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Splits the longest run of digits, or of anything else, off the front.
fn run(text: &str) -> (&str, &str) {
    let digits = is_number(text);
    let end = text
        .bytes()
        .position(|byte| byte.is_ascii_digit() != digits)
        .unwrap_or(text.len());
    text.split_at(end)
}

fn is_number(text: &str) -> bool {
    text.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

fn by_value(a: &str, b: &str) -> Ordering {
    let [a, b] = [a, b].map(|text| text.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_ids_are_ordered_by_value() {
        let mut ids = [
            "bd-10",
            "bd-2",
            "bd-2.10",
            "bd-2.9",
            "bd-1",
            "aa-99",
            "bd-02",
            "bd",
            "é-2",
            "é-10",
            "bd-99999999999999999999999",
            "bd-x",
        ];
        ids.sort_by(|a, b| compare(a, b));
        let expected = [
            "aa-99",
            "bd",
            "bd-1",
            "bd-02",
            "bd-2",
            "bd-2.9",
            "bd-2.10",
            "bd-10",
            "bd-99999999999999999999999",
            "bd-x",
            "é-2",
            "é-10",
        ];
        assert_eq!(ids, expected);
    }

    #[test]
    fn the_order_is_total() {
        let ids = ["a1", "a01", "a", "", "1", "01", "1a", "a1b2", "a1b02", "ab"];
        for a in ids {
            for b in ids {
                assert_eq!(compare(a, b), compare(b, a).reverse(), "{a} {b}");
                assert_eq!(compare(a, b) == Ordering::Equal, a == b, "{a} {b}");
                for c in ids {
                    if compare(a, b).is_le() && compare(b, c).is_le() {
                        assert!(compare(a, c).is_le(), "{a} {b} {c}");
                    }
                }
            }
        }
    }
}

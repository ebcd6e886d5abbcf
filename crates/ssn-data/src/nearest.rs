//! The name that was probably meant.

/// The candidate with the smallest edit distance to a name, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let ranked = candidates.into_iter().map(|candidate| (distance(name, candidate), candidate));
    let (edits, candidate) = ranked.min_by_key(|(edits, _)| *edits)?;
    // A third of the letters may be wrong; more is another word.
    (edits * 3 <= name.chars().count().max(candidate.chars().count()).max(3)).then_some(candidate)
}

/// How many letters must be put in, taken out, changed or swapped with their neighbour, upper and lower case
/// being the same.
fn distance(a: &str, b: &str) -> usize {
    let [a, b] = [a, b].map(|text| text.to_lowercase().chars().collect::<Vec<char>>());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let keys = ["path", "layout", "channels", "classes"];
        assert_eq!(nearest("chanels", keys), Some("channels"));
        assert_eq!(nearest("Calsses", keys), Some("classes"));
        assert_eq!(nearest("pth", keys), Some("path"));
        assert_eq!(nearest("learning_rate", keys), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!(distance("flair", "flari"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}

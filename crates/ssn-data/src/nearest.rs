//! The name that was probably meant.

use strsim::osa_distance;

/// The candidate with the smallest edit distance to a name, upper and lower case being the same, if it is near enough
/// to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let edits = |candidate: &str| osa_distance(&name, &candidate.to_lowercase());
    let ranked = candidates.into_iter().map(|candidate| (edits(candidate), candidate));
    let (edits, candidate) = ranked.min_by_key(|(edits, _)| *edits)?;
    // A third of the letters may be wrong; more is another word.
    (edits * 3 <= name.chars().count().max(candidate.chars().count()).max(3)).then_some(candidate)
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
    }
}

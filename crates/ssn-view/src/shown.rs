//! The part of an image that a package shows.

use ssn_eval::Region;

/// Voxels that a cut image keeps around what can change or is marked.
const MARGIN: usize = 8;

/// The smallest box, with a margin, outside which every label map `[d, h, w]` is background and no voxel of the image is in
/// `kept`; the whole image where there is nothing at all.
pub(crate) fn marked_box(size: [usize; 3], maps: &[&[u8]], kept: impl Iterator<Item = [usize; 3]>) -> Region {
    let (mut low, mut high) = (size, [0; 3]);
    let mut include = |place: [usize; 3]| {
        for axis in 0..3 {
            low[axis] = low[axis].min(place[axis]);
            high[axis] = high[axis].max(place[axis] + 1);
        }
    };
    kept.for_each(&mut include);
    let whole = Region::whole(size);
    for map in maps {
        for (row, labels) in map.chunks(size[2]).enumerate() {
            let first = labels.iter().position(|label| *label > 0);
            let last = labels.iter().rposition(|label| *label > 0);
            for column in [first, last].into_iter().flatten() {
                include(whole.voxel(row * size[2] + column));
            }
        }
    }
    if high[0] == 0 {
        return whole;
    }
    let start = low.map(|at| at.saturating_sub(MARGIN));
    let end = [0, 1, 2].map(|axis| (high[axis] + MARGIN).min(size[axis]));
    Region { start, size: [0, 1, 2].map(|axis| end[axis] - start[axis]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_box_holds_what_is_marked_and_what_can_change() {
        let size = [1, 40, 50];
        let mut map = vec![0; 2000];
        map[20 * 50 + 30] = 1;
        let found = marked_box(size, &[&map], [[0, 10, 25]].into_iter());
        assert_eq!(found, Region { start: [0, 2, 17], size: [1, 27, 22] });
        let nothing = marked_box(size, &[&[0; 2000]], std::iter::empty());
        assert_eq!(nothing, Region::whole(size));
    }
}

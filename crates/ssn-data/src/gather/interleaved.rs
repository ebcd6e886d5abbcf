//! An image with the channels of a voxel side by side, as gathering wants it.

/// An image as groups of up to four channels, each `[d, h, w, lanes]`: the values of a voxel are one load.
#[derive(Debug, Clone, PartialEq)]
pub struct Interleaved {
    pub(super) shape: [usize; 3],
    pub(super) groups: Vec<Group>,
}

/// Some channels of an image. Three are stored as four, the last of which is 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Group {
    One(Vec<[f32; 1]>),
    Two(Vec<[f32; 2]>),
    Three(Vec<[f32; 4]>),
    Four(Vec<[f32; 4]>),
}

impl Interleaved {
    /// From planes.
    ///
    /// # Shapes
    /// `image`: `[c, d, h, w]` for `shape` `[d, h, w]`.
    pub fn new(image: Vec<f32>, channels: usize, shape: [usize; 3]) -> Self {
        let voxels: usize = shape.iter().product();
        debug_assert_eq!(image.len(), channels * voxels);
        if channels == 1 {
            let values = image.into_iter().map(|x| [x]).collect();
            return Self { shape, groups: vec![Group::One(values)] };
        }
        let planes: Vec<&[f32]> = image.chunks_exact(voxels.max(1)).collect();
        let groups = planes.chunks(4).map(|planes| match planes.len() {
            1 => Group::One(join(planes, voxels)),
            2 => Group::Two(join(planes, voxels)),
            3 => Group::Three(join(planes, voxels)),
            _ => Group::Four(join(planes, voxels)),
        });
        Self { shape, groups: groups.collect() }
    }

    /// The number of channels.
    pub fn channels(&self) -> usize {
        self.groups.iter().map(Group::channels).sum()
    }

    /// `[d, h, w]`.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// The bytes that the image takes.
    pub fn bytes(&self) -> usize {
        let lanes = |group: &Group| group.channels() + usize::from(matches!(group, Group::Three(_)));
        4 * self.shape.iter().product::<usize>() * self.groups.iter().map(lanes).sum::<usize>()
    }
}

impl Group {
    pub(super) fn channels(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Two(_) => 2,
            Self::Three(_) => 3,
            Self::Four(_) => 4,
        }
    }
}

fn join<const L: usize>(planes: &[&[f32]], voxels: usize) -> Vec<[f32; L]> {
    let value = |voxel: usize, lane: usize| planes.get(lane).map_or(0.0, |plane| plane[voxel]);
    (0..voxels).map(|voxel| std::array::from_fn(|lane| value(voxel, lane))).collect()
}

//! Regular grids of voxels of a patch: what a network sees that does not look at every voxel.

/// The voxels `start + step·i` along each axis, for i below `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The first voxel, `[d, h, w]`.
    pub start: [usize; 3],
    /// The distance of neighbors, `[d, h, w]`.
    pub step: [usize; 3],
    /// How many there are, `[d, h, w]`.
    pub count: [usize; 3],
}

impl Grid {
    /// Every voxel of a patch.
    pub fn whole(size: [usize; 3]) -> Self {
        Self { start: [0; 3], step: [1; 3], count: size }
    }

    /// How many voxels it has.
    pub fn voxels(&self) -> usize {
        self.count.iter().product()
    }

    /// The places of its voxels in a patch of a size, in order.
    pub fn places(self, [_, h, w]: [usize; 3]) -> impl Iterator<Item = usize> {
        let along =
            move |axis: usize| (0..self.count[axis]).map(move |i| self.start[axis] + self.step[axis] * i);
        along(0).flat_map(move |z| along(1).flat_map(move |y| along(2).map(move |x| (z * h + y) * w + x)))
    }
}

//! Parts of cases: boxes of voxels, and voxels at equal distances.

/// The part of a case that a patch covers before it is changed; it may reach beyond the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first voxel, `[d, h, w]`.
    pub start: [isize; 3],
    /// The number of voxels, `[d, h, w]`.
    pub size: [usize; 3],
}

impl Window {
    /// The window of `size` around a voxel; of an even size, one voxel more lies before the voxel than after it.
    pub fn around(voxel: [usize; 3], size: [usize; 3]) -> Self {
        Self { start: [0, 1, 2].map(|k| voxel[k] as isize - (size[k] / 2) as isize), size }
    }

    /// The window of `size` with the same center; sizes must differ by even numbers.
    pub fn shrunk(&self, size: [usize; 3]) -> Self {
        let start = [0, 1, 2].map(|k| self.start[k] + (self.size[k] as isize - size[k] as isize) / 2);
        Self { start, size }
    }

    /// The center, which for even sizes lies between voxels.
    pub fn center(&self) -> [f32; 3] {
        [0, 1, 2].map(|k| self.start[k] as f32 + (self.size[k] as f32 - 1.0) / 2.0)
    }
}

/// The voxels `start + step·i` along each axis, for i below `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lattice {
    /// The first voxel, `[d, h, w]`.
    pub start: [usize; 3],
    /// The distance of neighbors, `[d, h, w]`.
    pub step: [usize; 3],
    /// How many there are, `[d, h, w]`.
    pub count: [usize; 3],
}

impl Lattice {
    /// Every voxel of a patch.
    pub fn whole(size: [usize; 3]) -> Self {
        Self { start: [0; 3], step: [1; 3], count: size }
    }

    /// The number of its voxels.
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

//! Parts of cases: boxes of voxels, and regular lattices of voxels.

/// The part of a case that a patch covers before it is changed; it may reach beyond the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first voxel, `[d, h, w]`.
    pub start: [isize; 3],
    /// The number of voxels, `[d, h, w]`.
    pub size: [usize; 3],
}

impl Window {
    /// Returns the window of `size` around a voxel; an even size has one voxel more before it than after it.
    pub fn around(voxel: [usize; 3], size: [usize; 3]) -> Self {
        Self { start: [0, 1, 2].map(|k| voxel[k] as isize - (size[k] / 2) as isize), size }
    }

    /// Returns the window of `size` with the same center; sizes must differ by even numbers.
    pub fn shrunk(&self, size: [usize; 3]) -> Self {
        let start = [0, 1, 2].map(|k| self.start[k] + (self.size[k] as isize - size[k] as isize) / 2);
        Self { start, size }
    }

    /// Returns the center, which for even sizes is between voxels.
    pub fn center(&self) -> [f32; 3] {
        [0, 1, 2].map(|k| self.start[k] as f32 + (self.size[k] as f32 - 1.0) / 2.0)
    }
}

/// The voxels `start + step·i` along each axis, for i below `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lattice {
    /// The first voxel, `[d, h, w]`.
    pub start: [usize; 3],
    /// The distance between neighbors, `[d, h, w]`.
    pub step: [usize; 3],
    /// The number of voxels, `[d, h, w]`.
    pub count: [usize; 3],
}

impl Lattice {
    /// Returns the lattice of all voxels of a patch.
    pub fn whole(size: [usize; 3]) -> Self {
        Self { start: [0; 3], step: [1; 3], count: size }
    }

    /// Returns the number of voxels.
    pub fn voxels(&self) -> usize {
        self.count.iter().product()
    }

    /// Returns the flat index of each voxel in a patch of a size, in order.
    pub fn places(self, [_, h, w]: [usize; 3]) -> impl Iterator<Item = usize> {
        let along =
            move |axis: usize| (0..self.count[axis]).map(move |i| self.start[axis] + self.step[axis] * i);
        along(0).flat_map(move |z| along(1).flat_map(move |y| along(2).map(move |x| (z * h + y) * w + x)))
    }
}

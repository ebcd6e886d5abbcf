//! Options of operators, in the layout of the C++ part.

/// The activation after a normalization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub enum Activation {
    /// None.
    Identity = 0,
    /// max(x, 0)
    Relu = 1,
    /// x, or 0.01 x where x is negative.
    LeakyRelu = 2,
    /// x, or a·x where x is negative.
    Prelu = 3,
}

/// Normalization of a map, with dropout and activation.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NormOptions {
    /// Added to the variance.
    pub eps: f64,
    /// The share of the newest batch in the running statistics.
    pub momentum: f64,
    /// The probability of dropout, in training, to keep a value; 1 for no dropout.
    pub keep: f64,
    /// The number of the layer, which chooses the random numbers of dropout.
    pub layer: i64,
    /// The activation.
    pub activation: Activation,
    /// The real channels of the map.
    pub channels: i64,
    /// 1 if each image is normalized by itself, else 0.
    pub per_image: i64,
    /// 1 if statistics are those of the batch, and gradients wanted, else 0.
    pub training: i64,
    /// The number of images before these on lower ranks; random numbers follow the place in the whole batch.
    pub first: i64,
    /// The number of images in the whole batch if statistics are taken over all ranks (see
    /// [`SyncNormReduce`](crate::SyncNormReduce)), else 0.
    pub whole: i64,
}

/// One of several maps to be joined.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PathOptions {
    /// The real channels of the map.
    pub channels: i64,
    /// The number of times each voxel is repeated along `d, h, w`.
    pub scale: [i64; 3],
    /// The number of repeated voxels to drop at the front of `d, h, w`.
    pub start: [i64; 3],
}

/// Choice of the samples to draw.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct DrawOptions {
    /// Draws of noise.
    pub draws: i64,
    /// 1 if each serves two mirrored samples, else 0.
    pub paired: i64,
    /// The number of images before these on lower ranks.
    pub first: i64,
}

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

/// How a map is normalized, with dropout and activation; as the C++ part has it.
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
    /// Images that other ranks have in front of these: random numbers are those of the place in the whole batch.
    pub first: i64,
    /// Images of the whole batch, if statistics are to be those of all of it (see
    /// [`SyncNormReduce`](crate::SyncNormReduce)), else 0.
    pub whole: i64,
}

/// How one of several maps is joined; as the C++ part has it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PathOptions {
    /// The real channels of the map.
    pub channels: i64,
    /// How often each voxel is repeated along `d, h, w`.
    pub scale: [i64; 3],
    /// How many voxels are cut off in front after that.
    pub start: [i64; 3],
}

/// Which samples are drawn; as the C++ part has it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct DrawOptions {
    /// Draws of noise.
    pub draws: i64,
    /// 1 if each serves two mirrored samples, else 0.
    pub paired: i64,
    /// Images of the batch in front of these, on other ranks.
    pub first: i64,
}

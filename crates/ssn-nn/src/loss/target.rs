//! The label maps that a loss compares with.

use tch::{Kind, Tensor};

use crate::error::{NnError, Result, refused, require};

/// The label maps of a batch, checked once. Each image has `t` of them: one rater's, or all raters' at once.
#[derive(Debug)]
pub struct Target {
    maps: Tensor,
    classes: i64,
    likelihood: Likelihood,
}

/// How logits become probabilities of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likelihood {
    /// One of `c` classes per voxel, by softmax.
    Categorical,
    /// Multi-label: each of `c` maps is 0 or 1 per voxel, by sigmoid; several may be 1 at once.
    Bernoulli,
}

impl Target {
    /// One of `classes` classes per voxel.
    ///
    /// # Shapes
    /// `maps` `[b, t, v]`, class numbers of type int64.
    pub fn classes(maps: Tensor, classes: i64) -> Result<Self> {
        if maps.dim() != 3 {
            return Err(NnError::shape("target", &maps.size(), "[b, t, v]"));
        }
        if classes < 2 {
            let expected = "at least 2, the background included; a single map is a binary target";
            return refused("classes", classes, expected);
        }
        if maps.kind() != Kind::Int64 {
            return refused("target", format!("of type {:?}", maps.kind()), "of type Int64");
        }
        if maps.numel() > 0 {
            let (least, largest) = (maps.min().int64_value(&[]), maps.max().int64_value(&[]));
            if least < 0 {
                return refused("target", least, "a class number, 0 or more");
            }
            if largest >= classes {
                return refused("target", largest, "a class number, below the number of classes");
            }
        }
        Ok(Self { maps, classes, likelihood: Likelihood::Categorical })
    }

    /// Multi-label: each of `c` maps is 0 or 1 per voxel.
    ///
    /// # Shapes
    /// `maps` `[b, t, c, v]`, zeros and ones of a floating type.
    pub fn binary(maps: Tensor) -> Result<Self> {
        if maps.dim() != 4 {
            return Err(NnError::shape("target", &maps.size(), "[b, t, c, v]"));
        }
        let is_binary = maps.f_eq(0)?.f_logical_or(&maps.f_eq(1)?)?;
        if is_binary.all().int64_value(&[]) != 1 {
            return refused("target", "neither 0 nor 1 somewhere", "0 (off) or 1 (on) everywhere");
        }
        let classes = maps.size()[2];
        Ok(Self { maps, classes, likelihood: Likelihood::Bernoulli })
    }

    /// Label maps whose class numbers were checked before, `[b, t, v]`.
    pub fn from_checked(maps: Tensor, classes: i64) -> Self {
        Self { maps, classes, likelihood: Likelihood::Categorical }
    }

    /// The label maps, `[b, t, v]` or `[b, t, c, v]`.
    pub fn maps(&self) -> &Tensor {
        &self.maps
    }

    /// The number of classes.
    pub fn class_count(&self) -> i64 {
        self.classes
    }

    /// How logits become probabilities of these labels.
    pub fn likelihood(&self) -> Likelihood {
        self.likelihood
    }

    /// log p(target | logits), summed over the voxels in double precision.
    ///
    /// Computed from log-softmax and log-sigmoid, never as the logarithm of a probability, so that it stays
    /// finite however far the logits go. Sums of many voxels are compared with each other by the exponential, so
    /// that their absolute error counts: single precision would lose it in large images.
    ///
    /// # Shapes
    /// `logits` `[m, b, c, v]`. Gives `[m, b, t]`.
    pub fn log_probability(&self, logits: &Tensor) -> Result<Tensor> {
        let &[m, b, c, v] = logits.size().as_slice() else {
            return Err(NnError::shape("logits", &logits.size(), "[m, b, c, v]"));
        };
        self.check(b, c, v)?;
        let t = self.maps.size()[1];
        let per_voxel = match self.likelihood {
            Likelihood::Categorical => {
                let index = self.maps.f_view([1, b, t, v])?.f_expand([m, b, t, v], false)?;
                logits.f_log_softmax(2, None::<Kind>)?.f_gather(2, &index, false)? // [m, b, t, v]
            }
            Likelihood::Bernoulli => {
                // log σ(η) where the target is 1 and log σ(−η) = log(1 − σ(η)) where it is 0.
                let signs = self.maps.f_to_kind(logits.kind())? * 2.0 - 1.0; // [b, t, c, v]
                logits.f_unsqueeze(2)?.f_mul(&signs)?.f_log_sigmoid()?.f_flatten(3, 4)? // [m, b, t, c·v]
            }
        };
        Ok(per_voxel.f_sum_dim_intlist([3i64].as_slice(), false, Kind::Double)?)
    }

    /// Refuses a target that the kernels of a GPU do not take.
    pub(crate) fn check_on_gpu(&self) -> Result<()> {
        require(self.likelihood == Likelihood::Categorical, "target", "binary", "classes, on a GPU")
    }

    /// Refuses a target that does not fit logits of these sizes.
    pub(crate) fn check(&self, b: i64, c: i64, v: i64) -> Result<()> {
        if self.classes != c {
            let value = format!("made for {} classes, while the network has {c}", self.classes);
            return refused("target", value, "of the network's classes");
        }
        let t = self.maps.size()[1];
        let expected = match self.likelihood {
            Likelihood::Categorical => vec![b, t, v],
            Likelihood::Bernoulli => vec![b, t, c, v],
        };
        if self.maps.size() != expected {
            let (found, expected) = (self.maps.size(), format!("{expected:?}"));
            return Err(NnError::shape("target", &found, expected));
        }
        Ok(())
    }
}

//! The likelihood of a label map given logits.

use tch::{Kind, Tensor};

use crate::error::{NetError, Result};

/// How logits become probabilities of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likelihood {
    /// One of `c` classes per voxel, by softmax.
    Categorical,
    /// Each of `c` maps on or off per voxel, by sigmoid; several may be on at once.
    Bernoulli,
}

impl Likelihood {
    /// log p(target | logits), summed over the voxels.
    ///
    /// Computed from log-softmax and log-sigmoid, never as the logarithm of a probability, so that it stays
    /// finite however far the logits go.
    ///
    /// # Shapes
    /// `logits` `[m, b, c, v]`; `target` `[b, v]` class numbers (categorical, int64) or `[b, c, v]` zeros and
    /// ones (Bernoulli). Gives `[m, b]`.
    pub fn log_probability(self, logits: &Tensor, target: &Tensor) -> Result<Tensor> {
        let &[m, b, c, v] = logits.size().as_slice() else {
            let (found, expected) = (logits.size(), "[m, b, c, v]".to_owned());
            return Err(NetError::Shape { field: "logits", found, expected });
        };
        let expected = match self {
            Self::Categorical => vec![b, v],
            Self::Bernoulli => vec![b, c, v],
        };
        if target.size() != expected {
            let (found, expected) = (target.size(), format!("{expected:?}"));
            return Err(NetError::Shape { field: "target", found, expected });
        }
        Ok(match self {
            Self::Categorical => {
                check_labels(target, c)?;
                let index = target.view([1, b, 1, v]).expand([m, b, 1, v], false);
                let log_p = logits.log_softmax(2, None::<Kind>).gather(2, &index, false); // [m, b, 1, v]
                log_p.sum_dim_intlist([2i64, 3].as_slice(), false, None::<Kind>)
            }
            Self::Bernoulli => {
                // log σ(η) where the target is 1 and log σ(−η) = log(1 − σ(η)) where it is 0.
                let signs = target.to_kind(logits.kind()) * 2.0 - 1.0; // [b, c, v]
                let log_p = (logits * signs).log_sigmoid();
                log_p.sum_dim_intlist([2i64, 3].as_slice(), false, None::<Kind>)
            }
        })
    }
}

/// Refuses class numbers that are not whole or not below the number of classes.
fn check_labels(target: &Tensor, classes: i64) -> Result<()> {
    let wrong = |value: String, expected| NetError::Parameter { field: "target", value, expected };
    if target.kind() != Kind::Int64 {
        return Err(wrong(format!("of type {:?}", target.kind()), "of type Int64"));
    }
    if target.numel() == 0 {
        return Ok(());
    }
    let (least, largest) = (target.min().int64_value(&[]), target.max().int64_value(&[]));
    match (least < 0, largest >= classes) {
        (true, _) => Err(wrong(least.to_string(), "a class number, 0 or more")),
        (_, true) => Err(wrong(largest.to_string(), "a class number, below the number of classes")),
        _ => Ok(()),
    }
}

//! A loss of a program's own that several tests train with.

use ssn_nn::loss::Loss;
use ssn_nn::{LowRankNormalTensors, NoiseSource, Target};
use tch::{Kind, Tensor};

/// The negative log-likelihood of the paper as a program's own loss; waits for the GPU if it `syncs`.
#[derive(Debug)]
pub struct OwnLikelihood {
    /// Whether it reads a value on the host.
    pub syncs: bool,
}

impl Loss for OwnLikelihood {
    fn loss(
        &self,
        distribution: &LowRankNormalTensors,
        target: &Target,
        noise: NoiseSource<'_>,
    ) -> ssn_nn::Result<Tensor> {
        let samples = distribution.sample(&noise.draws(0..noise.draw_count()?)?)?;
        let log_p = target.log_probability(&samples)?; // [m, b, t]
        if self.syncs {
            assert!(log_p.max().double_value(&[]).is_finite());
        }
        let each = (log_p.size()[0] as f64).ln() - log_p.logsumexp([0i64].as_slice(), false);
        Ok(each.mean_dim([1i64].as_slice(), false, None::<Kind>))
    }

    fn can_be_captured(&self) -> bool {
        !self.syncs
    }
}

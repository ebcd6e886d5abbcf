//! PHiSeg (Baumgartner et al. 2019): maps of latent variables on several grids, each given the next coarser one, and logits
//! that are summed up from coarse to fine.
//!
//! Of the R levels of the plan the coarsest L carry latent variables. Level i of these, 0 the finest, lies on the grid of
//! level i + R − L; its part of the decoder ends on the grid of level i.

use tch::{Kind, Tensor};

use super::elbo::{DiagonalGaussian, ElboTerms, SampleDecoder};
use crate::backbones::{ConvStack, Encoder, UNetConfig};
use crate::error::Result;
use crate::heads::PhisegConfig;
use crate::layers::{LinearInit, Mode, PointwiseConvs};
use crate::parameters::Scope;
use crate::space::{self, FeatureLayout, Size};

/// The grids of the plan's levels for an image, and where the latent ones begin.
#[derive(Debug, Clone)]
struct Levels {
    strides: Vec<Size>,
    latent: usize,
}

impl Levels {
    fn grids(&self, image: Size) -> Vec<Size> {
        let mut grids = vec![image];
        for stride in &self.strides {
            let last = grids[grids.len() - 1];
            grids.push([0, 1, 2].map(|axis| last[axis] / stride[axis]));
        }
        grids
    }

    /// The plan's level of latent level 0.
    fn first(&self) -> usize {
        self.strides.len() + 1 - self.latent
    }
}

/// A distribution of all latent maps: the prior, or the posterior.
#[derive(Debug)]
struct LatentHierarchy {
    encoder: Encoder,
    /// What becomes of the next coarser latent map, and of it with the encoder's map; not for the coarsest.
    below: Vec<ConvStack>,
    joined: Vec<ConvStack>,
    maps: Vec<PointwiseConvs>,
    /// The channels of the two that are joined.
    widths: Vec<[i64; 2]>,
}

impl LatentHierarchy {
    fn new(
        scope: &mut Scope,
        channels: i64,
        plan: &UNetConfig,
        levels: &Levels,
        latent: i64,
    ) -> Result<Self> {
        let encoder = Encoder::new(&mut scope.sub("down"), channels, plan)?;
        let (mut below, mut joined, mut maps, mut widths) = (vec![], vec![], vec![], vec![]);
        for i in 0..levels.latent {
            let (level, is_coarsest) = (levels.first() + i, i + 1 == levels.latent);
            let (width, kernel) = (plan.widths[level], plan.kernels[level]);
            // As in the original, what is joined has the width of the grid on which its part of the decoder ends.
            let outputs = if is_coarsest { width } else { plan.widths[i] };
            if !is_coarsest {
                let from_below = latent * plan.widths[0];
                let both = [from_below; 2];
                below.push(ConvStack::new(&mut scope.sub("below").sub(i), latent, &both, kernel, plan)?);
                let inputs = width + from_below;
                joined.push(ConvStack::new(
                    &mut scope.sub("joined").sub(i),
                    inputs,
                    &[outputs; 2],
                    kernel,
                    plan,
                )?);
                widths.push([width, from_below]);
            }
            let mut linear = PointwiseConvs::new(scope.kind());
            for name in ["mean", "deviation"] {
                linear.add(&mut scope.sub(name).sub(i), outputs, latent, LinearInit::HeNormal)?;
            }
            maps.push(linear);
        }
        Ok(Self { encoder, below, joined, maps, widths })
    }

    /// The distribution of latent level i, given the encoder's map of its grid and the draw of the next coarser level, each
    /// of b images.
    ///
    /// # Shapes
    /// `map` `[b, f, d, h, w]`, `coarser` `[b, latent, d', h', w']`; a distribution of `[b, latent, v]`.
    fn level(
        &self,
        i: usize,
        map: &Tensor,
        coarser: Option<&Tensor>,
        layout: FeatureLayout,
        mode: Mode,
    ) -> Result<DiagonalGaussian> {
        let mut features = map.shallow_clone();
        if let Some(coarser) = coarser {
            let larger = space::upsample_to(coarser, space::spatial(map)?)?;
            let below = self.below[i].forward(space::to_layout(&larger, layout)?, mode)?;
            let [width, from_below] = self.widths[i];
            features = space::join_channels(&[(features, width), (below, from_below)])?;
            features = self.joined[i].forward(features, mode)?;
        }
        let parts = self.maps[i].forward(&features)?;
        DiagonalGaussian::new(parts[0].shallow_clone(), &parts[1])
    }
}

/// From latent maps to logits.
#[derive(Debug)]
struct LatentDecoder {
    /// For each latent level, the stack on its grid and one on every finer grid until its own end.
    rise: Vec<Vec<ConvStack>>,
    /// What becomes of the next coarser level, and of both together; not for the coarsest.
    below: Vec<ConvStack>,
    joined: Vec<ConvStack>,
    logits: Vec<PointwiseConvs>,
    widths: Vec<i64>,
}

impl LatentDecoder {
    fn new(scope: &mut Scope, classes: i64, plan: &UNetConfig, levels: &Levels, latent: i64) -> Result<Self> {
        // The channels of a level's result: as in the original, what is joined has the width of the latent grid.
        let outputs = |i: usize| plan.widths[if i + 1 < levels.latent { i + levels.first() } else { i }];
        let (mut rise, mut below, mut joined, mut logits) = (vec![], vec![], vec![], vec![]);
        for i in 0..levels.latent {
            let (width, kernel) = (plan.widths[i], plan.kernels[i]);
            let mut steps = vec![ConvStack::new(
                &mut scope.sub("rise").sub(i).sub(0),
                latent,
                &[width; 2],
                kernel,
                plan,
            )?];
            for step in 1..=levels.first() {
                let mut scope = scope.sub("rise");
                steps.push(ConvStack::new(&mut scope.sub(i).sub(step), width, &[width], kernel, plan)?);
            }
            rise.push(steps);
            if i + 1 < levels.latent {
                let coarser = outputs(i + 1);
                below.push(ConvStack::new(&mut scope.sub("below").sub(i), coarser, &[width], kernel, plan)?);
                joined.push(ConvStack::new(
                    &mut scope.sub("joined").sub(i),
                    2 * width,
                    &[outputs(i); 2],
                    kernel,
                    plan,
                )?);
            }
            let mut linear = PointwiseConvs::new(scope.kind());
            linear.add(&mut scope.sub("logits").sub(i), outputs(i), classes, LinearInit::HeNormal)?;
            logits.push(linear);
        }
        Ok(Self { rise, below, joined, logits, widths: plan.widths.clone() })
    }

    /// The sums of logits down to each level, from the coarsest to the finest.
    ///
    /// # Shapes
    /// `draws` `[b, latent, d, h, w]`, the finest first; `grids` those of all levels of the plan → `[b, c, v]` each.
    fn forward(
        &self,
        draws: &[Tensor],
        grids: &[Size],
        layout: FeatureLayout,
        mode: Mode,
    ) -> Result<Vec<Tensor>> {
        let (first, [d, h, w]) = (grids.len() - draws.len(), grids[0]);
        let (mut sums, mut coarser): (Vec<Tensor>, Option<Tensor>) = (vec![], None);
        for (i, z) in draws.iter().enumerate().rev() {
            let mut x = self.rise[i][0].forward(space::to_layout(z, layout)?, mode)?;
            for step in 1..=first {
                x = self.rise[i][step].forward(space::upsample_to(&x, grids[i + first - step])?, mode)?;
            }
            if let Some(coarser) = coarser {
                let width = self.widths[i];
                let below = self.below[i].forward(space::upsample_to(&coarser, grids[i])?, mode)?;
                x = self.joined[i].forward(space::join_channels(&[(x, width), (below, width)])?, mode)?;
            }
            let own = self.logits[i].forward(&x)?.remove(0); // [b, c, vᵢ]
            let [di, hi, wi] = grids[i];
            let (b, c) = (own.size()[0], own.size()[1]);
            let scale = [d / di, h / hi, w / wi];
            let own =
                space::nearest_upsample(&own.f_reshape([b, c, di, hi, wi])?, scale)?.f_flatten(2, -1)?;
            sums.push(match sums.last() {
                Some(sum) => sum.f_add(&own)?,
                None => own,
            });
            coarser = Some(x);
        }
        Ok(sums)
    }
}

/// PHiSeg.
#[derive(Debug)]
pub struct Phiseg {
    prior: LatentHierarchy,
    posterior: LatentHierarchy,
    decoder: LatentDecoder,
    levels: Levels,
    config: PhisegConfig,
}

impl Phiseg {
    pub(super) fn new(
        scope: &mut Scope,
        [channels, classes]: [i64; 2],
        plan: &UNetConfig,
        config: PhisegConfig,
    ) -> Result<Self> {
        let PhisegConfig { latent_levels, latent, .. } = config;
        let levels = Levels { strides: plan.strides.clone(), latent: latent_levels };
        let mut scope = scope.sub("head");
        Ok(Self {
            prior: LatentHierarchy::new(&mut scope.sub("prior"), channels, plan, &levels, latent)?,
            posterior: LatentHierarchy::new(
                &mut scope.sub("posterior"),
                channels + classes,
                plan,
                &levels,
                latent,
            )?,
            decoder: LatentDecoder::new(&mut scope.sub("decoder"), classes, plan, &levels, latent)?,
            levels,
            config,
        })
    }

    /// The voxels of each latent level, the finest first.
    fn voxels(&self, size: Size) -> Vec<i64> {
        self.levels.grids(size)[self.levels.first()..].iter().map(|grid| grid.iter().product()).collect()
    }

    pub(super) fn noise_count(&self, size: Size) -> i64 {
        self.config.latent * self.voxels(size).iter().sum::<i64>()
    }

    /// The part of noise `[b, n]` that belongs to each level, `[b, latent, v]`, the finest first.
    fn parts(&self, noise: &Tensor, size: Size) -> Result<Vec<Tensor>> {
        let (latent, mut start) = (self.config.latent, 0);
        let part = |voxels: i64| {
            start += latent * voxels;
            let part = noise.f_narrow(1, start - latent * voxels, latent * voxels)?;
            Ok(part.f_reshape([-1, latent, voxels])?)
        };
        self.voxels(size).into_iter().map(part).collect()
    }

    /// A draw `[b, latent, v]` as a map on the grid of a latent level.
    fn as_map(&self, draw: &Tensor, i: usize, grids: &[Size]) -> Result<Tensor> {
        let [d, h, w] = grids[self.levels.first() + i];
        Ok(draw.f_reshape([-1, self.config.latent, d, h, w])?)
    }

    /// The terms of an image, and of the image with its labels; see [`LatentModel::elbo_terms`](super::LatentModel::elbo_terms).
    pub(super) fn elbo_terms(
        &self,
        [image, labeled]: [&Tensor; 2],
        noise: &Tensor,
        layout: FeatureLayout,
        mode: Mode,
    ) -> Result<ElboTerms> {
        let size = space::spatial(image)?;
        let (grids, first) = (self.levels.grids(size), self.levels.first());
        let of_prior = self.prior.encoder.forward(layout.apply(image)?, mode)?;
        let of_posterior = self.posterior.encoder.forward(layout.apply(labeled)?, mode)?;
        let (parts, voxels) = (self.parts(noise, size)?, self.voxels(size));
        let mut draws: Vec<Tensor> = vec![];
        let mut kl = Tensor::f_zeros([image.size()[0]], (Kind::Double, image.device()))?;
        for i in (0..self.levels.latent).rev() {
            // The prior is judged where the posterior goes: both are given its draw.
            let coarser = draws.last();
            let posterior = self.posterior.level(i, &of_posterior[first + i], coarser, layout, mode)?;
            let prior = self.prior.level(i, &of_prior[first + i], coarser, layout, mode)?;
            // Coarse levels have few voxels: each level counts as if it had as many as the finest.
            let weight = self.config.kl_weight * voxels[0] as f64 / voxels[i] as f64;
            kl = kl.f_add(&(posterior.kl_divergence(&prior)? * weight))?;
            draws.push(self.as_map(&posterior.rsample(&parts[i])?, i, &grids)?);
        }
        draws.reverse();
        let logits = self.decoder.forward(&draws, &grids, layout, mode)?;
        Ok(ElboTerms { logits, kl })
    }

    pub(super) fn decoder(&self, image: &Tensor, layout: FeatureLayout) -> Result<SampleDecoder<'_>> {
        let size = space::spatial(image)?;
        let grids = self.levels.grids(size);
        let mut maps = self.prior.encoder.forward(layout.apply(image)?, Mode::Evaluation)?;
        let maps = maps.split_off(self.levels.first());
        Ok(Box::new(move |noise| {
            let (parts, samples) = (self.parts(noise, size)?, noise.size()[0]);
            let mut draws: Vec<Tensor> = vec![];
            for i in (0..self.levels.latent).rev() {
                let mut shape = maps[i].size();
                // The coarsest level is the same for all samples until it is drawn.
                shape[0] = if draws.is_empty() { 1 } else { samples };
                let map = space::to_layout(&maps[i].f_expand(shape.as_slice(), false)?, layout)?;
                let prior = self.prior.level(i, &map, draws.last(), layout, Mode::Evaluation)?;
                draws.push(self.as_map(&prior.rsample(&parts[i])?, i, &grids)?);
            }
            draws.reverse();
            let mut logits = self.decoder.forward(&draws, &grids, layout, Mode::Evaluation)?;
            Ok(logits.remove(logits.len() - 1))
        }))
    }
}

//! What a config file says about a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssn_data::{AugmentConfig, BatchConfig, DataConfig, PatchSampler, RaterChoice};

use crate::trainer::{LossConfig, LossKind};
use ssn_nn::backbones::{BackboneConfig, UNetPlan};
use ssn_nn::error::{Result, require};
use ssn_nn::heads::HeadConfig;
use ssn_nn::model::Precision;
use ssn_nn::optim::Method;
use ssn_nn::optim::{LearningRate, Schedule, Warmup};

/// Everything that a run depends on; together with the dataset it fixes every bit of the result on a CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Which dataset, and what is done to it before training.
    pub data: DataConfig,
    /// What batches hold.
    pub batches: BatchConfig,
    /// How patches are changed at random.
    #[serde(default)]
    pub augmentation: AugmentConfig,
    /// The network.
    pub model: ModelSection,
    /// What is minimized.
    #[serde(default)]
    pub loss: LossConfig,
    /// How it is minimized.
    pub optimizer: OptimizerSection,
    /// How long, and what is done on the way.
    pub training: TrainingSection,
}

/// The section `[model]`. The numbers of channels and classes come from the dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSection {
    /// The network that makes features of the image; nothing lets a U-Net be planned.
    pub backbone: Option<BackboneConfig>,
    /// Limits of a planned U-Net.
    #[serde(default)]
    pub plan: PlanSection,
    /// What is predicted from the features.
    pub head: HeadConfig,
}

/// Limits of a planned U-Net.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlanSection {
    /// The channels of the finest level; they double from level to level.
    pub width: i64,
    /// The most levels.
    pub levels: usize,
}

impl Default for PlanSection {
    fn default() -> Self {
        Self { width: UNetPlan::WIDTH, levels: UNetPlan::LEVELS }
    }
}

/// The section `[optimizer]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptimizerSection {
    /// The learning rate after the warm-up.
    pub learning_rate: f64,
    /// The method with its settings.
    pub method: Method,
    /// How the rate falls.
    #[serde(default)]
    pub decay: Schedule,
    /// How the rate rises in the beginning.
    #[serde(default)]
    pub warmup: Warmup,
}

/// The section `[training]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainingSection {
    /// Steps of the run.
    pub steps: u64,
    /// The seed of first weights, batches, and noise.
    #[serde(default, with = "ssn_data::seed")]
    #[schemars(with = "u64")]
    pub seed: u64,
    /// The precision of the network's numbers; nothing means bfloat16 in the backbone on a GPU, and single precision on
    /// CPUs.
    pub precision: Option<Precision>,
    /// Steps between two rows of `metrics.csv`; each is the mean of the steps since the last.
    #[serde(default = "log_every")]
    pub log_every: u64,
    /// Steps between two checkpoints.
    #[serde(default = "every")]
    pub save_every: u64,
    /// Minutes after which a checkpoint is due even if `save_every` steps are not done.
    #[serde(default = "save_minutes")]
    pub save_minutes: f64,
    /// Steps between two validations; 0 for none.
    #[serde(default = "every")]
    pub validate_every: u64,
    /// Samples per case in a validation.
    #[serde(default = "validation_samples")]
    pub validation_samples: u64,
    /// The most cases of a validation, spread over the validation set; nothing means all.
    pub validation_cases: Option<usize>,
    /// Validations without a better score after which the run ends; nothing means never.
    pub patience: Option<u32>,
    /// The time constant, in steps, of the exponential moving average (EMA) of the weights that validation, checkpoints and
    /// prediction use; at most a ninth of the steps done. 0 turns it off: the last weights are used.
    #[serde(default)]
    pub ema: u64,
    /// Over several ranks: whether batch norm is synchronized.
    #[serde(default)]
    pub sync_batch_norm: SyncBatchNorm,
}

/// Whether batch norm is synchronized where ranks share a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SyncBatchNorm {
    /// If a rank has fewer than 16 items of the batch.
    #[default]
    Auto,
    /// Statistics are those of the whole batch: training does not depend on the number of ranks, which wait for each other
    /// at every layer.
    Always,
    /// Statistics are those of each rank's own items; running statistics are the mean of all ranks.
    Never,
}

impl SyncBatchNorm {
    /// Statistics of so many items are as good as those of more.
    const ENOUGH: usize = 16;

    /// Whether statistics are those of the whole batch.
    pub fn is_synced(self, batch_size: usize, ranks: usize) -> bool {
        match self {
            Self::Auto => batch_size / ranks.max(1) < Self::ENOUGH,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

fn log_every() -> u64 {
    10
}

fn every() -> u64 {
    500
}

fn save_minutes() -> f64 {
    10.0
}

fn validation_samples() -> u64 {
    16
}

impl RunConfig {
    /// Refuses settings outside their ranges.
    pub fn check(&self) -> Result<()> {
        self.data.check()?;
        self.augmentation.check()?;
        self.loss.check()?;
        self.optimizer.method.check()?;
        self.learning_rate()?;
        self.loss.check_steps(self.training.steps)?;
        let TrainingSection { log_every, save_every, save_minutes, validation_samples, .. } = self.training;
        require(log_every > 0, "training.log_every", log_every, "at least 1")?;
        require(save_every > 0, "training.save_every", save_every, "at least 1")?;
        require(save_minutes > 0.0, "training.save_minutes", save_minutes, "above 0")?;
        let samples = validation_samples;
        require((1..=10_000).contains(&samples), "training.validation_samples", samples, "1 to 10000")?;
        let cases = self.training.validation_cases;
        require(cases != Some(0), "training.validation_cases", 0, "at least 1")?;
        require(self.training.patience != Some(0), "training.patience", 0, "at least 1")?;
        let is_whole = self.batches.patch.sampler == PatchSampler::Whole;
        let expected = "center-crop or random with data.crop_to_mask, which leaves images of different sizes";
        require(!(is_whole && self.data.crop_to_mask), "batches.patch.sampler", "whole", expected)?;
        let PlanSection { width, levels } = self.model.plan;
        require((1..=1024).contains(&width), "model.plan.width", width, "1 to 1024")?;
        require((1..=10).contains(&levels), "model.plan.levels", levels, "1 to 10")?;
        let head = self.model.head;
        head.check()?;
        if head.is_latent() {
            let is_one = self.batches.patch.rater != RaterChoice::All;
            let expected = "{ kind = \"random\" } or fixed: a network with latent variables learns from one rater per step";
            require(is_one, "batches.patch.rater", "all", expected)?;
        }
        match &self.model.backbone {
            Some(backbone) => {
                let always = self.training.sync_batch_norm == SyncBatchNorm::Always;
                let can_sync = backbone.plan().can_sync_batch_norm();
                let expected = "\"auto\" or \"never\" with a TorchScript backbone, whose batch norm sees only the items of its rank";
                require(can_sync || !always, "training.sync_batch_norm", "\"always\"", expected)?;
                backbone.plan().check()?;
                Ok(head.check_levels(backbone.unet().map(|unet| unet.widths.len()))?)
            }
            None => Ok(()),
        }
    }

    /// Keys that change nothing beside the others, with the reason.
    pub(super) fn without_effect(&self) -> Vec<(&'static str, String)> {
        const OF_SAMPLES: [&str; 8] = [
            "loss.kind",
            "loss.samples",
            "loss.pairing",
            "loss.likelihood_exponent",
            "loss.similarity",
            "loss.diversity_weight",
            "loss.likelihood_weight",
            "loss.likelihood_steps",
        ];
        let head = self.model.head;
        let mut found: Vec<(&str, String)> = vec![];
        if !matches!(head, HeadConfig::Stochastic(_)) {
            let loss = if head.is_latent() { "the evidence lower bound" } else { "cross-entropy" };
            let reason =
                format!("the head `{}` is trained by {loss}, without samples of logits", head.name());
            found.extend(OF_SAMPLES.map(|key| (key, reason.clone())));
        } else {
            let LossConfig { kind, likelihood_steps, likelihood_weight, .. } = self.loss;
            let has_likelihood =
                kind == LossKind::Likelihood || likelihood_steps > 0 || likelihood_weight > 0.0;
            if kind == LossKind::Likelihood {
                let reason = "loss.kind is \"likelihood\", and this is of the energy loss";
                found
                    .extend(["loss.similarity", "loss.diversity_weight"].map(|key| (key, reason.to_owned())));
            }
            if !has_likelihood {
                let reason =
                    "the energy loss has no likelihood here (likelihood_steps and likelihood_weight are 0)";
                found.push(("loss.likelihood_exponent", reason.to_owned()));
            }
        }
        if self.model.backbone.is_some() {
            let reason = "model.backbone is set, so that no U-Net is planned";
            found.extend(["model.plan.width", "model.plan.levels"].map(|key| (key, reason.to_owned())));
        }
        if self.training.validate_every == 0 {
            let keys = ["training.validation_samples", "training.validation_cases", "training.patience"];
            found.extend(keys.map(|key| (key, "training.validate_every is 0".to_owned())));
        }
        if self.optimizer.warmup.steps == 0 {
            found.push(("optimizer.warmup.start", "optimizer.warmup.steps is 0".to_owned()));
        }
        found
    }

    /// The learning rate of every step.
    pub fn learning_rate(&self) -> Result<LearningRate> {
        let OptimizerSection { learning_rate, decay, warmup, .. } = &self.optimizer;
        LearningRate::new(*learning_rate, decay.clone(), *warmup, self.training.steps)
    }

    /// The size `[d, h, w]` of patches, where it is fixed.
    pub fn patch(&self) -> Option<[usize; 3]> {
        match self.batches.patch.sampler {
            PatchSampler::Whole => None,
            PatchSampler::CenterCrop { size } | PatchSampler::Random { size, .. } => Some(size),
        }
    }

    /// Returns `true` if batch norm has the statistics of whole batches when `ranks` ranks share them.
    pub fn syncs_batch_norm(&self, ranks: usize) -> bool {
        let backbone = self.model.backbone.as_ref();
        backbone.is_none_or(|backbone| backbone.plan().can_sync_batch_norm())
            && self.training.sync_batch_norm.is_synced(self.batches.batch_size, ranks)
    }

    /// The settings of batches, with their random changes.
    pub fn batches(&self) -> BatchConfig {
        BatchConfig { augment: self.augmentation.clone(), ..self.batches.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_are_shared_by_themselves_where_ranks_have_few_items() {
        let is_synced = |ranks| SyncBatchNorm::Auto.is_synced(64, ranks);
        assert!(!is_synced(1) && !is_synced(4) && is_synced(5) && is_synced(64));
        assert!(SyncBatchNorm::Always.is_synced(64, 2) && !SyncBatchNorm::Never.is_synced(2, 2));
    }
}

//! The gradients of the Monte-Carlo loss, against central differences in double precision.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail like the test")]

use proptest::prelude::*;
use ssn_net::{Likelihood, LowRankNormal, Noise, Pairing, monte_carlo_loss};
use tch::{Device, Kind, Tensor};

/// Relative difference allowed between the analytic and the numeric directional derivative.
const TOLERANCE: f64 = 1e-6;
/// Step of the central difference: balances its truncation error (h²) with rounding (1e-16 / h).
const STEP: f64 = 1e-5;

#[derive(Debug, Clone)]
struct Case {
    b: i64,
    c: i64,
    v: i64,
    r: i64,
    draws: i64,
    likelihood: Likelihood,
    pairing: Pairing,
    masked: bool,
    seed: i64,
}

fn cases() -> impl Strategy<Value = Case> {
    let likelihood = prop_oneof![Just(Likelihood::Categorical), Just(Likelihood::Bernoulli)];
    let pairing = prop_oneof![Just(Pairing::Independent), Just(Pairing::Antithetic)];
    let shape = (1..4i64, 1..5i64, 1..30i64, 0..5i64, 1..7i64);
    (shape, likelihood, pairing, any::<bool>(), 0..1_000_000i64).prop_map(
        |((b, c, v, r, draws), likelihood, pairing, masked, seed)| Case {
            b,
            c,
            v,
            r,
            draws,
            likelihood,
            pairing,
            masked,
            seed,
        },
    )
}

/// The largest relative difference over the gradients of mean, log-diagonal and factor.
fn worst_difference(case: &Case) -> f64 {
    let &Case { b, c, v, r, draws, .. } = case;
    // The tensors are tiny: threads would only wait for each other.
    tch::set_num_threads(1);
    tch::manual_seed(case.seed);
    let randn = |shape: &[i64]| Tensor::randn(shape, (Kind::Double, Device::Cpu));
    let parameters = [randn(&[b, c, v]), randn(&[b, c, v]) * 0.5 - 1.0, randn(&[b, r, c, v]) * 0.7]
        .map(|t| t.set_requires_grad(true));
    let noise =
        Noise { rank: randn(&[draws, b, r]), diagonal: randn(&[draws, b, c, v]), pairing: case.pairing };
    let target = match case.likelihood {
        Likelihood::Categorical => Tensor::randint(c, [b, v], (Kind::Int64, Device::Cpu)),
        Likelihood::Bernoulli => Tensor::randint(2, [b, c, v], (Kind::Double, Device::Cpu)),
    };
    let mask = Tensor::randint(2, [b, v], (Kind::Double, Device::Cpu));
    let loss = |p: &[Tensor; 3]| {
        let mut distribution =
            LowRankNormal::from_log_diagonal(p[0].shallow_clone(), &p[1], p[2].shallow_clone()).unwrap();
        if case.masked {
            distribution = distribution.masked(&mask).unwrap();
        }
        monte_carlo_loss(&distribution, &target, &noise, case.likelihood).unwrap().mean(Kind::Double)
    };
    loss(&parameters).backward();

    let mut worst = 0f64;
    for k in 0..3 {
        let gradient = parameters[k].grad();
        if gradient.numel() == 0 {
            continue;
        }
        for _ in 0..3 {
            let direction = randn(&gradient.size());
            let analytic = (&gradient * &direction).sum(Kind::Double).double_value(&[]);
            let shifted = |h: f64| {
                let mut p = [0, 1, 2].map(|i| parameters[i].detach());
                p[k] = &p[k] + &direction * h;
                loss(&p).double_value(&[])
            };
            let numeric = (shifted(STEP) - shifted(-STEP)) / (2.0 * STEP);
            let scale = analytic.abs().max(numeric.abs()).max(gradient.norm().double_value(&[])).max(1e-3);
            worst = worst.max((analytic - numeric).abs() / scale);
        }
    }
    worst
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn gradients_match_central_differences(case in cases()) {
        let worst = worst_difference(&case);
        prop_assert!(worst <= TOLERANCE, "relative difference {worst:e}");
    }
}

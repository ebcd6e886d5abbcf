//! The values by which `ssn.torch` is tested, `crates/ssn-py/tests/losses.json`, are those of the losses here.
//!
//! `SSN_UPDATE_DOCS=1` writes them anew.

use std::path::Path;

use serde_json::{Value, json};
use ssn_nn::loss::{EnergyOptions, Similarity, energy_loss, tempered_loss};
use ssn_nn::{LowRankNormalTensors, Noise, NoiseSource, Pairing, Target};
use tch::{Device, Kind, Tensor};

use crate::common::begin_at_seed;

fn randn(shape: &[i64]) -> Tensor {
    // Few digits, so that the file is short and its numbers are exact.
    (Tensor::randn(shape, (Kind::Double, Device::Cpu)) * 256.0).round() / 256.0
}

fn values(tensor: &Tensor) -> Value {
    let values: Vec<f64> = Vec::try_from(tensor.to_kind(Kind::Double).flatten(0, -1)).unwrap();
    json!({"shape": tensor.size(), "values": values})
}

/// A loss, its value and its gradients. `space` are the axes behind the classes, which the losses here take as one.
fn case(name: &str, space: &[i64], [c, r, n, m]: [i64; 4], options: Value) -> Value {
    let (b, v) = (2, space.iter().product::<i64>());
    let mut parts = [randn(&[b, c, v]), randn(&[b, c, v]).square() + 0.25, randn(&[b, r, c, v])];
    let target = Tensor::randint(c.max(2), [b, n, v], (Kind::Int64, Device::Cpu));
    let noise =
        Noise { rank: randn(&[m, b, r]), diagonal: randn(&[m, b, c, v]), pairing: Pairing::Independent };
    parts.iter_mut().for_each(|part| *part = part.set_requires_grad(true));
    let [mean, diagonal, factor] = parts.each_ref().map(Tensor::shallow_clone);
    let distribution = LowRankNormalTensors::new(mean, diagonal, factor).unwrap();
    let maps = match c {
        1 => Target::binary(target.unsqueeze(2).to_kind(Kind::Double)).unwrap(),
        _ => Target::classes(target.shallow_clone(), c).unwrap(),
    };
    let loss = if options["loss"] == "energy" {
        let similarity = serde_json::from_value::<Similarity>(options["similarity"].clone()).unwrap();
        let options =
            EnergyOptions { similarity, diversity_weight: options["diversity_weight"].as_f64().unwrap() };
        energy_loss(&distribution, &maps, NoiseSource::Given(&noise), options).unwrap()
    } else {
        let exponent = options["exponent"].as_f64().unwrap();
        tempered_loss(&distribution, &maps, NoiseSource::Given(&noise), exponent).unwrap().loss
    };
    loss.sum(Kind::Double).backward();
    let on_space = |tensor: &Tensor| {
        let size = tensor.size();
        values(&tensor.view([&size[..size.len() - 1], space].concat().as_slice()))
    };
    // A factor of rank 0 has none.
    let gradient = |part: &Tensor| {
        let gradient = part.grad();
        on_space(&if gradient.defined() { gradient } else { part.zeros_like() })
    };
    let mut case = json!({
        "name": name,
        "mean": on_space(&parts[0]),
        "diagonal": on_space(&parts[1]),
        "factor": on_space(&parts[2]),
        "gradient_of_mean": gradient(&parts[0]),
        "gradient_of_diagonal": gradient(&parts[1]),
        "gradient_of_factor": gradient(&parts[2]),
        "noise_of_rank": values(&noise.rank),
        "noise_of_voxels": on_space(&noise.diagonal),
        "target": on_space(&target),
        "value": Vec::<f64>::try_from(loss.detach()).unwrap(),
    });
    case.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    case
}

#[test]
fn the_values_for_python_are_those_of_the_losses() {
    let _alone = begin_at_seed(5);
    let likelihood = |exponent: f64| json!({"loss": "likelihood", "exponent": exponent});
    let energy = |similarity: &str, weight: f64| json!({"loss": "energy", "similarity": similarity, "diversity_weight": weight});
    let cases = json!([
        case("likelihood of one rater", &[3, 4], [3, 2, 1, 5], likelihood(1.0)),
        case("tempered likelihood of three raters", &[2, 2, 3], [2, 1, 3, 4], likelihood(0.25)),
        case("likelihood of a single class", &[3, 3], [1, 2, 2, 4], likelihood(1.0)),
        case("independent logits", &[5], [2, 0, 1, 3], likelihood(1.0)),
        case("energy", &[3, 4], [3, 2, 4, 5], energy("tanimoto", 1.0)),
        case("energy by Dice", &[2, 2, 2], [2, 3, 2, 4], energy("dice", 0.5)),
        case("energy of a single class", &[3, 3], [1, 2, 3, 4], energy("tanimoto", 1.0)),
    ]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ssn-py/tests/losses.json");
    if std::env::var_os("SSN_UPDATE_DOCS").is_some() {
        std::fs::write(&path, cases.to_string() + "\n").unwrap();
    }
    let stored: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    compare(&stored, &cases);
}

/// The same, but for the last digits of sums.
fn compare(stored: &Value, found: &Value) {
    match (stored, found) {
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).for_each(|(a, b)| compare(a, b));
        }
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{:?} and {:?}", a.keys(), b.keys());
            a.values().zip(b.values()).for_each(|(a, b)| compare(a, b));
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= 1e-10 * (1.0 + a.abs()), "{a} and {b}");
        }
        _ => assert_eq!(stored, found),
    }
}

//! Scores of label maps in memory.

use numpy::PyReadonlyArrayDyn;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use ssn_core::LabelMap;
use ssn_eval::scores::{CaseValues, observations};
use ssn_eval::{CaseMaps, ScoreConfig, score_maps};

use crate::convert::{exception, not_a_slice};
use crate::work;

/// The scores of samples and a prediction against raters, as a JSON list of [`CaseValues`].
///
/// # Shapes
/// `samples` `[m, d, h, w]`, `raters` `[n, d, h, w]`, `prediction` `[d, h, w]`, `probabilities` `[c, d, h, w]`. `options` are
/// fields of [`ScoreConfig`] that are not the default, as a JSON object.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "called by keywords from one place")]
pub fn score(
    py: Python<'_>,
    samples: PyReadonlyArrayDyn<'_, u8>,
    raters: PyReadonlyArrayDyn<'_, u8>,
    prediction: Option<PyReadonlyArrayDyn<'_, u8>>,
    probabilities: Option<PyReadonlyArrayDyn<'_, f32>>,
    classes: Vec<String>,
    size: [usize; 3],
    spacing: Option<[f64; 3]>,
    options: &str,
) -> PyResult<String> {
    let config = config(options).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let voxels: usize = size.iter().product();
    let count = classes.len();
    let maps = |labels: &PyReadonlyArrayDyn<'_, u8>| -> PyResult<Vec<LabelMap>> {
        let maps = labels.as_slice().map_err(not_a_slice)?.chunks_exact(voxels);
        let maps = maps.map(|map| LabelMap::new(map.to_vec(), count));
        maps.collect::<Result<_, _>>().map_err(|error| exception(error.into()))
    };
    let (samples, raters) = (maps(&samples)?, maps(&raters)?);
    let prediction = prediction.as_ref().map(maps).transpose()?.and_then(|mut maps| maps.pop());
    let probabilities = probabilities.as_ref().map(|rows| rows.as_slice().map(<[f32]>::to_vec));
    let probabilities = probabilities.transpose().map_err(not_a_slice)?;
    let scores = work::run(py, move |_| {
        let maps = CaseMaps {
            case: "in memory",
            classes: &classes,
            size,
            spacing,
            prediction: prediction.as_ref(),
            samples: &samples,
            probabilities: probabilities.as_deref(),
        };
        score_maps(&maps, &raters, &config)
    })?;
    let figure = |row: &CaseValues| {
        let CaseValues { key, title, group, unit, per_rater, values, .. } = row;
        json!({"key": key, "score": row.score().map(|score| score.key), "title": title, "group": group, "unit": unit, "per_rater": per_rater, "values": values})
    };
    Ok(Value::from_iter(observations(&scores.map_err(exception)?).iter().map(figure)).to_string())
}

/// The default settings with some fields replaced.
fn config(options: &str) -> serde_json::Result<ScoreConfig> {
    let mut config = serde_json::to_value(ScoreConfig::default())?;
    let options: Map<String, Value> = serde_json::from_str(options)?;
    for (key, value) in options {
        config[key] = value;
    }
    serde_json::from_value(config)
}

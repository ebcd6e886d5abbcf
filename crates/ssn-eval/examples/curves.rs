//! Draws the losses of runs into one figure: `curves OUT.png TITLE NAME=metrics.csv …`; several files may share a name.

use std::error::Error;
use std::fs;

use ssn_eval::figures::{Axes, Curve, curves_figure, png_from_svg};
use ssn_eval::metrics_file::MetricsTable;

/// Rows of `metrics.csv` of which the mean is shown.
const ROWS: usize = 5;

/// `(step, loss)`, the mean over some rows.
fn losses(path: &str) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    let table = MetricsTable::parse(&fs::read_to_string(path)?)?;
    if let Some(damage) = table.damage() {
        eprintln!("{path}: {damage}");
    }
    let loss = table.columns.iter().position(|column| column == "loss").ok_or("there is no loss")?;
    let rows: Vec<(f64, f64)> = table.rows.iter().filter_map(|row| Some((row[0]?, row[loss]?))).collect();
    let mean = |rows: &[(f64, f64)]| {
        let count = rows.len() as f64;
        (rows.iter().map(|row| row.0).sum::<f64>() / count, rows.iter().map(|row| row.1).sum::<f64>() / count)
    };
    Ok(rows.chunks(ROWS).map(mean).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, title, runs @ ..] = arguments.as_slice() else {
        return Err("curves OUT.png TITLE NAME=metrics.csv …".into());
    };
    let mut curves = vec![];
    for run in runs {
        let (name, path) = run.split_once('=').ok_or("every run is NAME=metrics.csv")?;
        curves.push(Curve { name: name.to_owned(), points: losses(path)? });
    }
    let axes = Axes { title, x: "step", x_end: 0.0, y: "loss", logarithmic: true };
    fs::write(out, png_from_svg(&curves_figure(axes, &curves, &[]), 2.0)?)?;
    Ok(())
}

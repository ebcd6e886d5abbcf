//! The paper's toy problem: a diagonal and a low-rank distribution learn two equally probable label maps.
//!
//! Run with `cargo run --release --package ssn --example toy_problem -- 20000`; the number is that of the training steps.

use ssn::prelude::*;
use ssn::{ToyProblem, solve_toy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = std::env::args().nth(1).map_or(Ok(20_000), |text| text.parse())?;
    ssn::training::warm_up_vector_math();
    let problem = ToyProblem {
        steps,
        pretrain: steps / 4,
        overwrite: true,
        ..ToyProblem::new(std::env::temp_dir().join("ssn-toy"))
    };
    // Progress comes as events; here only what is being worked on is shown, now and then.
    let show = |event: Progress<'_>| {
        if let Progress::Done { done, .. } = event
            && done % 5_000 == 0
        {
            eprintln!("{done} steps");
        }
    };
    let solution = solve_toy(&problem, Control { progress: &show, ..Control::default() })?;
    print!("{}", solution.table);
    println!("{}", solution.figure.display());
    Ok(())
}

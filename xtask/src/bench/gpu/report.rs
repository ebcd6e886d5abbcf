//! What the benchmark of a GPU prints: the table of all ways, and which bars and goals are reached.

use std::fmt::Write;

const MEBIBYTE: f64 = 1_048_576.0;

/// How a training step is computed, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    EagerF32,
    EagerBf16,
    GraphBf16,
    OursF32,
    OursBf16,
}

impl Way {
    pub const ALL: [Self; 5] =
        [Self::EagerF32, Self::EagerBf16, Self::GraphBf16, Self::OursF32, Self::OursBf16];
    /// PyTorch's.
    const PEERS: [Self; 3] = [Self::EagerF32, Self::EagerBf16, Self::GraphBf16];

    fn words(self) -> &'static str {
        match self {
            Self::EagerF32 => "PyTorch eager, f32",
            Self::EagerBf16 => "PyTorch eager, channels last, bf16",
            Self::GraphBf16 => "PyTorch CUDA graph, bf16",
            Self::OursF32 => "ours, f32",
            Self::OursBf16 => "ours, bf16",
        }
    }
}

/// What was measured of one way; what is missing is NaN, which shows and reaches nothing.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    pub seconds: f64,
    pub peak_bytes: f64,
}

/// How many times as fast we must be, and want to be.
#[derive(Debug, Clone, Copy)]
pub struct Aim {
    pub bar: f64,
    pub goal: f64,
}

/// All ways to take a step of one network.
#[derive(Debug)]
pub struct Comparison {
    pub words: &'static str,
    /// In the order of [`Way::ALL`].
    pub figures: [Figures; Way::ALL.len()],
    /// Aims of our bfloat16 over eager PyTorch in single precision.
    pub eager_aim: Aim,
    /// Aims of our bfloat16 over the fastest of PyTorch's ways.
    pub best_aim: Aim,
}

impl Comparison {
    fn seconds(&self, way: Way) -> f64 {
        self.figures[way as usize].seconds
    }

    /// How many times as fast as eager PyTorch in single precision.
    fn over_eager(&self, way: Way) -> f64 {
        self.seconds(Way::EagerF32) / self.seconds(way)
    }

    /// How many times as fast as the fastest of PyTorch's ways, which is unknown if one of them is.
    fn over_best(&self, way: Way) -> f64 {
        let peers = Way::PEERS.map(|peer| self.seconds(peer));
        let best = peers.into_iter().reduce(|a, b| if a.is_nan() || a < b { a } else { b });
        best.unwrap_or(f64::NAN) / self.seconds(way)
    }
}

/// A row for every network and way.
pub fn table(comparisons: &[Comparison]) -> String {
    let mut text = format!(
        "{:<36} {:>12} {:>16} {:>20} {:>10}\n",
        "", "ms per step", "over eager f32", "over PyTorch's best", "peak MiB"
    );
    for comparison in comparisons {
        let _ = writeln!(text, "{}", comparison.words);
        for (way, figures) in Way::ALL.into_iter().zip(&comparison.figures) {
            let _ = writeln!(
                text,
                "  {:<34} {:>12.2} {:>14.2} × {:>18.2} × {:>10.0}",
                way.words(),
                1e3 * figures.seconds,
                comparison.over_eager(way),
                comparison.over_best(way),
                figures.peak_bytes / MEBIBYTE
            );
        }
    }
    text
}

/// A line for every aim and one for all of them; whether every bar is reached.
pub fn verdict(comparisons: &[Comparison]) -> (String, bool) {
    let (mut text, mut bars, mut goals) = (String::new(), true, true);
    for comparison in comparisons {
        for (peer, ratio, Aim { bar, goal }) in [
            ("PyTorch eager f32", comparison.over_eager(Way::OursBf16), comparison.eager_aim),
            ("PyTorch's best", comparison.over_best(Way::OursBf16), comparison.best_aim),
        ] {
            let _ = writeln!(
                text,
                "{}: ours bf16 over {peer} {ratio:.2} ×; the bar is {bar} ×: {}; the goal is {goal} ×: {}",
                comparison.words,
                reached(ratio >= bar),
                reached(ratio >= goal)
            );
            bars &= ratio >= bar;
            goals &= ratio >= goal;
        }
    }
    let _ = writeln!(text, "\n{}", if bars { "every bar is reached" } else { "a bar is NOT reached" });
    let _ = writeln!(text, "{}", if goals { "every goal is reached" } else { "a goal is NOT reached" });
    (text, bars)
}

fn reached(is_reached: bool) -> &'static str {
    if is_reached { "reached" } else { "NOT reached" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A comparison in which the ways take so many milliseconds.
    fn comparison(milliseconds: [f64; 5]) -> Comparison {
        Comparison {
            words: "U-Net",
            figures: milliseconds.map(|ms| Figures { seconds: 1e-3 * ms, peak_bytes: 3.0 * MEBIBYTE }),
            eager_aim: Aim { bar: 2.5, goal: 4.0 },
            best_aim: Aim { bar: 1.0, goal: 1.5 },
        }
    }

    #[test]
    fn the_order_of_the_ways_is_that_of_the_figures() {
        assert!(Way::ALL.into_iter().enumerate().all(|(place, way)| way as usize == place));
    }

    #[test]
    fn a_row_shows_milliseconds_ratios_and_memory() {
        let table = table(&[comparison([40.0, 25.0, 20.0, 30.0, 10.0])]);
        let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2][3..], ["40.00", "1.00", "×", "0.50", "×", "3"]);
        assert_eq!(rows[6], ["ours,", "bf16", "10.00", "4.00", "×", "2.00", "×", "3"]);
        let widths: Vec<_> = table.lines().map(|line| line.chars().count()).collect();
        assert!(widths[2..].iter().all(|width| *width == widths[0]), "{table}");
    }

    #[test]
    fn the_best_is_the_fastest_of_pytorchs_ways() {
        assert_eq!(comparison([40.0, 25.0, 20.0, 1.0, 10.0]).over_best(Way::OursBf16), 2.0);
        assert_eq!(comparison([40.0, 20.0, 25.0, 1.0, 10.0]).over_best(Way::OursBf16), 2.0);
    }

    #[test]
    fn bars_decide_and_goals_are_told() {
        let (lines, reached) = verdict(&[comparison([40.0, 25.0, 20.0, 30.0, 10.0])]);
        assert!(reached && !lines.contains("NOT") && lines.ends_with("every goal is reached\n"), "{lines}");

        let (lines, reached) = verdict(&[comparison([30.0, 15.0, 12.0, 30.0, 10.0])]);
        assert!(reached && lines.contains("bar is 2.5 ×: reached; the goal is 4 ×: NOT reached"), "{lines}");
        assert!(lines.ends_with("every bar is reached\na goal is NOT reached\n"), "{lines}");

        let (lines, reached) = verdict(&[comparison([30.0, 15.0, 9.0, 30.0, 10.0])]);
        assert!(!reached && lines.contains("PyTorch's best 0.90 ×; the bar is 1 ×: NOT reached"), "{lines}");
    }

    #[test]
    fn a_missing_number_reaches_nothing() {
        for missing in [0, 2, 4] {
            let mut milliseconds = [40.0, 25.0, 20.0, 30.0, 1.0];
            milliseconds[missing] = f64::NAN;
            let (lines, reached) = verdict(&[comparison(milliseconds)]);
            assert!(!reached && lines.contains("NaN"), "{lines}");
        }
    }
}

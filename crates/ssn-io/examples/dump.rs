//! Prints what the NIfTI reader makes of files, for comparison with other readers.
//!
//! Reads paths from the standard input, one file to a line, or header and data of a pair with a tab between. For
//! each it prints one line: `read`, the shape `c d h w`, the twelve numbers of the affine, the CRC-32 of the scaled
//! values as little-endian doubles, and the seconds it took to get them; or `refused: ` and the reason. All zeros
//! are positive and all that is not a number is the same bits in the checksum.

use std::io::{self, BufRead, Write};
use std::time::Instant;

use flate2::Crc;
use ssn_io::formats::nifti;
use ssn_io::{Image, Limits, Problem};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let start = Instant::now();
        let read = read(&line).map(|image| (image.voxels.scaled_f64(image.slope, image.intercept), image));
        let seconds = start.elapsed().as_secs_f64();
        match read {
            Ok((values, image)) => {
                let [c, d, h, w] = image.shape;
                write!(out, "read {c} {d} {h} {w}")?;
                for number in image.geometry.affine().as_flattened() {
                    write!(out, " {number:e}")?;
                }
                writeln!(out, " {} {seconds:.6}", check_sum(&values))?;
            }
            Err(problem) => writeln!(out, "refused: {}", problem.to_string().replace('\n', " "))?,
        }
    }
    Ok(())
}

fn read(line: &str) -> Result<Image, Problem> {
    let limits = Limits::default();
    match line.split_once('\t') {
        Some((header, data)) => nifti::parse_pair(&std::fs::read(header)?, &std::fs::read(data)?, &limits),
        None => nifti::parse(&std::fs::read(line)?, &limits),
    }
}

fn check_sum(values: &[f64]) -> u32 {
    let mut crc = Crc::new();
    for part in values.chunks(1 << 13) {
        let bytes: Vec<u8> =
            part.iter().flat_map(|&x| if x.is_nan() { f64::NAN } else { x + 0.0 }.to_le_bytes()).collect();
        crc.update(&bytes);
    }
    crc.sum()
}

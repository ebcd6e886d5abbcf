//! Parsers of the values of arguments.

use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use ssn_core::sampling::MAX_WEIGHT;

pub(crate) fn bin_count(text: &str) -> Result<usize, String> {
    whole_number(text, 1..=65_536, 15)
}

/// Reads the number of cases with pictures.
pub(crate) fn pictured_cases(text: &str) -> Result<usize, String> {
    whole_number(text, 0..=1000, 6)
}

/// Reads the number of samples in figures.
pub(crate) fn shown_samples(text: &str) -> Result<usize, String> {
    whole_number(text, 2..=1000, 20)
}

fn whole_number(text: &str, range: RangeInclusive<usize>, example: usize) -> Result<usize, String> {
    let expected =
        || format!("expected a whole number from {} to {}, such as {example}", range.start(), range.end());
    text.trim().parse().ok().filter(|n| range.contains(n)).ok_or_else(expected)
}

pub(crate) fn tolerance(text: &str) -> Result<f64, String> {
    let value = text.trim().parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0);
    value.ok_or_else(|| "expected millimeters, 0 or more, such as 2".to_owned())
}

/// Whole numbers of a range.
pub(crate) fn count(range: RangeInclusive<u32>) -> RangedI64ValueParser<usize> {
    RangedI64ValueParser::new().range(i64::from(*range.start())..=i64::from(*range.end()))
}

pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0);
    value.ok_or_else(|| "expected a positive number, such as 0.001".to_owned())
}

pub(crate) fn minutes(text: &str) -> Result<Duration, String> {
    // A limit beyond all time is none.
    Ok(Duration::try_from_secs_f64(60.0 * positive(text)?).unwrap_or(Duration::MAX))
}

pub(crate) fn tile(text: &str) -> Result<[usize; 3], String> {
    let numbers: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
    let tile = numbers.ok().and_then(|numbers| numbers.try_into().ok());
    tile.ok_or_else(|| "expected three whole numbers, such as 64,64,64".to_owned())
}

pub(crate) fn name(text: &str) -> Result<String, Infallible> {
    Ok(text.trim().to_owned())
}

pub(crate) fn weight(text: &str) -> Result<f32, String> {
    let value = text.trim().parse().ok().filter(|x: &f32| x.abs() <= MAX_WEIGHT);
    value.ok_or_else(|| "expected a number between -1e6 and 1e6, such as 1.5".to_owned())
}

pub(crate) fn named_weight(text: &str) -> Result<(String, f32), String> {
    let (name, value) = text.rsplit_once('=').ok_or("expected NAME=X, such as oedema=2")?;
    Ok((name.trim().to_owned(), weight(value)?))
}

pub(crate) fn numbered_weight(text: &str) -> Result<(usize, f32), String> {
    let (number, value) = text.split_once('=').ok_or("expected K=X, such as 0=2")?;
    let number = number.trim().parse().map_err(|_| "expected K=X with a whole number K, such as 0=2")?;
    Ok((number, weight(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_a_form_and_a_range() {
        assert_eq!(named_weight("a=b=-2"), Ok(("a=b".to_owned(), -2.0)));
        assert_eq!(numbered_weight("3 = 0.5"), Ok((3, 0.5)));
        for wrong in ["x", "1e7", "nan", "inf", ""] {
            assert!(weight(wrong).is_err(), "{wrong}");
        }
        assert!(named_weight("a").is_err() && numbered_weight("a=1").is_err());
        assert_eq!((pictured_cases("0"), shown_samples(" 2")), (Ok(0), Ok(2)));
        assert!(
            pictured_cases("1001").is_err() && shown_samples("1").is_err() && shown_samples("x").is_err()
        );
        assert!(bin_count("x").is_err() && tolerance("-1").is_err());
        assert_eq!((tile("1,2,3"), minutes("0.5")), (Ok([1, 2, 3]), Ok(Duration::from_secs(30))));
        assert!(["1,2", "1,2,x", ""].iter().all(|wrong| tile(wrong).is_err()));
        assert!(minutes("1e300").is_ok() && ["0", "-1", "nan", "x"].iter().all(|x| positive(x).is_err()));
    }
}

//! Where a network computes.

use std::fmt;
use std::str::FromStr;

/// A choice of the CPU or a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The first GPU if there is one that can be used, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU, counted from 0.
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let gpu = |number: &str| number.parse::<u8>().ok().map(|number| Self::Cuda(number.into()));
        let choice = match text {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            _ => text.strip_prefix("cuda:").and_then(gpu),
        };
        choice.ok_or_else(|| "it must be auto, cpu, cuda, or cuda:1 for the second GPU".to_owned())
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_they_are_shown() {
        for choice in [DeviceChoice::Auto, DeviceChoice::Cpu, DeviceChoice::Cuda(0), DeviceChoice::Cuda(3)] {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        for wrong in ["gpu", "cuda:", "cuda:x", "cpu:0", "", "cuda:-1", "cuda:999"] {
            assert!(wrong.parse::<DeviceChoice>().is_err(), "{wrong}");
        }
    }
}

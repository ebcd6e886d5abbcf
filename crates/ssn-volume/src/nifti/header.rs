//! What a header means, checked.

use super::fields::Fields;
use super::forms;
use super::layout::Version;
use super::shape::Shape;
use crate::error::Problem;
use crate::geometry::Geometry;
use crate::voxels::VoxelType;

/// The bytes after the header that say whether extensions follow.
pub(super) const EXTENSION_FLAG: usize = 4;

/// Whether header and data share a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Single,
    Pair,
}

/// A header in which everything that matters for the values and their place is allowed.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub fields: Fields,
    pub shape: Shape,
    pub kind: VoxelType,
    /// Where the data starts in its file.
    pub data_offset: u64,
    pub slope: f64,
    pub intercept: f64,
    pub geometry: Geometry,
}

impl Header {
    /// The header at the start of bytes.
    pub fn read(bytes: &[u8], container: Container) -> Result<Self, Problem> {
        let fields = Fields::read(bytes)?;
        check_magic(&fields, container)?;
        let shape = Shape::read(&fields)?;
        let kind = kind(&fields)?;
        let data_offset = data_offset(&fields, container)?;
        let (slope, intercept) = scaling(&fields)?;
        let geometry = forms::read(&fields, &shape)?;
        Ok(Self { fields, shape, kind, data_offset, slope, intercept, geometry })
    }

    /// A header kept with an image, whichever kind of file it came from.
    pub fn of_source(bytes: &[u8]) -> Result<Self, Problem> {
        Self::read(bytes, Container::Single).or_else(|problem| {
            let pair = Self::read(bytes, Container::Pair);
            pair.map_err(|_| problem)
        })
    }
}

fn check_magic(fields: &Fields, container: Container) -> Result<(), Problem> {
    let layout = fields.layout();
    let (expected, allowed) = match container {
        Container::Single => {
            (layout.magic_single, "that of a single file: `n+1` or, intact to the end, `n+2`")
        }
        Container::Pair => (layout.magic_pair, "that of a pair: `ni1` or, intact to the end, `ni2`"),
    };
    let found = fields.text(layout.magic);
    if found == expected {
        return Ok(());
    }
    if found.iter().all(|&byte| byte == 0) {
        return Err(Problem::Unsupported {
            what: "a header without the magic of NIfTI, such as that of Analyze 7.5,".into(),
            advice: "convert the image to NIfTI: Analyze does not say which side is left",
        });
    }
    let advice = "give the file or files that belong to this header, or export the image again";
    let found = format!("\"{}\"", found.escape_ascii());
    Err(Problem::Field { field: "magic", found, allowed, advice })
}

fn kind(fields: &Fields) -> Result<VoxelType, Problem> {
    let layout = fields.layout();
    let code = fields.integer(layout.datatype, 0);
    let kind = match code {
        2 => VoxelType::U8,
        4 => VoxelType::I16,
        8 => VoxelType::I32,
        16 => VoxelType::F32,
        64 => VoxelType::F64,
        256 => VoxelType::I8,
        512 => VoxelType::U16,
        768 => VoxelType::U32,
        1024 => VoxelType::I64,
        1280 => VoxelType::U64,
        _ => {
            let name = match code {
                1 => "single bits",
                32 | 1792 | 2048 => "complex numbers",
                128 | 2304 => "colours",
                1536 => "numbers of 128 bits",
                _ => "an unknown type",
            };
            return Err(Problem::Unsupported {
                what: format!("datatype {code} ({name})"),
                advice: "convert the image to whole or real numbers of 8 to 64 bits",
            });
        }
    };
    let bits = fields.integer(layout.bitpix, 0);
    if bits == 8 * kind.bytes() as i64 {
        return Ok(kind);
    }
    Err(Problem::Field {
        field: "bitpix",
        found: format!("{bits} with datatype {code} ({kind:?})"),
        allowed: "the number of bits of the datatype",
        advice: "one of the two is wrong and the values cannot be told: export the image again",
    })
}

/// The code of a type in the field `datatype`.
pub(super) fn datatype(kind: VoxelType) -> i64 {
    match kind {
        VoxelType::U8 => 2,
        VoxelType::I16 => 4,
        VoxelType::I32 => 8,
        VoxelType::F32 => 16,
        VoxelType::F64 => 64,
        VoxelType::I8 => 256,
        VoxelType::U16 => 512,
        VoxelType::U32 => 768,
        VoxelType::I64 => 1024,
        VoxelType::U64 => 1280,
    }
}

fn data_offset(fields: &Fields, container: Container) -> Result<u64, Problem> {
    let layout = fields.layout();
    let found = fields.float(layout.vox_offset, 0);
    let (least, allowed) = match (container, fields.version) {
        (Container::Pair, _) => (0, "a whole number from 0"),
        (Container::Single, Version::One) => (layout.bytes + EXTENSION_FLAG, "a whole number from 352"),
        (Container::Single, Version::Two) => (layout.bytes + EXTENSION_FLAG, "a whole number from 544"),
    };
    let exact = fields.integer(layout.vox_offset, 0);
    let whole = found.is_finite() && found.fract() == 0.0 && exact >= least as i64;
    whole.then_some(exact as u64).ok_or_else(|| Problem::Field {
        field: "vox_offset",
        found: found.to_string(),
        allowed,
        advice: "where the data starts cannot be told: export the image again",
    })
}

fn scaling(fields: &Fields) -> Result<(f64, f64), Problem> {
    let layout = fields.layout();
    let (slope, intercept) = (fields.float(layout.scl_slope, 0), fields.float(layout.scl_inter, 0));
    if slope == 0.0 || !slope.is_finite() {
        return Ok((1.0, 0.0));
    }
    if intercept.is_finite() {
        return Ok((slope, intercept));
    }
    Err(Problem::Field {
        field: "scl_inter",
        found: format!("{intercept} with scl_slope {slope}"),
        allowed: "finite, or scl_slope 0 for values as stored",
        advice: "what the values mean cannot be told: export the image again",
    })
}

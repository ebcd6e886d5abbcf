//! From an image to bytes, in little-endian order and without extensions.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::fields::Fields;
use super::forms;
use super::header::{Container, EXTENSION_FLAG, Header, datatype};
use super::layout::Version;
use super::shape::Shape;
use crate::error::Problem;
use crate::geometry::Tolerance;
use crate::volume::{Image, Source};

/// The level for [`encode_gz`] when there is no reason for another: label maps become small at any level.
pub const DEFAULT_GZIP_LEVEL: u32 = 1;

const BEST_GZIP_LEVEL: u32 = 9;

impl Version {
    /// The version to write an image in: that of the file it came from, else NIfTI-1 where it fits.
    pub fn for_image(image: &Image) -> Self {
        let largest = i16::MAX as usize;
        match &image.source {
            Source::Nifti(bytes) if bytes.len() == Self::Two.layout().bytes => Self::Two,
            _ if image.shape.iter().any(|&n| n > largest) => Self::Two,
            _ => Self::One,
        }
    }
}

/// The bytes of a single file (`.nii`).
///
/// An image that came from a file of the same version keeps the bits of its geometry, units and description, as
/// long as these still say what `image.geometry` says; otherwise the geometry is written afresh. Channels are
/// written as points in time, and as components of a vector if the source had them so.
pub fn encode(image: &Image, version: Version) -> Result<Vec<u8>, Problem> {
    check_length(image)?;
    let header = header(image, version)?;
    let mut bytes = header.into_bytes();
    bytes.extend_from_slice(&[0; EXTENSION_FLAG]);
    bytes.extend_from_slice(&image.voxels.to_le_bytes());
    Ok(bytes)
}

/// The bytes of a gzipped single file (`.nii.gz`); `level` is 0 to 9, see [`DEFAULT_GZIP_LEVEL`].
pub fn encode_gz(image: &Image, version: Version, level: u32) -> Result<Vec<u8>, Problem> {
    if level > BEST_GZIP_LEVEL {
        return Err(Problem::Field {
            field: "the level of compression",
            found: level.to_string(),
            allowed: "0 to 9",
            advice: "use 1 for speed",
        });
    }
    let mut encoder = GzEncoder::new(vec![], Compression::new(level));
    encoder.write_all(&encode(image, version)?)?;
    Ok(encoder.finish()?)
}

fn check_length(image: &Image) -> Result<(), Problem> {
    let needed = image.shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    if needed == Some(image.voxels.len()) {
        return Ok(());
    }
    Err(Problem::Field {
        field: "the number of values",
        found: image.voxels.len().to_string(),
        allowed: "what the shape asks for",
        advice: "give the image the shape of its values",
    })
}

fn header(image: &Image, version: Version) -> Result<Fields, Problem> {
    let source = match &image.source {
        Source::Nifti(bytes) => Some(Header::of_source(bytes)?),
        Source::Other => None,
    };
    let source = source.as_ref();
    let mut fields = Fields::empty(version);
    let layout = version.layout();
    let shape = Shape {
        values: image.shape,
        axes: source.map_or(3, |source| source.shape.axes),
        vector: image.shape[0] > 1 && source.is_some_and(|source| source.shape.vector),
    };
    shape.write(&mut fields)?;
    fields.put_text(layout.magic, layout.magic_single);
    fields.put_integer(layout.vox_offset, 0, (layout.bytes + EXTENSION_FLAG) as i64);
    fields.put_integer(layout.datatype, 0, datatype(image.voxels.kind()));
    fields.put_integer(layout.bitpix, 0, 8 * image.voxels.kind().bytes() as i64);
    fields.put_float(layout.scl_slope, 0, image.slope);
    fields.put_float(layout.scl_inter, 0, image.intercept);

    if let Some(source) = source.filter(|source| source.fields.version == version) {
        let mut same = fields.clone();
        let kept = [layout.pixdim, layout.xyzt_units, layout.descrip, layout.qform_code, layout.sform_code];
        let forms = [layout.quatern, layout.qoffset, layout.srow];
        kept.into_iter().chain(forms).for_each(|field| same.copy(field, &source.fields));
        if written(&same).is_ok_and(|header| header.geometry == image.geometry) {
            return check_scaling(same, image);
        }
    }
    forms::write(&mut fields, &image.geometry);
    check_geometry(&fields, image)?;
    check_scaling(fields, image)
}

/// What a reader makes of the header.
fn written(fields: &Fields) -> Result<Header, Problem> {
    Header::read(&fields.clone().into_bytes(), Container::Single)
}

fn check_geometry(fields: &Fields, image: &Image) -> Result<(), Problem> {
    match image.geometry.differences(&written(fields)?.geometry, Tolerance::default()) {
        None => Ok(()),
        Some(differences) => Err(Problem::Field {
            field: "the geometry",
            found: format!("rounded in the header:\n{differences}"),
            allowed: "what the header's precision can hold",
            advice: "write the image as NIfTI-2",
        }),
    }
}

fn check_scaling(fields: Fields, image: &Image) -> Result<Fields, Problem> {
    let back = written(&fields)?;
    if (back.slope, back.intercept) == (image.slope, image.intercept) {
        return Ok(fields);
    }
    Err(Problem::Field {
        field: "slope and intercept",
        found: format!("{} and {}", image.slope, image.intercept),
        allowed: "finite, not 0, and in single precision for NIfTI-1",
        advice: "write the image as NIfTI-2, or apply the scaling first",
    })
}

//! Files by their names: images are read and written in the format that the extension says.

pub mod dicom;
pub mod gzip;
#[cfg(feature = "hdf5")]
pub mod hdf5;
pub mod metaimage;
pub mod nifti;
pub mod npy;
pub mod nrrd;
pub mod pickle;
pub mod raster;
pub mod seg_nrrd;
mod text_header;
pub mod torch_file;

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::atomic::write_atomically;
use crate::formats::seg_nrrd::Segment;
use crate::limits::{Limits, check_left};
use crate::open::open_file;
use crate::problem::{FileError, Problem};
use crate::volume::Image;

/// A format, as the name of a file tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.nii`
    Nifti,
    /// `.nii.gz`
    NiftiGz,
    /// `.hdr` with `.img`, each possibly with `.gz`; either name serves.
    NiftiPair,
    /// `.nrrd`
    Nrrd,
    /// `.seg.nrrd` of 3D Slicer: a label map with names.
    SegNrrd,
    /// `.nhdr`, which names its data file.
    NrrdHeader,
    /// `.mha`
    MetaImage,
    /// `.mhd`, which names its data file.
    MetaImageHeader,
    /// `.png`
    Png,
    /// `.jpg`, `.jpeg`
    Jpeg,
    /// `.tif`, `.tiff`
    Tiff,
    /// `.npy`
    Npy,
    /// `.dcm`, `.ima`: one slice. A folder of slices, whatever their names, is an image for [`read`] as well.
    Dicom,
}

/// The endings of names, the longer ones first.
const ENDINGS: [(&str, Format); 19] = [
    (".nii.gz", Format::NiftiGz),
    (".hdr.gz", Format::NiftiPair),
    (".img.gz", Format::NiftiPair),
    (".nii", Format::Nifti),
    (".hdr", Format::NiftiPair),
    (".img", Format::NiftiPair),
    (".seg.nrrd", Format::SegNrrd),
    (".nrrd", Format::Nrrd),
    (".nhdr", Format::NrrdHeader),
    (".mha", Format::MetaImage),
    (".mhd", Format::MetaImageHeader),
    (".png", Format::Png),
    (".jpg", Format::Jpeg),
    (".jpeg", Format::Jpeg),
    (".tif", Format::Tiff),
    (".tiff", Format::Tiff),
    (".npy", Format::Npy),
    (".dcm", Format::Dicom),
    (".ima", Format::Dicom),
];

impl Format {
    /// The format of a file, from its name; upper and lower case are the same.
    pub fn of(path: &Path) -> Result<Self, Problem> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let found = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        found.map(|&(_, format)| format).ok_or_else(|| Problem::Unsupported {
            what: format!("the format of {name:?}"),
            advice: "images are .nii, .nii.gz, .hdr/.img, .nrrd, .nhdr, .mha, .mhd, .png, .jpg, .tif or .npy, or folders of DICOM files",
        })
    }
}

impl Format {
    /// Returns `true` for formats of pictures, whose values may be colors.
    pub fn is_picture(self) -> bool {
        match self {
            Self::Png | Self::Jpeg | Self::Tiff => true,
            Self::Nifti
            | Self::NiftiGz
            | Self::NiftiPair
            | Self::Nrrd
            | Self::SegNrrd
            | Self::NrrdHeader
            | Self::MetaImage
            | Self::MetaImageHeader
            | Self::Npy
            | Self::Dicom => false,
        }
    }

    /// Returns `true` for formats that do not store values exactly.
    pub fn is_lossy(self) -> bool {
        match self {
            Self::Jpeg => true,
            Self::Png
            | Self::Tiff
            | Self::Nifti
            | Self::NiftiGz
            | Self::NiftiPair
            | Self::Nrrd
            | Self::SegNrrd
            | Self::NrrdHeader
            | Self::MetaImage
            | Self::MetaImageHeader
            | Self::Npy
            | Self::Dicom => false,
        }
    }

    /// Returns `true` for formats that store where voxels are.
    pub fn has_geometry(self) -> bool {
        !self.is_picture() && self != Self::Npy
    }
}

/// Reads an image: a file, a folder with the slices of one DICOM series, or one of several as
/// [`dicom::folder_and_series`] names it.
pub fn read(path: &Path, limits: &Limits) -> Result<Image, FileError> {
    if let Some((folder, series)) = dicom::folder_and_series(path) {
        return dicom::read_series(&folder, series.as_deref(), limits);
    }
    let named = |problem: Problem| problem.in_file(path);
    let format = Format::of(path).map_err(named)?;
    if format == Format::NiftiPair {
        let [header, data] = pair(path);
        let image = nifti::parse_pair(&read_bytes(&header, limits)?, &read_bytes(&data, limits)?, limits);
        return image.map_err(|problem| problem.in_file(header));
    }
    // A slice is read by its parts.
    let bytes = if format == Format::Dicom { vec![] } else { read_bytes(path, limits)? };
    // Where they are not compressed, values take as much as the file.
    check_left(bytes.len() as u64).map_err(named)?;
    // The data of a header, which may be in a file beside it.
    let with_data = |header: nrrd::Header| match header.data_file() {
        Some(name) => header.image(&read_bytes(&path.with_file_name(name), limits)?, limits).map_err(named),
        None => header.image_in(&bytes, limits).map_err(named),
    };
    match format {
        Format::Nifti | Format::NiftiGz | Format::NiftiPair => nifti::parse(&bytes, limits),
        Format::NrrdHeader => return with_data(nrrd::parse_header(&bytes, limits).map_err(named)?),
        Format::Nrrd => nrrd::parse(&bytes, limits),
        Format::SegNrrd => seg_nrrd::parse(&bytes, limits),
        Format::MetaImageHeader => return with_data(metaimage::parse_header(&bytes, limits).map_err(named)?),
        Format::MetaImage => metaimage::parse(&bytes, limits),
        Format::Png => raster::parse_png(&bytes, limits),
        Format::Jpeg => raster::parse_jpeg(&bytes, limits),
        Format::Tiff => raster::parse_tiff(&bytes, limits),
        Format::Npy => npy::parse(&bytes, limits).and_then(|array| array.into_image(limits)),
        Format::Dicom => return dicom::read_file(path, limits),
    }
    .map_err(named)
}

/// The files that hold the image of a path, in the order in which they are read.
pub fn files_of(path: &Path, limits: &Limits) -> Result<Vec<PathBuf>, FileError> {
    match dicom::folder_and_series(path) {
        Some((folder, series)) => dicom::series_files(&folder, series.as_deref(), limits),
        None => Ok(vec![path.to_owned()]),
    }
}

/// Returns the segments of a `.seg.nrrd` file or a DICOM segmentation; none for other formats, which have no names.
pub fn read_segments(path: &Path, limits: &Limits) -> Result<Vec<Segment>, FileError> {
    match Format::of(path) {
        Ok(Format::SegNrrd) => {}
        Ok(Format::Dicom) => return dicom::segments(path, limits),
        _ if path.is_dir() => return dicom::segments(path, limits),
        _ => return Ok(vec![]),
    }
    let read = || -> Result<Vec<Segment>, Problem> {
        let (mut file, mut start) = (open_file(path)?, vec![]);
        (&mut file).take(SEGMENT_BYTES).read_to_end(&mut start)?;
        if !start.windows(2).any(|pair| pair == b"\n\n") {
            file.take(limits.header_bytes).read_to_end(&mut start)?;
        }
        seg_nrrd::parse_segments(&start, limits)
    };
    read().map_err(|problem| problem.in_file(path))
}

/// In so many bytes most headers with names end.
const SEGMENT_BYTES: u64 = 1 << 16;

/// Writes an image, atomically; replaces a file of that name.
pub fn write(path: &Path, image: &Image) -> Result<(), FileError> {
    write_labels(path, image, &[])
}

/// Writes a label map with the names of its segments, where the format holds names; otherwise like [`write()`].
pub fn write_labels(path: &Path, image: &Image, segments: &[Segment]) -> Result<(), FileError> {
    let named = |problem: Problem| problem.in_file(path);
    let version = nifti::Version::for_image(image);
    let bytes = match Format::of(path).map_err(named)? {
        Format::Nifti => nifti::encode(image, version),
        Format::NiftiGz => nifti::encode_gz(image, version),
        Format::Nrrd => nrrd::encode_gzip(image),
        Format::SegNrrd => seg_nrrd::encode(image, segments),
        Format::MetaImage => metaimage::encode_zlib(image),
        Format::Png => raster::encode_png(image),
        Format::Tiff => raster::encode_tiff(image),
        format => Err(Problem::Unsupported {
            what: format!("writing {format:?}"),
            advice: "write .nii, .nii.gz, .nrrd, .seg.nrrd, .mha, .png or .tif",
        }),
    }
    .map_err(named)?;
    write_atomically(path, |out| out.write_all(&bytes))
        .map_err(|error| Problem::Io(error.source).in_file(path))
}

/// The whole file, within the limit of its size.
pub fn read_bytes(path: &Path, limits: &Limits) -> Result<Vec<u8>, FileError> {
    let read = || -> Result<Vec<u8>, Problem> {
        let file = open_file(path)?;
        let length = file.metadata()?.len();
        limits.check_file_bytes(length)?;
        check_left(length)?;
        let mut bytes = vec![];
        // A file may grow while it is read: the limit also holds for what arrives.
        file.take(limits.file_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        limits.check_file_bytes(bytes.len() as u64)?;
        Ok(bytes)
    };
    read().map_err(|problem| problem.in_file(path))
}

/// Header and data file of a NIfTI pair, given either; the other may or may not be compressed.
fn pair(path: &Path) -> [PathBuf; 2] {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (stem, gz) = match name.strip_suffix(".gz") {
        Some(stem) => (stem.to_owned(), true),
        None => (name, false),
    };
    let stem = stem.rsplit_once('.').map_or(stem.clone(), |(stem, _)| stem.to_owned());
    [".hdr", ".img"].map(|ending| {
        let [plain, compressed] = ["", ".gz"].map(|gz| path.with_file_name(format!("{stem}{ending}{gz}")));
        let (first, second) = if gz { (compressed, plain) } else { (plain, compressed) };
        if second.exists() && !first.exists() { second } else { first }
    })
}

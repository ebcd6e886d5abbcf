//! DICOM segmentations: each frame of a file is a slice of a segment (PS3.3, sections A.51 and C.8.20).
//!
//! Frames without voxels may be missing, so that the grid of a segmentation is often smaller than the image's. Segments that
//! overlap are no label map, and are refused.

use std::collections::BTreeMap;

use crate::formats::dicom::slice::{
    Attribute, BITS_ALLOCATED, COLUMNS, EXPORT, FRAMES, LARGEST_FRACTION, MODALITY, ORIENTATION,
    PIXEL_SPACING, POSITION, Place, Plane, ROWS, SEGMENTATION_TYPE, SPACING_BETWEEN_SLICES, Slice, Tag,
    damaged, decimals, dot, plain_text,
};
use crate::formats::dicom::{CLOSE, UNEVEN};
use crate::formats::seg_nrrd::Segment;
use crate::formats::text_header::{checked_geometry, missing, shown};
use crate::geometry::Geometry;
use crate::limits::{Limits, check_left};
use crate::problem::{Problem, refused};
use crate::volume::{Image, Voxels};

const SEGMENTS: Tag = (0x0062, 0x0002);
const SEGMENT_NUMBER: Tag = (0x0062, 0x0004);
const SEGMENT_LABEL: Tag = (0x0062, 0x0005);
const SHARED: Tag = (0x5200, 0x9229);
const PER_FRAME: Tag = (0x5200, 0x9230);
const THICKNESS: Attribute = Attribute { tag: (0x0018, 0x0050), name: "SliceThickness" };
const REFERENCED: Tag = (0x0062, 0x000b);

/// Sequences inside those of a frame, with the elements in them that are needed.
const OF_FRAMES: [(Tag, &[Tag]); 4] = [
    ((0x0020, 0x9113), &[POSITION.tag]),
    ((0x0020, 0x9116), &[ORIENTATION.tag]),
    ((0x0028, 0x9110), &[PIXEL_SPACING.tag, SPACING_BETWEEN_SLICES.tag, THICKNESS.tag]),
    ((0x0062, 0x000a), &[REFERENCED]),
];

fn is_wanted(place: &Place, tag: Tag) -> bool {
    match place {
        [(SEGMENTS, _)] => [SEGMENT_NUMBER, SEGMENT_LABEL].contains(&tag),
        [(SHARED | PER_FRAME, _), (inner, _)] => {
            OF_FRAMES.iter().any(|(sequence, tags)| sequence == inner && tags.contains(&tag))
        }
        _ => false,
    }
}

/// Returns `true` if a file holds a segmentation.
pub(super) fn is_segmentation(slice: &Slice) -> bool {
    slice.text(MODALITY) == "SEG"
}

/// Values of a frame, or of all frames.
#[derive(Default, Clone)]
struct Frame(BTreeMap<Tag, Vec<u8>>);

/// Elements inside sequences.
#[derive(Default)]
struct Header {
    /// Number and name of each segment.
    segments: Vec<(u16, String)>,
    shared: Frame,
    frames: Vec<Frame>,
}

impl Header {
    fn read(slice: &Slice, limits: &Limits) -> Result<Self, Problem> {
        let mut header = Self::default();
        slice.nested(is_wanted, |place, tag, bytes| {
            let (sequence, item) = place[0];
            if item as u64 > limits.members {
                return Err(damaged("it has too many frames or segments"));
            }
            match sequence {
                SEGMENTS => {
                    header.segments.resize(header.segments.len().max(item), (0, String::new()));
                    match tag {
                        SEGMENT_NUMBER => header.segments[item - 1].0 = short(&bytes),
                        _ => header.segments[item - 1].1 = plain_text(&bytes),
                    }
                }
                SHARED => drop(header.shared.0.insert(tag, bytes)),
                _ => {
                    header.frames.resize(header.frames.len().max(item), Frame::default());
                    header.frames[item - 1].0.insert(tag, bytes);
                }
            }
            Ok(())
        })?;
        Ok(header)
    }

    fn value<'a>(&'a self, frame: &'a Frame, tag: Tag) -> Option<&'a [u8]> {
        frame.0.get(&tag).or_else(|| self.shared.0.get(&tag)).map(Vec::as_slice)
    }

    fn numbers<const N: usize>(
        &self,
        frame: &Frame,
        attribute: Attribute,
    ) -> Result<Option<[f64; N]>, Problem> {
        let text = self.value(frame, attribute.tag).map(plain_text).filter(|text| !text.is_empty());
        text.map(|text| decimals(attribute, &text)).transpose()
    }

    fn plane(&self, frame: &Frame) -> Result<Plane, Problem> {
        let absent = |attribute: Attribute| move || missing(attribute.name, "given for every frame", EXPORT);
        let position = self.numbers(frame, POSITION)?.ok_or_else(absent(POSITION))?;
        let axes = self.numbers(frame, ORIENTATION)?.ok_or_else(absent(ORIENTATION))?;
        Plane::new(position, axes, self.numbers(frame, PIXEL_SPACING)?.ok_or_else(absent(PIXEL_SPACING))?)
    }

    /// Returns the distance of slices, if the file has it.
    fn distance(&self) -> Result<Option<f64>, Problem> {
        let frame = self.frames.first().cloned().unwrap_or_default();
        for attribute in [SPACING_BETWEEN_SLICES, THICKNESS] {
            if let Some([distance]) = self.numbers(&frame, attribute)?.filter(|[distance]| *distance > 0.0) {
                return Ok(Some(distance));
            }
        }
        Ok(None)
    }

    /// Returns the label of a frame: the number of its segment.
    fn label(&self, frame: &Frame) -> Result<u8, Problem> {
        let number = self.value(frame, REFERENCED).map(short);
        let number =
            number.ok_or_else(|| missing("ReferencedSegmentNumber", "given for every frame", EXPORT))?;
        let label = u8::try_from(number).ok().filter(|label| *label > 0);
        let advice = "export fewer segments";
        label.ok_or_else(|| refused("ReferencedSegmentNumber", number.to_string(), "1 to 255", advice))
    }
}

fn short(bytes: &[u8]) -> u16 {
    bytes.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

/// Returns the segments of a file.
pub(super) fn segments(slice: &Slice, limits: &Limits) -> Result<Vec<Segment>, Problem> {
    let segments = Header::read(slice, limits)?.segments.into_iter();
    Ok(segments.filter_map(|(number, name)| Some(Segment { name, label: number.try_into().ok()? })).collect())
}

/// Returns the label map of a file on the grid of its own frames.
///
/// # Shapes
/// `[1, d, h, w]`, `d` from the first to the last frame.
pub(super) fn image(slice: &Slice, limits: &Limits) -> Result<Image, Problem> {
    let header = Header::read(slice, limits)?;
    let [h, w] = [slice.number(ROWS)?, slice.number(COLUMNS)?].map(usize::from);
    let count = slice.text(FRAMES).parse::<usize>().unwrap_or(0);
    if count == 0 || header.frames.len() != count {
        let found = format!("{count}, but {} frames have a place", header.frames.len());
        return Err(refused(FRAMES.name, found, "the number of frames", EXPORT));
    }
    let planes = header.frames.iter().map(|frame| header.plane(frame)).collect::<Result<Vec<_>, _>>()?;
    let (places, geometry) = grid(&planes, header.distance()?)?;
    let depth = places.iter().max().map_or(0, |last| last + 1);
    let shape = [1, depth, h, w];
    let voxels = limits.check_values(&shape)?;
    check_left(voxels as u64)?;
    let is_inside = Pixels::read(slice, count * h * w)?;
    let mut labels = vec![0u8; voxels];
    for (number, (frame, place)) in header.frames.iter().zip(places).enumerate() {
        let label = header.label(frame)?;
        for (at, voxel) in labels[place * h * w..][..h * w].iter_mut().enumerate() {
            if !is_inside.at(number * h * w + at) {
                continue;
            }
            if *voxel != 0 && *voxel != label {
                let what = format!("a segmentation in which the segments {voxel} and {label} overlap");
                let advice = "export it from 3D Slicer as a label map (Segmentations, Export), or remove what overlaps";
                return Err(Problem::Unsupported { what, advice });
            }
            *voxel = label;
        }
    }
    Image::new(Voxels::U8(labels), shape, geometry.with_x_and_y_flipped(), limits)
}

/// Returns the slice of each frame, counted along the normal, and the grid in LPS.
fn grid(planes: &[Plane], distance: Option<f64>) -> Result<(Vec<usize>, Geometry), Problem> {
    let first = &planes[0];
    let across = first.axes[2];
    let far = |a: &[f64], b: &[f64], unit: f64| a.iter().zip(b).any(|(a, b)| (a - b).abs() > CLOSE * unit);
    if let Some(other) = planes.iter().find(|plane| {
        far(plane.axes.as_flattened(), first.axes.as_flattened(), 1.0)
            || far(&plane.spacing, &first.spacing, first.spacing[0])
    }) {
        let found = format!("{:?} and {:?}", first.axes, other.axes);
        return Err(refused("the plane of frames", found, "the same in all frames", EXPORT));
    }
    let heights: Vec<f64> = planes.iter().map(|plane| dot(plane.position, across)).collect();
    let lowest = (0..planes.len()).min_by(|a, b| heights[*a].total_cmp(&heights[*b])).unwrap_or(0);
    let mut sorted = heights.clone();
    sorted.sort_by(f64::total_cmp);
    let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    let smallest = steps.filter(|step| *step > CLOSE * first.spacing[0]).min_by(f64::total_cmp);
    // Missing frames leave gaps of several slices.
    let places = |distance: f64| -> Option<Vec<usize>> {
        let place = |height: &f64| {
            let place = (height - heights[lowest]) / distance;
            ((place - place.round()).abs() <= UNEVEN * place.max(1.0)).then_some(place.round() as usize)
        };
        heights.iter().map(place).collect()
    };
    let fits = |distance: f64| places(distance).map(|places| (places, distance));
    let found = match (distance, smallest) {
        (distance, None) => fits(distance.unwrap_or(1.0)),
        (None, Some(smallest)) => fits(smallest),
        (Some(distance), Some(smallest)) => Some(distance)
            .filter(|distance| *distance < smallest * (1.0 + UNEVEN))
            .and_then(fits)
            .or_else(|| fits(smallest)),
    };
    let Some((places, distance)) = found else {
        let found = shown(&format!("{sorted:?}"));
        return Err(refused("the distance of frames", found, "whole numbers of slices", EXPORT));
    };
    let origin = planes[lowest].position;
    let aside = |(plane, place): (&Plane, &usize)| {
        let shift =
            [0, 1, 2].map(|row| plane.position[row] - origin[row] - *place as f64 * distance * across[row]);
        dot(shift, shift).sqrt()
    };
    if planes.iter().zip(&places).map(aside).fold(0.0, f64::max) > UNEVEN * planes.len() as f64 * distance {
        let what = "a segmentation whose frames are shifted sideways".to_owned();
        return Err(Problem::Unsupported {
            what,
            advice: "resample it onto a straight grid, for example with 3D Slicer",
        });
    }
    let direction = [0, 1, 2].map(|row| first.axes.map(|axis| axis[row]));
    let geometry = Geometry { spacing: [first.spacing[0], first.spacing[1], distance], origin, direction };
    let names = [PIXEL_SPACING.name, POSITION.name, ORIENTATION.name];
    Ok((places, checked_geometry(geometry, names)?))
}

/// Values of all frames: a bit each, or a byte with the share of the voxel inside.
struct Pixels {
    bytes: Vec<u8>,
    /// Shares from here on are inside; `None` for bits.
    half: Option<u8>,
}

impl Pixels {
    fn read(slice: &Slice, count: usize) -> Result<Self, Problem> {
        let kind = slice.text(SEGMENTATION_TYPE);
        let half = match (kind.as_str(), slice.number(BITS_ALLOCATED)?) {
            ("BINARY", 1) => None,
            ("FRACTIONAL", 8) => Some((slice.number(LARGEST_FRACTION)?.min(255) as u8).div_ceil(2).max(1)),
            (kind, bits) => {
                let what = format!("a segmentation of the type {} with {bits} bits", shown(kind));
                let advice = "export it as a binary segmentation, or from 3D Slicer as a .seg.nrrd file";
                return Err(Problem::Unsupported { what, advice });
            }
        };
        let bytes = slice.plain_pixel_data()?;
        let needed = if half.is_some() { count } else { count.div_ceil(8) } as u64;
        let found = bytes.len() as u64;
        if found < needed {
            return Err(Problem::Truncated { part: "the pixel data", needed, found });
        }
        Ok(Self { bytes, half })
    }

    fn at(&self, index: usize) -> bool {
        match self.half {
            // Bits follow each other across frames, the lowest of a byte first.
            None => self.bytes[index / 8] >> (index % 8) & 1 == 1,
            Some(half) => self.bytes[index] >= half,
        }
    }
}

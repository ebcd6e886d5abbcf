//! The dimensions of an image in a header, and their order `[c, d, h, w]`.

use super::fields::Fields;
use super::layout::Version;
use crate::error::Problem;

/// `NIFTI_INTENT_VECTOR`: the fifth axis runs over the components of a vector.
const INTENT_VECTOR: i64 = 1007;
/// The dimensions under which FreeSurfer hides a surface of 163842 points.
const FREESURFER_SURFACE: [i64; 3] = [27307, 1, 6];

/// Dimensions of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// `[c, d, h, w]`.
    pub values: [usize; 4],
    /// How many axes the header counts, 1 to 7.
    pub axes: usize,
    /// Whether channels are the components of a vector rather than points in time.
    pub vector: bool,
}

impl Shape {
    /// The dimensions that a header gives.
    pub fn read(fields: &Fields) -> Result<Self, Problem> {
        let layout = fields.layout();
        let axes = fields.integer(layout.dim, 0);
        if !(1..=7).contains(&axes) {
            return Err(Problem::Field {
                field: "dim[0]",
                found: axes.to_string(),
                allowed: "a number of axes from 1 to 7",
                advice: "the header is damaged: export the image again",
            });
        }
        let axes = axes as usize;
        let mut dims = [1; 7];
        for axis in 0..axes {
            let extent = fields.integer(layout.dim, axis + 1);
            dims[axis] = usize::try_from(extent).ok().filter(|&n| n > 0).ok_or_else(|| Problem::Field {
                field: "a dimension (dim[1] to dim[7])",
                found: format!("{extent} along axis {}", axis + 1),
                allowed: "positive",
                advice: "the image holds no values: export it again",
            })?;
        }
        let [i, j, k, t, u, v, w] = dims;
        if fields.version == Version::One && [i, j, k].map(|n| n as i64) == FREESURFER_SURFACE {
            return Err(Problem::Unsupported {
                what: "a FreeSurfer surface in the place of an image".into(),
                advice: "convert it to a volume",
            });
        }
        let intent = fields.integer(layout.intent_code, 0);
        let unknown = if v > 1 || w > 1 {
            Some(format!("an image of {axes} axes ({:?})", &dims[..axes]))
        } else if t > 1 && u > 1 {
            Some(format!("an image with {t} points in time and {u} components"))
        } else if u > 1 && intent != INTENT_VECTOR {
            Some(format!("a fifth axis of {u} with intent_code {intent} (only {INTENT_VECTOR}, vector, is)"))
        } else {
            None
        };
        if let Some(what) = unknown {
            return Err(Problem::Unsupported { what, advice: "split it into images of three or four axes" });
        }
        // One of the two is 1.
        let channels = t.max(u);
        Ok(Self { values: [channels, k, j, i], axes, vector: u > 1 })
    }

    /// Extents along i, j, k.
    pub fn extents(&self) -> [usize; 3] {
        let [_, d, h, w] = self.values;
        [w, h, d]
    }

    /// Writes the dimensions, with as many axes as the values need and at least `axes` of the first three.
    pub fn write(&self, fields: &mut Fields) -> Result<(), Problem> {
        let layout = fields.layout();
        let [c, d, h, w] = self.values;
        let (t, u) = if self.vector { (1, c) } else { (c, 1) };
        let dims = [w, h, d, t, u];
        let needed = dims.iter().rposition(|&n| n > 1).map_or(1, |last| last + 1);
        fields.put_integer(layout.dim, 0, needed.max(self.axes.min(3)) as i64);
        for (axis, &extent) in dims.iter().enumerate() {
            let largest = if fields.version == Version::One { i16::MAX.into() } else { i64::MAX };
            let extent = i64::try_from(extent).ok().filter(|&n| n > 0 && n <= largest).ok_or_else(|| {
                Problem::Field {
                    field: "an extent of the image",
                    found: format!("{extent} along axis {}", axis + 1),
                    allowed: "positive, and at most 32767 in NIfTI-1",
                    advice: "write it as NIfTI-2",
                }
            })?;
            fields.put_integer(layout.dim, axis + 1, extent);
        }
        (6..8).for_each(|axis| fields.put_integer(layout.dim, axis, 1));
        fields.put_integer(layout.intent_code, 0, if self.vector { INTENT_VECTOR } else { 0 });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dims: &[i64], intent: i64) -> Result<Shape, Problem> {
        let mut fields = Fields::empty(Version::Two);
        let layout = fields.layout();
        dims.iter().enumerate().for_each(|(i, &n)| fields.put_integer(layout.dim, i, n));
        fields.put_integer(layout.intent_code, 0, intent);
        Shape::read(&fields)
    }

    #[test]
    fn axes_become_channels_depth_height_width() {
        assert_eq!(read(&[2, 5, 4, 9, 9], 0).unwrap().values, [1, 1, 4, 5]);
        assert_eq!(read(&[3, 5, 4, 3], 0).unwrap().values, [1, 3, 4, 5]);
        assert_eq!(read(&[4, 5, 4, 3, 2], 0).unwrap().values, [2, 3, 4, 5]);
        let vector = read(&[5, 5, 4, 3, 1, 2], 1007).unwrap();
        assert_eq!((vector.values, vector.vector), ([2, 3, 4, 5], true));
        assert_eq!(read(&[7, 5, 4, 3, 1, 1, 1, 1], 0).unwrap().values, [1, 3, 4, 5]);
    }

    #[test]
    fn what_is_unclear_is_refused() {
        for (dims, intent, fragment) in [
            (vec![0, 1], 0, "dim[0] is 0"),
            (vec![8, 1], 0, "dim[0] is 8"),
            (vec![3, 5, -4, 3], 0, "-4 along axis 2"),
            (vec![3, 5, 4, 0], 0, "0 along axis 3"),
            (vec![5, 5, 4, 3, 2, 2], 1007, "2 points in time and 2 components"),
            (vec![5, 5, 4, 3, 1, 2], 1006, "intent_code 1006"),
            (vec![6, 5, 4, 3, 1, 1, 2], 0, "6 axes"),
        ] {
            let message = read(&dims, intent).unwrap_err().to_string();
            assert!(message.contains(fragment), "{message}");
        }
    }

    #[test]
    fn shapes_go_round() {
        for values in [[1, 1, 1, 1], [1, 1, 4, 5], [1, 3, 4, 5], [3, 1, 4, 5]] {
            for vector in [false, true] {
                let shape = Shape { values, axes: 2, vector: vector && values[0] > 1 };
                let mut fields = Fields::empty(Version::One);
                shape.write(&mut fields).unwrap();
                let back = Shape::read(&fields).unwrap();
                assert_eq!((back.values, back.vector), (shape.values, shape.vector));
            }
        }
        let long = Shape { values: [1, 1, 1, 32768], axes: 3, vector: false };
        assert!(long.write(&mut Fields::empty(Version::Two)).is_ok());
        let message = long.write(&mut Fields::empty(Version::One)).unwrap_err().to_string();
        assert!(message.contains("32768 along axis 1") && message.contains("NIfTI-2"), "{message}");
    }
}

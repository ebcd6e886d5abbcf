//! Where the axes of a file point: `space`, `space directions`, `space origin` and `spacings`.

use super::fields::{Field, Fields};
use crate::error::Problem;
use crate::geometry::Geometry;
use crate::text_header::place::{self, Names};
use crate::text_header::words::{missing, number, numbers, refused};

const NAMES: Names = Names { spacing: "the spacing", origin: "space origin", direction: "space directions" };
const ADVICE: &str = "correct the header or export the image again";

/// The world in which a header gives its vectors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum World {
    /// Three axes; the signs turn x, y and z of the header into those of RAS.
    Named([f64; 3]),
    /// Two axes without names, as ITK writes for 2D images; they are taken for the first two of LPS.
    Plane,
}

const LPS: [f64; 3] = [-1.0, -1.0, 1.0];
const RAS: [f64; 3] = [1.0, 1.0, 1.0];
const LAS: [f64; 3] = [-1.0, 1.0, 1.0];

/// The spaces whose axes are known in the patient.
const SPACES: [(&str, [f64; 3]); 6] = [
    ("left-posterior-superior", LPS),
    ("LPS", LPS),
    ("right-anterior-superior", RAS),
    ("RAS", RAS),
    ("left-anterior-superior", LAS),
    ("LAS", LAS),
];

impl World {
    /// The world that a header names, if any.
    pub(super) fn parse(fields: &Fields<'_>) -> Result<Option<Self>, Problem> {
        match (fields.get(Field::Space), fields.get(Field::SpaceDimension)) {
            (None, None) => Ok(None),
            (Some(name), None) => {
                let same = |(spelling, _): &&(&str, [f64; 3])| name.eq_ignore_ascii_case(spelling);
                let found = SPACES.iter().find(same).map(|&(_, signs)| Some(Self::Named(signs)));
                found.ok_or_else(|| {
                    refused(
                        "space",
                        name,
                        "left-posterior-superior, right-anterior-superior, left-anterior-superior or their initials",
                        "other spaces do not say how the image lies in the patient: export it in one of these",
                    )
                })
            }
            (None, Some(text)) => match number("space dimension", text, "a whole number")? {
                2u32 => Ok(Some(Self::Plane)),
                _ => Err(refused(
                    "space dimension",
                    text,
                    "2; an image in three dimensions needs the field space instead",
                    "name the space, such as left-posterior-superior",
                )),
            },
            (Some(_), Some(text)) => {
                Err(refused("space dimension", text, "absent where space is given", "remove one of them"))
            }
        }
    }

    fn dimension(self) -> usize {
        match self {
            Self::Named(_) => 3,
            Self::Plane => 2,
        }
    }

    /// A vector of the header in RAS.
    fn to_ras(self, vector: &[f64]) -> [f64; 3] {
        let mut ras = [0.0; 3];
        let signs = match self {
            Self::Named(signs) => signs,
            Self::Plane => LPS,
        };
        for (axis, x) in vector.iter().enumerate().take(3) {
            // Adding zero turns -0 into 0.
            ras[axis] = x * signs[axis] + 0.0;
        }
        ras
    }
}

/// The vectors of `space directions`, one for each axis of the file; nothing for axes outside space.
pub(super) fn directions(
    text: &str,
    world: Option<World>,
    dimension: usize,
) -> Result<Vec<Option<[f64; 3]>>, Problem> {
    let world = world.ok_or_else(|| missing("space", "given where space directions are", ADVICE))?;
    let mut vectors = vec![];
    let mut rest = text.trim_start();
    while !rest.is_empty() && vectors.len() <= dimension {
        if let Some(after) = rest.strip_prefix("none") {
            vectors.push(None);
            rest = after.trim_start();
        } else {
            let (vector, after) = vector("space directions", rest, world)?;
            vectors.push(Some(vector));
            rest = after.trim_start();
        }
    }
    if vectors.len() != dimension {
        let allowed = "one vector or `none` for each axis";
        return Err(refused("space directions", text, allowed, ADVICE));
    }
    Ok(vectors)
}

/// A vector such as `(1,0,0)` in RAS, and the text after it.
fn vector<'a>(field: &'static str, text: &'a str, world: World) -> Result<([f64; 3], &'a str), Problem> {
    let allowed = "vectors such as (1,0,0) with one number for each axis of the space";
    let refuse = || refused(field, text, allowed, ADVICE);
    let (inside, after) = text.strip_prefix('(').and_then(|text| text.split_once(')')).ok_or_else(refuse)?;
    let words: Vec<&str> = inside.split(',').take(world.dimension() + 1).collect();
    let numbers: Option<Vec<f64>> = words.iter().map(|word| word.trim().parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.len() == world.dimension()).ok_or_else(refuse)?;
    Ok((world.to_ras(&numbers), after))
}

/// The geometry of a header.
pub(super) fn geometry(
    fields: &Fields<'_>,
    world: Option<World>,
    directions: Option<&[Option<[f64; 3]>]>,
    in_space: &[bool],
) -> Result<Geometry, Problem> {
    for (field, name) in [(Field::AxisMins, "axis mins"), (Field::AxisMaxs, "axis maxs")] {
        let said = |text: &str| text.split_whitespace().any(|word| !word.eq_ignore_ascii_case("nan"));
        if let Some(text) = fields.get(field).filter(|text| said(text)) {
            let allowed = "absent: places are read from space directions and space origin";
            return Err(refused(name, text, allowed, "export the image with a space"));
        }
    }
    let geometry = match (directions, world) {
        (Some(directions), Some(world)) => directed(fields, world, directions, in_space)?,
        (None, Some(_)) => {
            return Err(missing("space directions", "given where a space is", ADVICE));
        }
        (_, None) => spaced(fields, in_space)?,
    };
    place::checked(geometry, &NAMES)
}

/// From directions in a world.
fn directed(
    fields: &Fields<'_>,
    world: World,
    directions: &[Option<[f64; 3]>],
    in_space: &[bool],
) -> Result<Geometry, Problem> {
    if let Some(text) = fields.get(Field::Spacings) {
        let spacings: Vec<f64> =
            numbers("spacings", text, in_space.len(), "one number or nan for each axis")?;
        if spacings.iter().zip(in_space).any(|(spacing, &in_space)| in_space && !spacing.is_nan()) {
            let allowed = "nan for axes with a vector in space directions";
            return Err(refused("spacings", text, allowed, "remove the line: the vectors hold the spacing"));
        }
    }
    let origin = match fields.get(Field::SpaceOrigin) {
        None => [0.0; 3],
        Some(text) => {
            let (origin, after) = vector("space origin", text, world)?;
            if !after.trim().is_empty() {
                return Err(refused("space origin", text, "one vector", ADVICE));
            }
            origin
        }
    };
    let axes: Vec<[f64; 3]> = directions.iter().flatten().copied().collect();
    let flat = || refused("space directions", "flat", "vectors that point in different directions", ADVICE);
    let [i, j, k] = match (axes.as_slice(), world) {
        (&[i, j, k], World::Named(_)) => [i, j, k],
        // A slice in space has the direction through it at right angles to it.
        (&[i, j], World::Named(_)) => [i, j, place::normal(i, j).ok_or_else(flat)?],
        (&[i, j], World::Plane) => [i, j, [0.0, 0.0, 1.0]],
        _ => {
            let found = format!("{} vectors in a space of {} axes", axes.len(), world.dimension());
            return Err(refused("space directions", &found, "2 or 3 vectors, no more than axes", ADVICE));
        }
    };
    let affine = [0, 1, 2].map(|row| [i[row], j[row], k[row], origin[row]]);
    Geometry::from_affine(affine).ok_or_else(|| {
        refused("space directions", "of no finite length", "vectors of a positive length", ADVICE)
    })
}

/// From distances alone: along the axes of LPS, as ITK takes it.
fn spaced(fields: &Fields<'_>, in_space: &[bool]) -> Result<Geometry, Problem> {
    if let Some(text) = fields.get(Field::SpaceOrigin) {
        let allowed = "absent where no space is given";
        return Err(refused("space origin", text, allowed, "add space and space directions"));
    }
    let mut geometry = Geometry::default();
    if let Some(text) = fields.get(Field::Spacings) {
        let spacings: Vec<f64> =
            numbers("spacings", text, in_space.len(), "one number or nan for each axis")?;
        let spatial = spacings.iter().zip(in_space).filter(|&(_, &in_space)| in_space);
        for (axis, (&spacing, _)) in spatial.enumerate().take(3) {
            geometry.spacing[axis] = spacing;
        }
    }
    for row in 0..2 {
        geometry.direction[row][row] = -1.0;
    }
    Ok(geometry)
}

//! Which axes of the file lie in space and which holds the channels.

use crate::error::Problem;
use crate::text_header::stored::Channels;
use crate::text_header::words::{numbers, refused};

/// What an axis is for, as far as the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Space,
    Channels,
    Unsaid,
}

/// Kinds of axes whose samples are channels here, with the size that a kind fixes.
///
/// Complex numbers, quaternions, matrices and colours other than RGB are left out: their components are not
/// measurements side by side.
const CHANNEL_KINDS: [(&str, Option<usize>); 17] = [
    ("list", None),
    ("time", None),
    ("vector", None),
    ("point", None),
    ("covariant-vector", None),
    ("normal", None),
    ("stub", Some(1)),
    ("scalar", Some(1)),
    ("2-vector", Some(2)),
    ("3-color", Some(3)),
    ("RGB-color", Some(3)),
    ("3-vector", Some(3)),
    ("3-gradient", Some(3)),
    ("3-normal", Some(3)),
    ("4-color", Some(4)),
    ("RGBA-color", Some(4)),
    ("4-vector", Some(4)),
];

/// The axes of a file.
#[derive(Debug, PartialEq)]
pub(super) struct Axes {
    /// `[c, d, h, w]`.
    pub(super) shape: [usize; 4],
    pub(super) channels: Channels,
    /// For every axis of the file, fastest first, whether it lies in space.
    pub(super) in_space: Vec<bool>,
}

/// The axes of a header.
///
/// `directed` says for every axis whether `space directions` gives it a vector; it is nothing without that field.
pub(super) fn parse(
    sizes: &str,
    kinds: Option<&str>,
    directed: Option<&[bool]>,
    dimension: usize,
) -> Result<Axes, Problem> {
    let sizes: Vec<usize> = numbers("sizes", sizes, dimension, "one whole number for each axis")?;
    let mut roles = vec![Role::Unsaid; dimension];
    if let Some(kinds) = kinds {
        for (axis, kind) in words(kinds, dimension)?.into_iter().enumerate() {
            roles[axis] = role(kind, sizes[axis])?;
        }
    }
    for axis in 0..dimension {
        let directed = directed.map(|directed| directed[axis]);
        roles[axis] = match (roles[axis], directed) {
            (Role::Unsaid, Some(false)) => Role::Channels,
            (Role::Unsaid, _) => Role::Space,
            (Role::Space, Some(false)) | (Role::Channels, Some(true)) => {
                return Err(refused(
                    "kinds",
                    kinds.unwrap_or_default(),
                    "such that axes in space, and no others, have a vector in space directions",
                    "correct the header or export the image again",
                ));
            }
            (role, _) => role,
        };
    }
    arrange(&sizes, &roles)
}

/// One word for each axis.
fn words(kinds: &str, dimension: usize) -> Result<Vec<&str>, Problem> {
    let words: Vec<&str> = kinds.split_whitespace().take(dimension + 1).collect();
    if words.len() == dimension {
        return Ok(words);
    }
    Err(refused("kinds", kinds, "one word for each axis", "correct the header or export the image again"))
}

fn role(kind: &str, size: usize) -> Result<Role, Problem> {
    let is = |name: &str| kind.eq_ignore_ascii_case(name);
    if is("domain") || is("space") {
        return Ok(Role::Space);
    }
    if is("none") || is("???") {
        return Ok(Role::Unsaid);
    }
    match CHANNEL_KINDS.iter().find(|(name, _)| is(name)) {
        Some((_, Some(fixed))) if *fixed != size => Err(Problem::Field {
            field: "sizes",
            found: format!("{size} on an axis of kind {kind}"),
            allowed: "the number of components of that kind",
            advice: "correct the header or export the image again",
        }),
        Some(_) => Ok(Role::Channels),
        None => Err(refused(
            "kinds",
            kind,
            "domain or space for axes in space, and list, time, vector or RGB-color and the like for channels",
            "store the image with channels of real numbers",
        )),
    }
}

fn arrange(sizes: &[usize], roles: &[Role]) -> Result<Axes, Problem> {
    let in_space: Vec<bool> = roles.iter().map(|&role| role == Role::Space).collect();
    let (channels, c, space) = match (in_space.as_slice(), sizes) {
        ([false, rest @ ..], [c, space @ ..]) if !rest.contains(&false) => (Channels::Interleaved, *c, space),
        ([rest @ .., false], [space @ .., c]) if !rest.contains(&false) => (Channels::Planar, *c, space),
        (all, space) if !all.contains(&false) => (Channels::Planar, 1, space),
        _ => (Channels::Planar, 0, &sizes[..0]),
    };
    let [w, h, d] = match *space {
        [w, h] => [w, h, 1],
        [w, h, d] => [w, h, d],
        _ => {
            return Err(Problem::Field {
                field: "kinds",
                found: format!(
                    "{} axes of which {} lie in space",
                    sizes.len(),
                    in_space.iter().filter(|&&x| x).count()
                ),
                allowed: "2 or 3 axes in space, and at most one other, which must be the first or the last",
                advice: "name the axis of the channels by a kind such as list or vector",
            });
        }
    };
    Ok(Axes { shape: [c, d, h, w], channels, in_space })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_found_first_and_last() {
        let first = parse("3 4 5 6", Some("vector domain domain domain"), None, 4).unwrap();
        assert_eq!((first.shape, first.channels), ([3, 6, 5, 4], Channels::Interleaved));
        let last = parse("4 5 6 2", Some("space space space list"), None, 4).unwrap();
        assert_eq!((last.shape, last.channels), ([2, 6, 5, 4], Channels::Planar));
        let colour = parse("3 4 5", Some("RGB-color domain domain"), None, 3).unwrap();
        assert_eq!((colour.shape, colour.channels), ([3, 1, 5, 4], Channels::Interleaved));
        let undirected = parse("3 4 5 6", None, Some(&[false, true, true, true]), 4).unwrap();
        assert_eq!(undirected.in_space, [false, true, true, true]);
        assert_eq!(parse("4 5", None, None, 2).unwrap().shape, [1, 1, 5, 4]);
        assert_eq!(parse("4 5 6", Some("??? none domain"), None, 3).unwrap().shape, [1, 6, 5, 4]);
    }

    #[test]
    fn unclear_axes_are_refused() {
        let refusal = |sizes, kinds, directed: Option<&[bool]>, n| {
            parse(sizes, kinds, directed, n).unwrap_err().to_string()
        };
        assert!(refusal("3 4 5 6", None, None, 4).contains("2 or 3 axes in space"));
        assert!(refusal("3 4 5", Some("domain list domain"), None, 3).contains("first or the last"));
        assert!(refusal("3 4 5", Some("list domain list"), None, 3).contains("first or the last"));
        assert!(refusal("3 4", Some("list domain"), None, 2).contains("first or the last"));
        assert!(
            refusal("4 4 5", Some("RGB-color domain domain"), None, 3).contains("components of that kind")
        );
        assert!(
            refusal("2 4 5", Some("complex domain domain"), None, 3).contains("channels of real numbers")
        );
        assert!(refusal("2 4 5", Some("domain domain"), None, 3).contains("one word for each axis"));
        let directed = [true, true, true];
        assert!(
            refusal("2 4 5", Some("list domain domain"), Some(&directed), 3).contains("space directions")
        );
    }
}

//! The header of an `.npy` file: a Python dictionary of exactly three entries, read without evaluating
//! anything.

use crate::error::Problem;
use crate::voxels::{ByteOrder, VoxelType};

/// The largest number of axes that NumPy allows (`NPY_MAXDIMS` since version 2.0).
const MAX_AXES: usize = 64;

/// How one value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    /// A number of a type that voxels have.
    Number(VoxelType),
    /// A byte that is 0 or 1.
    Boolean,
    /// A number in half precision.
    Half,
}

impl Stored {
    /// Bytes of one value.
    pub fn bytes(self) -> usize {
        match self {
            Self::Number(kind) => kind.bytes(),
            Self::Boolean => 1,
            Self::Half => 2,
        }
    }
}

/// What the dictionary says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    pub stored: Stored,
    pub order: ByteOrder,
    /// Whether the first axis runs fastest.
    pub fortran: bool,
    pub shape: Vec<usize>,
}

/// Reads the dictionary, which may be followed by white space alone.
pub(super) fn parse(text: &[u8]) -> Result<Header, Problem> {
    let mut cursor = Cursor { text, at: 0 };
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    cursor.expect(b'{')?;
    while !cursor.accept(b'}') {
        let key = cursor.string()?;
        cursor.expect(b':')?;
        let known_before = match key {
            b"descr" => descr.replace(cursor.descr()?).is_some(),
            b"fortran_order" => fortran.replace(cursor.boolean()?).is_some(),
            b"shape" => shape.replace(cursor.tuple()?).is_some(),
            _ => return Err(bad("keys", quoted(key), "descr, fortran_order and shape")),
        };
        if known_before {
            return Err(bad("keys", format!("{} twice", quoted(key)), "each of the three once"));
        }
        if !cursor.accept(b',') {
            cursor.expect(b'}')?;
            break;
        }
    }
    cursor.skip_space();
    if cursor.at != text.len() {
        return Err(bad("end", quoted(&text[cursor.at..]), "the dictionary and white space"));
    }
    match (descr, fortran, shape) {
        (Some((stored, order)), Some(fortran), Some(shape)) => Ok(Header { stored, order, fortran, shape }),
        _ => Err(bad("keys", "fewer than three".into(), "descr, fortran_order and shape")),
    }
}

/// The name of a type with its byte order, such as `<f4`.
fn parse_descr(name: &[u8]) -> Result<(Stored, ByteOrder), Problem> {
    let refused = || Problem::Field {
        field: "descr of the array",
        found: quoted(name),
        allowed: "a boolean or a number of at most 8 bytes, such as '|u1', '<i2' or '>f4'",
        advice: "save the array with such a type; arrays of objects hold programs and are never read",
    };
    let [order, kind, size] = name else { return Err(refused()) };
    let stored = match (kind, size) {
        (b'b', b'1') => Stored::Boolean,
        (b'u', b'1') => Stored::Number(VoxelType::U8),
        (b'u', b'2') => Stored::Number(VoxelType::U16),
        (b'u', b'4') => Stored::Number(VoxelType::U32),
        (b'u', b'8') => Stored::Number(VoxelType::U64),
        (b'i', b'1') => Stored::Number(VoxelType::I8),
        (b'i', b'2') => Stored::Number(VoxelType::I16),
        (b'i', b'4') => Stored::Number(VoxelType::I32),
        (b'i', b'8') => Stored::Number(VoxelType::I64),
        (b'f', b'2') => Stored::Half,
        (b'f', b'4') => Stored::Number(VoxelType::F32),
        (b'f', b'8') => Stored::Number(VoxelType::F64),
        _ => return Err(refused()),
    };
    match order {
        b'<' => Ok((stored, ByteOrder::Little)),
        b'>' => Ok((stored, ByteOrder::Big)),
        // "Not applicable": only a single byte has no order.
        b'|' if stored.bytes() == 1 => Ok((stored, ByteOrder::Little)),
        _ => Err(refused()),
    }
}

/// A place in the text.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Problem> {
        if self.accept(byte) {
            return Ok(());
        }
        let found = format!("{} where `{}` belongs", quoted(&self.text[self.at..]), byte as char);
        Err(bad("text", found, "a dictionary as NumPy writes it"))
    }

    /// A string between single or double quotes, without escapes.
    fn string(&mut self) -> Result<&'a [u8], Problem> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let end = match rest.first() {
            Some(&quote @ (b'\'' | b'"')) => {
                rest[1..].iter().position(|&b| b == quote).filter(|&end| !rest[1..=end].contains(&b'\\'))
            }
            _ => None,
        };
        let end = end.ok_or_else(|| bad("text", quoted(rest), "a quoted name"))?;
        self.at += end + 2;
        Ok(&rest[1..=end])
    }

    fn descr(&mut self) -> Result<(Stored, ByteOrder), Problem> {
        self.skip_space();
        if matches!(self.text.get(self.at), Some(b'[' | b'(')) {
            return Err(Problem::Unsupported {
                what: "an array of records (a structured type)".into(),
                advice: "save each field as an array of its own",
            });
        }
        parse_descr(self.string()?)
    }

    fn boolean(&mut self) -> Result<bool, Problem> {
        self.skip_space();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(bad("fortran_order", quoted(&self.text[self.at..]), "True or False"))
    }

    /// A tuple of whole numbers; one of a single number needs its comma, as in Python.
    fn tuple(&mut self) -> Result<Vec<usize>, Problem> {
        let start = self.at;
        self.expect(b'(')?;
        let mut numbers = vec![];
        let mut commas = 0;
        while !self.accept(b')') {
            numbers.push(self.number()?);
            if numbers.len() > MAX_AXES {
                return Err(bad("shape", "more than 64 axes".into(), "a tuple of at most 64 axes"));
            }
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
            commas += 1;
        }
        if numbers.len() == 1 && commas == 0 {
            return Err(bad("shape", quoted(&self.text[start..self.at]), "a tuple such as (3,) or (2, 3)"));
        }
        Ok(numbers)
    }

    fn number(&mut self) -> Result<usize, Problem> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let text = str::from_utf8(&rest[..digits]).unwrap_or_default();
        // Python has no numbers such as 012.
        let number = if digits > 1 && text.starts_with('0') { None } else { text.parse().ok() };
        self.at += digits;
        number.ok_or_else(|| bad("shape", quoted(rest), "whole numbers from 0 to 2⁶⁴ - 1"))
    }
}

/// The start of a text, for messages.
fn quoted(text: &[u8]) -> String {
    const SHOWN: usize = 24;
    let start = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]).into_owned();
    format!("{start:?}{}", if text.len() > SHOWN { "…" } else { "" })
}

fn bad(part: &str, found: String, allowed: &'static str) -> Problem {
    Problem::Field {
        field: "the header of the array",
        found: format!("wrong in its {part} ({found})"),
        allowed,
        advice: "save the array again with numpy.save",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_numpy_writes_is_read() {
        let header = parse(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n").unwrap();
        let stored = Stored::Number(VoxelType::F32);
        assert_eq!(header, Header { stored, order: ByteOrder::Little, fortran: false, shape: vec![3, 4] });
        let header = parse(b"{\"shape\":(),'fortran_order':True,'descr':\"|b1\"}").unwrap();
        assert_eq!((header.stored, header.fortran, header.shape), (Stored::Boolean, true, vec![]));
        assert_eq!(
            parse(b"{'descr': '>f2', 'fortran_order': False, 'shape': (7,)}").unwrap().order,
            ByteOrder::Big
        );
    }

    #[test]
    fn anything_else_is_refused() {
        let with = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
        };
        let cases = [
            (with("'|O'", "False", "(3,)"), "hold programs"),
            (with("'<c8'", "False", "(3,)"), "descr"),
            (with("'<U4'", "False", "(3,)"), "descr"),
            (with("'=f4'", "False", "(3,)"), "descr"),
            (with("'|f4'", "False", "(3,)"), "descr"),
            (with("'<f16'", "False", "(3,)"), "descr"),
            (with("[('x', '<f4')]", "False", "(3,)"), "array of records"),
            (with("'<f4'", "0", "(3,)"), "True or False"),
            (with("'<f4'", "False", "(3)"), "a tuple such as"),
            (with("'<f4'", "False", "(-3,)"), "whole numbers"),
            (with("'<f4'", "False", "(03,)"), "whole numbers"),
            (with("'<f4'", "False", "(99999999999999999999,)"), "whole numbers"),
            (with("'<f4'", "False", "[3]"), "where `(` belongs"),
            (with("'<f4'", "False", &format!("({})", "1,".repeat(65))), "64 axes"),
            (with("'<f4'", "False", "(3,)") + "x", "white space"),
            (with("'<f4', 'descr': '<f4'", "False", "(3,)"), "twice"),
            (with("'<f4', 'more': '<f4'", "False", "(3,)"), "more"),
            ("{'descr': '<f4'}".into(), "fewer than three"),
            (with("'<f\\4'", "False", "(3,)"), "a quoted name"),
            ("{'descr': '<f4".into(), "a quoted name"),
            ("{".into(), "a quoted name"),
            (String::new(), "where `{` belongs"),
        ];
        for (text, expected) in cases {
            let message = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}

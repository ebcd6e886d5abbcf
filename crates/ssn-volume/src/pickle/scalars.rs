//! Opcodes that put one number, text or string of bytes on the stack.

use super::heap::Node;
use super::machine::{Machine, malformed};
use super::opcodes as op;
use super::source::Source;
use crate::error::Problem;

impl Machine {
    /// The opcodes of numbers.
    pub(super) fn number(&mut self, opcode: u8, source: &mut Source<'_>) -> Result<(), Problem> {
        match opcode {
            op::BININT1 => {
                let x = source.byte()?;
                self.add_int(x.into())
            }
            op::BININT2 => {
                let x = u16::from_le_bytes(source.bytes()?);
                self.add_int(x.into())
            }
            op::BININT => {
                let x = i32::from_le_bytes(source.bytes()?);
                self.add_int(x.into())
            }
            op::BINFLOAT => {
                let x = f64::from_be_bytes(source.bytes()?);
                self.add(Node::Float(x))
            }
            op::LONG1 | op::LONG4 => {
                let count = if opcode == op::LONG1 {
                    source.byte()?.into()
                } else {
                    u32::from_le_bytes(source.bytes()?).into()
                };
                let bytes = source.block(count, &mut self.heap.budget)?;
                let x = little_endian(&bytes).ok_or_else(|| too_large(&format!("of {count} bytes")))?;
                self.add_int(x)
            }
            _ => self.written_number(opcode, source),
        }
    }

    /// Numbers that are written as text.
    fn written_number(&mut self, opcode: u8, source: &mut Source<'_>) -> Result<(), Problem> {
        let line = source.line(&mut self.heap.budget)?;
        let text = std::str::from_utf8(&line).map_err(|_| malformed("a number that is no text"))?;
        match (opcode, text) {
            (op::FLOAT, text) => {
                let x = text.parse().map_err(|_| malformed("a number that is none"))?;
                self.add(Node::Float(x))
            }
            // Truth values of protocol 0 are whole numbers with a leading zero.
            (op::INT, "00") => self.add(Node::Bool(false)),
            (op::INT, "01") => self.add(Node::Bool(true)),
            (_, text) => {
                let digits = text.strip_suffix('L').unwrap_or(text);
                let signless = digits.strip_prefix('-').unwrap_or(digits);
                if signless.is_empty() || !signless.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(malformed("a number that is none"));
                }
                let x = digits.parse().map_err(|_| too_large(&format!("of {} digits", signless.len())))?;
                self.add_int(x)
            }
        }
    }

    /// The opcodes of text.
    pub(super) fn text(&mut self, opcode: u8, source: &mut Source<'_>) -> Result<(), Problem> {
        let budget = &mut self.heap.budget;
        let bytes = match opcode {
            op::UNICODE => {
                let line = source.line(budget)?;
                return self.add(Node::Text(unescape(&line)?));
            }
            op::SHORT_BINUNICODE => source.byte()?.into(),
            op::BINUNICODE => u32::from_le_bytes(source.bytes()?).into(),
            _ => u64::from_le_bytes(source.bytes()?),
        };
        let bytes = source.block(bytes, budget)?;
        let text = String::from_utf8(bytes).map_err(|_| malformed("text that is not UTF-8"))?;
        self.add(Node::Text(text))
    }

    /// The opcodes of bytes, and of strings of Python 2.
    pub(super) fn bytes(&mut self, opcode: u8, source: &mut Source<'_>) -> Result<(), Problem> {
        let count = match opcode {
            op::SHORT_BINBYTES | op::SHORT_BINSTRING => source.byte()?.into(),
            op::BINBYTES => u32::from_le_bytes(source.bytes()?).into(),
            op::BINSTRING => u64::try_from(i32::from_le_bytes(source.bytes()?))
                .map_err(|_| malformed("a string of negative length"))?,
            _ => u64::from_le_bytes(source.bytes()?),
        };
        let bytes = source.block(count, &mut self.heap.budget)?;
        let old = matches!(opcode, op::SHORT_BINSTRING | op::BINSTRING);
        self.add(if old { Node::OldText(bytes) } else { Node::Bytes(bytes) })
    }
}

/// A number in two's complement, if it fits into 64 bits; no bytes are zero.
fn little_endian(bytes: &[u8]) -> Option<i64> {
    let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    let (head, tail) = bytes.split_at(bytes.len().min(8));
    let mut padded = [fill; 8];
    padded[..head.len()].copy_from_slice(head);
    let x = i64::from_le_bytes(padded);
    (tail.iter().all(|&b| b == fill) && (x < 0) == negative).then_some(x)
}

fn too_large(size: &str) -> Problem {
    Problem::Unsupported {
        what: format!("a whole number {size}, beyond 64 bits"),
        advice: "save it as a float or as text",
    }
}

/// The text of protocol 0: Latin-1 bytes, and `\uXXXX` or `\UXXXXXXXX` for the rest.
fn unescape(line: &[u8]) -> Result<String, Problem> {
    let bad = || malformed("text with an escape that is none");
    let mut text = String::with_capacity(line.len());
    let mut place = 0;
    while let Some(&byte) = line.get(place) {
        let digits = match (byte, line.get(place + 1)) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => 0,
        };
        if digits == 0 {
            text.push(char::from(byte));
            place += 1;
            continue;
        }
        let code =
            line.get(place + 2..place + 2 + digits).filter(|code| code.iter().all(u8::is_ascii_hexdigit));
        let code = code.and_then(|code| std::str::from_utf8(code).ok()).ok_or_else(bad)?;
        let code = u32::from_str_radix(code, 16).ok().and_then(char::from_u32).ok_or_else(bad)?;
        text.push(code);
        place += 2 + digits;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_any_length_fit_or_are_refused() {
        for x in [0, 1, -1, 127, -128, 128, 255, i64::MAX, i64::MIN] {
            assert_eq!(little_endian(&x.to_le_bytes()), Some(x));
            let mut longer = x.to_le_bytes().to_vec();
            longer.extend([if x < 0 { 0xff } else { 0 }; 3]);
            assert_eq!(little_endian(&longer), Some(x));
        }
        assert_eq!(little_endian(&[]), Some(0));
        assert_eq!(little_endian(&[0xff]), Some(-1));
        assert_eq!(little_endian(&[0, 0, 0, 0, 0, 0, 0, 0x80, 0]), None);
        assert_eq!(little_endian(&[0, 0, 0, 0, 0, 0, 0, 0, 1]), None);
    }

    #[test]
    fn text_of_protocol_0_is_unescaped() {
        assert_eq!(unescape(b"a\\u00e9\xe9\\U0001f600\\n").unwrap(), "aéé😀\\n");
        for bad in [&b"\\u12"[..], b"\\ud800", b"\\U00110000", b"\\u+123"] {
            assert!(unescape(bad).is_err(), "{bad:?}");
        }
    }
}

//! The memo of a pickle: objects that have a number, to come again.

use super::heap::Id;
use super::machine::{Machine, NO_ENTRY, SLOT_BYTES, malformed};
use super::opcodes as op;
use super::source::Source;
use crate::error::Problem;

/// Numbers count up; a file may leave out this many at once.
const MEMO_GAP: usize = 1 << 12;

/// The objects by their numbers.
#[derive(Default)]
pub(super) struct Memo {
    entries: Vec<Id>,
    /// How many numbers are given: the next one that `MEMOIZE` gives.
    count: usize,
}

impl Machine {
    /// The opcodes that give the object on top a number.
    pub(super) fn put(&mut self, opcode: u8, source: &mut Source<'_>) -> Result<(), Problem> {
        let place = match opcode {
            op::MEMOIZE => self.memo.count,
            _ => self.memo_number(opcode, source)?,
        };
        let top = self.top()?;
        if place >= self.memo.entries.len() {
            let added = place - self.memo.entries.len() + 1;
            if added > MEMO_GAP {
                return Err(malformed("a memo number that leaves out thousands"));
            }
            self.heap.budget.add(added as u64 * SLOT_BYTES)?;
            self.memo.entries.resize(place + 1, NO_ENTRY);
        }
        if self.memo.entries[place] == NO_ENTRY {
            self.memo.count += 1;
        }
        self.memo.entries[place] = top;
        Ok(())
    }

    /// The opcodes that put an object with a number on the stack again.
    pub(super) fn get(&mut self, opcode: u8, source: &mut Source<'_>) -> Result<(), Problem> {
        let place = self.memo_number(opcode, source)?;
        match self.memo.entries.get(place) {
            Some(&id) if id != NO_ENTRY => self.push(id),
            _ => Err(malformed("a memo number that was never given")),
        }
    }

    fn memo_number(&mut self, opcode: u8, source: &mut Source<'_>) -> Result<usize, Problem> {
        let number = match opcode {
            op::BINPUT | op::BINGET => source.byte()?.into(),
            op::LONG_BINPUT | op::LONG_BINGET => u32::from_le_bytes(source.bytes()?) as usize,
            _ => {
                let line = source.line(&mut self.heap.budget)?;
                let number = std::str::from_utf8(&line).ok().and_then(|text| text.parse().ok());
                number.ok_or_else(|| malformed("a memo number that is none"))?
            }
        };
        Ok(number)
    }
}

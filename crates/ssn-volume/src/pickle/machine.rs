//! The stack machine of a pickle, without the opcodes that run code.

use super::budget::Budget;
use super::globals;
use super::heap::{self, Heap, Id, Node};
use super::memo::Memo;
use super::opcodes as op;
use super::source::Source;
use crate::error::Problem;

/// The newest protocol of Python's documents.
const NEWEST_PROTOCOL: u8 = 5;
/// Places on the stack and in the memo cost this many bytes, with room for the tables to grow.
pub(super) const SLOT_BYTES: u64 = 8;
pub(super) const NO_ENTRY: Id = Id::MAX;
const SMALL_INTS: usize = 256;

/// Whose names a pickle may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Python's and NumPy's.
    Plain,
    /// PyTorch's as well.
    Torch,
}

/// The machine.
pub(super) struct Machine {
    pub(super) dialect: Dialect,
    pub(super) heap: Heap,
    stack: Vec<Id>,
    /// Heights of the stack at the marks that are open.
    marks: Vec<usize>,
    highest: usize,
    pub(super) memo: Memo,
    /// Whole numbers from 0 to 255 exist once.
    small_ints: Box<[Id; SMALL_INTS]>,
    proto_seen: bool,
    /// Where the last frame ends.
    frame_end: u64,
}

impl Machine {
    /// A machine with an empty stack.
    pub(super) fn new(dialect: Dialect, budget: Budget) -> Self {
        Self {
            dialect,
            heap: Heap::new(budget),
            stack: vec![],
            marks: vec![],
            highest: 0,
            memo: Memo::default(),
            small_ints: Box::new([NO_ENTRY; SMALL_INTS]),
            proto_seen: false,
            frame_end: 0,
        }
    }

    /// Runs a pickle up to its end; gives the objects and the one that is the result.
    pub(super) fn run(mut self, source: &mut Source<'_>) -> Result<(Heap, Id), Problem> {
        loop {
            let opcode = source.byte()?;
            if opcode == op::STOP {
                let root = self.pop()?;
                if !(self.stack.is_empty() && self.marks.is_empty()) {
                    return Err(malformed("more than one object on the stack at its end"));
                }
                if self.frame_end > source.position() {
                    let (needed, found) = (self.frame_end, source.position());
                    return Err(Problem::Truncated { part: "the last frame of the pickle", needed, found });
                }
                return Ok((self.heap, root));
            }
            self.step(opcode, source)?;
        }
    }

    fn step(&mut self, opcode: u8, source: &mut Source<'_>) -> Result<(), Problem> {
        match opcode {
            op::PROTO => self.protocol(source),
            // Frames help readers that read ahead; here only their end matters.
            op::FRAME => {
                let length = u64::from_le_bytes(source.bytes()?);
                self.frame_end = source.position().saturating_add(length);
                Ok(())
            }
            op::NONE => self.push(heap::NONE),
            op::NEWTRUE => self.push(heap::TRUE),
            op::NEWFALSE => self.push(heap::FALSE),
            op::EMPTY_TUPLE => self.push(heap::EMPTY_TUPLE),
            op::EMPTY_LIST => self.add(Node::List(vec![])),
            op::EMPTY_DICT => self.add(Node::Dict(vec![])),
            op::EMPTY_SET => self.add(Node::Set(vec![])),
            op::INT
            | op::LONG
            | op::FLOAT
            | op::BININT
            | op::BININT1
            | op::BININT2
            | op::BINFLOAT
            | op::LONG1
            | op::LONG4 => self.number(opcode, source),
            op::UNICODE | op::SHORT_BINUNICODE | op::BINUNICODE | op::BINUNICODE8 => {
                self.text(opcode, source)
            }
            op::SHORT_BINSTRING
            | op::BINSTRING
            | op::SHORT_BINBYTES
            | op::BINBYTES
            | op::BINBYTES8
            | op::BYTEARRAY8 => self.bytes(opcode, source),
            op::MARK => self.mark(),
            op::POP => self.pop_any(),
            op::POP_MARK => self.pop_to_mark().map(drop),
            op::DUP => self.top().and_then(|top| self.push(top)),
            op::TUPLE | op::TUPLE1 | op::TUPLE2 | op::TUPLE3 | op::LIST | op::DICT | op::FROZENSET => {
                self.container(opcode)
            }
            op::APPEND | op::APPENDS | op::SETITEM | op::SETITEMS | op::ADDITEMS => self.extend(opcode),
            op::PUT | op::BINPUT | op::LONG_BINPUT | op::MEMOIZE => self.put(opcode, source),
            op::GET | op::BINGET | op::LONG_BINGET => self.get(opcode, source),
            op::GLOBAL | op::STACK_GLOBAL => self.global(opcode, source),
            op::REDUCE | op::NEWOBJ => {
                let (arguments, callable) = (self.pop()?, self.pop()?);
                let result = globals::call(self, callable, arguments)?;
                self.push(result)
            }
            op::BUILD => {
                let (state, object) = (self.pop()?, self.top()?);
                globals::set_state(self, object, state)
            }
            op::BINPERSID => {
                let name = self.pop()?;
                let storage = globals::persistent(self, name)?;
                self.push(storage)
            }
            _ => Err(refused(opcode, source.position())),
        }
    }

    fn protocol(&mut self, source: &mut Source<'_>) -> Result<(), Problem> {
        let version = source.byte()?;
        if version <= NEWEST_PROTOCOL && !self.proto_seen {
            self.proto_seen = true;
            return Ok(());
        }
        Err(Problem::Field {
            field: "the protocol of the pickle",
            found: if self.proto_seen { "given twice".into() } else { version.to_string() },
            allowed: "0 to 5, once at the start",
            advice: "save the file again with protocol 4",
        })
    }

    /// Adds an object and puts it on the stack.
    pub(super) fn add(&mut self, node: Node) -> Result<(), Problem> {
        let id = self.heap.add(node)?;
        self.push(id)
    }

    /// A whole number on the stack.
    pub(super) fn add_int(&mut self, x: i64) -> Result<(), Problem> {
        let Some(place) = usize::try_from(x).ok().filter(|&x| x < SMALL_INTS) else {
            return self.add(Node::Int(x));
        };
        if self.small_ints[place] == NO_ENTRY {
            self.small_ints[place] = self.heap.add(Node::Int(x))?;
        }
        self.push(self.small_ints[place])
    }

    /// Puts an object on the stack.
    pub(super) fn push(&mut self, id: Id) -> Result<(), Problem> {
        self.stack.push(id);
        self.count_height()
    }

    fn mark(&mut self) -> Result<(), Problem> {
        self.marks.push(self.stack.len());
        self.count_height()
    }

    fn count_height(&mut self) -> Result<(), Problem> {
        let height = self.stack.len() + 2 * self.marks.len();
        if height > self.highest {
            self.heap.budget.add((height - self.highest) as u64 * SLOT_BYTES)?;
            self.highest = height;
        }
        Ok(())
    }

    /// Takes the object on top; those below the last mark are out of reach.
    pub(super) fn pop(&mut self) -> Result<Id, Problem> {
        let id = self.top()?;
        self.stack.pop();
        Ok(id)
    }

    /// The object on top, above the last mark.
    pub(super) fn top(&self) -> Result<Id, Problem> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(&id) if self.stack.len() > floor => Ok(id),
            _ => Err(malformed("an opcode that takes more from the stack than there is")),
        }
    }

    /// `POP` takes an object, or the mark if there is none above it.
    fn pop_any(&mut self) -> Result<(), Problem> {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(drop)
    }

    /// Takes all objects above the last mark, and the mark.
    pub(super) fn pop_to_mark(&mut self) -> Result<Vec<Id>, Problem> {
        let height = self.marks.pop().ok_or_else(|| malformed("an opcode that needs a mark, without one"))?;
        Ok(self.stack.split_off(height))
    }

    fn global(&mut self, opcode: u8, source: &mut Source<'_>) -> Result<(), Problem> {
        let global = if opcode == op::GLOBAL {
            let (module, name) = (source.line(&mut self.heap.budget)?, source.line(&mut self.heap.budget)?);
            globals::find(self.dialect, &String::from_utf8_lossy(&module), &String::from_utf8_lossy(&name))?
        } else {
            let (name, module) = (self.pop()?, self.pop()?);
            match (self.heap.text(module), self.heap.text(name)) {
                (Some(module), Some(name)) => globals::find(self.dialect, module, name)?,
                _ => return Err(malformed("the name of a class or function that is no text")),
            }
        };
        self.add(Node::Global(global))
    }
}

/// A pickle that breaks the rules of its own format.
pub(super) fn malformed(found: &'static str) -> Problem {
    Problem::Field {
        field: "the pickle",
        found: format!("damaged: it has {found}"),
        allowed: "as Python writes it",
        advice: "copy the file again, or save the object again with Python's pickle module",
    }
}

fn refused(opcode: u8, position: u64) -> Problem {
    let what = match opcode {
        op::INST | op::OBJ | op::NEWOBJ_EX => "an object of a class of its own",
        op::EXT1 | op::EXT2 | op::EXT4 => "a name from Python's extension registry",
        op::NEXT_BUFFER | op::READONLY_BUFFER => "data in buffers outside the file",
        op::STRING => "a string that Python 2 wrote with protocol 0",
        op::PERSID => "a reference to something outside the file",
        _ => {
            return Problem::Field {
                field: "an opcode of the pickle",
                found: format!("0x{opcode:02x} at byte {}", position.saturating_sub(1)),
                allowed: "one of protocols 0 to 5",
                advice: "the file is damaged or is no pickle: copy it again",
            };
        }
    };
    Problem::Unsupported {
        what: format!("{what} (opcode 0x{opcode:02x} at byte {})", position.saturating_sub(1)),
        advice: "this reader builds data only: save dictionaries, lists, numbers, text and NumPy arrays",
    }
}

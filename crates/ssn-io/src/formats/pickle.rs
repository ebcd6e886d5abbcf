//! Pickles as data: dictionaries, lists, text, numbers and NumPy arrays.
//!
//! A pickle is a program for a small stack machine, and Python's own reader lets that program call anything. The machine
//! here knows the opcodes of protocols 2 to 5 and a short table of names (`NAMES`); any other name refuses the file.
//! Nothing is imported and nothing is called: a call stays an object with its arguments, and [`Value::array`] knows
//! which of them are NumPy arrays.
//!
//! The machine runs over the stream once, plain or out of gzip, and notes where content lies without keeping it. Only a
//! file that is whole, with its checksum right, then gets memory for its content.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::ops::Range;

use flate2::bufread::MultiGzDecoder;

use crate::array::{Array, Element, MOST_AXES, row_major, strided};
use crate::formats::gzip;
use crate::formats::gzip::{Compression, is_gzip};
use crate::limits::{Limits, within};
use crate::problem::{Problem, refused};
use crate::volume::ByteOrder;

/// The classes and functions that a pickle may name, by module.
const NAMES: [(&[&str], &[&str]); 9] = [
    (&["numpy.core.multiarray", "numpy._core.multiarray"], &["_reconstruct", "scalar"]),
    (&["numpy.core.numeric", "numpy._core.numeric"], &["_frombuffer"]),
    (&["numpy"], &["ndarray", "dtype"]),
    (&["_codecs"], &["encode"]),
    (&["builtins", "__builtin__"], &["bytes", "bytearray", "set", "frozenset"]),
    (&["collections"], &["OrderedDict"]),
    (&["torch._utils"], &["_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter"]),
    (&["torch"], &["Size", "DoubleStorage", "FloatStorage", "HalfStorage", "BFloat16Storage", "LongStorage"]),
    (&["torch"], &["IntStorage", "ShortStorage", "CharStorage", "ByteStorage", "BoolStorage"]),
];
/// The name of an object that a persistent id stands for.
pub(crate) const PERSISTENT: &str = "persistent id";

/// The newest protocol of Python's documents.
const NEWEST_PROTOCOL: u8 = 5;
/// Text up to this many bytes is kept; only longer text is content.
const LONGEST_TEXT: u64 = 4096;
/// Objects that a file of any size may have, and bytes of the file for each further one.
const FREE_OBJECTS: u64 = 200_000;
const BYTES_PER_OBJECT: u64 = 8;
/// Bytes of text that count as one object.
const TEXT_PER_OBJECT: u64 = 32;
/// Lines with names end within this many bytes.
const LONGEST_LINE: usize = 1000;

/// The number of an object.
type Id = u32;

#[derive(Debug)]
enum Node {
    None,
    Bool(bool),
    Int(i64),
    Float,
    /// Text, and where it starts: it may be the content of an array.
    Text(Box<str>, u64),
    /// Bytes, or long text, in the expanded pickle.
    Content(Range<u64>),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    /// Keys and values in turn.
    Dict(Vec<Id>),
    Set,
    /// One of [`NAMES`].
    Name(&'static str),
    /// `name(*arguments)`, and the state that it was given afterwards.
    Object {
        name: &'static str,
        arguments: Id,
        state: Option<Id>,
    },
}

/// A pickle that was read.
#[derive(Debug)]
pub struct Pickle<'a> {
    nodes: Vec<Node>,
    root: Id,
    content: Cow<'a, [u8]>,
    limits: Limits,
}

/// A value of a pickle.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    pickle: &'a Pickle<'a>,
    id: Id,
}

/// Reads a pickle, plain or gzipped.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Pickle<'a>, Problem> {
    limits.check_file_bytes(bytes.len() as u64)?;
    let zipped = is_gzip(bytes);
    let reader: Box<dyn BufRead> = match zipped {
        true => Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(bytes))),
        false => Box::new(bytes),
    };
    let mut machine = Machine::new(reader, bytes.len(), limits);
    let root = machine.run()?;
    if !machine.stream.reader.fill_buf().map_err(damaged)?.is_empty() {
        return Err(malformed("an end, with more bytes behind it"));
    }
    let Machine { nodes, stream: Stream { position, .. }, .. } = machine;
    let content = match zipped {
        true => gzip::expand_exactly(bytes, Compression::Gzip, position, "the pickle", limits)?.into(),
        false => bytes.into(),
    };
    Ok(Pickle { nodes, root, content, limits: limits.clone() })
}

/// Where the first pickle of these bytes ends; anything may follow.
pub(crate) fn end_of(bytes: &[u8], limits: &Limits) -> Result<usize, Problem> {
    let mut machine = Machine::new(Box::new(bytes), bytes.len(), limits);
    machine.run()?;
    Ok(machine.stream.position as usize)
}

impl Pickle<'_> {
    /// The object that was pickled.
    pub fn root(&self) -> Value<'_> {
        Value { pickle: self, id: self.root }
    }
}

impl<'a> Value<'a> {
    fn node(self) -> &'a Node {
        &self.pickle.nodes[self.id as usize]
    }

    fn at(self, id: Id) -> Self {
        Self { id, ..self }
    }

    /// What kind of value it is, as Python calls it.
    pub fn kind(self) -> &'static str {
        match self.node() {
            Node::None => "None",
            Node::Bool(_) => "bool",
            Node::Int(_) => "int",
            Node::Float => "float",
            Node::Text(..) => "str",
            Node::Content(_) => "bytes",
            Node::List(_) => "list",
            Node::Tuple(_) => "tuple",
            Node::Dict(_) => "dict",
            Node::Set => "set",
            Node::Name(_) => "type",
            Node::Object { name: "_reconstruct" | "_frombuffer", .. } => "array",
            Node::Object { name, .. } => name,
        }
    }

    /// The keys and values of a dictionary, in the order of the pickle; refuses a key that is no text or occurs twice.
    /// Nothing where this is no dictionary.
    pub fn entries(self) -> Result<Option<Vec<(&'a str, Self)>>, Problem> {
        let Node::Dict(items) = self.node() else { return Ok(None) };
        let mut seen = HashSet::new();
        let entry = |pair: &[Id]| match self.at(pair[0]).as_text() {
            None => Err(malformed("a key of a dictionary that is no text")),
            Some(key) if !seen.insert(key) => Err(malformed("a dictionary in which a key occurs twice")),
            Some(key) => Ok((key, self.at(pair[1]))),
        };
        items.chunks_exact(2).map(entry).collect::<Result<_, _>>().map(Some)
    }

    /// The entry of a dictionary under a text key.
    pub fn get(self, key: &str) -> Option<Self> {
        let Node::Dict(items) = self.node() else { return None };
        let pair = items.chunks_exact(2).rev().find(|pair| self.at(pair[0]).as_text() == Some(key))?;
        Some(self.at(pair[1]))
    }

    /// The elements of a list or tuple.
    pub fn items(self) -> Option<Vec<Self>> {
        let (Node::List(items) | Node::Tuple(items)) = self.node() else { return None };
        Some(items.iter().map(|&id| self.at(id)).collect())
    }

    /// The text.
    pub fn as_text(self) -> Option<&'a str> {
        if let Node::Text(text, _) = self.node() { Some(text) } else { None }
    }

    /// True or false.
    pub(crate) fn as_bool(self) -> Option<bool> {
        if let Node::Bool(value) = self.node() { Some(*value) } else { None }
    }

    /// Whether it is Python's `None`.
    pub(crate) fn is_none(self) -> bool {
        matches!(self.node(), Node::None)
    }

    /// A whole number that is not negative.
    pub fn as_size(self) -> Option<usize> {
        if let Node::Int(x) = self.node() { usize::try_from(*x).ok() } else { None }
    }

    /// The whole numbers of a tuple, as many as an array has axes at most.
    pub(crate) fn sizes(self) -> Option<Vec<usize>> {
        let items = self.items().filter(|items| items.len() <= MOST_AXES)?;
        items.into_iter().map(Self::as_size).collect()
    }

    /// The name and the arguments of an object, and its state.
    pub(crate) fn object(self) -> Option<(&'static str, Vec<Self>, Option<Self>)> {
        match *self.node() {
            Node::Object { name, arguments, state } => {
                Some((name, self.at(arguments).items()?, state.map(|id| self.at(id))))
            }
            Node::Name(name) => Some((name, vec![], None)),
            _ => None,
        }
    }

    /// The NumPy array, made from its content; nothing where this is none.
    pub fn array(self) -> Option<Result<Array, Problem>> {
        let bad = || malformed("a NumPy array whose state is not as NumPy writes it");
        let (name, arguments, state) = self.object()?;
        let (shape, dtype, order, axes, data) = match (name, arguments.as_slice(), state) {
            ("_reconstruct", _, None) => return Some(Err(malformed("a NumPy array without content"))),
            ("_reconstruct", _, Some(state)) => match state.items().as_deref() {
                Some(&[_, shape, dtype, column_major, data]) => {
                    let fortran = matches!(column_major.node(), Node::Bool(true) | Node::Int(1));
                    (shape, dtype, if fortran { "F" } else { "C" }, None, data)
                }
                _ => return Some(Err(bad())),
            },
            ("_frombuffer", &[data, dtype, shape, order, ..], _) => {
                let axes = arguments.get(4).filter(|axes| !matches!(axes.node(), Node::None));
                (shape, dtype, order.as_text().unwrap_or_default(), axes, data)
            }
            ("_frombuffer", ..) => return Some(Err(bad())),
            _ => return None,
        };
        let build = || {
            let stored = shape.sizes().ok_or_else(bad)?;
            let (element, byte_order) = dtype.dtype()?;
            let data = data.content().ok_or_else(bad)??;
            let count = if stored.contains(&0) { 0 } else { self.pickle.limits.check_values(&stored)? };
            if Some(data.len()) != count.checked_mul(element.bytes()) {
                let found = format!("{} bytes for the shape {stored:?}", data.len());
                let allowed = "as many bytes as shape and dtype ask for";
                let advice = "the file is damaged: save the array again";
                return Err(refused("the content of a NumPy array", found, allowed, advice));
            }
            let mut strides: Vec<usize> = row_major(&stored);
            let mut shape = stored.clone();
            match (order, axes) {
                ("C", None) => {}
                ("F", None) => {
                    let reversed: Vec<usize> = stored.iter().rev().copied().collect();
                    strides = row_major(&reversed).into_iter().rev().collect();
                }
                // Since NumPy 2.3: the content has the stored shape, and `axes` are its axes in their order here.
                ("K", Some(axes)) => {
                    let axes =
                        axes.sizes().filter(|axes| is_permutation(axes, stored.len())).ok_or_else(bad)?;
                    strides = axes.iter().map(|&axis| strides[axis]).collect();
                    shape = axes.iter().map(|&axis| stored[axis]).collect();
                }
                _ => return Err(bad()),
            }
            Ok(strided(element.read(&data, byte_order)?, &shape, &strides, 0))
        };
        Some(build())
    }

    /// The bytes of text or bytes; nothing where this is neither.
    fn content(self) -> Option<Result<Cow<'a, [u8]>, Problem>> {
        let range = match self.node() {
            Node::Content(range) => range.clone(),
            // A string of Python 2.
            Node::Text(text, start) => *start..start + text.len() as u64,
            // Bytes before protocol 3: text whose characters are the bytes.
            Node::Object { name: "encode" | "bytes" | "bytearray", arguments, .. } => {
                return match self.at(*arguments).items()?.as_slice() {
                    [] => Some(Ok(vec![].into())),
                    [bytes] if matches!(bytes.node(), Node::Content(_)) => bytes.content(),
                    [text, coding] if matches!(coding.as_text(), Some("latin1" | "latin-1")) => {
                        let (Node::Text(..) | Node::Content(_)) = text.node() else { return None };
                        Some(text.content()?.and_then(|text| latin1(&text).map(Cow::Owned)))
                    }
                    _ => None,
                };
            }
            _ => return None,
        };
        Some(Ok(self.pickle.content[range.start as usize..range.end as usize].into()))
    }

    /// NumPy's type of elements, from its name and its state: version, byte order, and what plain numbers leave empty.
    fn dtype(self) -> Result<(Element, ByteOrder), Problem> {
        let bad = || malformed("a NumPy dtype whose state is not as NumPy writes it");
        let (_, arguments, state) = self.object().filter(|(name, ..)| *name == "dtype").ok_or_else(bad)?;
        let element = Element::named(arguments.first().and_then(|name| name.as_text()).ok_or_else(bad)?)?;
        let state = state.and_then(Self::items).unwrap_or_default();
        let order = match state.get(1).map(|order| order.as_text()) {
            Some(Some(">")) => ByteOrder::Big,
            Some(Some("<")) => ByteOrder::Little,
            Some(Some("|")) | None if element.bytes() == 1 => ByteOrder::Little,
            _ => return Err(malformed("a NumPy dtype without a byte order")),
        };
        Ok((element, order))
    }
}

fn is_permutation(axes: &[usize], count: usize) -> bool {
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..count)
}

fn latin1(text: &[u8]) -> Result<Vec<u8>, Problem> {
    let bytes = str::from_utf8(text).ok();
    let bytes = bytes.and_then(|text| text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect());
    bytes.ok_or_else(|| malformed("bytes written as text with characters beyond Latin-1"))
}

/// The bytes of a pickle, as they arrive.
struct Stream<'a> {
    reader: Box<dyn BufRead + 'a>,
    position: u64,
    limit: u64,
}

impl Stream<'_> {
    /// Hands the next `count` bytes to `keep`.
    fn take(&mut self, count: u64, mut keep: impl FnMut(&[u8])) -> Result<(), Problem> {
        let end = self.position.saturating_add(count);
        while self.position < end {
            if self.position >= self.limit {
                let (found, limit, name) = (self.position, self.limit, "expanded_bytes");
                return Err(Problem::Limit { what: "the expanded size", found, limit, name });
            }
            let available = self.reader.fill_buf().map_err(damaged)?;
            if available.is_empty() {
                return Err(Problem::Truncated { part: "the pickle", needed: end, found: self.position });
            }
            let taken = available.len().min(usize::try_from(end - self.position).unwrap_or(usize::MAX));
            keep(&available[..taken]);
            self.reader.consume(taken);
            self.position += taken as u64;
        }
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let (mut bytes, mut filled) = ([0; N], 0);
        self.take(N as u64, |part| {
            bytes[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        })?;
        Ok(bytes)
    }

    /// A length of 1, 4 or 8 bytes.
    fn length<const N: usize>(&mut self) -> Result<u64, Problem> {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&self.bytes::<N>()?);
        Ok(u64::from_le_bytes(bytes))
    }

    /// The bytes up to the end of the line, without it.
    fn line(&mut self) -> Result<String, Problem> {
        let mut line = vec![];
        loop {
            match self.bytes()? {
                [b'\n'] => return Ok(String::from_utf8_lossy(&line).into_owned()),
                [byte] => line.push(byte),
            }
            if line.len() > LONGEST_LINE {
                return Err(malformed("a name of more than 1000 bytes"));
            }
        }
    }
}

/// The stack machine, without the opcodes that run code.
struct Machine<'a> {
    stream: Stream<'a>,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    /// Heights of the stack at the marks that are open.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    /// Objects, references and text, as far as they cost memory.
    objects: u64,
    file_bytes: u64,
    limits: &'a Limits,
}

impl<'a> Machine<'a> {
    fn new(reader: Box<dyn BufRead + 'a>, file_bytes: usize, limits: &'a Limits) -> Self {
        Self {
            stream: Stream { reader, position: 0, limit: limits.expanded_bytes },
            nodes: vec![],
            stack: vec![],
            marks: vec![],
            memo: HashMap::new(),
            objects: 0,
            file_bytes: file_bytes as u64,
            limits,
        }
    }

    /// Runs the pickle to its end; gives the object that is the result.
    fn run(&mut self) -> Result<Id, Problem> {
        let mut frame_end = 0;
        loop {
            match self.stream.bytes()? {
                [b'.'] => break,
                [0x95] => {
                    let length = self.stream.length::<8>()?;
                    frame_end = self.stream.position.saturating_add(length);
                }
                [opcode] => self.step(opcode)?,
            }
        }
        let root = self.pop()?;
        if !(self.stack.is_empty() && self.marks.is_empty()) {
            return Err(malformed("more than one object on the stack at its end"));
        }
        let found = self.stream.position;
        if frame_end > found {
            return Err(Problem::Truncated {
                part: "the last frame of the pickle",
                needed: frame_end,
                found,
            });
        }
        Ok(root)
    }

    fn step(&mut self, opcode: u8) -> Result<(), Problem> {
        match opcode {
            0x80 => match self.stream.bytes()? {
                [2..=NEWEST_PROTOCOL] => Ok(()),
                [version] => {
                    let advice = "save the file again with protocol 4";
                    Err(refused("the protocol of the pickle", version, "2 to 5", advice))
                }
            },
            b'N' => self.add(Node::None),
            0x88 => self.add(Node::Bool(true)),
            0x89 => self.add(Node::Bool(false)),
            b'K' => self.integer(1, false),
            b'M' => self.integer(2, false),
            b'J' => self.integer(4, true),
            0x8a => self.stream.length::<1>().and_then(|count| self.integer(count, true)),
            0x8b => self.stream.length::<4>().and_then(|count| self.integer(count, true)),
            b'G' => self.stream.bytes::<8>().and_then(|_| self.add(Node::Float)),
            // Strings of Python 2, U and T, are text or bytes; which of them is not in the file.
            0x8c | b'U' => self.stream.length::<1>().and_then(|count| self.text(count)),
            b'X' | b'T' => self.stream.length::<4>().and_then(|count| self.text(count)),
            0x8d => self.stream.length::<8>().and_then(|count| self.text(count)),
            b'C' => self.stream.length::<1>().and_then(|count| self.content(count)),
            b'B' => self.stream.length::<4>().and_then(|count| self.content(count)),
            0x8e | 0x96 => self.stream.length::<8>().and_then(|count| self.content(count)),
            b'(' => {
                self.marks.push(self.stack.len());
                self.count(1)
            }
            b'0' if self.marks.last() != Some(&self.stack.len()) => self.pop().map(drop),
            b'0' | b'1' => self.pop_to_mark().map(drop),
            b'2' => self.top().and_then(|id| self.push(id)),
            b')' => self.add(Node::Tuple(vec![])),
            b't' => self.pop_to_mark().and_then(|items| self.add(Node::Tuple(items))),
            0x85..=0x87 => self.pop_several(opcode - 0x84).and_then(|items| self.add(Node::Tuple(items))),
            b']' => self.add(Node::List(vec![])),
            b'l' => self.pop_to_mark().and_then(|items| self.add(Node::List(items))),
            b'}' => self.add(Node::Dict(vec![])),
            b'd' => {
                let items = self.pop_to_mark()?;
                self.add(Node::Dict(vec![])).and_then(|()| self.extend(items))
            }
            0x8f => self.add(Node::Set),
            0x91 => self.pop_to_mark().and_then(|_| self.add(Node::Set)),
            b'a' => self.pop_several(1).and_then(|items| self.extend(items)),
            b's' => self.pop_several(2).and_then(|items| self.extend(items)),
            b'e' | b'u' | 0x90 => self.pop_to_mark().and_then(|items| self.extend(items)),
            b'q' => self.stream.length::<1>().and_then(|place| self.remember(place)),
            b'r' => self.stream.length::<4>().and_then(|place| self.remember(place)),
            0x94 => self.remember(self.memo.len() as u64),
            b'h' => self.stream.length::<1>().and_then(|place| self.recall(place)),
            b'j' => self.stream.length::<4>().and_then(|place| self.recall(place)),
            b'c' => {
                let (module, name) = (self.stream.line()?, self.stream.line()?);
                self.add(Node::Name(known(&module, &name)?))
            }
            0x93 => {
                let name = match self.pop_several(2)?.as_slice() {
                    &[module, name] => match (self.node(module), self.node(name)) {
                        (Node::Text(module, _), Node::Text(name, _)) => known(module, name)?,
                        _ => return Err(malformed("the name of a class or function that is no text")),
                    },
                    _ => return Err(too_few()),
                };
                self.add(Node::Name(name))
            }
            b'R' | 0x81 => self.call(),
            b'b' => self.set_state(),
            b'Q' => {
                let arguments = self.pop()?;
                self.add(Node::Object { name: PERSISTENT, arguments, state: None })
            }
            _ => Err(unknown_opcode(opcode, self.stream.position)),
        }
    }

    fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    /// Counts memory: objects, references, places on the stack.
    fn count(&mut self, objects: usize) -> Result<(), Problem> {
        self.objects += objects as u64;
        let (what, found) = ("the number of objects in the pickle", self.objects);
        within(what, found, self.limits.objects, "objects")?;
        if found > FREE_OBJECTS + self.file_bytes / BYTES_PER_OBJECT {
            let found = format!("{found} in a file of {} bytes", self.file_bytes);
            let allowed = "200,000 and one for every 8 bytes of the file";
            let advice = "small files of many objects are built to exhaust memory; if this one is genuine, save NumPy \
                          arrays in place of lists";
            return Err(refused(what, found, allowed, advice));
        }
        Ok(())
    }

    fn add(&mut self, node: Node) -> Result<(), Problem> {
        self.count(1)?;
        let id = self.nodes.len() as Id;
        self.nodes.push(node);
        self.push(id)
    }

    fn push(&mut self, id: Id) -> Result<(), Problem> {
        self.stack.push(id);
        self.count(1)
    }

    /// The object on top; those below the last mark are out of reach.
    fn top(&self) -> Result<Id, Problem> {
        let floor = self.marks.last().copied().unwrap_or(0);
        self.stack[floor..].last().copied().ok_or_else(too_few)
    }

    fn pop(&mut self) -> Result<Id, Problem> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Takes the last objects, in the order in which they came.
    fn pop_several(&mut self, count: u8) -> Result<Vec<Id>, Problem> {
        let mut items = (0..count).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
        items.reverse();
        Ok(items)
    }

    /// Takes all objects above the last mark, and the mark.
    fn pop_to_mark(&mut self) -> Result<Vec<Id>, Problem> {
        let height = self.marks.pop().ok_or_else(|| malformed("an opcode that needs a mark, without one"))?;
        Ok(self.stack.split_off(height))
    }

    /// A whole number of some bytes, least significant first.
    fn integer(&mut self, count: u64, signed: bool) -> Result<(), Problem> {
        if count > 8 {
            return Err(Problem::Unsupported {
                what: format!("a whole number of {count} bytes, beyond 64 bits"),
                advice: "save it as a float or as text",
            });
        }
        let mut bytes = vec![];
        self.stream.take(count, |part| bytes.extend_from_slice(part))?;
        let negative = signed && bytes.last().is_some_and(|&b| b >= 0x80);
        bytes.resize(8, if negative { 0xff } else { 0 });
        let number = bytes.iter().rev().fold(0, |number: i64, &byte| number << 8 | i64::from(byte));
        self.add(Node::Int(number))
    }

    /// Text where it is short and UTF-8, else content: only the bytes of an array can be that.
    fn text(&mut self, count: u64) -> Result<(), Problem> {
        if count > LONGEST_TEXT {
            return self.content(count);
        }
        self.count(count.div_ceil(TEXT_PER_OBJECT) as usize)?;
        let (start, mut bytes) = (self.stream.position, vec![]);
        self.stream.take(count, |part| bytes.extend_from_slice(part))?;
        match String::from_utf8(bytes) {
            Ok(text) => self.add(Node::Text(text.into(), start)),
            Err(_) => self.add(Node::Content(start..start + count)),
        }
    }

    fn content(&mut self, count: u64) -> Result<(), Problem> {
        let start = self.stream.position;
        self.stream.take(count, |_| {})?;
        self.add(Node::Content(start..self.stream.position))
    }

    /// Adds items to the list, dictionary or set on top.
    fn extend(&mut self, items: Vec<Id>) -> Result<(), Problem> {
        self.count(items.len())?;
        let top = self.top()? as usize;
        match &mut self.nodes[top] {
            Node::List(list) => list.extend(items),
            Node::Dict(list) if items.len().is_multiple_of(2) => list.extend(items),
            Node::Set => {}
            _ => return Err(malformed("items for an object that takes none")),
        }
        Ok(())
    }

    fn remember(&mut self, place: u64) -> Result<(), Problem> {
        let top = self.top()?;
        self.memo.insert(place as u32, top);
        self.count(1)
    }

    fn recall(&mut self, place: u64) -> Result<(), Problem> {
        let id = self.memo.get(&(place as u32)).copied();
        self.push(id.ok_or_else(|| malformed("a memo number that was never given"))?)
    }

    /// Makes an object of a name and its arguments; sets and dictionaries are what they are.
    fn call(&mut self) -> Result<(), Problem> {
        const NO_PAIRS: &str = "an OrderedDict that is not made of pairs";
        let (arguments, callable) = (self.pop()?, self.pop()?);
        let (Node::Name(name), Node::Tuple(items)) = (self.node(callable), self.node(arguments)) else {
            return Err(malformed("a call of something that is no class or function"));
        };
        let node = match (*name, items.first()) {
            ("set" | "frozenset", _) => Node::Set,
            ("OrderedDict", None) => Node::Dict(vec![]),
            ("OrderedDict", Some(&pairs)) => {
                let Node::List(pairs) = self.node(pairs) else { return Err(malformed(NO_PAIRS)) };
                let pair = |&id: &Id| match self.node(id) {
                    Node::List(pair) | Node::Tuple(pair) if pair.len() == 2 => Ok(pair.clone()),
                    _ => Err(malformed(NO_PAIRS)),
                };
                Node::Dict(pairs.iter().map(pair).collect::<Result<Vec<_>, _>>()?.concat())
            }
            (name, _) => Node::Object { name, arguments, state: None },
        };
        self.add(node)
    }

    fn set_state(&mut self) -> Result<(), Problem> {
        let (state, object) = (self.pop()?, self.top()? as usize);
        match &mut self.nodes[object] {
            Node::Object { state: place, .. } => *place = Some(state),
            // Attributes of a dictionary (`_metadata` in PyTorch) are not part of its content.
            Node::Dict(_) => {}
            _ => return Err(malformed("a state for an object that has none")),
        }
        Ok(())
    }
}

/// Looks a name up; one that is not known refuses the file.
fn known(module: &str, name: &str) -> Result<&'static str, Problem> {
    let names = NAMES.iter().filter(|(modules, _)| modules.contains(&module)).flat_map(|(_, names)| *names);
    names.copied().find(|known| *known == name).ok_or_else(|| Problem::Unsupported {
        what: format!(
            "the class or function {:?} in a pickle",
            format!("{module}.{name}").chars().take(200).collect::<String>()
        ),
        advice: "this reader builds data only and never runs code from a file: save dictionaries, lists, numbers, \
                 text and NumPy arrays (for PyTorch, model.state_dict())",
    })
}

/// A pickle that breaks the rules of its own format.
pub(crate) fn malformed(found: &'static str) -> Problem {
    let advice = "copy the file again, or save the object again with Python's pickle module";
    refused("the pickle", format!("damaged: it has {found}"), "as Python writes it", advice)
}

fn too_few() -> Problem {
    malformed("an opcode that takes more from the stack than there is")
}

fn damaged(error: std::io::Error) -> Problem {
    Problem::Damaged { part: "the compressed data", reason: error.to_string() }
}

fn unknown_opcode(opcode: u8, position: u64) -> Problem {
    let what = match opcode {
        b'i' | b'o' | 0x92 => "an object of a class of its own",
        0x82..=0x84 => "a name from Python's extension registry",
        0x97 | 0x98 => "data in buffers outside the file",
        b'I' | b'L' | b'F' | b'S' | b'V' | b'g' | b'p' | b'P' => "the text form of protocols 0 and 1",
        _ => "an unknown opcode, in a file that is damaged or no pickle,",
    };
    Problem::Unsupported {
        what: format!("{what} (opcode 0x{opcode:02x} at byte {})", position.saturating_sub(1)),
        advice: "this reader builds data only: save dictionaries, lists, numbers, text and NumPy arrays with protocol 4",
    }
}

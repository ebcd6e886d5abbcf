//! The objects that a pickle builds, while it builds them.
//!
//! Objects lie in one table and refer to each other by number: nothing here is recursive, so neither depth
//! nor cycles in a hostile file can hurt. `finish` turns the table into a value.

use super::array::{Dtype, Pending};
use super::budget::Budget;
use super::globals::Global;
use super::torch_file::tensor::{Storage, Tensor};
use crate::array::Array;
use crate::error::Problem;

/// The number of an object in the table.
pub(super) type Id = u32;

/// What one object costs: its place in the table, with room for the table to grow, and its value at the end.
const NODE_BYTES: u64 = 64;
/// What a container costs beyond its place in the table: what the allocator and the counters of sharing take.
const CONTAINER_BYTES: u64 = 64;
/// What one reference in a container costs: its number, and the value at the end.
const LINK_BYTES: u64 = 24;
/// NumPy arrays have at most this many axes.
const MAX_RANK: usize = 64;

/// An object under construction.
#[derive(Debug)]
pub(super) enum Node {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(Vec<u8>),
    /// A string of Python 2: text if it is ASCII, and else only good as the bytes of an array.
    OldText(Vec<u8>),
    Text(String),
    List(Vec<Id>),
    Tuple(Box<[Id]>),
    /// Keys and values in turn.
    Dict(Vec<Id>),
    Set(Vec<Id>),
    Global(Global),
    Dtype(Dtype),
    /// A NumPy array that was named but not filled yet.
    Pending(Pending),
    Array(Box<Array>),
    /// Bytes that were moved into an array.
    Moved,
    Storage(Box<Storage>),
    Tensor(Box<Tensor>),
}

impl Node {
    /// What it is, for refusals.
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Float(_) => "a float",
            Self::Bytes(_) => "bytes",
            Self::OldText(_) => "a string of Python 2",
            Self::Text(_) => "a str",
            Self::List(_) => "a list",
            Self::Tuple(_) => "a tuple",
            Self::Dict(_) => "a dict",
            Self::Set(_) => "a set",
            Self::Global(_) => "a class or function",
            Self::Dtype(_) => "a NumPy dtype",
            Self::Pending(_) => "a NumPy array without content",
            Self::Array(_) => "a NumPy array",
            Self::Moved => "bytes that already became an array",
            Self::Storage(_) => "a PyTorch storage",
            Self::Tensor(_) => "a PyTorch tensor",
        }
    }
}

/// Objects that every pickle uses often exist once, at these places.
pub(super) const NONE: Id = 0;
pub(super) const FALSE: Id = 1;
pub(super) const TRUE: Id = 2;
pub(super) const EMPTY_TUPLE: Id = 3;

/// The table of objects.
pub(super) struct Heap {
    nodes: Vec<Node>,
    pub(super) budget: Budget,
}

impl Heap {
    /// A table with the objects that exist once.
    pub(super) fn new(budget: Budget) -> Self {
        let nodes = vec![Node::None, Node::Bool(false), Node::Bool(true), Node::Tuple([].into())];
        Self { nodes, budget }
    }

    /// Adds an object.
    pub(super) fn add(&mut self, node: Node) -> Result<Id, Problem> {
        let (bytes, links) = match &node {
            Node::List(items) | Node::Dict(items) | Node::Set(items) => (CONTAINER_BYTES, items.len()),
            Node::Tuple(items) => (CONTAINER_BYTES, items.len()),
            Node::None | Node::Bool(_) | Node::Int(_) | Node::Float(_) => (0, 0),
            _ => (CONTAINER_BYTES, 0),
        };
        self.budget.add_objects(1, NODE_BYTES + bytes)?;
        self.count_links(links)?;
        let id = Id::try_from(self.nodes.len()).map_err(|_| Problem::Limit {
            what: "the number of objects in the pickle",
            found: self.nodes.len() as u64,
            limit: Id::MAX.into(),
            name: "objects",
        })?;
        self.nodes.push(node);
        Ok(id)
    }

    /// Counts references that are added to a container.
    pub(super) fn count_links(&mut self, count: usize) -> Result<(), Problem> {
        self.budget.add_objects(count as u64, (count as u64).saturating_mul(LINK_BYTES))
    }

    /// An object. Numbers come from this table only; one that did not would read as moved.
    pub(super) fn get(&self, id: Id) -> &Node {
        self.nodes.get(id as usize).unwrap_or(&Node::Moved)
    }

    /// An object, to change it.
    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Node> {
        self.nodes.get_mut(id as usize)
    }

    /// Takes an object out and leaves a mark in its place.
    pub(super) fn take(&mut self, id: Id) -> Node {
        self.get_mut(id).map_or(Node::Moved, |node| std::mem::replace(node, Node::Moved))
    }

    /// How many objects there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The elements of a tuple.
    pub(super) fn tuple(&self, id: Id) -> Option<&[Id]> {
        if let Node::Tuple(items) = self.get(id) { Some(items) } else { None }
    }

    /// A text, or a string of Python 2 that is ASCII.
    pub(super) fn text(&self, id: Id) -> Option<&str> {
        match self.get(id) {
            Node::Text(text) => Some(text),
            Node::OldText(bytes) if bytes.is_ascii() => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// A whole number that is not negative.
    pub(super) fn size(&self, id: Id) -> Option<usize> {
        if let Node::Int(x) = self.get(id) { usize::try_from(*x).ok() } else { None }
    }

    /// A tuple of whole numbers that are not negative, not longer than arrays have axes.
    pub(super) fn sizes(&self, id: Id) -> Option<Vec<usize>> {
        let items = self.tuple(id).filter(|items| items.len() <= MAX_RANK)?;
        items.iter().map(|&x| self.size(x)).collect()
    }
}

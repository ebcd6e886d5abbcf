//! Opcodes that make containers and fill them.

use super::heap::{self, Id, Node};
use super::machine::{Machine, malformed};
use super::opcodes as op;
use crate::error::Problem;

impl Machine {
    /// The opcodes that make a container of what lies on the stack.
    pub(super) fn container(&mut self, opcode: u8) -> Result<(), Problem> {
        let count = match opcode {
            op::TUPLE1 => 1,
            op::TUPLE2 => 2,
            op::TUPLE3 => 3,
            _ => {
                let items = self.pop_to_mark()?;
                return match opcode {
                    op::TUPLE if items.is_empty() => self.push(heap::EMPTY_TUPLE),
                    op::TUPLE => self.add(Node::Tuple(items.into())),
                    op::LIST => self.add(Node::List(items)),
                    op::DICT => even(&items).and_then(|()| self.add(Node::Dict(items))),
                    _ => self.add(Node::Set(items)),
                };
            }
        };
        let mut items = (0..count).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
        items.reverse();
        self.add(Node::Tuple(items.into()))
    }

    /// The opcodes that put what lies on the stack into the container below it.
    pub(super) fn extend(&mut self, opcode: u8) -> Result<(), Problem> {
        let items = match opcode {
            op::APPEND => vec![self.pop()?],
            op::SETITEM => {
                let (value, key) = (self.pop()?, self.pop()?);
                vec![key, value]
            }
            _ => self.pop_to_mark()?,
        };
        let target = self.top()?;
        self.heap.count_links(items.len())?;
        match (opcode, self.heap.get_mut(target)) {
            (op::APPEND | op::APPENDS, Some(Node::List(list))) => list.extend(items),
            (op::SETITEM | op::SETITEMS, Some(Node::Dict(pairs))) => {
                even(&items)?;
                pairs.extend(items);
            }
            (op::ADDITEMS, Some(Node::Set(set))) => set.extend(items),
            _ => return Err(malformed("an element for an object that is no container for it")),
        }
        Ok(())
    }
}

fn even(items: &[Id]) -> Result<(), Problem> {
    if items.len().is_multiple_of(2) { Ok(()) } else { Err(malformed("a key without a value")) }
}

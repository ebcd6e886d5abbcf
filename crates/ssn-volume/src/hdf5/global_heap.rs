//! Global heaps: collections of texts of variable length, each with a number.

use std::collections::{BTreeMap, BTreeSet};

use super::bytes::{Cursor, File};
use crate::error::Problem;

const PART: &str = "a global heap";
/// Bytes before the objects of a collection, and before the content of an object.
const HEAD: u64 = 16;
/// Objects whose places are remembered: those of all texts of the LIDC file, in 6 MB at most.
const REMEMBERED: usize = 1 << 16;

pub(super) struct GlobalHeap<'f, 'a> {
    pub(super) file: &'f File<'a>,
    /// Addresses of the collections that are remembered; texts of a dataset may lie in many of them by turns.
    collections: BTreeSet<u64>,
    /// Their objects, by the address of the collection and the number.
    objects: BTreeMap<(u64, u16), &'a [u8]>,
}

impl<'f, 'a> GlobalHeap<'f, 'a> {
    pub(super) fn new(file: &'f File<'a>) -> Self {
        Self { file, collections: BTreeSet::new(), objects: BTreeMap::new() }
    }

    /// An object of the collection at an address.
    pub(super) fn object(&mut self, address: u64, number: u32) -> Result<&'a [u8], Problem> {
        if !self.collections.contains(&address) {
            if self.objects.len() > REMEMBERED {
                self.collections.clear();
                self.objects.clear();
            }
            self.remember(address)?;
        }
        let object = u16::try_from(number).ok().and_then(|number| self.objects.get(&(address, number)));
        object
            .copied()
            .ok_or_else(|| Problem::Damaged { part: PART, reason: format!("it has no object {number}") })
    }

    fn remember(&mut self, address: u64) -> Result<(), Problem> {
        let mut head = self.file.part(address, HEAD, PART)?;
        head.signature(b"GCOL")?;
        head.version(1)?;
        head.skip(3)?;
        let length = head.u64()?.saturating_sub(HEAD);
        let content = self.file.values(address.saturating_add(HEAD), length, PART)?;
        let mut rest = Cursor { rest: content, part: PART };
        while rest.rest.len() as u64 >= HEAD {
            self.file.count(HEAD)?;
            let number = rest.u16()?;
            rest.skip(2 + 4)?;
            let length = rest.u64()? as usize;
            // Number 0 is the free space at the end.
            if number == 0 {
                break;
            }
            self.objects.insert((address, number), rest.bytes(length)?);
            rest.skip(rest.rest.len().min(length.wrapping_neg() % 8))?;
        }
        self.collections.insert(address);
        Ok(())
    }
}

//! Parts of HDF5 files, put together by hand: a writer would not write these files.

pub const NOWHERE: u64 = u64::MAX;
pub const DATASPACE: u16 = 1;
pub const DATATYPE: u16 = 3;
pub const LINK: u16 = 6;
pub const LAYOUT: u16 = 8;
pub const FILTERS: u16 = 11;
pub const ATTRIBUTE: u16 = 12;
pub const CONTINUATION: u16 = 16;
/// The datatype of bytes, and of texts of variable length.
pub const BYTES: [u8; 12] = [0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];
pub const TEXTS: [u8; 20] = [0x19, 1, 0, 0, 16, 0, 0, 0, 0x13, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0];

/// A file that grows part by part.
pub struct File(pub Vec<u8>);

impl File {
    pub fn new() -> Self {
        Self(vec![0; 96])
    }

    /// Adds a part and says where it lies.
    pub fn put(&mut self, part: &[u8]) -> u64 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self.0.extend(part);
        (self.0.len() - part.len()) as u64
    }

    /// Adds an object that is nothing but messages.
    pub fn object(&mut self, messages: &[u8]) -> u64 {
        self.put(&header(messages))
    }

    /// Adds a group of symbols, each with the place of its name among the names and the address of its object.
    pub fn symbols(&mut self, names: &[u8], symbols: &[(u64, u64)]) -> u64 {
        let table = self.symbol_table(symbols);
        let tree = self.put(&tree(0, 0, &[numbers(&[0, table])]));
        self.group(names, tree)
    }

    /// Adds a group whose symbols are found by a tree.
    pub fn group(&mut self, names: &[u8], tree: u64) -> u64 {
        let data = self.put(names);
        let heap = self.put(&[b"HEAP\0\0\0\0".to_vec(), numbers(&[names.len() as u64, 1, data])].concat());
        self.object(&message(17, &numbers(&[tree, heap])))
    }

    pub fn symbol_table(&mut self, symbols: &[(u64, u64)]) -> u64 {
        let mut table = b"SNOD\x01\0".to_vec();
        table.extend((symbols.len() as u16).to_le_bytes());
        table.extend(symbols.iter().flat_map(|&(name, object)| numbers(&[name, object, 0, 0, 0])));
        self.put(&table)
    }

    /// The bytes of the file, with the superblock of the oldest version.
    pub fn with_root(mut self, root: u64) -> Vec<u8> {
        let start = b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0\x04\0\x10\0\0\0\0\0".to_vec();
        let end = self.0.len() as u64;
        let fields = numbers(&[0, NOWHERE, end, NOWHERE, 0, root, 0, 0, 0]);
        self.0[..96].copy_from_slice(&[start, fields].concat());
        self.0
    }
}

pub fn numbers(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// An object header of the oldest version.
pub fn header(messages: &[u8]) -> Vec<u8> {
    let length = messages.len() as u32;
    [&[1, 0, 0, 0, 1, 0, 0, 0][..], &length.to_le_bytes(), &[0; 4], messages].concat()
}

pub fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u16;
    [&kind.to_le_bytes()[..], &length.to_le_bytes(), &[0; 4], body].concat()
}

/// The body of a link to an object, or along a path.
pub fn link(name: &str, object: u64) -> Vec<u8> {
    [&[1, 2][..], &(name.len() as u32).to_le_bytes(), name.as_bytes(), &numbers(&[object])].concat()
}

pub fn soft_link(name: &str, path: &str) -> Vec<u8> {
    let length = (path.len() as u16).to_le_bytes();
    [&[1, 0b1010, 1][..], &(name.len() as u32).to_le_bytes(), name.as_bytes(), &length, path.as_bytes()]
        .concat()
}

/// The messages of a dataset with one axis in one piece.
pub fn dataset(datatype: &[u8], count: u64, address: u64) -> Vec<u8> {
    let layout = [&[3, 1][..], &numbers(&[address, NOWHERE])].concat();
    [space(count), message(DATATYPE, datatype), message(LAYOUT, &layout)].concat()
}

/// The messages of a dataset with one axis, in chunks that were shuffled, have gzip, and are found by a tree.
pub fn chunked(datatype: &[u8], count: u64, chunk: u32, tree: u64) -> Vec<u8> {
    let element = &datatype[4..8];
    let layout = [&[3, 2, 2][..], &numbers(&[tree]), &chunk.to_le_bytes(), element].concat();
    let filters = [2, 2, 2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0];
    [space(count), message(DATATYPE, datatype), message(LAYOUT, &layout), message(FILTERS, &filters)].concat()
}

fn space(count: u64) -> Vec<u8> {
    message(DATASPACE, &[&[1, 1, 0, 0, 0, 0, 0, 0][..], &numbers(&[count])].concat())
}

/// A node of a tree, from its keys with the addresses below them.
pub fn tree(kind: u8, level: u8, entries: &[Vec<u8>]) -> Vec<u8> {
    let count = (entries.len() as u16).to_le_bytes();
    [&b"TREE"[..], &[kind, level], &count, &numbers(&[NOWHERE; 2]), &entries.concat()].concat()
}

/// The key of a chunk of one axis and its address.
pub fn chunk_key(stored: usize, first: u64, address: u64) -> Vec<u8> {
    [&(stored as u64).to_le_bytes()[..], &numbers(&[first, 0, address])].concat()
}

/// A part with its check sum.
pub fn sealed(part: &[&[u8]]) -> Vec<u8> {
    let part = part.concat();
    let sum = lookup3(&part);
    [&part[..], &sum.to_le_bytes()].concat()
}

fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut words = bytes.to_vec();
    words.resize(bytes.len().next_multiple_of(12), 0);
    let word = |at: usize| u32::from_le_bytes(words[at..at + 4].try_into().unwrap());
    for at in (0..words.len()).step_by(12) {
        (a, b, c) = (a.wrapping_add(word(at)), b.wrapping_add(word(at + 4)), c.wrapping_add(word(at + 8)));
        if at + 12 < words.len() {
            for turn in [4, 6, 8, 16, 19, 4] {
                let next = a.wrapping_sub(c) ^ c.rotate_left(turn);
                (a, b, c) = (b, c.wrapping_add(b), next);
            }
        } else {
            for turn in [14, 11, 25, 16, 4, 14, 24] {
                let next = (c ^ b).wrapping_sub(b.rotate_left(turn));
                (a, b, c) = (b, next, a);
            }
            // Seven turns of three names leave the last one in the second place.
            c = b;
        }
    }
    c
}

//! HDF5: files whose parts share what costs memory or time, and one that expands as much as it may.

use super::hdf5_parts::*;
use super::{ANY, Case, DAMAGED, READ, SIZE, case, zlib};

/// What becomes of the files, by default: a part of what the reader says.
const TOO_OFTEN: &str = "leads to its own bytes again and again";
const TOO_LARGE: &str = "in total at most 30 times the file";
const TOO_LONG: &str = "at most 4096 bytes";
const MEMBERS: &str = "`members`";

pub fn cases() -> Vec<Case> {
    let file = |name: &str, bytes: Vec<u8>, outcome| case(format!("{name}.h5"), bytes, outcome);
    vec![
        file("shared-name", shared_name(500_000, 10_000), TOO_OFTEN),
        file("shared-short-name", shared_name(2000, 20_000), TOO_LARGE),
        file("long-name", shared_name(500_000, 1), TOO_LONG),
        file("shared-header", shared_header(), TOO_OFTEN),
        file("shared-continuation", shared_continuation(), TOO_OFTEN),
        file("continuations", continuations(), READ),
        file("endless-continuation", endless_continuation(), "it is longer than the file"),
        file("long-headers", long_headers(), READ),
        file("attributes", attributes(), READ),
        file("loop", group_in_itself(), "is linked twice or lies too deep"),
        file("tree-in-itself", tree_in_itself(), DAMAGED),
        file("shared-tree", shared_tree(), MEMBERS),
        file("empty-trees", empty_trees(), TOO_OFTEN),
        file("long-paths", long_paths(), TOO_LONG),
        file("soft-links", soft_links(), TOO_OFTEN),
        file("links-to-links", links_to_links(), TOO_OFTEN),
        file("dense-links", dense_links(), TOO_OFTEN),
        file("shared-rows", shared_rows(), TOO_OFTEN),
        file("huge-heap", huge_heap(), "is cut off"),
        file("shared-text", shared_text(), TOO_LARGE),
        file("shared-collections", shared_collections(), TOO_OFTEN),
        file("most-chunks", zeros(28 * SIZE, 7 * SIZE), READ),
        file("most-chunks-of-a-stranger", zeros(7 * SIZE, 2 * SIZE), READ),
        file("much-chunks", zeros(31 * SIZE, 7 * SIZE), TOO_LARGE),
        file("large-chunk", zeros(28 * SIZE, 14 * SIZE), "at most a quarter"),
        file("large-text-chunk", large_text_chunk(), "at most a quarter"),
        file("shared-chunk", shared_chunk(), TOO_OFTEN),
        file("chunk-again", chunk_again(), "chunks are not in order"),
        file("any", include_bytes!("../hdf5_files/gzip.h5").to_vec(), ANY),
    ]
}

/// Links that all have one long name and lead to one dataset.
fn shared_name(length: usize, links: usize) -> Vec<u8> {
    let mut file = File::new();
    let object = file.object(&dataset(&BYTES, 0, NOWHERE));
    let root = file.symbols(&[&vec![b'n'; length][..], b"\0"].concat(), &vec![(0, object); links]);
    file.with_root(root)
}

fn group_of(mut file: File, links: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let links: Vec<u8> = links.flat_map(|link| message(LINK, &link)).collect();
    let root = file.object(&links);
    file.with_root(root)
}

/// Messages without content, which say nothing.
fn padding(bytes: usize) -> Vec<u8> {
    message(ATTRIBUTE, &[]).repeat(bytes / 8)
}

/// Many names of one dataset with a long header.
fn shared_header() -> Vec<u8> {
    let mut file = File::new();
    let object = file.object(&[dataset(&BYTES, 0, NOWHERE), padding(400_000)].concat());
    group_of(file, (0..20_000).map(|i| link(&i.to_string(), object)))
}

/// Many datasets with short headers, all of which continue in one long block.
fn shared_continuation() -> Vec<u8> {
    let mut file = File::new();
    let block = [dataset(&BYTES, 0, NOWHERE), padding(400_000)].concat();
    let address = file.put(&block);
    let short = message(CONTINUATION, &numbers(&[address, block.len() as u64]));
    let objects: Vec<u64> = (0..8_000).map(|_| file.object(&short)).collect();
    group_of(file, objects.into_iter().enumerate().map(|(i, object)| link(&i.to_string(), object)))
}

/// Groups in groups whose headers, of the newer form, all continue in one block of short messages.
fn long_headers() -> Vec<u8> {
    let mut file = File::new();
    let block = sealed(&[b"OCHK", &[ATTRIBUTE as u8, 0, 0, 0].repeat(SIZE / 4 - 1000)]);
    let address = file.put(&block);
    let mut object = file.object(&dataset(&BYTES, 0, NOWHERE));
    for _ in 0..16 {
        let link = link("a", object);
        let messages = [
            &[CONTINUATION as u8, 16, 0, 0][..],
            &numbers(&[address, block.len() as u64]),
            &[LINK as u8, link.len() as u8, 0, 0],
            &link,
        ];
        let messages = messages.concat();
        object = file.put(&sealed(&[b"OHDR\x02\0", &[messages.len() as u8], &messages]));
    }
    file.with_root(object)
}

/// A header that continues again and again, with one message in each block.
fn continuations() -> Vec<u8> {
    let mut file = File::new();
    let (mut address, mut length) = (0, 0);
    for _ in 0..SIZE / 24 - 10 {
        let block = message(CONTINUATION, &numbers(&[address, length]));
        (address, length) = (file.put(&block), block.len() as u64);
    }
    let root = file.object(&message(CONTINUATION, &numbers(&[address, length])));
    file.with_root(root)
}

/// A block that continues in itself twice.
fn endless_continuation() -> Vec<u8> {
    let mut file = File::new();
    let address = file.0.len() as u64;
    let block = message(CONTINUATION, &numbers(&[address, 48])).repeat(2);
    file.put(&block);
    let root = file.object(&block);
    file.0.resize(SIZE, 0);
    file.with_root(root)
}

fn attributes() -> Vec<u8> {
    let mut file = File::new();
    let object = file.object(&[dataset(&BYTES, 0, NOWHERE), padding(SIZE - 1000)].concat());
    group_of(file, std::iter::once(link("a", object)))
}

fn group_in_itself() -> Vec<u8> {
    let file = File::new();
    let root = file.0.len() as u64;
    group_of(file, std::iter::once(link("a", root)))
}

fn tree_in_itself() -> Vec<u8> {
    let mut file = File::new();
    let address = file.0.len() as u64;
    let tree = file.put(&tree(0, 1, &vec![numbers(&[0, address]); 60_000]));
    let root = file.group(b"a\0", tree);
    file.with_root(root)
}

/// Levels of nodes that have the node below as each of their children.
fn levels(file: &mut File, mut below: u64, levels: u8, children: usize) -> u64 {
    for level in 0..levels {
        below = file.put(&tree(0, level, &vec![numbers(&[0, below]); children]));
    }
    below
}

fn shared_tree() -> Vec<u8> {
    let mut file = File::new();
    let object = file.object(&dataset(&BYTES, 0, NOWHERE));
    let table = file.symbol_table(&vec![(0, object); 100]);
    let tree = levels(&mut file, table, 20, 1000);
    let root = file.group(b"a\0", tree);
    file.with_root(root)
}

fn empty_trees() -> Vec<u8> {
    let mut file = File::new();
    let table = file.symbol_table(&[]);
    let tree = levels(&mut file, table, 20, 1000);
    let root = file.group(b"\0", tree);
    file.with_root(root)
}

/// Groups in groups that share one long name, so that their paths are long.
fn long_paths() -> Vec<u8> {
    let mut file = File::new();
    let names = [&vec![b'n'; 300][..], b"\0"].concat();
    let data = file.put(&names);
    let heap = file.put(&[b"HEAP\0\0\0\0".to_vec(), numbers(&[names.len() as u64, 1, data])].concat());
    let mut object = file.object(&dataset(&BYTES, 0, NOWHERE));
    for _ in 0..15 {
        let table = file.symbol_table(&[(0, object)]);
        let tree = file.put(&tree(0, 0, &[numbers(&[0, table])]));
        object = file.object(&message(17, &numbers(&[tree, heap])));
    }
    file.with_root(object)
}

/// Links that are all searched for among many.
fn soft_links() -> Vec<u8> {
    group_of(File::new(), (0..25_000).map(|i| soft_link(&i.to_string(), "nothing")))
}

/// Each link goes along the next one twice.
fn links_to_links() -> Vec<u8> {
    let path = |i: usize| format!("{0}/{0}", i + 1);
    let last = soft_link("15", ".");
    group_of(File::new(), (0..15).map(|i| soft_link(&i.to_string(), &path(i))).chain([last]))
}

/// A large group whose records all lead to one link with a long name.
fn dense_links() -> Vec<u8> {
    let mut file = File::new();
    let object = file.object(&dataset(&BYTES, 0, NOWHERE));
    let link = link(&"n".repeat(30_000), object);
    let mut block = [&b"FHDB\0"[..], &[0; 12]].concat();
    block.extend(&link);
    block.resize(1 << 16, 0);
    let block = file.put(&block);
    let heap = file.put(&fractal_heap(1 << 16, block, 0));
    let record = [&[0; 4][..], &[0, 17, 0, 0, 0], &(link.len() as u16).to_le_bytes()].concat();
    let count = 60_000u16;
    let leaf = file.put(&sealed(&[b"BTLF\0\x05", &record.repeat(count.into())]));
    dense_group(file, heap, leaf, count)
}

/// Rows of blocks whose addresses are all those of the same block of addresses.
fn shared_rows() -> Vec<u8> {
    let mut file = File::new();
    let mut block = b"FHDB\0".to_vec();
    block.resize(1024, 0);
    // With four blocks in a row, the first four rows have blocks of up to 1024 bytes, and each other row has blocks
    // with two rows fewer than there are before it.
    let mut tables = vec![file.put(&block); 4];
    let mut children = numbers(&[tables[0]; 8]);
    for row in 2..32 {
        let table = file.put(&sealed(&[b"FHIB\0", &[0; 12], &children]));
        tables.push(table);
        children.extend(numbers(&[tables[row]; 4]));
    }
    let heap = file.put(&fractal_heap(256, tables[33], 31));
    let leaf = file.put(&sealed(&[b"BTLF\0\x05"]));
    dense_group(file, heap, leaf, 0)
}

/// A heap with blocks of a size and up to four times as large, four in a row.
fn fractal_heap(size: u64, root: u64, rows: u16) -> Vec<u8> {
    let fields =
        [&[0, 7, 0, 0, 0, 0][..], &65_535u32.to_le_bytes(), &[0; 96], &[4, 0], &numbers(&[size, 4 * size])];
    let end = [&[32, 0, 1, 0][..], &numbers(&[root]), &rows.to_le_bytes()];
    sealed(&[b"FRHP", &fields.concat(), &end.concat()])
}

fn dense_group(mut file: File, heap: u64, leaf: u64, count: u16) -> Vec<u8> {
    let sizes = [&(1u32 << 20).to_le_bytes()[..], &[11, 0, 0, 0, 100, 40]].concat();
    let counts = [&numbers(&[leaf])[..], &count.to_le_bytes(), &numbers(&[count.into()])].concat();
    let tree = file.put(&sealed(&[b"BTHD\0\x05", &sizes, &counts]));
    let root = file.object(&message(2, &[&[0, 0][..], &numbers(&[heap, tree])].concat()));
    file.with_root(root)
}

fn huge_heap() -> Vec<u8> {
    let mut file = File::new();
    let heap = file.put(&[b"HEAP\0\0\0\0".to_vec(), numbers(&[u64::MAX / 2, 1, 96])].concat());
    let root = file.object(&message(17, &numbers(&[NOWHERE, heap])));
    file.with_root(root)
}

/// A collection of texts, each with its number.
fn collection(texts: &[Vec<u8>]) -> Vec<u8> {
    let mut objects = vec![];
    for (number, text) in (1u64..).zip(texts) {
        objects.extend(numbers(&[number, text.len() as u64]));
        objects.extend(text);
        objects.resize(objects.len().next_multiple_of(8), 0);
    }
    [b"GCOL\x01\0\0\0".to_vec(), numbers(&[objects.len() as u64 + 16]), objects].concat()
}

fn texts(mut file: File, references: &[(u32, u64, u32)]) -> Vec<u8> {
    let bytes = references.iter().flat_map(|(length, heap, number)| {
        [&length.to_le_bytes()[..], &heap.to_le_bytes(), &number.to_le_bytes()].concat()
    });
    let bytes: Vec<u8> = bytes.collect();
    let values = file.put(&bytes);
    let object = file.object(&dataset(&TEXTS, references.len() as u64, values));
    group_of(file, std::iter::once(link("texts", object)))
}

/// Many references to one long text.
fn shared_text() -> Vec<u8> {
    let mut file = File::new();
    let heap = file.put(&collection(&[vec![b't'; 500_000]]));
    texts(file, &vec![(500_000, heap, 1); 30_000])
}

/// References to collections that lie in the texts of one, so that each has all texts behind its own.
fn shared_collections() -> Vec<u8> {
    const TEXTS: u64 = 20_000;
    let mut file = File::new();
    let length = |number: u64| numbers(&[32 * (TEXTS - number) + 16]);
    let heads = (1..=TEXTS).map(|number| [b"GCOL\x01\0\0\0".to_vec(), length(number)].concat());
    let first = file.put(&collection(&heads.collect::<Vec<_>>()));
    let references = (1..8000).map(|number| (1, first + 32 * number, TEXTS as u32));
    texts(file, &references.collect::<Vec<_>>())
}

/// Zeros in chunks that share their bytes.
fn zeros(count: usize, chunk: usize) -> Vec<u8> {
    let mut file = File::new();
    let stored = zlib(&vec![0; chunk]);
    let address = file.put(&stored);
    let keys = (0..count.div_ceil(chunk)).map(|i| chunk_key(stored.len(), (i * chunk) as u64, address));
    let tree = file.put(&tree(1, 0, &keys.collect::<Vec<_>>()));
    let object = file.object(&chunked(&BYTES, count as u64, chunk as u32, tree));
    file.0.resize(SIZE - 1000, 0);
    group_of(file, std::iter::once(link("zeros", object)))
}

/// One text in a chunk that has room for many.
fn large_text_chunk() -> Vec<u8> {
    let mut file = File::new();
    let stored = zlib(&vec![0; SIZE * 80]);
    let address = file.put(&stored);
    let tree = file.put(&tree(1, 0, &[chunk_key(stored.len(), 0, address)]));
    let object = file.object(&chunked(&TEXTS, 1, SIZE as u32 * 5, tree));
    group_of(file, std::iter::once(link("text", object)))
}

/// Datasets of one value each, in one chunk that is large and the same for all.
fn shared_chunk() -> Vec<u8> {
    let mut file = File::new();
    let stored = zlib(&vec![0; SIZE * 6]);
    let address = file.put(&stored);
    let tree = file.put(&tree(1, 0, &[chunk_key(stored.len(), 0, address)]));
    let objects: Vec<u64> =
        (0..4000).map(|_| file.object(&chunked(&BYTES, 1, SIZE as u32 * 6, tree))).collect();
    file.0.resize(SIZE - 200_000, 0);
    group_of(file, objects.into_iter().enumerate().map(|(i, object)| link(&i.to_string(), object)))
}

/// A chunk that stands in its tree again and again.
fn chunk_again() -> Vec<u8> {
    let mut file = File::new();
    let stored = zlib(&vec![0; SIZE]);
    let address = file.put(&stored);
    let tree = file.put(&tree(1, 0, &vec![chunk_key(stored.len(), 0, address); 20_000]));
    let object = file.object(&chunked(&BYTES, SIZE as u64, SIZE as u32, tree));
    group_of(file, std::iter::once(link("zeros", object)))
}

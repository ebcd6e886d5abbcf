//! From the table of objects to a value without cycles, without great depth, and no larger than it looks.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::budget::Budget;
use super::heap::{Heap, Id, Node};
use super::machine::malformed;
use super::torch_file::tensor::Tensor;
use super::value::{MAX_DEPTH, Value};
use crate::array::Array;
use crate::error::Problem;

/// A value whose shared parts are written out wherever they occur may be this much larger than the pickle's.
const MAX_REPETITION: u64 = 16;
/// Values up to this weight are never refused for their repetitions.
const SMALL: u64 = 1 << 20;
/// Bytes of content that weigh as much as one object.
const CONTENT_PER_WEIGHT: usize = 64;
/// Keys of dictionaries and elements of sets are shorter than this, in bytes.
const LONGEST_KEY: usize = 1024;

/// Gives the content of a PyTorch tensor.
pub(super) type Tensors<'a> = dyn FnMut(&Tensor, &mut Budget) -> Result<Array, Problem> + 'a;

/// A finished object.
struct Done {
    value: Value,
    depth: u32,
    /// Objects and content if the value were written out in full.
    weight: u64,
}

enum Place {
    Untouched,
    /// Its parts are being finished: whoever refers to it now is one of them.
    Open,
    Done(Done),
}

/// Finishes an object and all that it refers to; gives back what is left of the budget.
pub(super) fn finish(
    mut heap: Heap,
    root: Id,
    tensors: &mut Tensors<'_>,
) -> Result<(Value, Budget), Problem> {
    let mut places: Vec<Place> = (0..heap.len()).map(|_| Place::Untouched).collect();
    let mut pickle_weight = SMALL;
    let hashers = [RandomState::new(), RandomState::new()];
    let mut waiting = vec![root];
    while let Some(&id) = waiting.last() {
        match places[id as usize] {
            Place::Done(_) => {
                waiting.pop();
            }
            Place::Untouched => {
                places[id as usize] = Place::Open;
                for &part in parts(heap.get(id)) {
                    match places[part as usize] {
                        Place::Done(_) => {}
                        Place::Untouched => waiting.push(part),
                        Place::Open => return Err(cycle()),
                    }
                }
            }
            // Only the object that is being finished can be open at the end of the queue.
            Place::Open => {
                waiting.pop();
                let node = heap.take(id);
                let (depth, parts_weight) = below(&places, parts(&node));
                if depth > MAX_DEPTH {
                    return Err(too_deep());
                }
                let links = parts(&node).len() as u64;
                let value = close(node, &places, &hashers, tensors, &mut heap.budget)?;
                let content = 1 + (content(&value) / CONTENT_PER_WEIGHT) as u64;
                pickle_weight += MAX_REPETITION * (content + links);
                let weight = parts_weight.saturating_add(content);
                places[id as usize] = Place::Done(Done { value, depth, weight });
            }
        }
    }
    match places.swap_remove(root as usize) {
        Place::Done(done) if done.weight <= pickle_weight => Ok((done.value, heap.budget)),
        Place::Done(_) => Err(repeated()),
        _ => Err(malformed("no result")),
    }
}

fn parts(node: &Node) -> &[Id] {
    match node {
        Node::List(items) | Node::Dict(items) | Node::Set(items) => items,
        Node::Tuple(items) => items,
        _ => &[],
    }
}

/// The depth of an object over its finished parts, and their weight.
fn below(places: &[Place], parts: &[Id]) -> (u32, u64) {
    parts.iter().fold((0, 0), |(depth, weight): (u32, u64), &part| match &places[part as usize] {
        Place::Done(done) => (depth.max(done.depth + 1), weight.saturating_add(done.weight)),
        _ => (depth, weight),
    })
}

fn close(
    node: Node,
    places: &[Place],
    hashers: &[RandomState; 2],
    tensors: &mut Tensors<'_>,
    budget: &mut Budget,
) -> Result<Value, Problem> {
    let value = |id: &Id| match &places[*id as usize] {
        Place::Done(done) => done.value.clone(),
        _ => Value::None,
    };
    let values = |ids: &[Id]| ids.iter().map(value).collect::<Vec<_>>();
    Ok(match node {
        Node::None => Value::None,
        Node::Bool(x) => Value::Bool(x),
        Node::Int(x) => Value::Int(x),
        Node::Float(x) => Value::Float(x),
        Node::Bytes(bytes) => Value::Bytes(Arc::new(bytes)),
        Node::OldText(bytes) if bytes.is_ascii() => match String::from_utf8(bytes) {
            Ok(text) => Value::Text(Arc::new(text)),
            Err(_) => Value::None,
        },
        Node::OldText(_) => {
            return Err(Problem::Unsupported {
                what: "a string of Python 2 with characters beyond ASCII".into(),
                advice: "whether it is text or bytes is not in the file: save it again with Python 3",
            });
        }
        Node::Text(text) => Value::Text(Arc::new(text)),
        Node::List(ids) => Value::List(Arc::new(values(&ids))),
        Node::Tuple(ids) => Value::Tuple(Arc::new(values(&ids))),
        Node::Set(ids) => {
            let items = values(&ids);
            check_keys(items.iter(), hashers)?;
            Value::Set(Arc::new(items))
        }
        Node::Dict(ids) => {
            let pairs: Vec<_> = ids.chunks_exact(2).map(|pair| (value(&pair[0]), value(&pair[1]))).collect();
            check_keys(pairs.iter().map(|(key, _)| key), hashers)?;
            Value::Dict(Arc::new(pairs))
        }
        Node::Array(array) => Value::Array(Arc::new(*array)),
        Node::Tensor(tensor) => Value::Array(Arc::new(tensors(&tensor, budget)?)),
        Node::Moved => return Err(malformed("bytes that are data of an array and something else as well")),
        Node::Global(_) | Node::Dtype(_) | Node::Pending(_) | Node::Storage(_) => {
            return Err(Problem::Unsupported {
                what: format!("{} as a value of its own", node.describe()),
                advice: "save numbers, text, containers and arrays only",
            });
        }
    })
}

fn content(value: &Value) -> usize {
    match value {
        Value::Bytes(bytes) => bytes.len(),
        Value::Text(text) => text.len(),
        Value::Array(array) => array.voxels.len().saturating_mul(array.voxels.kind().bytes()),
        _ => 0,
    }
}

/// Refuses keys that occur twice, and those that no dictionary can have.
fn check_keys<'a>(keys: impl Iterator<Item = &'a Value>, hashers: &[RandomState; 2]) -> Result<(), Problem> {
    let mut prints: Vec<[u64; 2]> = vec![];
    let mut bytes = vec![];
    for key in keys {
        bytes.clear();
        write_key(key, &mut bytes)?;
        prints.push([hashers[0].hash_one(&bytes), hashers[1].hash_one(&bytes)]);
    }
    prints.sort_unstable();
    if prints.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(malformed("a dictionary or set in which a key occurs twice"));
    }
    Ok(())
}

/// Bytes that are the same for keys that Python takes for equal, such as 1, 1.0 and True.
fn write_key(key: &Value, bytes: &mut Vec<u8>) -> Result<(), Problem> {
    match key {
        Value::None => bytes.push(b'n'),
        &Value::Bool(x) => write_key(&Value::Int(x.into()), bytes)?,
        &Value::Float(x) if x == (x as i64) as f64 && x.abs() < 9e18 => {
            write_key(&Value::Int(x as i64), bytes)?
        }
        Value::Int(x) => {
            bytes.push(b'i');
            bytes.extend(x.to_le_bytes());
        }
        Value::Float(x) => {
            bytes.push(b'f');
            bytes.extend(x.to_bits().to_le_bytes());
        }
        Value::Text(text) => write_content(b't', text.as_bytes(), bytes),
        Value::Bytes(content) => write_content(b'b', content, bytes),
        Value::Tuple(items) => {
            write_content(b'(', &(items.len() as u64).to_le_bytes(), bytes);
            for item in items.iter() {
                write_key(item, bytes)?;
            }
        }
        _ => {
            return Err(Problem::Unsupported {
                what: format!("a key of a dictionary or element of a set that is a {}", key.kind()),
                advice: "use text, numbers, bytes, or tuples of them as keys",
            });
        }
    }
    if bytes.len() <= LONGEST_KEY {
        return Ok(());
    }
    Err(Problem::Unsupported {
        what: format!("a key of a dictionary or element of a set of more than {LONGEST_KEY} bytes"),
        advice: "use shorter keys",
    })
}

/// Content that is too long for a key is cut, and then refused for its length.
fn write_content(kind: u8, content: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(kind);
    bytes.extend((content.len() as u64).to_le_bytes());
    bytes.extend(&content[..content.len().min(LONGEST_KEY + 1)]);
}

fn cycle() -> Problem {
    Problem::Unsupported {
        what: "a container that contains itself".into(),
        advice: "save data without cycles",
    }
}

fn too_deep() -> Problem {
    Problem::Unsupported {
        what: format!("containers in containers more than {MAX_DEPTH} levels deep"),
        advice: "save flatter data",
    }
}

fn repeated() -> Problem {
    Problem::Unsupported {
        what: format!(
            "data whose shared parts make it more than {MAX_REPETITION} times larger than it is in the file"
        ),
        advice: "if the file is genuine, save copies in place of shared parts",
    }
}

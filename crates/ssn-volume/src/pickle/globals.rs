//! The names that a pickle may use, and what they mean here. Every other name refuses the file.

use super::array::{self, Dtype, Pending};
use super::heap::{Heap, Id, Node};
use super::machine::{Dialect, Machine, malformed};
use super::torch_file::tensor::{Element, Storage, Tensor};
use crate::error::Problem;

/// A name with a meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Global {
    Reconstruct,
    Scalar,
    Ndarray,
    Dtype,
    FromBuffer,
    Encode,
    Bytes,
    Bytearray,
    Set,
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    TorchSize,
    StorageOf(Element),
}

/// Looks a name up.
pub(super) fn find(dialect: Dialect, module: &str, name: &str) -> Result<Global, Problem> {
    let global = match (module, name) {
        ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Global::Reconstruct,
        ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar") => Global::Scalar,
        ("numpy", "ndarray") => Global::Ndarray,
        ("numpy", "dtype") => Global::Dtype,
        ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Global::FromBuffer,
        ("_codecs", "encode") => Global::Encode,
        ("builtins" | "__builtin__", "bytes") => Global::Bytes,
        ("builtins" | "__builtin__", "bytearray") => Global::Bytearray,
        ("builtins" | "__builtin__", "set" | "frozenset") => Global::Set,
        ("collections", "OrderedDict") => Global::OrderedDict,
        _ => match find_torch(module, name) {
            Some(global) if dialect == Dialect::Torch => global,
            Some(_) => return Err(torch_outside()),
            None => return Err(unknown(module, name)),
        },
    };
    Ok(global)
}

fn find_torch(module: &str, name: &str) -> Option<Global> {
    Some(match (module, name) {
        ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Global::RebuildTensor,
        ("torch._utils", "_rebuild_parameter") => Global::RebuildParameter,
        ("torch", "Size") => Global::TorchSize,
        ("torch", "DoubleStorage") => Global::StorageOf(Element::F64),
        ("torch", "FloatStorage") => Global::StorageOf(Element::F32),
        ("torch", "HalfStorage") => Global::StorageOf(Element::F16),
        ("torch", "BFloat16Storage") => Global::StorageOf(Element::Bf16),
        ("torch", "LongStorage") => Global::StorageOf(Element::I64),
        ("torch", "IntStorage") => Global::StorageOf(Element::I32),
        ("torch", "ShortStorage") => Global::StorageOf(Element::I16),
        ("torch", "CharStorage") => Global::StorageOf(Element::I8),
        ("torch", "ByteStorage") => Global::StorageOf(Element::U8),
        ("torch", "BoolStorage") => Global::StorageOf(Element::Bool),
        _ => return None,
    })
}

/// The refusal of PyTorch's names in a file that is none of PyTorch's.
pub(super) fn torch_outside() -> Problem {
    Problem::Unsupported {
        what: "a PyTorch tensor in a plain pickle".into(),
        advice: "save it with torch.save, or as a NumPy array",
    }
}

fn unknown(module: &str, name: &str) -> Problem {
    let named: String = format!("{module}.{name}").chars().take(200).collect();
    Problem::Unsupported {
        what: format!("the class or function {:?} in a pickle", named),
        advice: "this reader builds data only and never runs code from a file: \
                 save dictionaries, lists, numbers, text and NumPy arrays (for PyTorch, model.state_dict())",
    }
}

/// What `callable(*arguments)` means.
pub(super) fn call(machine: &mut Machine, callable: Id, arguments: Id) -> Result<Id, Problem> {
    let heap = &mut machine.heap;
    let (&Node::Global(global), Some(arguments)) = (heap.get(callable), heap.tuple(arguments)) else {
        return Err(malformed("a call of something that is no class or function"));
    };
    // Calls have up to eight arguments; the copy ends the borrow of the table.
    let arguments: Vec<Id> = arguments.iter().copied().take(9).collect();
    let node = match (global, &arguments[..]) {
        (Global::Reconstruct, &[class, _, _]) if matches!(heap.get(class), Node::Global(Global::Ndarray)) => {
            Node::Pending(Pending)
        }
        (Global::Dtype, &[name, ..]) => {
            let name = heap.text(name).ok_or_else(|| malformed("a NumPy dtype without a name"))?;
            Node::Dtype(Dtype::from_name(name)?)
        }
        (Global::Scalar, &[dtype, bytes]) => match (heap.get(dtype), heap.get(bytes)) {
            (&Node::Dtype(dtype), Node::Bytes(bytes) | Node::OldText(bytes)) => array::scalar(dtype, bytes)?,
            _ => return Err(malformed("a NumPy number without dtype or bytes")),
        },
        (Global::FromBuffer, &[data, dtype, shape, order, ..]) => {
            from_buffer(heap, data, dtype, shape, order, arguments.get(4).copied())?
        }
        (Global::Encode, &[text, coding]) => encode(heap, text, coding)?,
        (Global::Bytes | Global::Bytearray, &[]) => Node::Bytes(vec![]),
        (Global::Bytearray, &[text, coding]) => encode(heap, text, coding)?,
        (Global::Bytearray, &[bytes]) => match heap.get(bytes) {
            Node::Bytes(bytes) => {
                let copy = bytes.clone();
                heap.budget.add(copy.len() as u64)?;
                Node::Bytes(copy)
            }
            _ => return Err(malformed("a bytearray that is not made of bytes")),
        },
        (Global::Set, &[]) => Node::Set(vec![]),
        (Global::Set, &[items]) => match heap.get(items) {
            Node::List(items) => Node::Set(items.clone()),
            _ => return Err(malformed("a set that is not made of a list")),
        },
        (Global::OrderedDict, &[]) => Node::Dict(vec![]),
        (Global::OrderedDict, &[pairs]) => Node::Dict(dict_items(heap, pairs)?),
        (Global::TorchSize, &[sizes]) => match heap.get(sizes) {
            Node::Tuple(_) => return Ok(sizes),
            _ => return Err(malformed("a torch.Size that is not made of a tuple")),
        },
        (Global::RebuildParameter, &[tensor, ..]) => match heap.get(tensor) {
            Node::Tensor(_) => return Ok(tensor),
            _ => return Err(malformed("a PyTorch parameter without a tensor")),
        },
        (Global::RebuildTensor, &[storage, offset, shape, strides, ..]) => {
            Node::Tensor(Box::new(Tensor::new(heap, storage, offset, shape, strides)?))
        }
        _ => return Err(malformed("a call with arguments that its function does not take")),
    };
    heap.add(node)
}

fn dict_items(heap: &Heap, pairs: Id) -> Result<Vec<Id>, Problem> {
    let bad = || malformed("an OrderedDict that is not made of pairs");
    let Node::List(pairs) = heap.get(pairs) else { return Err(bad()) };
    let mut items = vec![];
    for &pair in pairs {
        match heap.get(pair) {
            Node::List(pair) if pair.len() == 2 => items.extend(pair),
            Node::Tuple(pair) if pair.len() == 2 => items.extend(pair),
            _ => return Err(bad()),
        }
    }
    Ok(items)
}

/// `bytes` before protocol 3: text whose characters are the bytes.
fn encode(heap: &mut Heap, text: Id, coding: Id) -> Result<Node, Problem> {
    let (Some(text), Some("latin1" | "latin-1")) = (heap.text(text), heap.text(coding)) else {
        return Err(malformed("an encoding other than latin1"));
    };
    let bytes: Result<Vec<u8>, _> = text.chars().map(|c| u8::try_from(u32::from(c))).collect();
    let bytes = bytes.map_err(|_| malformed("bytes written as text with characters beyond Latin-1"))?;
    heap.budget.add_content(bytes.len() as u64)?;
    Ok(Node::Bytes(bytes))
}

fn from_buffer(
    heap: &mut Heap,
    data: Id,
    dtype: Id,
    shape: Id,
    order: Id,
    axis_order: Option<Id>,
) -> Result<Node, Problem> {
    let bad = || malformed("a NumPy array whose parts are not as NumPy writes them");
    let &Node::Dtype(dtype) = heap.get(dtype) else { return Err(bad()) };
    let shape = heap.sizes(shape).ok_or_else(bad)?;
    let axes: Vec<usize> = match (heap.text(order), axis_order) {
        (Some("C"), None) => (0..shape.len()).collect(),
        (Some("F"), None) => (0..shape.len()).rev().collect(),
        (Some("C" | "F" | "K"), Some(axes)) => {
            return from_transposed(heap, data, dtype, shape, order, axes);
        }
        _ => return Err(bad()),
    };
    Ok(Node::Array(Box::new(array::build(heap, shape, dtype, data, &axes)?)))
}

/// NumPy 2.3 and later: the bytes are a row-major array of the stored shape, whose axes `axes` are then the
/// axes of the array.
fn from_transposed(
    heap: &mut Heap,
    data: Id,
    dtype: Dtype,
    stored: Vec<usize>,
    order: Id,
    axes: Id,
) -> Result<Node, Problem> {
    let bad = || malformed("a NumPy array whose axes are not as NumPy writes them");
    if matches!(heap.get(axes), Node::None) {
        let rank = stored.len();
        let stored_axes: Vec<usize> = match heap.text(order) {
            Some("C") => (0..rank).collect(),
            Some("F") => (0..rank).rev().collect(),
            _ => return Err(bad()),
        };
        return Ok(Node::Array(Box::new(array::build(heap, stored, dtype, data, &stored_axes)?)));
    }
    let axes = heap.sizes(axes).filter(|_| heap.text(order) == Some("K")).ok_or_else(bad)?;
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..stored.len()) {
        return Err(bad());
    }
    let shape = axes.iter().map(|&axis| stored[axis]).collect();
    // Stored axis number `s` is axis `place` of the array where `axes[place] == s`.
    let mut places = vec![0; axes.len()];
    axes.iter().enumerate().for_each(|(place, &axis)| places[axis] = place);
    Ok(Node::Array(Box::new(array::build(heap, shape, dtype, data, &places)?)))
}

/// What `object.__setstate__(state)` means.
pub(super) fn set_state(machine: &mut Machine, object: Id, state: Id) -> Result<(), Problem> {
    let heap = &mut machine.heap;
    match heap.get(object) {
        &Node::Dtype(mut dtype) => {
            dtype.set_state(heap, state)?;
            replace(heap, object, Node::Dtype(dtype));
            Ok(())
        }
        Node::Pending(_) => {
            let bad = || malformed("a NumPy array whose state is not as NumPy writes it");
            let Some(&[_, shape, dtype, column_major, data]) = heap.tuple(state) else { return Err(bad()) };
            let &Node::Dtype(dtype) = heap.get(dtype) else { return Err(bad()) };
            let shape = heap.sizes(shape).ok_or_else(bad)?;
            let axes: Vec<usize> = match heap.get(column_major) {
                Node::Bool(true) | Node::Int(1) => (0..shape.len()).rev().collect(),
                Node::Bool(false) | Node::Int(0) => (0..shape.len()).collect(),
                _ => return Err(bad()),
            };
            let array = array::build(heap, shape, dtype, data, &axes)?;
            replace(heap, object, Node::Array(Box::new(array)));
            Ok(())
        }
        // Attributes of a dictionary (`_metadata` in PyTorch) are not part of its content.
        Node::Dict(_) if matches!(heap.get(state), Node::Dict(_)) => Ok(()),
        _ => Err(malformed("a state for an object that has none")),
    }
}

fn replace(heap: &mut Heap, id: Id, node: Node) {
    if let Some(place) = heap.get_mut(id) {
        *place = node;
    }
}

/// What a persistent id names: in a PyTorch file, a storage.
pub(super) fn persistent(machine: &mut Machine, name: Id) -> Result<Id, Problem> {
    if machine.dialect != Dialect::Torch {
        return Err(torch_outside());
    }
    let heap = &mut machine.heap;
    let bad = || malformed("a PyTorch storage that is not named as PyTorch does");
    let Some(&[kind, class, key, _device, count]) = heap.tuple(name) else { return Err(bad()) };
    let &Node::Global(Global::StorageOf(element)) = heap.get(class) else { return Err(bad()) };
    match (heap.text(kind), heap.text(key), heap.size(count)) {
        (Some("storage"), Some(key), Some(count)) => {
            let storage = Storage { element, key: key.to_owned(), count };
            heap.budget.add(storage.key.len() as u64)?;
            heap.add(Node::Storage(Box::new(storage)))
        }
        _ => Err(bad()),
    }
}

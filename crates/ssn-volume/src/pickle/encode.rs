//! Pickles of protocol 4, for values as the reader gives them.

use std::collections::HashMap;
use std::sync::Arc;

use super::opcodes as op;
use super::value::Value;
use crate::array::Array;
use crate::voxels::VoxelType;

/// Writes a value as a pickle that Python reads; what is shared in the value is shared in the pickle.
///
/// Arrays become NumPy arrays in the type in which they are held here.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut writer = Writer { out: vec![op::PROTO, 4], memo: HashMap::new() };
    writer.value(value);
    writer.out.push(op::STOP);
    writer.out
}

struct Writer {
    out: Vec<u8>,
    /// Memo numbers of shared parts, by their addresses.
    memo: HashMap<*const (), u32>,
}

impl Writer {
    fn value(&mut self, value: &Value) {
        match value {
            Value::None => self.out.push(op::NONE),
            Value::Bool(x) => self.out.push(if *x { op::NEWTRUE } else { op::NEWFALSE }),
            Value::Int(x) => self.int(*x),
            Value::Float(x) => {
                self.out.push(op::BINFLOAT);
                self.out.extend(x.to_be_bytes());
            }
            Value::Bytes(bytes) => self.shared(bytes, |w| w.block(op::BINBYTES8, bytes)),
            Value::Text(text) => self.shared(text, |w| w.block(op::BINUNICODE8, text.as_bytes())),
            Value::List(items) => self.shared(items, |w| {
                w.out.push(op::MARK);
                items.iter().for_each(|item| w.value(item));
                w.out.push(op::LIST);
            }),
            Value::Tuple(items) => self.shared(items, |w| {
                w.out.push(op::MARK);
                items.iter().for_each(|item| w.value(item));
                w.out.push(op::TUPLE);
            }),
            Value::Set(items) => self.shared(items, |w| {
                w.out.extend([op::EMPTY_SET, op::MARK]);
                items.iter().for_each(|item| w.value(item));
                w.out.push(op::ADDITEMS);
            }),
            Value::Dict(pairs) => self.shared(pairs, |w| {
                w.out.push(op::MARK);
                for (key, value) in pairs.iter() {
                    w.value(key);
                    w.value(value);
                }
                w.out.push(op::DICT);
            }),
            Value::Array(array) => self.shared(array, |w| w.array(array)),
        }
    }

    /// Writes a part the first time it comes, and a reference to it from then on.
    fn shared<T>(&mut self, part: &Arc<T>, write: impl FnOnce(&mut Self)) {
        let address = Arc::as_ptr(part).cast();
        if let Some(number) = self.memo.get(&address) {
            self.out.push(op::LONG_BINGET);
            self.out.extend(number.to_le_bytes());
            return;
        }
        write(self);
        // Only what is held more than once can come again.
        if let (true, Ok(number)) = (Arc::strong_count(part) > 1, u32::try_from(self.memo.len())) {
            self.memo.insert(address, number);
            self.out.push(op::MEMOIZE);
        }
    }

    fn int(&mut self, x: i64) {
        if let Ok(x) = u8::try_from(x) {
            self.out.extend([op::BININT1, x]);
        } else if let Ok(x) = i32::try_from(x) {
            self.out.push(op::BININT);
            self.out.extend(x.to_le_bytes());
        } else {
            self.out.extend([op::LONG1, 8]);
            self.out.extend(x.to_le_bytes());
        }
    }

    fn block(&mut self, opcode: u8, bytes: &[u8]) {
        self.out.push(opcode);
        self.out.extend((bytes.len() as u64).to_le_bytes());
        self.out.extend(bytes);
    }

    fn text(&mut self, text: &str) {
        self.block(op::BINUNICODE8, text.as_bytes());
    }

    fn global(&mut self, module: &str, name: &str) {
        self.text(module);
        self.text(name);
        self.out.push(op::STACK_GLOBAL);
    }

    /// `_reconstruct(ndarray, (0,), b"b")`, and a state of version, shape, dtype, order and content.
    fn array(&mut self, array: &Array) {
        self.global("numpy.core.multiarray", "_reconstruct");
        self.global("numpy", "ndarray");
        self.out.extend([op::BININT1, 0, op::TUPLE1]);
        self.block(op::BINBYTES8, b"b");
        self.out.extend([op::TUPLE3, op::REDUCE, op::MARK, op::BININT1, 1, op::MARK]);
        array.shape.iter().for_each(|&length| self.int(length as i64));
        self.out.push(op::TUPLE);
        self.global("numpy", "dtype");
        self.text(dtype_name(array.voxels.kind()));
        self.out.extend([op::NEWFALSE, op::NEWTRUE, op::TUPLE3, op::REDUCE, op::MARK, op::BININT1, 3]);
        self.text(if array.voxels.kind().bytes() == 1 { "|" } else { "<" });
        self.out.extend([op::NONE; 3]);
        self.int(-1);
        self.int(-1);
        self.out.extend([op::BININT1, 0, op::TUPLE, op::BUILD, op::NEWFALSE]);
        self.block(op::BINBYTES8, &array.voxels.to_le_bytes());
        self.out.extend([op::TUPLE, op::BUILD]);
    }
}

fn dtype_name(kind: VoxelType) -> &'static str {
    match kind {
        VoxelType::U8 => "u1",
        VoxelType::I8 => "i1",
        VoxelType::U16 => "u2",
        VoxelType::I16 => "i2",
        VoxelType::U32 => "u4",
        VoxelType::I32 => "i4",
        VoxelType::U64 => "u8",
        VoxelType::I64 => "i8",
        VoxelType::F32 => "f4",
        VoxelType::F64 => "f8",
    }
}

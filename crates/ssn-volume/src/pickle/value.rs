//! What a pickle holds, as plain data.

use std::fmt;
use std::sync::Arc;

use crate::array::Array;

/// Text and bytes longer than this are cut short where a value is printed.
const PRINTED: usize = 120;

/// A value from a pickle. Parts that the pickle shares are shared here too.
///
/// Values that come from a reader are at most [`MAX_DEPTH`] levels deep and hold no cycles, so that printing,
/// comparing and dropping them is safe.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// Python's `None`.
    None,
    /// A truth value, from Python or NumPy.
    Bool(bool),
    /// A whole number, from Python or NumPy.
    Int(i64),
    /// A number in double precision; NumPy's numbers of half and single precision are widened.
    Float(f64),
    /// `bytes` or `bytearray`.
    Bytes(Arc<Vec<u8>>),
    /// `str`.
    Text(Arc<String>),
    /// `list`.
    List(Arc<Vec<Value>>),
    /// `tuple`.
    Tuple(Arc<Vec<Value>>),
    /// `dict` or `OrderedDict`, in the order of the pickle; no key occurs twice.
    Dict(Arc<Vec<(Value, Value)>>),
    /// `set` or `frozenset`, in the order of the pickle; no element occurs twice.
    Set(Arc<Vec<Value>>),
    /// A NumPy array, or a tensor of a PyTorch file.
    Array(Arc<Array>),
}

/// How deep containers may lie in each other.
pub const MAX_DEPTH: u32 = 200;

impl Value {
    /// What kind of value it is, as Python calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Bytes(_) => "bytes",
            Self::Text(_) => "str",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::Set(_) => "set",
            Self::Array(_) => "array",
        }
    }

    /// The entry of a dictionary under a text key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Dict(pairs) = self else { return None };
        pairs.iter().find(|(k, _)| k.as_text() == Some(key)).map(|(_, value)| value)
    }

    /// The pairs of a dictionary.
    pub fn as_dict(&self) -> Option<&[(Self, Self)]> {
        if let Self::Dict(pairs) = self { Some(pairs) } else { None }
    }

    /// The elements of a list or tuple.
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(items) | Self::Tuple(items) = self { Some(items) } else { None }
    }

    /// The text.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The array.
    pub fn as_array(&self) -> Option<&Arc<Array>> {
        if let Self::Array(array) = self { Some(array) } else { None }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bool(x) => write!(f, "{x:?}"),
            Self::Int(x) => write!(f, "{x:?}"),
            Self::Float(x) => write!(f, "{x:?}"),
            Self::Bytes(bytes) => {
                let start = &bytes[..bytes.len().min(PRINTED)];
                write!(f, "b\"{}\"{}", start.escape_ascii(), rest(bytes.len() - start.len()))
            }
            Self::Text(text) => {
                let start: String = text.chars().take(PRINTED).collect();
                write!(f, "{start:?}{}", rest(text.len() - start.len()))
            }
            Self::List(items) => f.debug_list().entries(items.iter()).finish(),
            Self::Tuple(items) => {
                f.write_str("tuple ")?;
                f.debug_list().entries(items.iter()).finish()
            }
            Self::Dict(pairs) => f.debug_map().entries(pairs.iter().map(|(k, v)| (k, v))).finish(),
            Self::Set(items) => f.debug_set().entries(items.iter()).finish(),
            Self::Array(array) => write!(f, "{array:?}"),
        }
    }
}

fn rest(bytes: usize) -> String {
    if bytes == 0 { String::new() } else { format!("… ({bytes} more bytes)") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voxels::Voxels;

    #[test]
    fn long_content_is_cut_where_it_is_printed() {
        let value = Value::List(Arc::new(vec![
            Value::Text(Arc::new("é".repeat(1000))),
            Value::Bytes(Arc::new(vec![0; 5000])),
            Value::Array(Arc::new(Array { voxels: Voxels::U8(vec![0; 6]), shape: vec![2, 3] })),
        ]));
        let printed = format!("{value:?}");
        assert!(printed.len() < 1500 && printed.contains("(1760 more bytes)"), "{printed}");
        assert!(printed.contains("(4880 more bytes)") && printed.ends_with("array U8 [2, 3]]"), "{printed}");
    }
}

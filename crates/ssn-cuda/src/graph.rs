//! Graphs: work that was recorded once and is done again as a whole, without a launch for every kernel.

use std::ffi::c_void;

use crate::error::Result;
use crate::library::{call, loaded};

/// Recorded work. Every tensor that it reads or writes has the address of then.
#[derive(Debug)]
pub struct Graph(*mut c_void);

impl Graph {
    /// Records what a function does on this thread's stream; nothing is computed.
    ///
    /// The memory of tensors made inside belongs to the graph.
    pub fn record<T, E: From<crate::CudaError>>(
        work: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<(Self, T), E> {
        let mut graph = std::ptr::null_mut();
        // SAFETY: the graph is written to the place given.
        call(|library| unsafe { (library.ssn_graph_begin)(&mut graph) })?;
        let graph = Self(graph);
        let result = work();
        // SAFETY: the graph lives. A capture must be ended even if the work failed.
        let ended = call(|library| unsafe { (library.ssn_graph_end)(graph.0) });
        let result = result?;
        ended?;
        Ok((graph, result))
    }

    /// Begins the recorded work.
    pub fn replay(&self) -> Result<()> {
        // SAFETY: the graph lives and was recorded.
        call(|library| unsafe { (library.ssn_graph_replay)(self.0) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Some(library) = loaded() {
            // SAFETY: made by the same library, and dropped once.
            unsafe { (library.ssn_graph_free)(self.0) }
        }
    }
}

//! Sums over the GPUs of several processes: NCCL, which comes with libtorch's CUDA libraries, and the callback by which
//! normalization kernels synchronize their statistics.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::Library as Opened;
use tch::{Kind, Tensor};
use torch_sys::C_tensor;

use crate::error::{CudaError, Result};
use crate::library::{call, keep, loaded, open};

const FLOAT: c_int = 7;
const DOUBLE: c_int = 8;
const SUM: c_int = 0;

/// The unique id by which processes find each other.
#[derive(Clone, Copy)]
#[repr(C)]
struct Id([c_char; Nccl::ID_BYTES]);

type Handle = *mut c_void;

/// The functions of NCCL that are used.
#[derive(Clone, Copy)]
struct Functions {
    id: unsafe extern "C" fn(*mut Id) -> c_int,
    join: unsafe extern "C" fn(*mut Handle, c_int, Id, c_int) -> c_int,
    sum: unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Handle, Handle) -> c_int,
    describe: unsafe extern "C" fn(c_int) -> *const c_char,
    last_error: unsafe extern "C" fn(Handle) -> *const c_char,
}

impl Functions {
    fn load() -> Result<Self> {
        let opened = open("libnccl.so.2", "libtorch's CUDA libraries bring it")?;
        let functions = Self::find(&opened).map_err(|error| CudaError::Library {
            library: "libnccl.so.2".to_owned(),
            reason: error.to_string(),
            remedy: "a newer one is needed",
        })?;
        keep(opened);
        Ok(functions)
    }

    fn find(opened: &Opened) -> std::result::Result<Self, libloading::Error> {
        // SAFETY: the declarations are those of nccl.h, which have been the same since version 2.
        unsafe {
            Ok(Self {
                id: *opened.get(b"ncclGetUniqueId\0")?,
                join: *opened.get(b"ncclCommInitRank\0")?,
                sum: *opened.get(b"ncclAllReduce\0")?,
                describe: *opened.get(b"ncclGetErrorString\0")?,
                last_error: *opened.get(b"ncclGetLastError\0")?,
            })
        }
    }

    fn check(&self, code: c_int, handle: Handle) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: both give strings that end in zero and that nobody frees; the second takes no handle, too.
        let [what, why] = unsafe { [(self.describe)(code), (self.last_error)(handle)] }.map(|text| {
            // SAFETY: as above; there may be none.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        });
        let why = why.filter(|why| !why.is_empty()).map_or(String::new(), |why| format!(" ({})", why.trim()));
        Err(CudaError::Call(format!("NCCL: {}{why}", what.unwrap_or_default())))
    }
}

/// An NCCL communicator: this process among those whose GPUs reduce together.
///
/// It is never taken down: that would wait for processes that may be gone, and recorded work may name it.
pub struct Nccl {
    functions: Functions,
    /// Calls are made one after the other.
    communicator: Mutex<Handle>,
}

// SAFETY: NCCL allows calls from any thread, one at a time for a communicator.
unsafe impl Send for Nccl {}
// SAFETY: as above; the lock makes it so.
unsafe impl Sync for Nccl {}

impl std::fmt::Debug for Nccl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Nccl")
    }
}

impl Nccl {
    /// The bytes of what processes need to know to find each other.
    pub const ID_BYTES: usize = 128;

    /// Whether the library can be used here.
    pub fn is_there() -> bool {
        Functions::load().is_ok()
    }

    /// What all processes need to know to find each other; one of them asks and tells.
    pub fn id() -> Result<[u8; Self::ID_BYTES]> {
        let functions = Functions::load()?;
        let mut id = Id([0; Self::ID_BYTES]);
        // SAFETY: the id is written to the place given.
        functions.check(unsafe { (functions.id)(&mut id) }, std::ptr::null_mut())?;
        Ok(id.0.map(|byte| byte as u8))
    }

    /// Joins the others with the GPU of this thread; waits for all of them.
    pub fn join(id: &[u8; Self::ID_BYTES], rank: usize, size: usize) -> Result<Self> {
        let functions = Functions::load()?;
        let id = Id(id.map(|byte| byte as c_char));
        let mut communicator = std::ptr::null_mut();
        // SAFETY: the communicator is written to the place given.
        let code = unsafe { (functions.join)(&mut communicator, size as c_int, id, rank as c_int) };
        functions.check(code, std::ptr::null_mut())?;
        Ok(Self { functions, communicator: Mutex::new(communicator) })
    }

    /// Sums numbers over all processes, in place, as work of this thread's stream.
    ///
    /// # Shapes
    /// Any, dense, in single or double precision.
    pub fn all_reduce(&self, numbers: &Tensor) -> Result<()> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: the stream is written to the place given.
        call(|library| unsafe { (library.ssn_current_stream)(&mut stream) })?;
        self.all_reduce_on(stream, numbers)
    }

    /// The same on a side stream: [`wait_for_all_reduce`] waits for it. The numbers must live until then.
    pub fn all_reduce_async(&self, numbers: &Tensor) -> Result<()> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: the stream is written to the place given.
        call(|library| unsafe { (library.ssn_all_reduce_stream)(&mut stream) })?;
        self.all_reduce_on(stream, numbers)
    }

    fn all_reduce_on(&self, stream: Handle, numbers: &Tensor) -> Result<()> {
        let kind = match numbers.kind() {
            Kind::Float if numbers.is_contiguous() => FLOAT,
            Kind::Double if numbers.is_contiguous() => DOUBLE,
            kind => return Err(CudaError::Call(format!("{kind:?} numbers cannot be summed over GPUs"))),
        };
        let communicator = self.communicator.lock().unwrap_or_else(PoisonError::into_inner);
        let place = numbers.data_ptr();
        // SAFETY: so many dense numbers are there, and belong to the GPU of the communicator.
        let code =
            unsafe { (self.functions.sum)(place, place, numbers.numel(), kind, SUM, *communicator, stream) };
        self.functions.check(code, *communicator)
    }
}

/// What the work does next waits for the sums begun so far.
pub fn wait_for_all_reduce() -> Result<()> {
    // SAFETY: no arguments.
    call(|library| unsafe { (library.ssn_wait_for_all_reduce)() })
}

/// Sums a tensor over ranks, in place, as work of the current stream; or says why not.
type Sum = dyn Fn(&Tensor) -> std::result::Result<(), String> + Send + Sync;

/// How synchronized batch norm of a [`BatchSlice`](crate::BatchSlice) sums its statistics over ranks, for as long as this
/// lives.
pub struct SyncNormReduce(*mut Box<Sum>);

// SAFETY: a pointer to something that may be sent, and that this value alone frees.
unsafe impl Send for SyncNormReduce {}

impl std::fmt::Debug for SyncNormReduce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SyncNormReduce")
    }
}

impl SyncNormReduce {
    /// Sums in this way from now on. One value of a process at a time.
    pub fn new(
        sum: impl Fn(&Tensor) -> std::result::Result<(), String> + Send + Sync + 'static,
    ) -> Result<Self> {
        let sum: Box<Sum> = Box::new(sum);
        let shared = Self(Box::into_raw(Box::new(sum)));
        // SAFETY: the state lives until it is forgotten below.
        call(|library| unsafe { (library.ssn_set_sum)(Some(reduce_callback), shared.0.cast()) })?;
        Ok(shared)
    }
}

impl Drop for SyncNormReduce {
    fn drop(&mut self) {
        if let Some(library) = loaded() {
            // SAFETY: to forget takes no state; it cannot fail.
            let _ = unsafe { (library.ssn_set_sum)(None, std::ptr::null_mut()) };
        }
        // SAFETY: made by `new`, and nobody calls it any more.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

extern "C" fn reduce_callback(
    state: *mut c_void,
    numbers: *const C_tensor,
    message: *mut c_char,
    room: i64,
) -> c_int {
    let work = || {
        // SAFETY: the state is that of a `SyncNormReduce` that lives.
        let sum = unsafe { &*state.cast::<Box<Sum>>() };
        // SAFETY: the tensor lives during this call, and a clone shares its memory.
        sum(&unsafe { Tensor::clone_from_ptr(numbers.cast_mut()) })
    };
    // Panics must not pass through C++.
    let answer = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("a sum over ranks failed, as told above".to_owned()));
    let Err(text) = answer else { return 0 };
    // The text ends with 0 within the room.
    let length = text.len().min((room.max(1) - 1) as usize);
    // SAFETY: there is room for so many bytes and the last 0.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), message, length);
        message.add(length).write(0);
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_within_its_room() {
        let refuse = |_: &Tensor| Err("rank 1 is gone".to_owned());
        let panic = |_: &Tensor| panic!("on purpose");
        let add = |numbers: &Tensor| {
            let _ = numbers.shallow_clone().f_add_scalar_(1.0);
            Ok(())
        };
        let numbers = Tensor::from_slice(&[1.0f64, 2.0]);
        let told = |sum: Box<Sum>, room: usize| {
            let mut message = vec![1u8; room];
            let state = std::ptr::from_ref(&sum).cast_mut().cast();
            let code = reduce_callback(state, numbers.as_ptr(), message.as_mut_ptr().cast(), room as i64);
            let text: Vec<u8> = message.into_iter().take_while(|&byte| byte != 0).collect();
            (code, String::from_utf8_lossy(&text).into_owned())
        };
        assert_eq!(told(Box::new(refuse), 64), (1, "rank 1 is gone".to_owned()));
        assert_eq!(told(Box::new(refuse), 5), (1, "rank".to_owned()));
        assert_eq!(told(Box::new(panic), 64).0, 1);
        assert_eq!(told(Box::new(add), 64).0, 0);
        assert_eq!(Vec::<f64>::try_from(&numbers).ok(), Some(vec![2.0, 3.0]));
    }
}

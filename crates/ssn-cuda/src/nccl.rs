//! Sums over the GPUs of several processes: NCCL, which comes with libtorch's CUDA libraries.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::Library as Opened;
use tch::{Kind, Tensor};

use crate::error::{CudaError, Result};
use crate::library::{call, keep, open};

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

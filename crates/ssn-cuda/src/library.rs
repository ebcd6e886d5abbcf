//! Loading: libtorch's CUDA libraries, NVRTC, and the C++ part of this crate.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::os::unix::{Library as Opened, RTLD_GLOBAL, RTLD_NOW};
use tch::Tensor;
use torch_sys::C_tensor;

use crate::error::{CudaError, FAILURE_ADVICE, FAILURE_CODE, Result};
use crate::options::{DrawOptions, NormOptions, PathOptions};

/// The C++ part; empty where it was not built.
static SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shim.so"));

/// The kernels, compiled at run time.
const SOURCES: [(&str, &str); 8] = [
    ("common.cuh", include_str!("../kernels/common.cuh")),
    ("norm.cu", include_str!("../kernels/norm.cu")),
    ("loss.cu", include_str!("../kernels/loss.cu")),
    ("head.cu", include_str!("../kernels/head.cu")),
    ("maps.cu", include_str!("../kernels/maps.cu")),
    ("convolution.cu", include_str!("../kernels/convolution.cu")),
    ("update.cu", include_str!("../kernels/update.cu")),
    ("noise.cu", include_str!("../kernels/noise.cu")),
];

const SETUP: &str = "run `cargo xtask setup --cuda`, or point LIBTORCH to a PyTorch with CUDA";

/// What a call gives: nothing, or a message to be freed.
pub(crate) type Message = *mut c_char;

/// Declares the functions of the C++ part, found by name.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*);)*) => {
        /// The functions of the C++ part.
        pub(crate) struct Library {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> Message,)*
            pub(crate) ssn_free: unsafe extern "C" fn(Message),
            pub(crate) ssn_event_free: unsafe extern "C" fn(*mut c_void),
            pub(crate) ssn_graph_free: unsafe extern "C" fn(*mut c_void),
            pub(crate) ssn_sums_free: unsafe extern "C" fn(*mut c_void),
        }

        impl Library {
            fn find(opened: &Opened) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: the declarations are those of shim.cpp, from which the library was built with this crate.
                unsafe {
                    Ok(Self {
                        $($name: *opened.get(concat!(stringify!($name), "\0").as_bytes())?,)*
                        ssn_free: *opened.get(b"ssn_free\0")?,
                        ssn_event_free: *opened.get(b"ssn_event_free\0")?,
                        ssn_graph_free: *opened.get(b"ssn_graph_free\0")?,
                        ssn_sums_free: *opened.get(b"ssn_sums_free\0")?,
                    })
                }
            }
        }
    };
}

type In = *const C_tensor;
type Out = *mut *mut C_tensor;
/// Does something with a tensor; the text of a failure, or null.
pub(crate) type Hook = extern "C" fn(*mut c_void, In) -> Message;
/// Frees the state of a hook.
pub(crate) type Release = extern "C" fn(*mut c_void);

functions! {
    ssn_add_source: fn(*const c_char, *const c_char);
    ssn_tell_failures: fn(*const c_char, c_int);
    ssn_use_device: fn(i64);
    ssn_enter_stream: fn(i64);
    ssn_synchronize: fn();
    ssn_describe_device: fn(i64, *mut c_char, *mut i64, *mut i64, *mut u8);
    ssn_peak_memory: fn(i64, *mut i64);
    ssn_reserved_memory: fn(i64, *mut i64);
    ssn_limit_memory: fn(i64, f64);
    ssn_empty_cache: fn();
    ssn_allow_tf32: fn(c_int);
    ssn_profile: fn(c_int);
    ssn_pinned: fn(i64, Out);
    ssn_copy_on_side_stream: fn(*mut C_tensor, In);
    ssn_wait_for_copies: fn();
    ssn_copy: fn(*mut C_tensor, In);
    ssn_set_sum: fn(Option<Hook>, *mut c_void, Option<Release>);
    ssn_current_stream: fn(*mut *mut c_void);
    ssn_all_reduce_stream: fn(*mut *mut c_void);
    ssn_wait_for_all_reduce: fn();
    ssn_event_new: fn(*mut *mut c_void);
    ssn_event_record: fn(*mut c_void);
    ssn_event_between: fn(*mut c_void, *mut c_void, *mut f32);
    ssn_graph_begin: fn(*mut *mut c_void);
    ssn_graph_end: fn(*mut c_void);
    ssn_graph_replay: fn(*mut c_void);
    ssn_launch: fn(*const c_char, *const c_char, *const c_char, u32, u32, *mut *mut c_void);
    ssn_side_streams: fn(c_int);
    ssn_enter_branch: fn();
    ssn_leave_branch: fn();
    ssn_join_branches: fn();
    ssn_convolution: fn(In, In, *const i64, Out);
    ssn_normalize: fn(In, *const In, *const NormOptions, Out);
    ssn_normalized_convolution: fn(In, *const In, In, *const NormOptions, c_int, Out);
    ssn_sums_new: fn(*mut *mut c_void);
    ssn_begin_step: fn(*mut c_void, i64);
    ssn_downsample: fn(In, *const i64, Out, Out);
    ssn_upsample: fn(In, In, *const i64, Out);
    ssn_head: fn(In, In, In, *const i64, i64, Out);
    ssn_join: fn(*const In, *const PathOptions, i64, *const i64, Out);
    ssn_monte_carlo: fn(*const In, In, In, *const DrawOptions, f64, Out, Out);
    ssn_soft_maps: fn(*const In, In, In, *const DrawOptions, Out);
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

/// Whether the program was built with its CUDA part.
pub fn is_built() -> bool {
    !SHIM.is_empty()
}

/// Brings everything that a GPU needs into the process; further calls do nothing.
///
/// # Errors
/// A sentence that says what is missing and what to do.
pub fn load() -> Result<()> {
    static LOADING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if LIBRARY.get().is_some() {
        return Ok(());
    }
    if !is_built() {
        return Err(CudaError::NotBuilt);
    }
    keep(open("libtorch_cuda.so", SETUP)?);
    if tch::Cuda::device_count() < 1 {
        let found = "no NVIDIA GPU can be used; `nvidia-smi` should list one, and CUDA_VISIBLE_DEVICES must not hide it";
        return Err(CudaError::NoDevice { wanted: "a GPU".to_owned(), found: found.to_owned() });
    }
    keep(open("libcaffe2_nvrtc.so", SETUP)?);
    if let Some(builtins) = nvrtc_builtins() {
        // NVRTC looks for it by name alone, and finds what is loaded already.
        keep(open(&builtins.to_string_lossy(), SETUP)?);
    }
    let shim = open_shim()?;
    let library = Library::find(&shim).map_err(|error| CudaError::Library {
        library: "the CUDA part of this program".to_owned(),
        reason: told(&error),
        remedy: "build it again",
    })?;
    keep(shim);
    for (file, text) in SOURCES {
        let (file, text) = (c_string(file)?, c_string(text)?);
        // SAFETY: both strings outlive the call.
        told_by(&library, unsafe { (library.ssn_add_source)(file.as_ptr(), text.as_ptr()) })?;
    }
    let advice = c_string(FAILURE_ADVICE)?;
    // SAFETY: the string outlives the call, which copies it.
    told_by(&library, unsafe { (library.ssn_tell_failures)(advice.as_ptr(), FAILURE_CODE) })?;
    let _ = LIBRARY.set(library);
    Ok(())
}

/// Calls a function of the C++ part.
pub(crate) fn call(function: impl FnOnce(&Library) -> Message) -> Result<()> {
    let library = LIBRARY.get().ok_or(CudaError::NotBuilt)?;
    told_by(library, function(library))
}

/// What a call said.
fn told_by(library: &Library, message: Message) -> Result<()> {
    if message.is_null() {
        return Ok(());
    }
    // SAFETY: the C++ part gives a string that ends in zero and that this call alone owns.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    // SAFETY: as above; it is not used after.
    unsafe { (library.ssn_free)(message) };
    Err(CudaError::Call(text))
}

/// Calls a function that gives a tensor.
pub(crate) fn call_for_tensor(function: impl FnOnce(&Library, Out) -> Message) -> Result<Tensor> {
    let mut result = std::ptr::null_mut();
    call(|library| function(library, &mut result))?;
    // SAFETY: without a message the call has made a tensor, which is ours.
    Ok(unsafe { Tensor::from_ptr(result) })
}

/// The functions, for those that free what others made.
pub(crate) fn loaded() -> Option<&'static Library> {
    LIBRARY.get()
}

pub(crate) fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|error| CudaError::Call(error.to_string()))
}

pub(crate) fn pointer(tensor: Option<&Tensor>) -> In {
    tensor.map_or(std::ptr::null(), Tensor::as_ptr)
}

/// What is loaded stays: the driver does not survive being unloaded under running threads.
pub(crate) fn keep(library: Opened) {
    std::mem::forget(library);
}

/// What the loader said.
fn told(error: &libloading::Error) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

pub(crate) fn open(name: &str, remedy: &'static str) -> Result<Opened> {
    // SAFETY: the initializers of libtorch's libraries are those that Python's import runs.
    unsafe { Opened::open(Some(name), RTLD_NOW | RTLD_GLOBAL) }.map_err(|error| CudaError::Library {
        library: name.to_owned(),
        reason: told(&error),
        remedy,
    })
}

fn open_shim() -> Result<Opened> {
    let failed = |reason: String| CudaError::Library {
        library: "the CUDA part of this program".to_owned(),
        reason,
        remedy: "it must fit libtorch; build it again with the one that is used",
    };
    let memory = rustix::fs::memfd_create("ssn-cuda", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(|error| failed(error.to_string()))?;
    let mut file = File::from(memory);
    file.write_all(SHIM).map_err(|error| failed(error.to_string()))?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: our own library has no initializers but those of its static variables.
    unsafe { Opened::open(Some(path), RTLD_NOW) }.map_err(|error| failed(told(&error)))
}

/// The library beside the loaded NVRTC that it needs in turn.
fn nvrtc_builtins() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).map(Path::new);
    let is_nvrtc =
        |path: &&Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc.so"));
    let folder = path.into_iter().find(is_nvrtc)?.parent()?;
    let entries = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.into_iter().find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc-builtins.so"))
    })
}

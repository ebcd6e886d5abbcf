//! Launches of kernels on the current stream.

use std::ffi::c_void;

use tch::Tensor;

use crate::error::Result;
use crate::library::{c_string, call};

/// A kernel: its file, the constants that it is compiled with, and its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel<'a> {
    pub(crate) file: &'a str,
    pub(crate) options: &'a str,
    pub(crate) name: &'a str,
}

impl Kernel<'_> {
    /// Launches the kernel.
    ///
    /// # Safety
    /// The arguments have the types that the kernel declares, and tensors among them outlive its work.
    pub(crate) unsafe fn launch(self, blocks: u32, threads: u32, arguments: &mut Arguments) -> Result<()> {
        let (file, options, name) = (c_string(self.file)?, c_string(self.options)?, c_string(self.name)?);
        let mut pointers = arguments.pointers();
        // SAFETY: promised by the caller.
        call(|library| unsafe {
            let (file, options, name) = (file.as_ptr(), options.as_ptr(), name.as_ptr());
            (library.ssn_launch)(file, options, name, blocks, threads, pointers.as_mut_ptr())
        })
    }
}

/// The arguments of a kernel, each in a place of its own.
#[derive(Default)]
pub(crate) struct Arguments(Vec<Box<[u64]>>);

impl Arguments {
    pub(crate) fn tensor(&mut self, tensor: Option<&Tensor>) -> &mut Self {
        self.number(tensor.map_or(std::ptr::null_mut(), |tensor| tensor.data_ptr()))
    }

    pub(crate) fn number<T: Copy>(&mut self, value: T) -> &mut Self {
        let mut place = vec![0u64; size_of::<T>().div_ceil(8)].into_boxed_slice();
        // SAFETY: the place is large enough, and aligned for every type of eight bytes or less.
        unsafe { place.as_mut_ptr().cast::<T>().write(value) };
        self.0.push(place);
        self
    }

    fn pointers(&mut self) -> Vec<*mut c_void> {
        self.0.iter_mut().map(|place| place.as_mut_ptr().cast()).collect()
    }
}

//! Errors of the library, with a kind that programs can act on.

use std::any::Any;
use std::fmt::Display;

use ssn_core::CoreError;
use ssn_cuda::CudaError;
use ssn_data::DataError;
pub use ssn_eval::ErrorKind;
use ssn_eval::EvalError;
use ssn_io::{FileError, WriteError};
use ssn_nn::NnError;
use ssn_train::TrainError;
use ssn_train::error::ImageProblem;

/// The result of every function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong: its kind, and a sentence that says what happened and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind.
    pub kind: ErrorKind,
    /// The sentence.
    pub message: String,
}

impl Error {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, message: impl Display) -> Self {
        Self { kind, message: message.to_string() }
    }

    /// The error with something before its sentence.
    pub(crate) fn within(self, place: impl Display) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }
}

macro_rules! from_eval_errors {
    ($($error:ty),*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                let error = EvalError::from(error);
                Self::new(error.kind(), error)
            }
        }
    )*};
}

from_eval_errors!(CoreError, WriteError, FileError, DataError, EvalError);

impl From<NnError> for Error {
    fn from(error: NnError) -> Self {
        TrainError::from(error).into()
    }
}

impl From<TrainError> for Error {
    fn from(error: TrainError) -> Self {
        if let Some(error) = of_device(&error.to_string()) {
            return error;
        }
        let kind = match error {
            TrainError::Data(error) => return error.into(),
            TrainError::Prediction(error) => return error.into(),
            TrainError::Run { .. } => ErrorKind::Usage,
            TrainError::Config { .. } => ErrorKind::BadData,
            TrainError::Stopped => ErrorKind::Stopped,
            TrainError::NonFinite { .. } | TrainError::Diverged { .. } => ErrorKind::NonFinite,
            TrainError::Image(ref problem) | TrainError::Case { ref problem, .. } => match problem {
                ImageProblem::Output { .. } => ErrorKind::NonFinite,
                ImageProblem::Memory { .. } => ErrorKind::OutOfMemory,
                _ => ErrorKind::BadData,
            },
            TrainError::Network(ref error) => match error {
                NnError::Save { .. } => ErrorKind::Io,
                NnError::Cuda(
                    CudaError::Library { .. } | CudaError::NotBuilt | CudaError::NoDevice { .. },
                ) => ErrorKind::Unavailable,
                NnError::Parameter { .. } | NnError::Size { .. } | NnError::Layer { .. } => ErrorKind::Usage,
                NnError::File { .. } | NnError::Weights { .. } | NnError::Shape { .. } => ErrorKind::BadData,
                NnError::GradientNorm { .. } => ErrorKind::NonFinite,
                _ => ErrorKind::Internal,
            },
        };
        match kind {
            ErrorKind::Internal => Self::new(kind, of_libtorch(&error.to_string())),
            _ => Self::new(kind, error),
        }
    }
}

/// Returns the first sentence of an error of libtorch, without the C++ frames that follow, and what to do.
fn of_libtorch(message: &str) -> String {
    let frames =
        ["\nException raised from", "\nframe #"].iter().filter_map(|begin| message.find(begin)).min();
    let Some(frames) = frames else { return message.to_owned() };
    let sentence = message[..frames].trim().trim_end_matches('.').replace("Internal torch error: ", "");
    format!(
        "{sentence}. This is a defect of the program: please report it with the command used; a run has the details in its log.txt"
    )
}

/// The error for a panic, whose message was shown. The bindings to libtorch panic where memory does not suffice.
pub fn of_panic(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    of_device(text).unwrap_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            "the program failed as told above; please report it with the command used",
        )
    })
}

/// The failure for a message of libtorch about what it computes on.
fn of_device(message: &str) -> Option<Error> {
    out_of_memory(message).or_else(|| {
        let told = ssn_cuda::says_failed(message)?;
        // The C++ part says the same where the failure ends the program.
        Some(Error::new(
            ErrorKind::Io,
            format!("the GPU stopped working ({told}){}", ssn_cuda::FAILURE_ADVICE),
        ))
    })
}

/// The failure for a message of libtorch that says that memory did not suffice, with the sizes it tells.
fn out_of_memory(message: &str) -> Option<Error> {
    let on_host = message.contains("DefaultCPUAllocator: can't allocate memory");
    if !on_host && !ssn_cuda::says_out_of_memory(message) {
        return None;
    }
    // The first sentences say how much was wanted, how much there is, and who has it; advice to programmers follows.
    let start = ["CUDA out of memory", "DefaultCPUAllocator"]
        .iter()
        .find_map(|begin| message.find(begin))
        .unwrap_or(0);
    let told = message[start..].lines().next().unwrap_or_default();
    let told = told.split(" If reserved but unallocated").next().unwrap_or(told).trim_end_matches('.');
    let what = if on_host { "the machine's memory" } else { "the GPU's memory" };
    Some(Error::new(
        ErrorKind::OutOfMemory,
        format!(
            "{what} does not suffice ({told}). In training, lower batches.batch_size, the patch (batches.patch) or the widths of \
             the network; loss.samples costs no memory on a GPU. In predictions, lower --voxels-at-once or set --tile"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_does_not_suffice_has_its_own_code_and_tells_sizes() {
        let message = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which \
                       9.00 GiB is free. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF";
        let failure = of_panic(&message.to_owned());
        assert_eq!(failure.kind, ErrorKind::OutOfMemory);
        assert!(
            failure.message.contains("20.00 GiB. GPU 0 has a total capacity of 139.80 GiB"),
            "{}",
            failure.message
        );
        assert!(!failure.message.contains("PYTORCH"), "{}", failure.message);
        assert_eq!(of_panic(&"index out of bounds").kind, ErrorKind::Internal);
    }

    #[test]
    fn frames_of_libtorch_are_left_out() {
        let message = "Output 0 of CppNode is a view.\nException raised from check_inplace at VariableTypeUtils.h:73\nframe #0: c10";
        let error = TrainError::from(tch::TchError::Torch(message.to_owned()));
        assert!(error.to_string().contains("frame #0"));
        let Error { kind, message } = error.into();
        assert_eq!(kind, ErrorKind::Internal);
        assert!(
            message.starts_with("libtorch: Output 0 of CppNode is a view. This is a defect"),
            "{message}"
        );
        assert!(!message.contains("frame"), "{message}");
    }

    #[test]
    fn a_gpu_that_stops_working_is_told_with_how_to_go_on() {
        let message =
            "CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIllegalAddress'";
        let failure = of_panic(&message.to_owned());
        assert_eq!(failure.kind, ErrorKind::Io);
        assert_eq!(74, ssn_cuda::FAILURE_CODE, "the C++ part ends with the same code");
        let beginning =
            "the GPU stopped working (CUDA error: an illegal memory access was encountered). What was saved";
        assert!(failure.message.starts_with(beginning), "{}", failure.message);
        assert!(
            failure.message.contains("--resume") && !failure.message.contains("Search"),
            "{}",
            failure.message
        );
        assert_eq!(of_panic(&"CUDA error: out of memory".to_owned()).kind, ErrorKind::OutOfMemory);
    }
}

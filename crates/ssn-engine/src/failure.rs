//! What failed in the network crate, with the exit code that says so.

use std::any::Any;

use ssn_cli::{Exit, Failure};
use ssn_cli::{datasets, predictions};
use ssn_cuda::CudaError;
use ssn_nn::NnError;
use ssn_train::TrainError;
use ssn_train::error::ImageProblem;

/// The failure of a verb that trains or predicts.
pub fn failure(error: impl Into<TrainError>) -> Failure {
    let error = error.into();
    if let Some(failure) = of_device(&error.to_string()) {
        return failure;
    }
    let exit = match error {
        TrainError::Data(error) => return datasets::failure(error),
        TrainError::Prediction(error) => return predictions::failure(error),
        TrainError::Run { .. } => Exit::Usage,
        TrainError::Config { .. } => Exit::BadData,
        TrainError::NonFinite { .. } | TrainError::Diverged { .. } => Exit::NonFinite,
        TrainError::Image(ref problem) | TrainError::Case { ref problem, .. } => match problem {
            ImageProblem::Output { .. } => Exit::NonFinite,
            ImageProblem::Memory { .. } => Exit::OutOfMemory,
            _ => Exit::BadData,
        },
        TrainError::Network(ref error) => match error {
            NnError::Save { .. } => Exit::Io,
            NnError::Cuda(CudaError::Library { .. } | CudaError::NotBuilt | CudaError::NoDevice { .. }) => {
                Exit::Unavailable
            }
            NnError::Parameter { .. } | NnError::Size { .. } | NnError::Layer { .. } => Exit::Usage,
            NnError::File { .. } | NnError::Weights { .. } | NnError::Shape { .. } => Exit::BadData,
            NnError::GradientNorm { .. } => Exit::NonFinite,
            _ => Exit::Internal,
        },
    };
    Failure::new(exit, error)
}

/// The failure of a panic, whose message was shown. The bindings to libtorch panic where memory does not suffice.
pub fn of_panic(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    of_device(text).unwrap_or_else(|| {
        Failure::new(
            Exit::Internal,
            "the program failed as told above; please report it with the command used",
        )
    })
}

/// The failure for a message of libtorch about what it computes on.
fn of_device(message: &str) -> Option<Failure> {
    out_of_memory(message).or_else(|| {
        let told = ssn_cuda::says_failed(message)?;
        // The C++ part says the same where the failure ends the program.
        Some(Failure::new(Exit::Io, format!("the GPU stopped working ({told}){}", ssn_cuda::FAILURE_ADVICE)))
    })
}

/// The failure for a message of libtorch that says that memory did not suffice, with the sizes it tells.
fn out_of_memory(message: &str) -> Option<Failure> {
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
    Some(Failure::new(
        Exit::OutOfMemory,
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
        assert_eq!(failure.exit, Exit::OutOfMemory);
        assert!(
            failure.message.contains("20.00 GiB. GPU 0 has a total capacity of 139.80 GiB"),
            "{}",
            failure.message
        );
        assert!(!failure.message.contains("PYTORCH"), "{}", failure.message);
        assert_eq!(of_panic(&"index out of bounds").exit, Exit::Internal);
    }

    #[test]
    fn a_gpu_that_stops_working_is_told_with_how_to_go_on() {
        let message =
            "CUDA error: an illegal memory access was encountered\nSearch for `cudaErrorIllegalAddress'";
        let failure = of_panic(&message.to_owned());
        assert_eq!(failure.exit, Exit::Io);
        assert_eq!(failure.exit as i32, ssn_cuda::FAILURE_CODE, "the C++ part ends with the same code");
        let beginning =
            "the GPU stopped working (CUDA error: an illegal memory access was encountered). What was saved";
        assert!(failure.message.starts_with(beginning), "{}", failure.message);
        assert!(
            failure.message.contains("--resume") && !failure.message.contains("Search"),
            "{}",
            failure.message
        );
        assert_eq!(of_panic(&"CUDA error: out of memory".to_owned()).exit, Exit::OutOfMemory);
    }
}

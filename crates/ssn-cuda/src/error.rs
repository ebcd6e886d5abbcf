//! What can go wrong on the way to a GPU.

use tch::TchError;

/// Short for results of this crate.
pub type Result<T> = std::result::Result<T, CudaError>;

/// Why something could not be done on a GPU.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum CudaError {
    /// A library is not there or cannot be loaded.
    #[error("{library} cannot be loaded ({reason}): {remedy}")]
    Library { library: String, reason: String, remedy: &'static str },
    /// The program was built where CUDA's headers were missing.
    #[error(
        "this program was built without its CUDA part: run `cargo xtask setup --cuda`, which brings CUDA's headers and \
         libraries, and build again"
    )]
    NotBuilt,
    /// There is no GPU, or not so many.
    #[error("{wanted} is not there: {found}")]
    NoDevice { wanted: String, found: String },
    /// A call failed.
    #[error("the GPU reported: {0}")]
    Call(String),
    /// libtorch failed.
    #[error(transparent)]
    Torch(#[from] TchError),
}

/// Whether a message of libtorch says that the GPU's memory did not suffice.
pub fn says_out_of_memory(message: &str) -> bool {
    const SIGNS: [&str; 5] = [
        "CUDA out of memory",
        "CUDA error: out of memory",
        "CUDA driver error: out of memory",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED",
    ];
    SIGNS.iter().any(|sign| message.contains(sign))
}

/// What the program ends with when the GPU stops working: the code for what cannot be read or written.
pub const FAILURE_CODE: i32 = 74;
/// What is said then, after why.
pub const FAILURE_ADVICE: &str = ". What was saved before is whole: training goes on with `ssn train --resume RUN`, and predictions \
                                  with the same command. If `nvidia-smi` finds nothing wrong and it comes again, please report it";

/// What a message of libtorch says of a GPU that stopped working, in one line; nothing if it says something else.
pub fn says_failed(message: &str) -> Option<&str> {
    let told = &message[message.find("CUDA error: ")?..];
    (!says_out_of_memory(message)).then(|| told.lines().next().unwrap_or(told))
}

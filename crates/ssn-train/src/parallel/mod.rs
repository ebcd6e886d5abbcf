//! Data-parallel training: the sums of gradients over ranks, on CPUs and GPUs.

mod gpu;
mod gradients;
#[cfg(feature = "mpi")]
pub mod mpi;

pub use gpu::GpuAllReduce;
pub use gradients::GradientReducer;
use ssn_nn::communicator::Communicator;
use ssn_nn::error::Result;
use tch::{Kind, Tensor};

/// The sums over all ranks, `[n]` in host memory.
///
/// # Shapes
/// Any, dense, in single or double precision.
fn sum_through_host(comm: &dyn Communicator, numbers: &Tensor) -> Result<Tensor> {
    let _guard = tch::no_grad_guard();
    let flat = numbers.f_view([-1])?;
    Ok(match numbers.kind() {
        Kind::Double => {
            let mut values = Vec::<f64>::try_from(&flat)?;
            comm.all_reduce_f64(&mut values)?;
            Tensor::f_from_slice(&values)?
        }
        _ => {
            let mut values = Vec::<f32>::try_from(&flat)?;
            comm.all_reduce_f32(&mut values)?;
            Tensor::f_from_slice(&values)?
        }
    })
}

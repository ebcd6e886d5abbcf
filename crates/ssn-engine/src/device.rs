//! The device that the arguments choose.

use std::path::Path;

use ssn_cli::args::DeviceChoice;
use ssn_cli::{Exit, Failure};
use ssn_cuda::{CudaError, DeviceProperties};
use tch::Device;

/// What the driver makes when there is a GPU.
const DRIVER: &str = "/dev/nvidiactl";

/// The device, with what it is if it is a GPU. Processes that a launcher started on one machine take its GPUs in turn, from
/// the one that was named on.
///
/// # Errors
/// A GPU that was asked for by name and cannot be used. `auto` then takes the processors, and says so if there is one.
pub fn device(choice: DeviceChoice) -> Result<(Device, Option<DeviceProperties>), Failure> {
    match choice {
        DeviceChoice::Cpu => Ok((Device::Cpu, None)),
        DeviceChoice::Cuda(number) => {
            let (device, description) = gpu(number).map_err(failure)?;
            Ok((device, Some(description)))
        }
        DeviceChoice::Auto if !Path::new(DRIVER).exists() => Ok((Device::Cpu, None)),
        DeviceChoice::Auto => match gpu(0) {
            Ok((device, description)) => Ok((device, Some(description))),
            Err(reason) => {
                eprintln!("note: there is an NVIDIA driver, but the GPU is not used: {reason}");
                Ok((Device::Cpu, None))
            }
        },
    }
}

fn gpu(number: usize) -> Result<(Device, DeviceProperties), CudaError> {
    ssn_cuda::load()?;
    let local = ssn_cli::launch::launched().map_or(0, |launched| launched.local);
    let count = usize::try_from(tch::Cuda::device_count()).unwrap_or(0);
    // A number that this machine does not have is refused as it is. No other GPU is touched than the one that is used.
    let device = Device::Cuda(if number < count { (number + local) % count } else { number });
    Ok((device, ssn_cuda::device_properties(device)?))
}

fn failure(error: CudaError) -> Failure {
    Failure::new(Exit::Unavailable, format!("the GPU cannot be used: {error}; or compute with --device cpu"))
}

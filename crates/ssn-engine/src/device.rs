//! The device that the arguments choose.

use std::path::Path;

use ssn_cli::args::DeviceChoice;
use ssn_cli::{Exit, Failure};
use ssn_cuda::{CudaError, Description};
use tch::Device;

/// What the driver makes when there is a GPU.
const DRIVER: &str = "/dev/nvidiactl";

/// The device, with what it is if it is a GPU.
///
/// # Errors
/// A GPU that was asked for by name and cannot be used. `auto` then takes the processors, and says so if there is one.
pub fn device(choice: DeviceChoice) -> Result<(Device, Option<Description>), Failure> {
    match choice {
        DeviceChoice::Cpu => Ok((Device::Cpu, None)),
        DeviceChoice::Cuda(number) => {
            let device = Device::Cuda(number);
            Ok((device, Some(gpu(device).map_err(failure)?)))
        }
        DeviceChoice::Auto if !Path::new(DRIVER).exists() => Ok((Device::Cpu, None)),
        DeviceChoice::Auto => match gpu(Device::Cuda(0)) {
            Ok(description) => Ok((Device::Cuda(0), Some(description))),
            Err(reason) => {
                eprintln!("note: there is an NVIDIA driver, but the GPU is not used: {reason}");
                Ok((Device::Cpu, None))
            }
        },
    }
}

fn gpu(device: Device) -> Result<Description, CudaError> {
    ssn_cuda::load()?;
    ssn_cuda::describe(device)
}

fn failure(error: CudaError) -> Failure {
    Failure::new(Exit::Unavailable, format!("the GPU cannot be used: {error}; or compute with --device cpu"))
}

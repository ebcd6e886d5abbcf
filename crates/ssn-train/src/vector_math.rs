//! The elementary functions of the CPU, warmed up before several threads use them.

use tch::{Device, Kind, Tensor};

/// Calls every elementary function once, with one number of each precision.
///
/// MKL, which computes them for libtorch, chooses the variant for this CPU when a function is called for the
/// first time. Where two threads do so at the same moment, one of them may be given a less exact variant for that
/// call ([pytorch#188792]), and a run would not repeat itself to the bit. So programs call this before they start threads.
///
/// [pytorch#188792]: https://github.com/pytorch/pytorch/issues/188792
pub fn warm_up_vector_math() {
    let functions: [fn(&Tensor) -> Tensor; 19] = [
        Tensor::exp,
        Tensor::expm1,
        Tensor::log,
        Tensor::log1p,
        Tensor::log2,
        Tensor::log10,
        Tensor::sqrt,
        Tensor::sin,
        Tensor::cos,
        Tensor::tan,
        Tensor::asin,
        Tensor::acos,
        Tensor::atan,
        Tensor::tanh,
        Tensor::erf,
        Tensor::erfc,
        Tensor::erfinv,
        Tensor::floor,
        Tensor::ceil,
    ];
    for kind in [Kind::Float, Kind::Double] {
        let number = Tensor::full([1], 0.5, (kind, Device::Cpu));
        for function in functions {
            drop(function(&number));
        }
    }
}

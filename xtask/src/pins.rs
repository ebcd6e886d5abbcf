//! The wheels that libtorch is made of: which, from where pip takes them, what they weigh, what is kept.
//!
//! The versions are those that the METADATA of `torch` and of `cuda-toolkit` 13.0.2 require on Linux. A new
//! libtorch means a new table: the hash and the size of a wheel are those on its index page, and the unpacked
//! sizes are the sums over the kept files, which the closing line of `cargo xtask setup` shows.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How much of libtorch is installed; the greater one contains the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parts {
    /// What building and running on the CPU needs.
    Cpu,
    /// The above and everything that an NVIDIA GPU needs beside its driver, with the headers for C++ that uses it.
    Cuda,
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "CPU",
            Self::Cuda => "CPU and CUDA",
        })
    }
}

/// One wheel, pinned.
#[derive(Debug, Clone, Copy)]
pub struct Wheel<'a> {
    /// The name of the package, as pip knows it.
    pub package: &'a str,
    /// The exact version.
    pub version: &'a str,
    /// The platform tag in the name of the wheel; pip takes it literally, whatever it runs on.
    pub platform: &'a str,
    /// The hash of the whole wheel in hexadecimal.
    pub sha256: &'a str,
    /// The size of the whole wheel.
    pub bytes: u64,
    /// What the CPU part keeps of it; nothing means that the CPU part does not need the wheel.
    pub cpu: Kept<'a>,
    /// What the CUDA part keeps in addition.
    pub cuda: Kept<'a>,
}

/// The files of a wheel that are unpacked.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// A path that ends in a slash is a folder with all that is in it; any other is one file.
    pub paths: &'a [&'a str],
    /// What these files, and the licences in the first use of the wheel, weigh unpacked.
    pub bytes: u64,
}

impl<'a> Wheel<'a> {
    /// Whether an installation of these parts needs the wheel.
    pub fn serves(&self, parts: Parts) -> bool {
        self.kept(parts).next().is_some()
    }

    /// The paths that an installation of these parts keeps of the wheel.
    pub fn kept(&self, parts: Parts) -> impl Iterator<Item = &'a str> {
        let cuda = if parts == Parts::Cuda { self.cuda.paths } else { &[] };
        self.cpu.paths.iter().chain(cuda).copied()
    }

    /// What these parts of the wheel weigh unpacked.
    pub fn unpacked(&self, parts: Parts) -> u64 {
        self.cpu.bytes + if parts == Parts::Cuda { self.cuda.bytes } else { 0 }
    }

    /// The folder of the wheel that holds its licences, which are always kept.
    pub fn licences(&self) -> String {
        format!("{}-{}.dist-info/licenses/", self.package.replace('-', "_"), self.version)
    }

    /// The name under which a fetched wheel is kept until the installation is complete.
    pub fn file_name(&self) -> String {
        format!("{}-{}.whl", self.package, self.version)
    }
}

/// The wheels as pip's command line names them.
pub fn requirements(wheels: &[Wheel<'_>]) -> String {
    wheels.iter().map(|wheel| format!("{}=={}", wheel.package, wheel.version)).collect::<Vec<_>>().join(" ")
}

/// No file.
pub const NOTHING: Kept<'static> = Kept { paths: &[], bytes: 0 };

const TORCH_CPU: &[&str] = &[
    "torch/include/",
    "torch/lib/libc10.so",
    "torch/lib/libgomp.so.1",
    // Needs libtorch_cuda.so to be loaded, but nothing loads it: the linker wants it for `-ltorch` alone.
    "torch/lib/libtorch.so",
    "torch/lib/libtorch_cpu.so",
];

const TORCH_CUDA: &[&str] = &[
    "torch/lib/libc10_cuda.so",
    "torch/lib/libcaffe2_nvrtc.so",
    "torch/lib/libtorch_cuda.so",
    "torch/lib/libtorch_cuda_linalg.so",
    "torch/lib/libtorch_nvshmem.so",
];

const CUDA_RUNTIME: Wheel<'static> = Wheel {
    package: "nvidia-cuda-runtime",
    version: "13.0.96",
    platform: "manylinux2014_x86_64",
    sha256: "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
    bytes: 2_243_632,
    cpu: Kept { paths: &["nvidia/cu13/lib/libcudart.so.13"], bytes: 763_550 },
    cuda: Kept { paths: &["nvidia/"], bytes: 6_476_766 },
};

// An extra of `cuda-toolkit` 13.0.2 that `torch` does not ask for: `cuda_runtime.h` and with it the CUDA headers of
// `torch` include `crt/host_config.h`.
const CUDA_CRT: Wheel<'static> = Wheel {
    package: "nvidia-cuda-crt",
    version: "13.0.88",
    platform: "manylinux2014_x86_64",
    sha256: "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
    bytes: 134_086,
    cpu: NOTHING,
    cuda: Kept { paths: &["nvidia/"], bytes: 933_521 },
};

const CUDA_NVRTC: Wheel<'static> = Wheel {
    package: "nvidia-cuda-nvrtc",
    version: "13.0.88",
    platform: "manylinux2010_x86_64",
    sha256: "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575",
    bytes: 90_215_200,
    cpu: NOTHING,
    cuda: Kept { paths: &["nvidia/"], bytes: 228_016_741 },
};

/// CUDA's headers alone, for a PyTorch that is linked: it brings the libraries, and not all of the headers.
pub const CUDA_HEADERS: &[Wheel<'static>] = &[
    Wheel { cpu: NOTHING, cuda: Kept { paths: HEADERS, bytes: 4_150_584 }, ..CUDA_RUNTIME },
    Wheel { cuda: Kept { paths: HEADERS, bytes: 933_521 }, ..CUDA_CRT },
];

/// The headers and the run-time compiler, which need no GPU to compile for one.
pub const CUDA_COMPILER: &[Wheel<'static>] = &[
    CUDA_HEADERS[0],
    CUDA_HEADERS[1],
    Wheel { cuda: Kept { paths: NVRTC, bytes: 113_777_942 }, ..CUDA_NVRTC },
];

const HEADERS: &[&str] = &["nvidia/cu13/include/"];

const NVRTC: &[&str] = &["nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc-builtins.so.13.0"];

/// Every wheel of libtorch [`VERSION`](crate::libtorch::VERSION) for Linux on x86-64.
pub const WHEELS: &[Wheel<'static>] = &[
    Wheel {
        package: "torch",
        version: "2.11.0",
        platform: "manylinux_2_28_x86_64",
        sha256: "7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a",
        bytes: 530_604_548,
        cpu: Kept { paths: TORCH_CPU, bytes: 492_434_573 },
        cuda: Kept { paths: TORCH_CUDA, bytes: 514_335_261 },
    },
    // libtorch_cpu.so itself loads one library of each of the next two, even where there is no GPU.
    CUDA_RUNTIME,
    Wheel {
        package: "nvidia-cuda-cupti",
        version: "13.0.85",
        platform: "manylinux_2_25_x86_64",
        sha256: "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8",
        bytes: 10_715_597,
        cpu: Kept { paths: &["nvidia/cu13/lib/libcupti.so.13"], bytes: 4_211_470 },
        cuda: Kept { paths: &["nvidia/"], bytes: 41_016_070 },
    },
    // What `cuda-toolkit` 13.0.2 pins for the extras that `torch` asks for.
    Wheel {
        package: "nvidia-cublas",
        version: "13.1.0.3",
        platform: "manylinux_2_27_x86_64",
        sha256: "ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171",
        bytes: 423_133_236,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 597_129_383 },
    },
    CUDA_NVRTC,
    Wheel {
        package: "nvidia-cufft",
        version: "12.0.0.61",
        platform: "manylinux2014_x86_64",
        sha256: "6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3",
        bytes: 214_085_489,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 287_643_379 },
    },
    Wheel {
        package: "nvidia-cufile",
        version: "1.15.1.6",
        platform: "manylinux2014_x86_64",
        sha256: "08a3ecefae5a01c7f5117351c64f17c7c62efa5fffdbe24fc7d298da19cd0b44",
        bytes: 1_223_672,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 3_318_956 },
    },
    Wheel {
        package: "nvidia-curand",
        version: "10.4.0.35",
        platform: "manylinux_2_27_x86_64",
        sha256: "1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc",
        bytes: 59_544_258,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 134_862_662 },
    },
    Wheel {
        package: "nvidia-cusolver",
        version: "12.0.4.66",
        platform: "manylinux_2_27_x86_64",
        sha256: "0a759da5dea5c0ea10fd307de75cdeb59e7ea4fcb8add0924859b944babf1112",
        bytes: 200_941_980,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 245_424_805 },
    },
    Wheel {
        package: "nvidia-cusparse",
        version: "12.6.3.3",
        platform: "manylinux2014_x86_64",
        sha256: "2b3c89c88d01ee0e477cb7f82ef60a11a4bcd57b6b87c33f789350b59759360b",
        bytes: 145_942_937,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 162_923_924 },
    },
    Wheel {
        package: "nvidia-nvjitlink",
        version: "13.0.88",
        platform: "manylinux2010_x86_64",
        sha256: "13a74f429e23b921c1109976abefacc69835f2f433ebd323d3946e11d804e47b",
        bytes: 40_713_933,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 98_883_211 },
    },
    Wheel {
        package: "nvidia-nvtx",
        version: "13.0.85",
        platform: "manylinux1_x86_64",
        sha256: "4936d1d6780fbe68db454f5e72a42ff64d1fd6397df9f363ae786930fd5c1cd4",
        bytes: 148_047,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 584_009 },
    },
    CUDA_CRT,
    // What `torch` requires by itself.
    Wheel {
        package: "nvidia-cudnn-cu13",
        version: "9.19.0.56",
        platform: "manylinux_2_27_x86_64",
        sha256: "d20e1734305e9d68889a96e3f35094d733ff1f83932ebe462753973e53a572bf",
        bytes: 366_066_321,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 493_804_536 },
    },
    Wheel {
        package: "nvidia-cusparselt-cu13",
        version: "0.8.0",
        platform: "manylinux2014_x86_64",
        sha256: "25e30a8a7323935d4ad0340b95a0b69926eee755767e8e0b1cf8dd85b197d3fd",
        bytes: 169_884_119,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 233_649_250 },
    },
    Wheel {
        package: "nvidia-nccl-cu13",
        version: "2.28.9",
        platform: "manylinux_2_18_x86_64",
        sha256: "e4553a30f34195f3fa1da02a6da3d6337d28f2003943aa0a3d247bbc25fefc42",
        bytes: 196_493_177,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 218_287_737 },
    },
    Wheel {
        package: "nvidia-nvshmem-cu13",
        version: "3.4.5",
        platform: "manylinux2014_x86_64",
        sha256: "290f0a2ee94c9f3687a02502f3b9299a9f9fe826e6d0287ee18482e78d495b80",
        bytes: 60_412_546,
        cpu: NOTHING,
        cuda: Kept { paths: &["nvidia/"], bytes: 80_807_396 },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::libtorch::VERSION;

    #[test]
    fn the_table_is_well_formed() {
        for wheel in WHEELS.iter().chain(CUDA_COMPILER) {
            assert_eq!(wheel.sha256.len(), 64, "{}", wheel.package);
            assert!(wheel.sha256.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')), "{}", wheel.package);
            assert_eq!(wheel.cpu.paths.is_empty(), wheel.cpu.bytes == 0, "{}", wheel.package);
            assert!(wheel.serves(Parts::Cuda), "{}", wheel.package);
        }
        assert_eq!(WHEELS[0].version, VERSION);
    }

    #[test]
    fn the_cpu_needs_three_wheels_and_little_beside_torch() {
        let cpu: Vec<_> = WHEELS.iter().filter(|wheel| wheel.serves(Parts::Cpu)).collect();
        assert_eq!(cpu.len(), 3);
        assert_eq!(cpu.iter().map(|wheel| wheel.bytes).sum::<u64>(), 543_563_777);
    }

    #[test]
    fn the_headers_of_cuda_are_those_of_the_installation_and_of_one_release() {
        let release = |wheel: &Wheel<'_>| wheel.version.rsplit_once('.').unwrap().0.to_owned();
        for headers in CUDA_HEADERS {
            let whole = WHEELS.iter().find(|wheel| wheel.sha256 == headers.sha256).unwrap();
            assert!(whole.kept(Parts::Cuda).any(|path| HEADERS[0].starts_with(path)), "{}", whole.package);
            assert!(!headers.serves(Parts::Cpu));
            assert_eq!(release(headers), release(&CUDA_HEADERS[0]));
        }
    }
}

// Kernels: compiled by NVRTC for the GPU at hand when first needed, launched on the current stream.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

// The few functions of NVRTC that are used; its library is loaded before this one.
extern "C" {
typedef struct _nvrtcProgram* nvrtcProgram;
int nvrtcCreateProgram(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*);
int nvrtcCompileProgram(nvrtcProgram, int, const char* const*);
int nvrtcDestroyProgram(nvrtcProgram*);
int nvrtcGetProgramLogSize(nvrtcProgram, size_t*);
int nvrtcGetProgramLog(nvrtcProgram, char*);
int nvrtcGetCUBINSize(nvrtcProgram, size_t*);
int nvrtcGetCUBIN(nvrtcProgram, char*);
}

namespace ssn {

// A file of kernels with the constants it is compiled for.
struct Variant {
    std::string file, options;  // Options are separated by spaces.
    bool operator<(const Variant& other) const {
        return std::tie(file, options) < std::tie(other.file, other.options);
    }
};

// A property of the current device.
inline int attribute(cudaDeviceAttr which) {
    int device, value;
    C10_CUDA_CHECK(cudaGetDevice(&device));
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

inline int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }

class Kernels {
   public:
    static Kernels& all() {
        static Kernels* kernels = new Kernels;  // Never taken down: the driver may go before it.
        return *kernels;
    }

    void add_source(std::string file, std::string text) { sources[std::move(file)] = std::move(text); }

    cudaKernel_t find(const Variant& variant, const char* name) {
        std::lock_guard<std::mutex> guard(mutex);
        auto key = std::make_pair(variant, std::string(name));
        auto known = kernels.find(key);
        if (known != kernels.end()) return known->second;
        auto library = libraries.find(variant);
        if (library == libraries.end()) library = libraries.emplace(variant, load(compiling(variant).get())).first;
        cudaKernel_t kernel;
        C10_CUDA_CHECK(cudaLibraryGetKernel(&kernel, library->second, name));
        return kernels[key] = kernel;
    }

    // Begins to compile what will be needed, beside what the caller does.
    void prepare(const Variant& variant) {
        std::lock_guard<std::mutex> guard(mutex);
        compiling(variant);
    }

   private:
    // A program may end while threads compile: NVRTC must not go before them.
    Kernels() { std::atexit([] { all().binaries.clear(); }); }

    std::shared_future<std::string> compiling(const Variant& variant) {
        auto known = binaries.find(variant);
        if (known != binaries.end()) return known->second;
        const std::string architecture = "sm_" + std::to_string(attribute(cudaDevAttrComputeCapabilityMajor)) +
                                         std::to_string(attribute(cudaDevAttrComputeCapabilityMinor));
        const std::string source = sources.at("common.cuh") + sources.at(variant.file);
        return binaries[variant] = std::async(std::launch::async | std::launch::deferred, compile, variant, source, architecture).share();
    }

    static std::string compile(const Variant& variant, const std::string& source, const std::string& architecture) {
        std::vector<std::string> options{"--std=c++17", "--gpu-architecture=" + architecture};
        for (size_t begin = 0; begin < variant.options.size();) {
            size_t end = variant.options.find(' ', begin);
            if (end == std::string::npos) end = variant.options.size();
            options.push_back("-D" + variant.options.substr(begin, end - begin));
            begin = end + 1;
        }
        std::vector<const char*> pointers;
        for (auto& option : options) pointers.push_back(option.c_str());
        nvrtcProgram program;
        nvrtcCreateProgram(&program, source.c_str(), variant.file.c_str(), 0, nullptr, nullptr);
        const int failed = nvrtcCompileProgram(program, (int)pointers.size(), pointers.data());
        size_t size = 0;
        std::string binary;
        if (failed) {
            nvrtcGetProgramLogSize(program, &size);
            std::string log(size, '\0');
            nvrtcGetProgramLog(program, log.data());
            nvrtcDestroyProgram(&program);
            throw std::runtime_error(variant.file + " could not be compiled for this GPU: " + log);
        }
        nvrtcGetCUBINSize(program, &size);
        binary.resize(size);
        nvrtcGetCUBIN(program, binary.data());
        nvrtcDestroyProgram(&program);
        return binary;
    }

    static cudaLibrary_t load(const std::string& binary) {
        cudaLibrary_t library;
        // Loading may allocate, which a capture under way must not see as its own.
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        C10_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
        const cudaError_t loaded =
            cudaLibraryLoadData(&library, binary.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
        C10_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
        C10_CUDA_CHECK(loaded);
        return library;
    }

    std::mutex mutex;
    std::map<std::string, std::string> sources;
    std::map<Variant, std::shared_future<std::string>> binaries;
    std::map<Variant, cudaLibrary_t> libraries;
    std::map<std::pair<Variant, std::string>, cudaKernel_t> kernels;
};

// Where a kernel runs.
struct Grid {
    unsigned x = 1, y = 1, block = 256;
    size_t shared = 0;
};

// Launches a kernel; arguments must have the very types that it declares.
template <typename... Arguments>
void launch(const Variant& variant, const char* name, Grid grid, Arguments... arguments) {
    void* pointers[] = {(void*)&arguments...};
    const cudaKernel_t kernel = Kernels::all().find(variant, name);
    // What a block has without being asked, less the static part of any kernel.
    if (grid.shared > 46 << 10) {
        int device;
        C10_CUDA_CHECK(cudaGetDevice(&device));
        C10_CUDA_CHECK(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)grid.shared, device));
    }
    C10_CUDA_CHECK(cudaLaunchKernel((const void*)kernel, dim3(grid.x, grid.y), dim3(grid.block), pointers, grid.shared,
                                    c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace ssn

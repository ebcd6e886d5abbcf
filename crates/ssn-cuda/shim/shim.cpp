// What the bindings to libtorch lack for CUDA: graphs, streams, pinned copies, and operators of our own.
//
// Functions return nothing, or a message that the caller frees. Tensors are those of the bindings: pointers to at::Tensor.

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstring>

#include "ending.h"
#include "head.h"
#include "join.h"
#include "kernel.h"
#include "loss.h"
#include "norm.h"
#include "ranks.h"
#include "streams.h"
#include "unet.h"

// Their header is not among those that come with libtorch.
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

using at::Tensor;
using ssn::follow;

namespace {

template <typename Body>
char* guarded(Body body) {
    try {
        body();
        return nullptr;
    } catch (const c10::Error& error) {
        return strdup(error.what_without_backtrace());
    } catch (const std::exception& error) {
        return strdup(error.what());
    }
}

// Tensors that may be missing.
std::optional<Tensor> maybe(const Tensor* t) { return t ? std::optional<Tensor>(*t) : std::nullopt; }
Tensor or_none(const Tensor* t) { return t ? *t : Tensor(); }

// The stream of the copies from and to the host, beside that of the work.
c10::cuda::CUDAStream& copying() {
    static c10::cuda::CUDAStream* stream = new c10::cuda::CUDAStream(c10::cuda::getStreamFromPool(true));
    return *stream;
}

// The stream of all-reduce operations, beside that of the work.
c10::cuda::CUDAStream& reducing() {
    static c10::cuda::CUDAStream* stream = new c10::cuda::CUDAStream(c10::cuda::getStreamFromPool(true));
    return *stream;
}

}  // namespace

extern "C" {

char* ssn_add_source(const char* file, const char* text) {
    return guarded([&] { ssn::Kernels::all().add_source(file, text); });
}

// What a failure of the GPU is told with where no error can be handed on, and the code of the program then.
char* ssn_tell_failures(const char* advice, int code) {
    return guarded([&] { ssn::Ending::tell(advice, code); });
}

void ssn_free(char* message) { free(message); }

// From now on this thread works on the device.
char* ssn_use_device(int64_t device) {
    return guarded([&] { c10::cuda::set_device((c10::DeviceIndex)device); });
}

// From now on this thread works on a stream of its own, as captures demand; after what was begun on others.
char* ssn_enter_stream(int64_t device) {
    return guarded([&] {
        c10::cuda::set_device((c10::DeviceIndex)device);
        C10_CUDA_CHECK(cudaDeviceSynchronize());
        c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(true, (c10::DeviceIndex)device));
        copying(), reducing();
    });
}

char* ssn_synchronize() {
    return guarded([&] { c10::cuda::getCurrentCUDAStream().synchronize(); });
}

// name gets at most 256 characters; memory: free and total; identity: 16 bytes that no other GPU has.
char* ssn_describe_device(int64_t device, char* name, int64_t* memory, int64_t* capability, char* identity) {
    return guarded([&] {
        cudaDeviceProp properties;
        C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, (int)device));
        snprintf(name, 256, "%s", properties.name);
        capability[0] = properties.major, capability[1] = properties.minor;
        memcpy(identity, properties.uuid.bytes, sizeof properties.uuid.bytes);
        c10::cuda::CUDAGuard guard((c10::DeviceIndex)device);
        size_t available, total;
        C10_CUDA_CHECK(cudaMemGetInfo(&available, &total));
        memory[0] = (int64_t)available, memory[1] = (int64_t)total;
    });
}

// Most bytes in tensors, and most bytes taken from the device, so far.
char* ssn_peak_memory(int64_t device, int64_t* peak) {
    return guarded([&] {
        const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats((c10::DeviceIndex)device);
        peak[0] = stats.allocated_bytes[0].peak;
        peak[1] = stats.reserved_bytes[0].peak;
    });
}

// Bytes that are taken from the device now.
char* ssn_reserved_memory(int64_t device, int64_t* bytes) {
    return guarded([&] {
        *bytes = c10::cuda::CUDACachingAllocator::getDeviceStats((c10::DeviceIndex)device).reserved_bytes[0].current;
    });
}

// The share of the device's memory that may be taken from it.
char* ssn_limit_memory(int64_t device, double fraction) {
    return guarded(
        [&] { c10::cuda::CUDACachingAllocator::setMemoryFraction(fraction, (c10::DeviceIndex)device); });
}

char* ssn_empty_cache() {
    return guarded([&] { c10::cuda::CUDACachingAllocator::emptyCache(); });
}

// Whether convolutions in single precision may round what they read to TF32.
char* ssn_allow_tf32(int on) {
    return guarded([&] { at::globalContext().setAllowTF32CuDNN(on != 0); });
}

// What happens between on and off is what a profiler sees that was told to wait.
char* ssn_profile(int on) {
    return guarded([&] { C10_CUDA_CHECK(on ? cudaProfilerStart() : cudaProfilerStop()); });
}

// ---- Host memory and copies. ----

char* ssn_pinned(int64_t bytes, Tensor** result) {
    return guarded([&] { *result = new Tensor(at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true))); });
}

// Copies on the copying stream.
char* ssn_copy_on_side_stream(Tensor* to, const Tensor* from) {
    return guarded([&] {
        c10::cuda::CUDAStreamGuard guard(copying());
        to->copy_(*from, true);
    });
}

// The work waits for the copies so far.
char* ssn_wait_for_copies() {
    return guarded([&] { follow(c10::cuda::getCurrentCUDAStream(), copying()); });
}

// A copy on the stream of the work that does not wait.
char* ssn_copy(Tensor* to, const Tensor* from) {
    return guarded([&] {
        at::NoGradGuard guard;
        to->copy_(*from, true);
    });
}

// ---- Sums over ranks. ----

// How normalizations sum their statistics over ranks; nothing to forget it.
char* ssn_set_sum(ssn::Communicator::Sum sum, void* state, ssn::Communicator::Drop drop) {
    return guarded([&] { ssn::Communicator::all().set(sum, state, drop); });
}

// The stream of the work.
char* ssn_current_stream(cudaStream_t* stream) {
    return guarded([&] { *stream = c10::cuda::getCurrentCUDAStream().stream(); });
}

// The stream of sums, after what the work has begun.
char* ssn_all_reduce_stream(cudaStream_t* stream) {
    return guarded([&] {
        follow(reducing(), c10::cuda::getCurrentCUDAStream());
        *stream = reducing().stream();
    });
}

// The work waits for the sums so far.
char* ssn_wait_for_all_reduce() {
    return guarded([&] { follow(c10::cuda::getCurrentCUDAStream(), reducing()); });
}

// ---- Events. ----

char* ssn_event_new(cudaEvent_t* event) {
    return guarded([&] { C10_CUDA_CHECK(cudaEventCreate(event)); });
}

void ssn_event_free(cudaEvent_t event) { cudaEventDestroy(event); }

char* ssn_event_record(cudaEvent_t event) {
    return guarded([&] { C10_CUDA_CHECK(cudaEventRecord(event, c10::cuda::getCurrentCUDAStream().stream())); });
}

char* ssn_event_between(cudaEvent_t start, cudaEvent_t end, float* milliseconds) {
    return guarded([&] { C10_CUDA_CHECK(cudaEventElapsedTime(milliseconds, start, end)); });
}

// ---- Graphs. ----

char* ssn_graph_begin(at::cuda::CUDAGraph** graph) {
    return guarded([&] {
        auto* made = new at::cuda::CUDAGraph();
        try {
            made->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
        } catch (...) {
            delete made;
            throw;
        }
        *graph = made;
    });
}

char* ssn_graph_end(at::cuda::CUDAGraph* graph) {
    return guarded([&] { graph->capture_end(); });
}

char* ssn_graph_replay(at::cuda::CUDAGraph* graph) {
    return guarded([&] { graph->replay(); });
}

void ssn_graph_free(at::cuda::CUDAGraph* graph) {
    char* message = guarded([&] { delete graph; });
    free(message);
}

// ---- Streams beside that of a recorded step. ----

char* ssn_side_streams(int on) {
    return guarded([&] { on ? ssn::SideStreams::all().begin() : ssn::SideStreams::all().end(); });
}

char* ssn_enter_branch() {
    return guarded([&] { ssn::SideStreams::all().enter(); });
}

char* ssn_leave_branch() {
    return guarded([&] { ssn::SideStreams::all().leave(); });
}

char* ssn_join_branches() {
    return guarded([&] { ssn::SideStreams::all().join(); });
}

// ---- Kernels without gradients. ----

char* ssn_launch(const char* file, const char* options, const char* name, unsigned blocks, unsigned threads, void** arguments) {
    return guarded([&] {
        C10_CUDA_CHECK(cudaLaunchKernel((const void*)ssn::Kernels::all().find({file, options}, name), dim3(blocks),
                                        dim3(threads), arguments, 0, c10::cuda::getCurrentCUDAStream().stream()));
    });
}

// ---- Operators. ----

char* ssn_sums_new(ssn::Arena** sums) {
    return guarded([&] { *sums = new ssn::Arena; });
}

void ssn_sums_free(ssn::Arena* sums) {
    char* message = guarded([&] { delete sums; });
    free(message);
}

// Clears the sums of the last step; those of this one are taken from the same memory.
char* ssn_begin_step(ssn::Arena* sums, int64_t device) {
    return guarded([&] {
        at::NoGradGuard guard;
        sums->begin(at::Device(at::kCUDA, (c10::DeviceIndex)device));
    });
}

char* ssn_downsample(const Tensor* x, const int64_t* stride, Tensor** pooled, Tensor** same) {
    return guarded([&] {
        auto results = ssn::Downsample::apply(*x, std::vector<int64_t>(stride, stride + 3));
        *pooled = new Tensor(results[0]);
        *same = new Tensor(results[1]);
    });
}

char* ssn_upsample(const Tensor* x, const Tensor* skip, const int64_t* stride, Tensor** result) {
    return guarded([&] { *result = new Tensor(ssn::Upsample::apply(*x, *skip, std::vector<int64_t>(stride, stride + 3))); });
}

char* ssn_head(const Tensor* features, const Tensor* weight, const Tensor* bias, const int64_t* rows, int64_t count,
               Tensor** results) {
    return guarded([&] {
        auto made = ssn::Head::apply(*features, *weight, *bias, std::vector<int64_t>(rows, rows + count));
        for (int64_t i = 0; i < count; ++i) results[i] = new Tensor(made[i]);
    });
}

// tensors: weight, bias, PReLU's slope, running mean, running variance, dropout's seed; the last four may be missing.
char* ssn_normalize(const Tensor* x, const Tensor** tensors, const ssn::NormOptions* options, Tensor** result) {
    return guarded([&] {
        ssn::NormTensors t;
        t.running_mean = or_none(tensors[3]), t.running_var = or_none(tensors[4]), t.seed = or_none(tensors[5]);
        if (options->training) {
            *result = new Tensor(ssn::Normalize::apply(*x, *tensors[0], *tensors[1], maybe(tensors[2]), t, *options));
        } else {
            at::NoGradGuard guard;
            t.weight = *tensors[0], t.bias = *tensors[1], t.prelu = or_none(tensors[2]);
            Tensor saved;
            *result = new Tensor(ssn::normalize_forward(*x, t, *options, saved));
        }
    });
}

char* ssn_convolution(const Tensor* x, const Tensor* kernel, const int64_t* padding, Tensor** result) {
    return guarded([&] {
        const std::vector<int64_t> of_axes(padding, padding + 3);
        *result = new Tensor(ssn::Convolution::apply(*x, *kernel, of_axes, at::GradMode::is_enabled()));
    });
}

char* ssn_normalized_convolution(const Tensor* x, const Tensor** tensors, const Tensor* kernel,
                                 const ssn::NormOptions* options, int residual, Tensor** result) {
    return guarded([&] {
        ssn::NormTensors t;
        t.running_mean = or_none(tensors[3]), t.running_var = or_none(tensors[4]), t.seed = or_none(tensors[5]);
        *result = new Tensor(ssn::NormalizedConvolution::apply(*x, *tensors[0], *tensors[1], maybe(tensors[2]), *kernel, t,
                                                               *options, residual != 0));
    });
}

char* ssn_join(const Tensor** maps, const ssn::PathOptions* paths, int64_t count, const int64_t* size, Tensor** result) {
    return guarded([&] {
        std::vector<Tensor> list;
        for (int64_t i = 0; i < count; ++i) list.push_back(*maps[i]);
        *result = new Tensor(ssn::Join::apply(at::TensorList(list), std::vector<ssn::PathOptions>(paths, paths + count),
                                              std::vector<int64_t>{size[0], size[1], size[2]}));
    });
}

char* ssn_monte_carlo(const Tensor** parts, const Tensor* target, const Tensor* seed, const ssn::DrawOptions* options,
                      double exponent, Tensor** loss, Tensor** ess) {
    return guarded([&] {
        auto results = ssn::MonteCarlo::apply(*parts[0], *parts[1], *parts[2], *target, *seed, *options, exponent);
        *loss = new Tensor(results[0]);
        *ess = new Tensor(results[1]);
    });
}

char* ssn_soft_maps(const Tensor** parts, const Tensor* target, const Tensor* seed, const ssn::DrawOptions* options,
                    Tensor** maps) {
    return guarded([&] {
        *maps = new Tensor(ssn::SoftMaps::apply(*parts[0], *parts[1], *parts[2], *target, *seed, *options));
    });
}

}  // extern "C"

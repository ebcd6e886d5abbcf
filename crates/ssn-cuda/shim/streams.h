// Streams beside that of a step, for work that does not wait for each other: kernels of a recorded step run at the same time
// where nothing orders them.
#pragma once

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>

#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace ssn {

using c10::cuda::CUDAStream;

// What a stream does next waits for what another has begun.
inline void follow(const CUDAStream& stream, const CUDAStream& other) {
    cudaEvent_t event;
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    C10_CUDA_CHECK(cudaEventRecord(event, other.stream()));
    C10_CUDA_CHECK(cudaStreamWaitEvent(stream.stream(), event, 0));
    C10_CUDA_CHECK(cudaEventDestroy(event));
}

// Used while a graph is recorded, by one trainer at a time. In the steps before, cuDNN tries its convolutions, and should have the
// device for itself.
class SideStreams {
   public:
    static SideStreams& all() {
        static SideStreams* streams = new SideStreams;
        return *streams;
    }

    void begin() {
        clear();
        on = true;
    }

    // The stream of the step waits for all others.
    void end() {
        if (!on) return;
        on = false;
        const auto main = c10::cuda::getCurrentCUDAStream();
        for (size_t i = 0; i < used; ++i) follow(main, stream(i));
        for (auto& [kernel, data] : gradients) {
            TORCH_CHECK(kernel.grad().defined() && kernel.grad().data_ptr() == data,
                        "the gradient of a kernel was copied before it was computed");
        }
        clear();
    }

    // Enters the stream of a branch, after what was begun so far.
    void enter() {
        if (!on) return;
        home = c10::cuda::getCurrentCUDAStream();
        branches.push_back(used++);
        follow(stream(branches.back()), *home);
        c10::cuda::setCurrentCUDAStream(stream(branches.back()));
    }

    // Back to the stream that the branch left.
    void leave() {
        if (home) c10::cuda::setCurrentCUDAStream(*home);
        home.reset();
    }

    // The current stream waits for the branches.
    void join() {
        for (size_t branch : branches) follow(c10::cuda::getCurrentCUDAStream(), stream(branch));
        branches.clear();
    }

    // The gradient of a kernel, beside the work of the current stream, which does not wait for it before the step ends.
    // `inputs` are kept until the current stream has waited for their use, some gradients later: their memory is taken again
    // by later work of that stream.
    template <typename Body>
    at::Tensor weight_gradient(const at::Tensor& kernel, std::vector<at::Tensor> inputs, Body body) {
        // What is added to an earlier gradient, or goes through further operators, is needed at once.
        if (!on || !kernel.is_leaf() || kernel.grad().defined()) return body();
        const auto main = c10::cuda::getCurrentCUDAStream();
        auto [found, is_new] = pending.try_emplace(main.id());
        Beside& beside = found->second;
        if (is_new) beside.stream = used++;
        const auto side = stream(beside.stream);
        follow(side, main);
        at::Tensor gradient;
        {
            c10::cuda::CUDAStreamGuard guard(side);
            gradient = body();
        }
        gradients.emplace_back(kernel, gradient.data_ptr());
        beside.uses.emplace_back(std::move(inputs), side);
        while (beside.uses.size() > AHEAD) {
            beside.uses.front().wait(main);
            beside.uses.pop_front();
        }
        return gradient;
    }

   private:
    // More of them save no time that could be measured.
    static constexpr size_t AHEAD = 2;

    // Tensors, and the end of their use on a stream.
    struct Use {
        std::vector<at::Tensor> tensors;
        cudaEvent_t event = nullptr;
        Use(std::vector<at::Tensor> tensors, const CUDAStream& stream) : tensors(std::move(tensors)) {
            C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
            C10_CUDA_CHECK(cudaEventRecord(event, stream.stream()));
        }
        Use(const Use&) = delete;
        ~Use() { cudaEventDestroy(event); }
        void wait(const CUDAStream& stream) const { C10_CUDA_CHECK(cudaStreamWaitEvent(stream.stream(), event, 0)); }
    };

    // The stream beside another.
    struct Beside {
        size_t stream = 0;
        std::deque<Use> uses;
    };

    void clear() {
        used = 0;
        home.reset();
        branches.clear();
        pending.clear();
        gradients.clear();
    }

    CUDAStream stream(size_t place) {
        auto& streams = of_device[c10::cuda::current_device()];
        while (streams.size() <= place) streams.push_back(c10::cuda::getStreamFromPool(true));
        return streams[place];
    }

    bool on = false;
    size_t used = 0;
    std::optional<CUDAStream> home;
    std::vector<size_t> branches;
    std::vector<std::pair<at::Tensor, const void*>> gradients;
    std::map<c10::DeviceIndex, std::vector<CUDAStream>> of_device;
    std::map<c10::StreamId, Beside> pending;
};

}  // namespace ssn

// Streams beside that of a step, for work that does not wait for each other: kernels of a recorded step run at the same time
// where nothing orders them.
#pragma once

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace ssn {

using c10::cuda::CUDAStream;

// What is launched on a stream from now on waits until all that was launched on another so far is done.
inline void follow(const CUDAStream& stream, const CUDAStream& other) {
    cudaEvent_t event;
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    C10_CUDA_CHECK(cudaEventRecord(event, other.stream()));
    C10_CUDA_CHECK(cudaStreamWaitEvent(stream.stream(), event, 0));
    C10_CUDA_CHECK(cudaEventDestroy(event));
}

// Used while a graph is recorded, by one trainer at a time; streams of other threads are left alone. In the steps before, cuDNN
// tries its convolutions, and should have the device for itself.
class SideStreams {
   public:
    static SideStreams& all() {
        static SideStreams* streams = new SideStreams;
        return *streams;
    }

    void begin() {
        clear();
        add_member(c10::cuda::getCurrentCUDAStream());
    }

    // The stream of the step waits for all others.
    void end() {
        const auto main = c10::cuda::getCurrentCUDAStream();
        std::vector<CUDAStream> others;
        for (size_t i = 0; i < used; ++i) others.push_back(stream(i));
        const auto computed = std::move(gradients);
        clear();
        for (const auto& other : others) follow(main, other);
        for (auto& [kernel, data] : computed) {
            TORCH_CHECK(kernel.grad().defined() && kernel.grad().data_ptr() == data,
                        "the gradient of a convolution's weight was copied before it was computed");
        }
    }

    // Enters the stream of a branch, after what was launched so far.
    void enter() {
        const auto main = c10::cuda::getCurrentCUDAStream();
        if (!is_member(main)) return;
        const auto branch = stream(used++);
        follow(branch, main);
        add_member(branch);
        branches.emplace_back(main, branch);
        c10::cuda::setCurrentCUDAStream(branch);
    }

    // Back to the stream that the branch left.
    void leave() {
        if (!is_member(c10::cuda::getCurrentCUDAStream()) || branches.empty()) return;
        c10::cuda::setCurrentCUDAStream(branches.back().first);
    }

    // The current stream waits for the branches.
    void join() {
        const auto main = c10::cuda::getCurrentCUDAStream();
        if (!is_member(main)) return;
        for (const auto& [home, branch] : branches) follow(main, branch);
        branches.clear();
    }

    // The gradient of a kernel, beside the work of the current stream, which does not wait for it before the step ends.
    // `inputs` are kept until the current stream has waited for their use, some gradients later: their memory is taken again
    // by later work of that stream.
    template <typename Body>
    at::Tensor weight_gradient(const at::Tensor& kernel, std::vector<at::Tensor> inputs, Body body) {
        const auto main = c10::cuda::getCurrentCUDAStream();
        if (!is_member(main)) return body();
        // What is added to an earlier gradient, or goes through further operators, is needed at once.
        if (!kernel.is_leaf() || kernel.grad().defined()) {
            for (auto& [of, beside] : pending) follow(main, stream(beside.stream));
            return body();
        }
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

    // Whether a stream is that of the step under way, or of one of its branches.
    bool is_member(const CUDAStream& stream) {
        std::lock_guard<std::mutex> guard(mutex);
        return members.count({stream.device_index(), stream.id()}) > 0;
    }

    void add_member(const CUDAStream& stream) {
        std::lock_guard<std::mutex> guard(mutex);
        members.insert({stream.device_index(), stream.id()});
    }

    void clear() {
        {
            std::lock_guard<std::mutex> guard(mutex);
            members.clear();
        }
        used = 0;
        branches.clear();
        pending.clear();
        gradients.clear();
    }

    CUDAStream stream(size_t place) {
        auto& streams = of_device[c10::cuda::current_device()];
        while (streams.size() <= place) streams.push_back(c10::cuda::getStreamFromPool(true));
        return streams[place];
    }

    std::mutex mutex;
    std::set<std::pair<c10::DeviceIndex, c10::StreamId>> members;
    size_t used = 0;
    std::vector<std::pair<CUDAStream, CUDAStream>> branches;  // The stream that was left, and that of the branch.
    std::vector<std::pair<at::Tensor, const void*>> gradients;
    std::map<c10::DeviceIndex, std::vector<CUDAStream>> of_device;
    std::map<c10::StreamId, Beside> pending;
};

}  // namespace ssn

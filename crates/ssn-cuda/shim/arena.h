// Sums that kernels add to, cleared all at once at the beginning of a step instead of one by one. Each trainer has its own:
// the graph of its step writes to them at any later time.
#pragma once

#include <ATen/ATen.h>

#include <atomic>

namespace ssn {

class Arena {
   public:
    ~Arena() {
        Arena* self = this;
        current().compare_exchange_strong(self, nullptr);
    }

    // Zeros of the step that was begun last, or others if there is none.
    static at::Tensor take(int64_t count, const at::TensorOptions& like) {
        Arena* arena = current();
        return arena ? arena->of_step(count, like) : at::zeros({count}, like.dtype(at::kDouble));
    }

    // Begins a step. Grows to what the last one needed, which must not happen while a graph is recorded: the steps before
    // a recorded one are like it.
    void begin(const at::Device& device) {
        const int64_t needed = taken.exchange(0);
        if (needed > room || !numbers.defined() || numbers.device() != device) {
            const int64_t more = std::max(needed, room);
            numbers = at::zeros({std::max<int64_t>(more, 1)}, at::TensorOptions().dtype(at::kDouble).device(device));
            room = more;
        } else if (needed > 0) {
            numbers.zero_();
        }
        current() = this;
    }

   private:
    // Backward passes run on threads of their own: this is the process's.
    static std::atomic<Arena*>& current() {
        static std::atomic<Arena*> arena{nullptr};
        return arena;
    }

    // Beyond the room there are others.
    at::Tensor of_step(int64_t count, const at::TensorOptions& like) {
        const int64_t rounded = (count + 15) / 16 * 16, start = taken.fetch_add(rounded);
        if (start + rounded > room || numbers.device() != like.device()) return at::zeros({count}, like.dtype(at::kDouble));
        return numbers.narrow(0, start, count);
    }

    at::Tensor numbers;
    int64_t room = 0;
    std::atomic<int64_t> taken{0};
};

}  // namespace ssn

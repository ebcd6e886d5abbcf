// Sums that kernels add to, cleared all at once at the beginning of a step instead of one by one.
#pragma once

#include <ATen/ATen.h>

#include <atomic>

namespace ssn {

class Arena {
   public:
    static Arena& of_step() {
        static Arena* arena = new Arena;
        return *arena;
    }

    // Begins a step. Grows to what the last one needed, which must not happen while a graph is recorded: the steps before
    // a recorded one are like it.
    void begin(const at::Device& device) {
        const int64_t needed = taken.exchange(0);
        if (needed > room || !numbers.defined() || numbers.device() != device) {
            room = std::max(needed, room);
            numbers = at::zeros({std::max<int64_t>(room, 1)}, at::TensorOptions().dtype(at::kDouble).device(device));
        } else if (needed > 0) {
            numbers.zero_();
        }
    }

    // Zeros. Beyond the room there are others.
    at::Tensor take(int64_t count, const at::TensorOptions& like) {
        const int64_t rounded = (count + 15) / 16 * 16, start = taken.fetch_add(rounded);
        if (start + rounded > room || numbers.device() != like.device()) return at::zeros({count}, like.dtype(at::kDouble));
        return numbers.narrow(0, start, count);
    }

   private:
    at::Tensor numbers;
    int64_t room = 0;
    std::atomic<int64_t> taken{0};
};

}  // namespace ssn

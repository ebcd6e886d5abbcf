// Sums over the processes that train a network together, as somebody who knows them does them.
#pragma once

#include <ATen/ATen.h>

#include <stdexcept>

namespace ssn {

class Communicator {
   public:
    // Sums a tensor over all processes, in place, as work of the current stream. Gives 0, or writes why it could not.
    using Sum = int (*)(void* state, const at::Tensor* numbers, char* message, int64_t room);

    static Communicator& all() {
        static Communicator ranks;
        return ranks;
    }

    void set(Sum sum, void* state) { this->sum = sum, this->state = state; }

    void add_up(const at::Tensor& numbers) const {
        TORCH_CHECK(sum, "a batch is shared, but nobody said with whom");
        char message[1024] = "";
        if (sum(state, &numbers, message, sizeof message)) throw std::runtime_error(message);
    }

   private:
    Sum sum = nullptr;
    void* state = nullptr;
};

}  // namespace ssn

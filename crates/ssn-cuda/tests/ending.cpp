// Ends as a program does whose tensor cannot be freed: by an exception in a destructor.

#include "../shim/ending.h"

#include <stdexcept>

struct Tensor {
    const char* failure;
    ~Tensor() noexcept { throw std::runtime_error(failure); }
};

int main(int, char** words) {
    // Twice, as the second must not hand on to itself.
    for (int i = 0; i < 2; i++) ssn::Ending::tell(". Go on", 74);
    Tensor tensor{words[1]};
}

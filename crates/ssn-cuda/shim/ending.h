// What is told when the GPU fails where no error can be handed on: libtorch frees the memory of tensors in destructors,
// and an exception there ends the program.

#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

namespace ssn {

struct Ending {
    std::string advice;
    int code = 0;
    std::terminate_handler otherwise = nullptr;

    static Ending& ours() {
        static Ending ending;
        return ending;
    }

    // From now on such a failure is told in one sentence, with advice, and ends the program with the code.
    static void tell(const char* advice, int code) {
        ours().advice = advice;
        ours().code = code;
        if (!ours().otherwise) ours().otherwise = std::set_terminate(end);
    }

    static void end() {
        try {
            if (auto failure = std::current_exception()) std::rethrow_exception(failure);
        } catch (const std::exception& failure) {
            if (const char* told = strstr(failure.what(), "CUDA error: ")) {
                fprintf(stderr, "error: the GPU stopped working (%.*s)%s\n", (int)strcspn(told, "\n"), told,
                        ours().advice.c_str());
                _exit(ours().code);
            }
        } catch (...) {
        }
        ours().otherwise();
    }
};

}  // namespace ssn

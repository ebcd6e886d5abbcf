// Nodes of libtorch's graph of gradients whose work is done in Rust.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/jit/api/module.h>

#include <cstring>
#include <stdexcept>
#include <vector>

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

// Something of Rust's, for as long as the graph may need it.
struct Held : torch::CustomClassHolder {
    void* state;
    void (*drop)(void*);
    Held(void* state, void (*drop)(void*)) : state(state), drop(drop) {}
    Held(const Held&) = delete;
    ~Held() override { drop(state); }
};

// Writes `count` new tensors for the gradient of a result; the text of a failure, or null.
using Gradient = char* (*)(void* state, const Tensor* gradient, Tensor** out, size_t count);
// Looks at a gradient; the text of a failure, or null.
using Hook = char* (*)(void* state, const Tensor* gradient);

void check(char* failure) {
    if (!failure) return;
    const std::string text = failure;
    free(failure);
    throw std::runtime_error(text);
}

struct Node : torch::autograd::Function<Node> {
    // `result` is a pointer, not a tensor: autograd would take a tensor for another input and return a view of it, which
    // the next operator could not change in place.
    static Tensor forward(AutogradContext* ctx, at::TensorList inputs, const Tensor* result, int64_t gradient,
                          c10::intrusive_ptr<torch::CustomClassHolder> held) {
        ctx->saved_data["inputs"] = (int64_t)inputs.size();
        ctx->saved_data["gradient"] = gradient;
        ctx->saved_data["held"] = c10::IValue::make_capsule(std::move(held));
        return *result;
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const size_t count = ctx->saved_data["inputs"].toInt();
        const auto held = ctx->saved_data["held"].toCapsule();
        const auto gradient = (Gradient)ctx->saved_data["gradient"].toInt();
        std::vector<Tensor*> out(count, nullptr);
        char* failure = gradient(static_cast<Held*>(held.get())->state, &gradients[0], out.data(), count);
        // One for each input; the result, the function and what is held have none.
        variable_list all(count + 3);
        for (size_t i = 0; i < count; i++) {
            if (out[i]) all[i] = *out[i];
            delete out[i];
        }
        check(failure);
        return all;
    }
};

template <class Body>
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

}  // namespace

extern "C" {

char* ssn_autograd_node(const Tensor* const* inputs, size_t count, const Tensor* result, Gradient gradient, void* state,
                        void (*drop)(void*), Tensor** out) {
    const auto held = c10::make_intrusive<Held>(state, drop);
    return guarded([&] {
        std::vector<Tensor> all;
        for (size_t i = 0; i < count; i++) all.push_back(*inputs[i]);
        *out = new Tensor(Node::apply(at::TensorList(all), result, (int64_t)gradient,
                                      c10::static_intrusive_pointer_cast<torch::CustomClassHolder>(held)));
    });
}

char* ssn_autograd_hook(const Tensor* leaf, Hook hook, void* state, void (*drop)(void*)) {
    const auto held = c10::make_intrusive<Held>(state, drop);
    return guarded([&] {
        leaf->register_hook([held, hook](Tensor gradient) { check(hook(held->state, &gradient)); });
    });
}

// Gradients of x, weight and bias of a batch norm whose mean and variance are constants.
char* ssn_autograd_norm_gradients(const Tensor* gradient, const Tensor* x, const Tensor* weight, const Tensor* mean,
                                  const Tensor* variance, double eps, Tensor** out) {
    return guarded([&] {
        auto [dx, dweight, dbias] = at::native_batch_norm_backward(*gradient, *x, *weight, *mean, *variance, std::nullopt,
                                                                   std::nullopt, false, eps, {true, true, true});
        out[0] = new Tensor(dx), out[1] = new Tensor(dweight), out[2] = new Tensor(dbias);
    });
}

// Calls `take` with the name of each buffer of a TorchScript module and a new tensor that shares its memory.
char* ssn_module_buffers(torch::jit::Module* module, void* state, void (*take)(void*, const char*, Tensor*)) {
    return guarded([&] {
        for (const auto& buffer : module->named_buffers()) take(state, buffer.name.c_str(), new Tensor(buffer.value));
    });
}

void ssn_autograd_free(char* text) { free(text); }
char* ssn_autograd_text(const char* text, size_t length) { return strndup(text, length); }
}

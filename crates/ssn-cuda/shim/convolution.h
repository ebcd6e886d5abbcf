// Convolution without bias, whose weight gradient does not hold up the rest of the backward pass.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include "streams.h"

namespace ssn {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Without the depth, if it is 1 in both: cuDNN has other kernels for pictures.
inline bool is_flat(const at::Tensor& x, const at::Tensor& kernel, at::IntArrayRef padding) {
    return x.size(2) == 1 && kernel.size(2) == 1 && padding[0] == 0;
}

inline at::Tensor convolution(const at::Tensor& x, const at::Tensor& kernel, at::IntArrayRef padding) {
    if (is_flat(x, kernel, padding)) {
        return at::conv2d(x.squeeze(2), kernel.squeeze(2), {}, {1, 1}, padding.slice(1)).unsqueeze(2);
    }
    return at::conv3d(x, kernel, {}, {1, 1, 1}, padding);
}

// The gradients of x, if wanted, and of the kernel.
inline std::pair<at::Tensor, at::Tensor> convolution_gradients(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& kernel,
                                                               at::IntArrayRef padding, bool of_x) {
    const bool flat = is_flat(x, kernel, padding);
    const auto gradient = [&](size_t which) {
        const auto cut = [&](const at::Tensor& t) { return flat ? t.squeeze(2) : t; };
        const size_t axes = flat ? 2 : 3;
        const std::vector<int64_t> ones(axes, 1), zeros(axes, 0);
        auto [dx, dkernel, none] = at::convolution_backward(cut(dy), cut(x), cut(kernel), std::nullopt, ones, padding.slice(3 - axes),
                                                            ones, false, zeros, 1, {which == 0, which == 1, false});
        const auto& wanted = which == 0 ? dx : dkernel;
        return flat ? wanted.unsqueeze(2) : wanted;
    };
    const auto dkernel = SideStreams::all().weight_gradient(kernel, {dy, x}, [&] { return gradient(1); });
    return {of_x ? gradient(0) : at::Tensor(), dkernel};
}

// x [b, c, d, h, w], kernel [o, c, kd, kh, kw].
struct Convolution : torch::autograd::Function<Convolution> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& kernel, std::vector<int64_t> padding) {
        ctx->save_for_backward({x, kernel});
        ctx->saved_data["padding"] = padding;
        return convolution(x, kernel, padding);
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto saved = ctx->get_saved_variables();
        const auto padding = ctx->saved_data["padding"].toIntVector();
        auto [dx, dkernel] =
            convolution_gradients(gradients[0], saved[0], saved[1], padding, ctx->needs_input_grad(0));
        return {dx, dkernel, at::Tensor()};
    }
};

}  // namespace ssn

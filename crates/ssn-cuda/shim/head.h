// The linear maps of a head, each with a result of its own.
#pragma once

#include "norm.h"

namespace ssn {

struct Head : torch::autograd::Function<Head> {
    static constexpr int THREADS = 128;

    // As the kernels have them.
    struct Part {
        float* values;
        int from, rows;
    };
    struct Parts {
        Part part[3];
    };

    // features [b, FP, d, h, w] with `real` ones of them, weight [k, real], bias [k] → [b, rows, v] for each of `rows`.
    static variable_list forward(AutogradContext* ctx, const Tensor& features, const Tensor& weight, const Tensor& bias,
                                 std::vector<int64_t> rows) {
        TORCH_CHECK(is_channels_last(features) && features.size(1) % 8 == 0 && weight.is_contiguous() && rows.size() <= 3,
                    "features of a head have the wrong layout");
        const int64_t b = features.size(0), v = features.numel() / b / features.size(1);
        variable_list results;
        for (int64_t count : rows) results.push_back(at::empty({b, count, v}, weight.options()));
        launch(variant(features, weight, rows.size()), "linear", grid(features, weight, v), pointer<const void>(features),
               pointer<const float>(weight), pointer<const float>(bias), parts(results), (int)v);
        ctx->save_for_backward({features, weight});
        return results;
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto saved = ctx->get_saved_variables();
        const Tensor &features = saved[0], &weight = saved[1];
        const int64_t b = features.size(0), v = features.numel() / b / features.size(1), k = weight.size(0), f = weight.size(1);
        for (auto& gradient : gradients) gradient = gradient.contiguous();
        const Parts of_outputs = parts(gradients);
        const Variant kernels = variant(features, weight, gradients.size());
        Tensor dx = empty_map(features, features.sizes());
        launch(kernels, "linear_gradient", grid(features, weight, v), of_outputs, pointer<const float>(weight),
               pointer<void>(dx), (int)v);
        const Tensor sums = Arena::take(k * (f + 1), features.options());
        launch(kernels, "linear_sums", Grid{(unsigned)multiprocessors(), 1, 256, 0}, pointer<const void>(features), of_outputs,
               pointer<double>(sums), (int)b, (int)v);
        const Tensor both = sums.view({k, f + 1}).to(at::kFloat);
        return {dx, both.narrow(1, 0, f).contiguous(), both.select(1, f).contiguous(), Tensor()};
    }

    static Variant variant(const Tensor& features, const Tensor& weight, size_t count) {
        return {"head.cu", scalar_option(features) + " FEATURES=" + std::to_string(weight.size(1)) +
                               " FP=" + std::to_string(features.size(1)) + " OUTPUTS=" + std::to_string(weight.size(0)) +
                               " PARTS=" + std::to_string(count)};
    }

    static Grid grid(const Tensor& features, const Tensor& weight, int64_t v) {
        return Grid{(unsigned)((v + THREADS - 1) / THREADS), (unsigned)features.size(0), THREADS,
                    sizeof(float) * (size_t)(weight.size(0) * features.size(1))};
    }

    static Parts parts(const variable_list& tensors) {
        Parts result = {};
        int from = 0;
        for (size_t i = 0; i < tensors.size(); ++i) {
            result.part[i] = {pointer<float>(tensors[i]), from, (int)tensors[i].size(1)};
            from += (int)tensors[i].size(1);
        }
        return result;
    }
};

}  // namespace ssn

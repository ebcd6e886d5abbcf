// The Monte-Carlo loss as one operator with gradients.
#pragma once

#include "norm.h"

namespace ssn {

// The same in C and Rust.
struct LossOptions {
    int64_t draws, paired;
    int64_t first;  // Images of the batch that other ranks have in front of these.
    double exponent;  // Of the likelihoods whose mean is taken.
};

struct MonteCarlo : torch::autograd::Function<MonteCarlo> {
    static constexpr int THREADS = 128;

    static variable_list forward(AutogradContext* ctx, const Tensor& mean, const Tensor& diagonal, const Tensor& factor,
                                 const Tensor& target, const Tensor& seed, LossOptions o) {
        const int64_t b = mean.size(0), c = mean.size(1), v = mean.size(2), r = factor.size(1), t = target.size(1);
        check(mean, {c, v}), check(diagonal, {c, v}), check(factor, {r, c, v});
        TORCH_CHECK(target.is_contiguous() && (o.first + b) * c * v <= INT32_MAX, "the loss cannot take these sizes at once");
        const Variant variant{"loss.cu", "CLASSES=" + std::to_string(c) + " RANK=" + std::to_string(r) +
                                             " DRAWS=" + std::to_string(o.draws) + " PAIRED=" + std::to_string(o.paired)};
        const int64_t samples = o.draws * (1 + o.paired);
        const auto doubles = mean.options().dtype(at::kDouble);
        Tensor log_p = at::zeros({samples, b, t}, doubles);
        Grid grid{(unsigned)((v + THREADS - 1) / THREADS), (unsigned)b, THREADS,
                  sizeof(double) * samples * t + sizeof(float) * o.draws * r};
        TORCH_CHECK(grid.shared <= 48 * 1024, "loss.samples is ", samples, ", more than a GPU takes at rank ", r, " with ", t,
                    " targets; lower it");
        launch(variant, "log_probability", grid, pointer<const float>(mean), mean.stride(0), pointer<const float>(diagonal),
               diagonal.stride(0), pointer<const float>(factor), factor.stride(0), pointer<const int64_t>(target),
               pointer<const int64_t>(seed), pointer<double>(log_p), (int)v, (int)t, (int)o.first);
        Tensor loss = at::empty({b}, doubles), ess = at::empty({b, t}, doubles);
        Tensor shares = at::empty({samples, b, t}, mean.options());
        launch(variant, "shares_of_samples", Grid{(unsigned)((b + 31) / 32), 1, 32, 0}, pointer<const double>(log_p),
               pointer<double>(loss), pointer<double>(ess), pointer<float>(shares), (int)b, (int)t, o.exponent);
        ctx->save_for_backward({mean, diagonal, factor, target, seed, shares});
        ctx->saved_data["options"] = variant.options;
        ctx->saved_data["draws"] = o.draws;
        ctx->saved_data["first"] = o.first;
        ctx->mark_non_differentiable({ess});
        return {loss, ess};
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto saved = ctx->get_saved_variables();
        const Tensor &mean = saved[0], &diagonal = saved[1], &factor = saved[2], &target = saved[3];
        const int64_t b = mean.size(0), v = mean.size(2), t = target.size(1);
        const Tensor of_loss = gradients[0].contiguous();
        Tensor dmean = at::empty(mean.sizes(), mean.options()), ddiagonal = at::empty_like(dmean);
        Tensor dfactor = at::empty(factor.sizes(), factor.options());
        Grid grid{(unsigned)((v + THREADS - 1) / THREADS), (unsigned)b, THREADS,
                  sizeof(float) * (size_t)(ctx->saved_data["draws"].toInt() * factor.size(1))};
        launch({"loss.cu", ctx->saved_data["options"].toStringRef()}, "loss_gradient", grid, pointer<const float>(mean),
               mean.stride(0), pointer<const float>(diagonal), diagonal.stride(0), pointer<const float>(factor),
               factor.stride(0), pointer<const int64_t>(target), pointer<const int64_t>(saved[4]),
               pointer<const float>(saved[5]), pointer<const double>(of_loss), pointer<float>(dmean),
               pointer<float>(ddiagonal), pointer<float>(dfactor), (int)v, (int)t, (int)ctx->saved_data["first"].toInt());
        return {dmean, ddiagonal, dfactor, Tensor(), Tensor(), Tensor()};
    }

    // All but the batch is dense.
    static void check(const Tensor& x, std::vector<int64_t> sizes) {
        int64_t expected = 1;
        bool dense = x.scalar_type() == at::kFloat;
        for (int64_t i = (int64_t)sizes.size(); i > 0; --i) {
            dense = dense && x.size(i) == sizes[i - 1] && (x.size(i) == 1 || x.numel() == 0 || x.stride(i) == expected);
            expected *= x.size(i);
        }
        TORCH_CHECK(dense, "a part of a distribution has the wrong layout");
    }
};

}  // namespace ssn

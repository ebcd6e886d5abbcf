// The Monte-Carlo loss, and the soft maps of samples, as operators with gradients.
#pragma once

#include "norm.h"

namespace ssn {

// The same in C and Rust.
struct DrawOptions {
    int64_t draws, paired;
    int64_t first;  // Images of the batch that other ranks have in front of these.

    int64_t samples() const { return draws * (1 + paired); }
};

// The kernels of a distribution's samples, and how they are launched: threads take a voxel each.
struct Drawing {
    static constexpr int THREADS = 128;

    Drawing(const Tensor& mean, const Tensor& diagonal, const Tensor& factor, const Tensor& target, DrawOptions o)
        : b(mean.size(0)), c(mean.size(1)), v(mean.size(2)), r(factor.size(1)), t(target.size(1)), o(o),
          variant{"loss.cu", "CLASSES=" + std::to_string(c) + " RANK=" + std::to_string(r) +
                                 " DRAWS=" + std::to_string(o.draws) + " PAIRED=" + std::to_string(o.paired)} {
        check(mean, {c, v}), check(diagonal, {c, v}), check(factor, {r, c, v});
        TORCH_CHECK(target.is_contiguous() && (o.first + b) * c * v <= INT32_MAX, "the loss cannot take these sizes at once");
    }

    // Blocks for so many voxels of each image; shared memory holds the noise of the rank, and `more` bytes.
    Grid grid(int64_t voxels, size_t more = 0) const {
        Grid grid{(unsigned)((voxels + THREADS - 1) / THREADS), (unsigned)b, THREADS, sizeof(float) * o.draws * r + more};
        TORCH_CHECK(grid.shared <= 48 * 1024, "loss.samples is ", o.samples(), ", more than a GPU takes at rank ", r, " with ",
                    t, " targets; lower it");
        return grid;
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

    int64_t b, c, v, r, t;
    DrawOptions o;
    Variant variant;
};

inline void save_options(AutogradContext* ctx, DrawOptions o) {
    ctx->saved_data["draws"] = o.draws, ctx->saved_data["paired"] = o.paired, ctx->saved_data["first"] = o.first;
}

inline DrawOptions saved_options(AutogradContext* ctx) {
    const auto get = [&](const char* name) { return ctx->saved_data[name].toInt(); };
    return {get("draws"), get("paired"), get("first")};
}

struct MonteCarlo : torch::autograd::Function<MonteCarlo> {
    static variable_list forward(AutogradContext* ctx, const Tensor& mean, const Tensor& diagonal, const Tensor& factor,
                                 const Tensor& target, const Tensor& seed, DrawOptions o, double exponent) {
        const Drawing drawing(mean, diagonal, factor, target, o);
        const int64_t b = drawing.b, v = drawing.v, t = drawing.t, samples = o.samples();
        const auto doubles = mean.options().dtype(at::kDouble);
        Tensor log_p = at::zeros({samples, b, t}, doubles);
        launch(drawing.variant, "log_probability", drawing.grid(v, sizeof(double) * samples * t), pointer<const float>(mean),
               mean.stride(0), pointer<const float>(diagonal), diagonal.stride(0), pointer<const float>(factor),
               factor.stride(0), pointer<const int64_t>(target), pointer<const int64_t>(seed), pointer<double>(log_p), (int)v,
               (int)t, (int)o.first);
        Tensor loss = at::empty({b}, doubles), ess = at::empty({b, t}, doubles);
        Tensor shares = at::empty({samples, b, t}, mean.options());
        launch(drawing.variant, "shares_of_samples", Grid{(unsigned)((b + 31) / 32), 1, 32, 0}, pointer<const double>(log_p),
               pointer<double>(loss), pointer<double>(ess), pointer<float>(shares), (int)b, (int)t, exponent);
        ctx->save_for_backward({mean, diagonal, factor, target, seed, shares});
        save_options(ctx, o);
        ctx->mark_non_differentiable({ess});
        return {loss, ess};
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto saved = ctx->get_saved_variables();
        const Tensor &mean = saved[0], &diagonal = saved[1], &factor = saved[2], &target = saved[3];
        const Drawing drawing(mean, diagonal, factor, target, saved_options(ctx));
        const Tensor of_loss = gradients[0].contiguous();
        Tensor dmean = at::empty(mean.sizes(), mean.options()), ddiagonal = at::empty_like(dmean);
        Tensor dfactor = at::empty(factor.sizes(), factor.options());
        launch(drawing.variant, "loss_gradient", drawing.grid(drawing.v), pointer<const float>(mean), mean.stride(0),
               pointer<const float>(diagonal), diagonal.stride(0), pointer<const float>(factor), factor.stride(0),
               pointer<const int64_t>(target), pointer<const int64_t>(saved[4]), pointer<const float>(saved[5]),
               pointer<const double>(of_loss), pointer<float>(dmean), pointer<float>(ddiagonal), pointer<float>(dfactor),
               (int)drawing.v, (int)drawing.t, (int)drawing.o.first);
        return {dmean, ddiagonal, dfactor, Tensor(), Tensor(), Tensor(), Tensor()};
    }
};

// The foreground's probabilities in every sample, and the targets, in tiles: [b, c - 1, tiles, samples + t, TILE].
struct SoftMaps : torch::autograd::Function<SoftMaps> {
    static constexpr int64_t TILE = 512;  // As in loss.cu.

    static Tensor forward(AutogradContext* ctx, const Tensor& mean, const Tensor& diagonal, const Tensor& factor,
                          const Tensor& target, const Tensor& seed, DrawOptions o) {
        const Drawing drawing(mean, diagonal, factor, target, o);
        const int64_t tiles = (drawing.v + TILE - 1) / TILE;
        Tensor maps = at::empty({drawing.b, drawing.c - 1, tiles, o.samples() + drawing.t, TILE}, mean.options());
        launch(drawing.variant, "soft_maps", drawing.grid(tiles * TILE), pointer<const float>(mean), mean.stride(0),
               pointer<const float>(diagonal), diagonal.stride(0), pointer<const float>(factor), factor.stride(0),
               pointer<const int64_t>(target), pointer<const int64_t>(seed), pointer<float>(maps), (int)drawing.v,
               (int)drawing.t, (int)o.first);
        ctx->save_for_backward({mean, diagonal, factor, target, seed});
        save_options(ctx, o);
        return maps;
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto saved = ctx->get_saved_variables();
        const Tensor &mean = saved[0], &diagonal = saved[1], &factor = saved[2], &target = saved[3];
        const Drawing drawing(mean, diagonal, factor, target, saved_options(ctx));
        const Tensor of_maps = gradients[0].contiguous();
        Tensor dmean = at::empty(mean.sizes(), mean.options()), ddiagonal = at::empty_like(dmean);
        Tensor dfactor = at::empty(factor.sizes(), factor.options());
        launch(drawing.variant, "soft_maps_gradient", drawing.grid(drawing.v), pointer<const float>(mean), mean.stride(0),
               pointer<const float>(diagonal), diagonal.stride(0), pointer<const float>(factor), factor.stride(0),
               pointer<const int64_t>(saved[4]), pointer<const float>(of_maps), pointer<float>(dmean),
               pointer<float>(ddiagonal), pointer<float>(dfactor), (int)drawing.v, (int)drawing.t, (int)drawing.o.first);
        return {dmean, ddiagonal, dfactor, Tensor(), Tensor(), Tensor()};
    }
};

}  // namespace ssn

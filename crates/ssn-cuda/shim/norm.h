// Normalization, dropout and activation as one operator with gradients; alone, or in front of a convolution.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "arena.h"
#include "convolution.h"
#include "map.h"
#include "ranks.h"

namespace ssn {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What a normalization is told; the same in C and Rust.
struct NormOptions {
    double eps, momentum;
    double keep;         // The probability of dropout to keep a value; 1 for no dropout.
    int64_t layer;       // Chooses the random numbers of dropout.
    int64_t activation;  // 0 none, 1 ReLU, 2 leaky ReLU, 3 PReLU.
    int64_t channels;    // The real ones of the map; those beyond hold zeros.
    int64_t per_image;   // Whether each image is normalized by itself.
    int64_t training;
    int64_t first;  // Images of the batch that other ranks have in front of these.
    int64_t whole;  // Images of the batch over all ranks, if statistics are those of all; else 0.
};

// The tensors of a normalization; those that it has not are undefined.
struct NormTensors {
    Tensor weight, bias, prelu, running_mean, running_var, seed;
};

// The sizes of a launch over the rows of a map.
struct Rows {
    static constexpr int THREADS = 256, SUMMING_THREADS = 512, SMALL = 4096;
    // Seven numbers for each in the memory of a block.
    static constexpr int MOST_CHANNELS = 1752;
    int64_t groups, rows;
    int64_t whole;  // The rows over all ranks, if they share statistics; else 0.
    int channels, padded;
    Rows(const Tensor& x, const NormOptions& o)
        : groups(o.per_image ? x.size(0) : 1),
          rows(x.numel() / x.size(1) / groups),
          whole(o.training && !o.per_image ? rows / std::max<int64_t>(1, x.size(0)) * o.whole : 0),
          channels((int)o.channels),
          padded((int)x.size(1)) {
        TORCH_CHECK(is_channels_last(x) && padded % 8 == 0 && padded <= MOST_CHANNELS && channels <= padded,
                    "a feature map has the wrong layout or more than 1752 channels: ", x.sizes());
    }
    // Whether a block can take eight channels of all rows.
    bool small() const { return rows <= SMALL && whole == 0; }
    Grid small_grid() const { return Grid{(unsigned)padded / 8, (unsigned)groups, rows <= 512 ? 128u : 512u, 0}; }
    // One pass over all rows, with so much shared memory for each channel.
    Grid passing(size_t shared_per_channel) const {
        return grid(THREADS, 8, shared_per_channel * padded);
    }
    // Blocks add up their rows; there are few of them, because all of them add to the same sums.
    Grid summing() const {
        const int64_t lanes = SUMMING_THREADS / (padded / 8);
        return grid(SUMMING_THREADS, 1, sizeof(float) * lanes * padded);
    }

   private:
    Grid grid(int threads, int per_processor, size_t shared) const {
        const int64_t at_once = threads / (padded / 8);
        const int64_t most = std::max<int64_t>(1, (int64_t)multiprocessors() * per_processor / groups);
        const int64_t wanted = (rows + at_once * 2 - 1) / (at_once * 2);
        return Grid{(unsigned)std::max<int64_t>(1, std::min(wanted, most)), (unsigned)groups, (unsigned)threads, shared};
    }
};

// As the kernels have them.
struct Statistics {
    const float *weight, *bias;
    float *running_mean, *running_var, *saved;
    double eps, momentum;
};

struct Drop {
    const int64_t* seed;
    int64_t first;  // Values of the batch that other ranks have in front of these.
    unsigned layer, threshold;
    float scale;
    Drop(const Tensor& x, const NormTensors& t, const NormOptions& o)
        : seed(pointer<const int64_t>(t.seed)),
          first(o.first * (x.numel() / std::max<int64_t>(1, x.size(0)))),
          layer((unsigned)o.layer),
          threshold((unsigned)std::lround(o.keep * 65536.0)),
          scale((float)(1.0 / o.keep)) {}
};

struct Skip {
    const void* gradient;
    Size3 outer, inner;
};

inline Variant norm_variant(const Tensor& x, const NormOptions& o) {
    const bool dropout = o.training && o.keep < 1.0;
    return {"norm.cu", scalar_option(x) + " ACTIVATION=" + std::to_string(o.activation) + " DROPOUT=" +
                           (dropout ? "1" : "0") + wide_option(x)};
}

// The normalized map; in training, `saved` becomes mean and 1/σ of each group and channel.
inline Tensor normalize_forward(const Tensor& x, const NormTensors& t, const NormOptions& o, Tensor& saved) {
    const Rows size(x, o);
    const Variant variant = norm_variant(x, o);
    const bool measures = o.training || o.per_image;
    Tensor y = empty_map(x, x.sizes()), sums;
    if (measures) saved = at::empty({size.groups, size.channels, 2}, x.options().dtype(at::kFloat));
    const Statistics statistics{pointer<const float>(t.weight),   pointer<const float>(t.bias),
                                pointer<float>(t.running_mean),   pointer<float>(t.running_var),
                                pointer<float>(saved),            o.eps,
                                o.momentum};
    const float* prelu = pointer<const float>(t.prelu);
    const Drop drop(x, t, o);
    if (measures && size.small()) {
        launch(variant, "normalize_small", size.small_grid(), pointer<const void>(x), pointer<void>(y), statistics, prelu,
               size.rows, size.channels, size.padded, drop);
        return y;
    }
    if (measures) {
        sums = Arena::take(size.groups * size.channels * 2, x.options());
        launch(variant, "statistics", size.summing(), pointer<const void>(x), pointer<double>(sums), size.rows,
               size.channels, size.padded);
        if (size.whole > 0) {
            launch(variant, "without_shift", each(size.channels), pointer<const void>(x), pointer<double>(sums), size.rows,
                   size.channels);
            Communicator::all().add_up(sums);
        }
    }
    launch(variant, "normalize", size.passing(2 * sizeof(float)), pointer<const void>(x), pointer<void>(y),
           pointer<const double>(sums), statistics, prelu, size.rows, size.whole, size.channels, size.padded, drop);
    return y;
}

// Gradients of x, weight, bias and slope. `skip`, if defined, is the gradient of the middle of x, added to that of x.
inline variable_list normalize_backward(const Tensor& x, Tensor dy, const Tensor& saved, const NormTensors& t,
                                        const NormOptions& o, const Tensor& skip) {
    const Rows size(x, o);
    const Variant variant = norm_variant(x, o);
    const Drop drop(x, t, o);
    if (!is_channels_last(dy)) dy = channels_last(dy);
    const auto numbers = x.options().dtype(at::kFloat);
    Tensor dx = empty_map(x, x.sizes());
    Tensor dweight = at::empty({size.groups, size.channels}, numbers), dbias = at::empty_like(dweight);
    const Skip skipped{pointer<const void>(skip), size_of(x), skip.defined() ? size_of(skip) : Size3{0, 0, 0}};
    const float *weight = pointer<const float>(t.weight), *bias = pointer<const float>(t.bias),
                *prelu = pointer<const float>(t.prelu);
    Tensor dprelu;
    if (size.small()) {
        if (t.prelu.defined()) dprelu = at::zeros_like(t.prelu);
        launch(variant, "gradient_small", size.small_grid(), pointer<const void>(x), pointer<const void>(dy),
               pointer<void>(dx), pointer<const float>(saved), weight, bias, prelu, pointer<float>(dprelu),
               pointer<float>(dweight), pointer<float>(dbias), size.rows, size.channels, size.padded, drop, skipped);
    } else {
        if (t.prelu.defined()) dprelu = at::empty_like(t.prelu);
        const int64_t count = size.groups * size.channels * 2;
        const Tensor sums = Arena::take(count + 1, x.options());
        double* slope_sum = pointer<double>(sums) + count;
        launch(variant, "gradient_sums", size.summing(), pointer<const void>(x), pointer<const void>(dy),
               pointer<const float>(saved), weight, bias, prelu, pointer<double>(sums), slope_sum, size.rows,
               size.channels, size.padded, drop);
        // Gradients of weight and bias are of the rows here: they are summed over the ranks with all others.
        Tensor whole = sums;
        if (size.whole > 0) {
            whole = sums.narrow(0, 0, count).clone();
            Communicator::all().add_up(whole);
        }
        launch(variant, "gradient", size.passing(7 * sizeof(float)), pointer<const void>(x), pointer<const void>(dy),
               pointer<void>(dx), pointer<const float>(saved), weight, bias, prelu, pointer<const double>(sums),
               pointer<const double>(whole), (const double*)slope_sum, pointer<float>(dweight), pointer<float>(dbias),
               pointer<float>(dprelu), size.rows, size.whole, size.channels, size.padded, drop, skipped);
    }
    const bool single = size.groups == 1;
    return {dx, single ? dweight[0] : dweight.sum(0), single ? dbias[0] : dbias.sum(0), dprelu};
}

inline void save_norm(AutogradContext* ctx, const NormTensors& t, const NormOptions& o) {
    ctx->saved_data["eps"] = o.eps;
    ctx->saved_data["momentum"] = o.momentum;
    ctx->saved_data["keep"] = o.keep;
    ctx->saved_data["whole"] = std::vector<int64_t>{o.layer,     o.activation, o.channels, o.per_image,
                                                    o.training, o.first,      o.whole};
    // Not inputs with gradients of their own kind: kept as they are, since nothing changes them before the backward pass.
    ctx->saved_data["weight"] = t.weight.detach();
    ctx->saved_data["bias"] = t.bias.detach();
    if (t.prelu.defined()) ctx->saved_data["prelu"] = t.prelu.detach();
    if (t.seed.defined()) ctx->saved_data["seed"] = t.seed;
}

inline std::pair<NormTensors, NormOptions> saved_norm(AutogradContext* ctx) {
    auto& data = ctx->saved_data;
    const auto whole = data["whole"].toIntVector();
    NormOptions o{data["eps"].toDouble(), data["momentum"].toDouble(), data["keep"].toDouble(),
                  whole[0],               whole[1],                    whole[2],
                  whole[3],               whole[4],                    whole[5],
                  whole[6]};
    NormTensors t;
    t.weight = data["weight"].toTensor();
    t.bias = data["bias"].toTensor();
    if (data.count("prelu")) t.prelu = data["prelu"].toTensor();
    if (data.count("seed")) t.seed = data["seed"].toTensor();
    return {t, o};
}

// activation(dropout(norm(x))).
struct Normalize : torch::autograd::Function<Normalize> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const std::optional<Tensor>& prelu, NormTensors t, NormOptions o) {
        t.weight = weight, t.bias = bias, t.prelu = prelu.value_or(Tensor());
        Tensor saved;
        Tensor y = normalize_forward(x, t, o, saved);
        ctx->save_for_backward({x, saved});
        save_norm(ctx, t, o);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto saved = ctx->get_saved_variables();
        const auto [t, o] = saved_norm(ctx);
        auto result = normalize_backward(saved[0], gradients[0], saved[1], t, o, Tensor());
        return {result[0], result[1], result[2], result[3], Tensor(), Tensor()};
    }
};

// convolution(activation(dropout(norm(x)))) without padding, plus the middle of x if it has as many channels.
struct NormalizedConvolution : torch::autograd::Function<NormalizedConvolution> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const std::optional<Tensor>& prelu, const Tensor& kernel, NormTensors t, NormOptions o,
                          bool residual) {
        t.weight = weight, t.bias = bias, t.prelu = prelu.value_or(Tensor());
        Tensor saved;
        const Tensor a = normalize_forward(x, t, o, saved);
        TORCH_CHECK(!residual || kernel.size(0) == x.size(1), "a residual connection needs as many channels on both sides");
        const Tensor y = convolution(a, kernel, {0, 0, 0}, true, residual ? x : Tensor());
        ctx->save_for_backward({x, saved, a, kernel});
        ctx->saved_data["residual"] = residual;
        save_norm(ctx, t, o);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto saved = ctx->get_saved_variables();
        const auto [t, o] = saved_norm(ctx);
        Tensor dy = gradients[0];
        if (!is_channels_last(dy)) dy = channels_last(dy);
        const auto [da, dkernel] = convolution_gradients(dy, saved[2], saved[3], {0, 0, 0}, true, true);
        const bool residual = ctx->saved_data["residual"].toBool();
        auto result = normalize_backward(saved[0], da, saved[1], t, o, residual ? dy : Tensor());
        return {result[0], result[1], result[2], result[3], dkernel, Tensor(), Tensor(), Tensor()};
    }
};

}  // namespace ssn

// Convolution without bias: by kernels of our own where they are faster, else by cuDNN. Its weight gradient does not hold up the
// rest of the backward pass.
#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <array>

#include "map.h"
#include "streams.h"

namespace ssn {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// ---- Our own: see kernels/convolution.cu. Measured against cuDNN on an H200. ----

// The voxels of a block's box, and with those around it.
constexpr int64_t BOX = 256, MOST_HALO = 704;

inline int64_t volume(Size3 s) { return (int64_t)s.d * s.h * s.w; }

// As the kernels have them.
struct Sizes {
    Size3 in, out, kernel, padding, box, boxes;
    int64_t halo() const {
        return volume({box.d + kernel.d - 1, box.h + kernel.h - 1, box.w + kernel.w - 1});
    }
};

inline int64_t row_bytes(int64_t channels) { return (channels / 8 | 1) * 16; }

// Cuts a map into boxes with no more than so many voxels around each, with the least work.
inline Sizes with_boxes(Size3 in, Size3 out, Size3 kernel, Size3 padding, int64_t most_halo) {
    using Key = std::array<int64_t, 7>;
    static std::map<Key, Size3> known;
    static std::mutex mutex;
    std::lock_guard<std::mutex> guard(mutex);
    Sizes s{in, out, kernel, padding, {1, 1, 1}, {1, 1, 1}};
    const auto cut = [&](Size3 box) {
        s.box = box;
        s.boxes = {(out.d + box.d - 1) / box.d, (out.h + box.h - 1) / box.h, (out.w + box.w - 1) / box.w};
    };
    auto [found, is_new] = known.try_emplace(Key{out.d, out.h, out.w, kernel.d, kernel.h, kernel.w, most_halo}, s.box);
    if (is_new) {
        double least = INFINITY;
        for (int d = 1; d <= out.d && d <= BOX; ++d)
            for (int h = 1; h <= out.h && d * h <= BOX; ++h)
                for (int w = 1; w <= out.w && d * h * w <= BOX; ++w) {
                    cut({d, h, w});
                    // All boxes cost the same to multiply; fetching is the rest, and short rows share banks.
                    const double cost = (double)volume(s.boxes) * (BOX + 0.15 * (double)s.halo() + (w < 8 ? 10 : 0));
                    if (s.halo() <= most_halo && cost < least) least = cost, found->second = s.box;
                }
    }
    cut(found->second);
    return s;
}

// Whether our CUDA kernels take a map and a convolution's weight, whichever way the channels go.
inline bool suits(const Tensor& map, const Tensor& kernel) {
    const int64_t channels = std::max(kernel.size(0), kernel.size(1));
    const bool flat = kernel.size(2) == 1;
    return map.scalar_type() == at::kBFloat16 && kernel.scalar_type() == at::kBFloat16 && kernel.size(3) == 3 && kernel.size(4) == 3 &&
           (flat || kernel.size(2) == 3) && channels <= (flat ? 32 : 64) && kernel.size(0) % 8 == 0 && kernel.size(1) % 8 == 0 &&
           is_channels_last(map) && is_channels_last(kernel) && attribute(cudaDevAttrComputeCapabilityMajor) >= 9 &&
           attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) >= 200 << 10;
}

inline Variant convolve_variant(int64_t ci, int64_t co, bool transposed) {
    return {"convolution.cu", "BF16 CONVOLVE WARPS=4 TILES=4 BLOCKS=3 KW=3 CI=" + std::to_string(ci) + " CO=" + std::to_string(co) +
                                  " TRANSPOSED=" + (transposed ? "true" : "false")};
}

// How warps and blocks share the columns of the product that is a kernel's gradient: see `weight_gradient` there.
struct Shares {
    static constexpr int64_t WARPS = 8, MOST_SUMS = 204;  // In the registers of a thread.
    int64_t units = 0, blocks = 0;
    explicit Shares(const Tensor& kernel) {
        const int64_t columns = kernel.numel() / kernel.size(0) / 8, tiles = (kernel.size(0) + 15) / 16;
        do {
            blocks += 1;
            units = (columns + WARPS * blocks - 1) / (WARPS * blocks);
        } while (units * tiles * 4 > MOST_SUMS);
    }
    Variant variant(const Tensor& kernel) const {
        return {"convolution.cu", "BF16 WEIGHTS WARPS=" + std::to_string(WARPS) + " CI=" + std::to_string(kernel.size(1)) + " CO=" +
                                      std::to_string(kernel.size(0)) + " UNITS=" + std::to_string(units)};
    }
};

inline Size3 padding_of(at::IntArrayRef padding) { return {(int)padding[0], (int)padding[1], (int)padding[2]}; }

inline Size3 out_of(Size3 in, Size3 kernel, Size3 padding) {
    return {in.d + 2 * padding.d - kernel.d + 1, in.h + 2 * padding.h - kernel.h + 1, in.w + 2 * padding.w - kernel.w + 1};
}

// The convolution of x, plus the middle of `added` if it is defined. Transposed, with the padding that makes up for the other:
// from the gradient of an output to that of its input. Nothing if cuDNN is faster.
inline Tensor convolve(const Tensor& x, const Tensor& kernel, Size3 padding, bool transposed, const Tensor& added) {
    if (!suits(x, kernel)) return Tensor();
    TORCH_CHECK(x.size(1) == kernel.size(transposed ? 0 : 1), "a convolution of ", x.size(1), " channels with a weight of ", kernel.sizes());
    const int64_t ci = kernel.size(transposed ? 0 : 1), co = kernel.size(transposed ? 1 : 0);
    const Size3 in = size_of(x), taps = size_of(kernel), out = out_of(in, taps, padding);
    const Sizes s = with_boxes(in, out, taps, padding, MOST_HALO);
    const int64_t blocks = x.size(0) * volume(s.boxes);
    if (blocks < 64) return Tensor();
    Tensor y = empty_map(x, {x.size(0), co, out.d, out.h, out.w});
    const int64_t weights = (transposed ? ci : co) * row_bytes(transposed ? co : ci);
    const size_t shared = s.halo() * row_bytes(ci) + 2 * taps.w * weights;
    if (!transposed) {
        // The backward pass will want them.
        Kernels::all().prepare(convolve_variant(co, ci, true));
        Kernels::all().prepare(Shares(kernel).variant(kernel));
    }
    launch(convolve_variant(ci, co, transposed), "convolve", Grid{(unsigned)blocks, 1, 128, shared}, pointer<const void>(x),
           pointer<const void>(kernel), pointer<void>(y), s, pointer<const void>(added),
           added.defined() ? size_of(added) : Size3{0, 0, 0});
    return y;
}

// The gradient of the kernel, or nothing if cuDNN is faster.
inline Tensor weight_gradient(const Tensor& x, const Tensor& dy, const Tensor& kernel, Size3 padding) {
    if (!suits(x, kernel) || !is_channels_last(dy) || dy.scalar_type() != at::kBFloat16) return Tensor();
    const int64_t co = kernel.size(0), ci = kernel.size(1);
    const Size3 out = out_of(size_of(x), size_of(kernel), padding);
    TORCH_CHECK(x.size(1) == ci && dy.sizes() == at::IntArrayRef({x.size(0), co, out.d, out.h, out.w}),
                "a gradient of ", dy.sizes(), " for a convolution of ", x.sizes(), " with a weight of ", kernel.sizes());
    // Two boxes at a time, one being fetched.
    const int64_t most_halo = (attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) / 2 - 1024 - BOX * row_bytes(co)) / row_bytes(ci);
    const Sizes s = with_boxes(size_of(x), size_of(dy), size_of(kernel), padding, std::min(most_halo, MOST_HALO));
    const int64_t boxes = x.size(0) * volume(s.boxes);
    if (boxes < multiprocessors()) return Tensor();
    const Shares shares(kernel);
    const Variant variant = shares.variant(kernel);
    const int64_t blocks = std::max<int64_t>(1, multiprocessors() / shares.blocks);
    Tensor parts = at::empty({blocks, kernel.numel()}, x.options().dtype(at::kFloat));
    Tensor dkernel = empty_map(kernel, kernel.sizes());
    const size_t shared = 2 * (BOX * row_bytes(co) + s.halo() * row_bytes(ci));
    launch(variant, "weight_gradient", Grid{(unsigned)blocks, (unsigned)shares.blocks, 32 * Shares::WARPS, shared}, pointer<const void>(x),
           pointer<const void>(dy), pointer<float>(parts), s, (int)x.size(0));
    launch(variant, "add_parts", each(kernel.numel() / 2), pointer<const float>(parts), pointer<void>(dkernel), (int)blocks,
           (int)kernel.numel());
    return dkernel;
}

// ---- The operator. ----

// Without the depth, if it is 1 in both: cuDNN has other kernels for pictures.
inline bool is_flat(const Tensor& x, const Tensor& kernel, at::IntArrayRef padding) {
    return x.size(2) == 1 && kernel.size(2) == 1 && padding[0] == 0;
}

// The convolution, plus the middle of `added` if it is defined. Predictions are soon done, and would wait for our kernels to be
// compiled: those are for training.
inline Tensor convolution(const Tensor& x, const Tensor& kernel, at::IntArrayRef padding, bool training, const Tensor& added) {
    Tensor y = training ? convolve(x, kernel, padding_of(padding), false, added) : Tensor();
    if (y.defined()) return y;
    y = is_flat(x, kernel, padding) ? at::conv2d(x.squeeze(2), kernel.squeeze(2), {}, {1, 1}, padding.slice(1)).unsqueeze(2)
                                    : at::conv3d(x, kernel, {}, {1, 1, 1}, padding);
    if (added.defined()) {
        y = is_channels_last(y) ? y : channels_last(y);
        const int64_t voxels = y.numel() / y.size(1);
        launch({"maps.cu", scalar_option(y) + wide_option(added)}, "add_middle", each(voxels * (y.size(1) / 8)), pointer<void>(y),
               pointer<const void>(added), voxels, (int)y.size(1), size_of(added), size_of(y));
    }
    return y;
}

// The gradients of x and of the kernel, as far as they are wanted.
inline std::pair<Tensor, Tensor> convolution_gradients(const Tensor& dy, const Tensor& x, const Tensor& kernel,
                                                       at::IntArrayRef padding, bool of_x, bool of_kernel) {
    const Size3 taps = size_of(kernel), pad = padding_of(padding);
    // By cuDNN.
    const auto gradient = [&](size_t which) {
        const bool flat = is_flat(x, kernel, padding);
        const auto cut = [&](const Tensor& t) { return flat ? t.squeeze(2) : t; };
        const size_t axes = flat ? 2 : 3;
        const std::vector<int64_t> ones(axes, 1), zeros(axes, 0);
        auto [dx, dkernel, none] = at::convolution_backward(cut(dy), cut(x), cut(kernel), std::nullopt, ones, padding.slice(3 - axes),
                                                            ones, false, zeros, 1, {which == 0, which == 1, false});
        const auto& wanted = which == 0 ? dx : dkernel;
        return flat ? wanted.unsqueeze(2) : wanted;
    };
    Tensor dx, dkernel;
    if (of_kernel) {
        dkernel = SideStreams::all().weight_gradient(kernel, {dy, x}, [&] {
            const Tensor ours = weight_gradient(x, dy, kernel, pad);
            return ours.defined() ? ours : gradient(1);
        });
    }
    if (of_x) {
        dx = convolve(dy, kernel, {taps.d - 1 - pad.d, taps.h - 1 - pad.h, taps.w - 1 - pad.w}, true, Tensor());
        if (!dx.defined()) dx = gradient(0);
    }
    return {dx, dkernel};
}

// x [b, c, d, h, w], kernel [o, c, kd, kh, kw].
struct Convolution : torch::autograd::Function<Convolution> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& kernel, std::vector<int64_t> padding, bool training) {
        ctx->save_for_backward({x, kernel});
        ctx->saved_data["padding"] = padding;
        return convolution(x, kernel, padding, training, Tensor());
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto saved = ctx->get_saved_variables();
        const auto padding = ctx->saved_data["padding"].toIntVector();
        auto [dx, dkernel] = convolution_gradients(gradients[0], saved[0], saved[1], padding, ctx->needs_input_grad(0),
                                                   ctx->needs_input_grad(1));
        return {dx, dkernel, Tensor(), Tensor()};
    }
};

}  // namespace ssn

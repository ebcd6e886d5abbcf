// Downsampling and upsampling of a U-Net.
#pragma once

#include "norm.h"

namespace ssn {

inline Size3 size_of(const std::vector<int64_t>& n) { return {(int)n[0], (int)n[1], (int)n[2]}; }

inline Variant map_variant(const Tensor& x) { return {"maps.cu", scalar_option(x) + wide_option(x)}; }

// The mean of blocks of a map, and the map itself: what both get back is added in one pass.
struct Downsample : torch::autograd::Function<Downsample> {
    static variable_list forward(AutogradContext* ctx, const Tensor& x, std::vector<int64_t> stride) {
        TORCH_CHECK(is_channels_last(x) && x.size(1) % 8 == 0, "a map to be pooled has the wrong layout");
        Tensor y = empty_map(x, {x.size(0), x.size(1), x.size(2) / stride[0], x.size(3) / stride[1], x.size(4) / stride[2]});
        launch(map_variant(x), "pool", each(y.numel() / 8), pointer<const void>(x), pointer<void>(y), y.numel() / y.size(1),
               (int)y.size(1), size_of(y), size_of(stride));
        ctx->saved_data["stride"] = stride;
        ctx->set_materialize_grads(false);
        return {y, x};
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto stride = ctx->saved_data["stride"].toIntVector();
        Tensor dy = gradients[0], skip = gradients[1];
        TORCH_CHECK(dy.defined(), "nothing uses a pooled map");
        if (!is_channels_last(dy)) dy = channels_last(dy);
        Tensor dx = empty_map(dy, {dy.size(0), dy.size(1), dy.size(2) * stride[0], dy.size(3) * stride[1], dy.size(4) * stride[2]});
        int64_t row = 0;
        if (skip.defined()) {
            // Channels out of a larger map will do.
            row = skip.stride(4);
            const bool dense = skip.stride(1) == 1 && row % 8 == 0 && skip.storage_offset() % 8 == 0 &&
                               skip.stride(3) == row * skip.size(4) &&
                               (skip.size(2) == 1 || skip.stride(2) == skip.stride(3) * skip.size(3)) &&
                               (skip.size(0) == 1 || skip.stride(0) == row * skip.size(2) * skip.size(3) * skip.size(4));
            if (!dense) skip = channels_last(skip), row = skip.size(1);
        }
        launch(map_variant(dx), "pool_gradient", each(dx.numel() / 8), pointer<const void>(dy), pointer<const void>(skip), row,
               pointer<void>(dx), dx.numel() / dx.size(1), (int)dx.size(1), size_of(dy), size_of(stride));
        return {dx, Tensor()};
    }
};

// A map interpolated to the grid of another, and that one beside it. Strides are 1 or 2.
struct Upsample : torch::autograd::Function<Upsample> {
    static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& skip, std::vector<int64_t> stride) {
        TORCH_CHECK(is_channels_last(x) && is_channels_last(skip) && x.size(1) % 8 == 0 && skip.size(1) % 8 == 0,
                    "a map to be interpolated has the wrong layout");
        Tensor y = empty_map(x, {skip.size(0), x.size(1) + skip.size(1), skip.size(2), skip.size(3), skip.size(4)});
        launch(map_variant(y), "upsample", each(y.numel() / 8), pointer<const void>(x), pointer<const void>(skip),
               pointer<void>(y), y.numel() / y.size(1), (int)x.size(1), (int)skip.size(1), size_of(x), size_of(stride));
        ctx->saved_data["stride"] = stride;
        ctx->saved_data["channels"] = x.size(1);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        const auto stride = ctx->saved_data["stride"].toIntVector();
        const int64_t channels = ctx->saved_data["channels"].toInt();
        Tensor dy = gradients[0];
        if (!is_channels_last(dy)) dy = channels_last(dy);
        const int64_t rest = dy.size(1) - channels;
        Tensor dx = empty_map(dy, {dy.size(0), channels, dy.size(2) / stride[0], dy.size(3) / stride[1], dy.size(4) / stride[2]});
        launch(map_variant(dy), "upsample_gradient", each(dx.numel() / 8), pointer<const void>(dy), pointer<void>(dx),
               dx.numel() / channels, (int)channels, (int)rest, size_of(dx), size_of(stride));
        return {dx, dy.narrow(1, channels, rest), Tensor()};
    }
};

}  // namespace ssn

// Maps of several scales side by side: each is enlarged by repetition and cut, then its real channels follow those before.
#pragma once

#include "norm.h"

namespace ssn {

// The same in C, CUDA and Rust.
struct PathOptions {
    int64_t channels, scale[3], start[3];
};

// As the kernels have it.
struct Path {
    Size3 size;
    int channels, padded, first;
    Size3 scale, start;
};

struct Join : torch::autograd::Function<Join> {
    static Tensor forward(AutogradContext* ctx, at::TensorList maps, const std::vector<PathOptions>& options,
                          std::vector<int64_t> size) {
        int64_t channels = 0;
        for (auto& path : options) channels += path.channels;
        const int64_t padded = (channels + 7) / 8 * 8;
        Tensor y = empty_map(maps[0], {maps[0].size(0), padded, size[0], size[1], size[2]});
        const int64_t voxels = y.numel() / padded;
        std::vector<int64_t> kept;
        int first = 0;
        for (size_t i = 0; i < options.size(); ++i) {
            const Path path = path_of(maps[i], options[i], first);
            launch(variant(y, path), "join", each(voxels * path.channels), pointer<void>(y), pointer<const void>(maps[i]),
                   path, voxels, size_of(y), (int)padded, (int)channels);
            first += path.channels;
            for (int64_t n : maps[i].sizes()) kept.push_back(n);
            kept.push_back(options[i].channels);
            for (int64_t n : options[i].scale) kept.push_back(n);
            for (int64_t n : options[i].start) kept.push_back(n);
        }
        ctx->saved_data["paths"] = kept;
        return y;
    }

    static variable_list backward(AutogradContext* ctx, variable_list gradients) {
        Tensor dy = gradients[0];
        if (!is_channels_last(dy)) dy = channels_last(dy);
        const auto kept = ctx->saved_data["paths"].toIntVector();
        variable_list result;
        int first = 0;
        for (size_t i = 0; i < kept.size(); i += 12) {
            PathOptions options{kept[i + 5], {kept[i + 6], kept[i + 7], kept[i + 8]}, {kept[i + 9], kept[i + 10], kept[i + 11]}};
            Tensor dx = empty_map(dy, {kept[i], kept[i + 1], kept[i + 2], kept[i + 3], kept[i + 4]});
            const Path path = path_of(dx, options, first);
            launch(variant(dy, path), "join_gradient", each(dx.numel()), pointer<const void>(dy), pointer<void>(dx), path,
                   dx.numel() / dx.size(1), size_of(dy), (int)dy.size(1));
            first += path.channels;
            result.push_back(dx);
        }
        result.push_back(Tensor());
        result.push_back(Tensor());
        return result;
    }

    static Path path_of(const Tensor& x, const PathOptions& o, int first) {
        TORCH_CHECK(is_channels_last(x), "a map to be joined has the wrong layout");
        const auto size = [](const int64_t* n) { return Size3{(int)n[0], (int)n[1], (int)n[2]}; };
        return {size_of(x), (int)o.channels, (int)x.size(1), first, size(o.scale), size(o.start)};
    }

    // Two channels at once where that is possible.
    static Variant variant(const Tensor& joined, const Path& path) {
        const bool even = path.channels % 2 == 0 && path.first % 2 == 0;
        return {"maps.cu", scalar_option(joined) + " VECTOR=" + (even ? "2" : "1") + wide_option(joined)};
    }
};

}  // namespace ssn

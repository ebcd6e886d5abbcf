// Feature maps [b, c, d, h, w], channels fastest in memory.
#pragma once

#include <ATen/ATen.h>

#include "kernel.h"

namespace ssn {

using at::Tensor;

inline bool is_channels_last(const Tensor& x) { return x.permute({0, 2, 3, 4, 1}).is_contiguous(); }

inline Tensor channels_last(const Tensor& x) {
    return x.permute({0, 2, 3, 4, 1}).contiguous().permute({0, 4, 1, 2, 3});
}

// A map of the same layout and type with other sizes [b, c, d, h, w].
inline Tensor empty_map(const Tensor& like, at::IntArrayRef size) {
    return at::empty({size[0], size[2], size[3], size[4], size[1]}, like.options()).permute({0, 4, 1, 2, 3});
}

inline std::string scalar_option(const Tensor& x) {
    if (x.scalar_type() == at::kBFloat16) return "BF16";
    TORCH_CHECK(x.scalar_type() == at::kFloat, "feature maps must be bfloat16 or float");
    return "F32";
}

template <typename T>
T* pointer(const Tensor& t) {
    return t.defined() ? static_cast<T*>(t.data_ptr()) : nullptr;
}

// A thread for each piece of work, up to what the GPU can hold.
inline Grid each(int64_t work) {
    return Grid{(unsigned)std::max<int64_t>(1, std::min<int64_t>((work + 255) / 256, (int64_t)multiprocessors() * 16)), 1, 256, 0};
}

struct Size3 {
    int d, h, w;
};

inline Size3 size_of(const Tensor& x) { return {(int)x.size(2), (int)x.size(3), (int)x.size(4)}; }

inline std::string wide_option(const Tensor& x) { return x.numel() >= INT32_MAX ? " WIDE" : ""; }

}  // namespace ssn

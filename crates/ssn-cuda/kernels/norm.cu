// Normalization, dropout and activation in one pass, forward and backward.
//
// A feature map is [groups, rows, CP] with channels fastest: all rows are one group for batch norm, those of an image
// for instance norm. Of the CP channels, a multiple of 8, the first C are real; the others hold zeros and stay so.
// A thread owns eight channels of many rows. ACTIVATION: 0 none, 1 ReLU, 2 leaky ReLU, 3 PReLU. DROPOUT: 0 or 1.

struct Place {
    int channel;  // The first of the thread's eight channels.
    i64 row, step;
    bool works;
};

__device__ __forceinline__ Place place(int CP) {
    const int lanes = CP / 8, rows = blockDim.x / lanes, lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
    return {lane * 8, (i64)blockIdx.x * rows + row, (i64)gridDim.x * rows, row < rows};
}

// Adds `count` arrays of eight numbers over the rows of a block, and to `sums` [C, count].
template <int COUNT>
__device__ __forceinline__ void add_up(float (&values)[COUNT][8], float* shared, double* sums, int C, int CP, Place at) {
    const int lanes = CP / 8, rows = blockDim.x / lanes, row = threadIdx.x / lanes;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        __syncthreads();
        if (at.works) {
#pragma unroll
            for (int i = 0; i < 8; ++i) shared[row * CP + at.channel + i] = values[k][i];
        }
        __syncthreads();
        for (int c = threadIdx.x; c < C; c += blockDim.x) {
            float sum = 0;
            for (int r = 0; r < rows; ++r) sum += shared[r * CP + c];
            atomicAdd(&sums[c * COUNT + k], (double)sum);
        }
    }
}

// Sums of x and x², both less the group's first value of the channel. sums [groups, C, 2].
extern "C" __global__ void statistics(const scalar* x, double* sums, i64 rows, int C, int CP) {
    extern __shared__ float shared[];
    const scalar* group = x + (i64)blockIdx.y * rows * CP;
    const Place at = place(CP);
    float values[2][8] = {}, shift[8];
    if (at.works) {
        load8(group + at.channel, shift);
        i64 row = at.row;
        for (; row + 3 * at.step < rows; row += 4 * at.step) {
            float v[4][8];
#pragma unroll
            for (int k = 0; k < 4; ++k) load8(group + (row + k * at.step) * CP + at.channel, v[k]);
#pragma unroll
            for (int k = 0; k < 4; ++k)
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const float d = v[k][i] - shift[i];
                    values[0][i] += d;
                    values[1][i] += d * d;
                }
        }
        for (; row < rows; row += at.step) {
            float v[8];
            load8(group + row * CP + at.channel, v);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const float d = v[i] - shift[i];
                values[0][i] += d;
                values[1][i] += d * d;
            }
        }
    }
    add_up<2>(values, shared, sums + (i64)blockIdx.y * C * 2, C, CP, at);
}

// Sums of x and x² themselves: what ranks can add up. For a single group.
extern "C" __global__ void without_shift(const scalar* x, double* sums, i64 rows, int C) {
    for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < C; c += gridDim.x * blockDim.x) {
        const double shift = load1(x + c), sum = sums[c * 2];
        sums[c * 2] = sum + rows * shift;
        sums[c * 2 + 1] += shift * (2 * sum + rows * shift);
    }
}

// What dropout leaves of eight values: each is multiplied by 0 or by 1/(1 − p). Sixteen random bits for each value.
__device__ __forceinline__ void keep8(i64 element, uint2 key, u32 layer, u32 threshold, float scale, float kept[8]) {
    const u64 index = (u64)element >> 3;
    const uint4 w = philox(make_uint4((u32)index, (u32)(index >> 32), layer, 0x64726f70u), key);
    const u32 words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        kept[2 * i] = (words[i] & 0xffffu) < threshold ? scale : 0.0f;
        kept[2 * i + 1] = (words[i] >> 16) < threshold ? scale : 0.0f;
    }
}

__device__ __forceinline__ float activate(float z, float slope) {
#if ACTIVATION == 0
    return z;
#elif ACTIVATION == 1
    return z < 0.0f ? 0.0f : z;  // A NaN stays one.
#else
    return z > 0.0f ? z : slope * z;
#endif
}

__device__ __forceinline__ float slope_at(float z, float slope) {
#if ACTIVATION == 0
    return 1.0f;
#elif ACTIVATION == 1
    return z > 0.0f ? 1.0f : 0.0f;
#else
    return z > 0.0f ? 1.0f : slope;
#endif
}

__device__ __forceinline__ float slope_of(const float* prelu) {
#if ACTIVATION == 3
    return *prelu;
#else
    return 0.01f;
#endif
}

// What a channel's values are multiplied by and what is added, [2]; from its sums, or without them from the running
// statistics. With sums, the first block saves mean and 1/σ, and the running statistics of a single group follow.
struct Statistics {
    const float *weight, *bias;
    float *running_mean, *running_var, *saved;
    double eps, momentum;
};

__device__ __forceinline__ float2 factor_and_offset(const Statistics& s, const double* sums, double first, i64 rows, int c,
                                                    int C, bool saves) {
    double mean, variance;
    if (sums) {
        const double shifted = sums[0] / rows;
        mean = shifted + first;
        variance = sums[1] / rows - shifted * shifted;
        variance = variance < 0 ? 0 : variance;
        if (saves) {
            s.saved[((i64)blockIdx.y * C + c) * 2] = (float)mean;
            s.saved[((i64)blockIdx.y * C + c) * 2 + 1] = (float)rsqrt(variance + s.eps);
            if (s.running_mean) {
                s.running_mean[c] = (float)((1 - s.momentum) * s.running_mean[c] + s.momentum * mean);
                s.running_var[c] =
                    (float)((1 - s.momentum) * s.running_var[c] + s.momentum * variance * rows / (rows - 1.0));
            }
        }
    } else {
        mean = s.running_mean[c];
        variance = s.running_var[c];
    }
    const double factor = s.weight[c] * rsqrt(variance + s.eps);
    return make_float2((float)factor, (float)(s.bias[c] - mean * factor));
}

struct Drop {
    const i64* seed;
    i64 first;  // Values of the batch in front of these.
    u32 layer, threshold;
    float scale;
};

// Eight values of y = activation(dropout(factor · x + offset)).
__device__ __forceinline__ void normalize8(const scalar* x, scalar* y, i64 element, const float factor[8],
                                           const float offset[8], float slope, uint2 key, const Drop& drop) {
    float v[8];
    load8(x + element, v);
#if DROPOUT
    float kept[8];
    keep8(drop.first + element, key, drop.layer, drop.threshold, drop.scale, kept);
#endif
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float z = v[i] * factor[i] + offset[i];
#if DROPOUT
        z *= kept[i];
#endif
        v[i] = activate(z, slope);
    }
    store8(y + element, v);
}

__device__ __forceinline__ uint2 key_for(const Drop& drop) {
#if DROPOUT
    return key_of(*drop.seed);
#else
    return make_uint2(0, 0);
#endif
}

// y = activation(dropout(normalized x)). With `whole` > 0 the sums are those of so many rows over all ranks, without shift.
extern "C" __global__ void normalize(const scalar* x, scalar* y, const double* sums, Statistics s, const float* prelu,
                                     i64 rows, i64 whole, int C, int CP, Drop drop) {
    extern __shared__ float shared[];
    float *a = shared, *b = shared + CP;
    const i64 base = (i64)blockIdx.y * rows * CP;
    for (int c = threadIdx.x; c < CP; c += blockDim.x) {
        float2 line = make_float2(0.0f, 0.0f);
        if (c < C) {
            const double* sum = sums ? sums + ((i64)blockIdx.y * C + c) * 2 : nullptr;
            const double shift = whole > 0 ? 0.0f : load1(x + base + c);
            line = factor_and_offset(s, sum, shift, whole > 0 ? whole : rows, c, C, blockIdx.x == 0);
        }
        a[c] = line.x, b[c] = line.y;
    }
    __syncthreads();
    const Place at = place(CP);
    if (!at.works) return;
    const float slope = slope_of(prelu);
    const uint2 key = key_for(drop);
    float factor[8], offset[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) factor[i] = a[at.channel + i], offset[i] = b[at.channel + i];
    for (i64 row = at.row; row < rows; row += at.step)
        normalize8(x, y, base + row * CP + at.channel, factor, offset, slope, key, drop);
}

// Adds two arrays of eight numbers over all threads of a block; every thread gets the sums [8, 2].
__device__ __forceinline__ void block_sums(float (&values)[2][8], double* shared) {
    __shared__ float parts[32][16];
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int k = 0; k < 2; ++k)
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float sum = warp_sum(values[k][i]);
            if (threadIdx.x % 32 == 0) parts[warp][i * 2 + k] = sum;
        }
    __syncthreads();
    if (threadIdx.x < 16) {
        double sum = 0.0;
        for (int w = 0; w < blockDim.x / 32; ++w) sum += parts[w][threadIdx.x];
        shared[threadIdx.x] = sum;
    }
    __syncthreads();
}

// The same for small maps, statistics included: a block owns eight channels of a group.
extern "C" __global__ void normalize_small(const scalar* x, scalar* y, Statistics s, const float* prelu, i64 rows, int C,
                                           int CP, Drop drop) {
    __shared__ double sums[16];
    __shared__ float2 lines[8];
    const int channel = blockIdx.x * 8;
    const i64 base = (i64)blockIdx.y * rows * CP + channel;
    float values[2][8] = {}, shift[8];
    load8(x + base, shift);
#pragma unroll 4
    for (i64 row = threadIdx.x; row < rows; row += blockDim.x) {
        float v[8];
        load8(x + base + row * CP, v);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float d = v[i] - shift[i];
            values[0][i] += d;
            values[1][i] += d * d;
        }
    }
    block_sums(values, sums);
    if (threadIdx.x < 8) {
        const int c = channel + threadIdx.x;
        lines[threadIdx.x] = c < C ? factor_and_offset(s, sums + threadIdx.x * 2, load1(x + base + threadIdx.x), rows, c, C, true)
                                   : make_float2(0.0f, 0.0f);
    }
    __syncthreads();
    const float slope = slope_of(prelu);
    const uint2 key = key_for(drop);
    float factor[8], offset[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) factor[i] = lines[i].x, offset[i] = lines[i].y;
#pragma unroll 4
    for (i64 row = threadIdx.x; row < rows; row += blockDim.x)
        normalize8(x, y, base + row * CP, factor, offset, slope, key, drop);
}

// ---- Backward. ----

// A channel on the way back: normalized values are x · deviation + offset.
struct Channel {
    float deviation, offset, weight, bias;
    float mean, product, factor;  // The last pass only: dx = factor · (gradient − mean − normalized · product).
};

// Unreal channels have only zeros.
__device__ __forceinline__ Channel channel_of(const float* saved, const float* weight, const float* bias, const double* sums,
                                              i64 rows, int c, int C) {
    Channel k = {};
    if (c >= C) return k;
    k.deviation = saved[c * 2 + 1];
    k.offset = -saved[c * 2] * k.deviation;
    k.weight = weight[c];
    k.bias = bias[c];
    if (sums) {
        k.mean = (float)(sums[0] / rows);
        k.product = (float)(sums[1] / rows);
        k.factor = k.weight * k.deviation;
    }
    return k;
}

// Of eight values: the normalized ones h, and the gradient before activation and dropout; adds to that of the slope.
__device__ __forceinline__ void inner8(const scalar* x, const scalar* dy, i64 element, const Channel k[8], float slope,
                                       uint2 key, const Drop& drop, float h[8], float gradient[8], float& of_slope) {
    load8(x + element, h);
    load8(dy + element, gradient);
#if DROPOUT
    float kept[8];
    keep8(drop.first + element, key, drop.layer, drop.threshold, drop.scale, kept);
#endif
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        h[i] = h[i] * k[i].deviation + k[i].offset;
        float z = h[i] * k[i].weight + k[i].bias;
#if DROPOUT
        z *= kept[i];
#endif
#if ACTIVATION == 3
        of_slope += z > 0.0f ? 0.0f : gradient[i] * z;
#endif
        gradient[i] *= slope_at(z, slope);
#if DROPOUT
        gradient[i] *= kept[i];
#endif
    }
}

// A gradient of the map's middle, `inner` out of `outer`, that is added to that of x: that of a cropped copy.
struct Skip {
    const scalar* gradient;
    int outer_d, outer_h, outer_w, inner_d, inner_h, inner_w;
};

__device__ __forceinline__ void outer8(scalar* dx, i64 element, i64 row, const Channel k[8], const float h[8],
                                       float gradient[8], const Skip& skip, int channel, int CP) {
#pragma unroll
    for (int i = 0; i < 8; ++i) gradient[i] = k[i].factor * (gradient[i] - k[i].mean - h[i] * k[i].product);
    if (skip.gradient) {
        const index voxel = (index)row;
        const int w = (int)(voxel % (index)skip.outer_w) - (skip.outer_w - skip.inner_w) / 2;
        const index over_w = voxel / (index)skip.outer_w;
        const int y = (int)(over_w % (index)skip.outer_h) - (skip.outer_h - skip.inner_h) / 2;
        const index over_h = over_w / (index)skip.outer_h;
        const int d = (int)(over_h % (index)skip.outer_d) - (skip.outer_d - skip.inner_d) / 2;
        const i64 image = over_h / (index)skip.outer_d;
        if (w >= 0 && w < skip.inner_w && y >= 0 && y < skip.inner_h && d >= 0 && d < skip.inner_d) {
            float more[8];
            load8(skip.gradient + (((image * skip.inner_d + d) * skip.inner_h + y) * skip.inner_w + w) * CP + channel, more);
#pragma unroll
            for (int i = 0; i < 8; ++i) gradient[i] += more[i];
        }
    }
    store8(dx + element, gradient);
}

// Sums of the inner gradient, alone and times the normalized value: [groups, C, 2]; and of the slope's gradient.
extern "C" __global__ void gradient_sums(const scalar* x, const scalar* dy, const float* saved, const float* weight,
                                         const float* bias, const float* prelu, double* sums, double* slope_sum, i64 rows,
                                         int C, int CP, Drop drop) {
    extern __shared__ float shared[];
    const i64 base = (i64)blockIdx.y * rows * CP;
    const Place at = place(CP);
    float values[2][8] = {}, of_slope = 0.0f;
    if (at.works) {
        Channel k[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
            k[i] = channel_of(saved + (i64)blockIdx.y * C * 2, weight, bias, nullptr, rows, at.channel + i, C);
        const float slope = slope_of(prelu);
        const uint2 key = key_for(drop);
#pragma unroll 2
        for (i64 row = at.row; row < rows; row += at.step) {
            float h[8], gradient[8];
            inner8(x, dy, base + row * CP + at.channel, k, slope, key, drop, h, gradient, of_slope);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                values[0][i] += gradient[i];
                values[1][i] += gradient[i] * h[i];
            }
        }
    }
    add_up<2>(values, shared, sums + (i64)blockIdx.y * C * 2, C, CP, at);
#if ACTIVATION == 3
    const float sum = warp_sum(of_slope);
    if (threadIdx.x % 32 == 0 && sum != 0.0f) atomicAdd(slope_sum, (double)sum);
#endif
}

// The gradient of x; also those of weight, bias [groups, C] and slope from their sums. `all_sums` are those of all ranks,
// over `whole` rows; without ranks, the sums again and 0.
extern "C" __global__ void gradient(const scalar* x, const scalar* dy, scalar* dx, const float* saved, const float* weight,
                                    const float* bias, const float* prelu, const double* sums, const double* all_sums,
                                    const double* slope_sum, float* weight_gradient, float* bias_gradient,
                                    float* prelu_gradient, i64 rows, i64 whole, int C, int CP, Drop drop, Skip skip) {
    extern __shared__ Channel table[];
    const i64 base = (i64)blockIdx.y * rows * CP;
    for (int c = threadIdx.x; c < CP; c += blockDim.x) {
        const i64 i = (i64)blockIdx.y * C + c;
        const i64 count = whole > 0 ? whole : rows;
        table[c] = channel_of(saved + (i64)blockIdx.y * C * 2, weight, bias, all_sums + i * 2, count, c, C);
        if (blockIdx.x == 0 && c < C) {
            bias_gradient[i] = (float)sums[i * 2];
            weight_gradient[i] = (float)sums[i * 2 + 1];
        }
    }
#if ACTIVATION == 3
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *prelu_gradient = (float)*slope_sum;
#endif
    __syncthreads();
    const Place at = place(CP);
    if (!at.works) return;
    Channel k[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) k[i] = table[at.channel + i];
    const float slope = slope_of(prelu);
    const uint2 key = key_for(drop);
    float unused = 0.0f;
    for (i64 row = at.row; row < rows; row += at.step) {
        const i64 element = base + row * CP + at.channel;
        float h[8], g[8];
        inner8(x, dy, element, k, slope, key, drop, h, g, unused);
        outer8(dx, element, (i64)blockIdx.y * rows + row, k, h, g, skip, at.channel, CP);
    }
}

// Both for small maps: a block owns eight channels of a group. The slope's gradient is added to *prelu_gradient.
extern "C" __global__ void gradient_small(const scalar* x, const scalar* dy, scalar* dx, const float* saved,
                                          const float* weight, const float* bias, const float* prelu, float* prelu_gradient,
                                          float* weight_gradient, float* bias_gradient, i64 rows, int C, int CP, Drop drop,
                                          Skip skip) {
    __shared__ double sums[16];
    const int channel = blockIdx.x * 8;
    const i64 base = (i64)blockIdx.y * rows * CP + channel;
    const float slope = slope_of(prelu);
    const uint2 key = key_for(drop);
    float values[2][8] = {}, of_slope = 0.0f;
    Channel k[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
        k[i] = channel_of(saved + (i64)blockIdx.y * C * 2, weight, bias, nullptr, rows, channel + i, C);
#pragma unroll 2
    for (i64 row = threadIdx.x; row < rows; row += blockDim.x) {
        float h[8], g[8];
        inner8(x, dy, base + row * CP, k, slope, key, drop, h, g, of_slope);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            values[0][i] += g[i];
            values[1][i] += g[i] * h[i];
        }
    }
#if ACTIVATION == 3
    of_slope = warp_sum(of_slope);
    if (threadIdx.x % 32 == 0 && of_slope != 0.0f) atomicAdd(prelu_gradient, of_slope);
#endif
    block_sums(values, sums);
    if (threadIdx.x < 8 && channel + threadIdx.x < C) {
        const i64 i = (i64)blockIdx.y * C + channel + threadIdx.x;
        bias_gradient[i] = (float)sums[threadIdx.x * 2];
        weight_gradient[i] = (float)sums[threadIdx.x * 2 + 1];
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        k[i].mean = (float)sums[i * 2] / rows;
        k[i].product = (float)sums[i * 2 + 1] / rows;
        k[i].factor = k[i].weight * k[i].deviation;
    }
    float unused = 0.0f;
    for (i64 row = threadIdx.x; row < rows; row += blockDim.x) {
        float h[8], g[8];
        inner8(x, dy, base + row * CP, k, slope, key, drop, h, g, unused);
        outer8(dx, base + row * CP, (i64)blockIdx.y * rows + row, k, h, g, skip, channel, CP);
    }
}

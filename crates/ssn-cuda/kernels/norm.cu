// Normalisation, dropout and activation in one pass, forward and backward.
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

// y = activation(dropout(normalised x)). With sums, from them; `saved` [groups, C, 2] gets mean and 1/σ, and the running
// statistics of a single group follow, if there are any. Without sums, from the running statistics.
extern "C" __global__ void normalise(const scalar* x, scalar* y, const double* sums, const float* weight, const float* bias,
                                     const float* prelu, float* running_mean, float* running_var, float* saved, i64 rows,
                                     int C, int CP, double eps, double momentum, const i64* seed, u32 layer, u32 threshold,
                                     float scale) {
    extern __shared__ float shared[];
    float *a = shared, *b = shared + CP;
    const i64 base = (i64)blockIdx.y * rows * CP;
    for (int c = threadIdx.x; c < CP; c += blockDim.x) {
        a[c] = b[c] = 0.0f;
        if (c >= C) continue;
        double mean, variance;
        if (sums) {
            const double* sum = sums + ((i64)blockIdx.y * C + c) * 2;
            const double shifted = sum[0] / rows;
            mean = shifted + load1(x + base + c);
            variance = sum[1] / rows - shifted * shifted;
            variance = variance < 0 ? 0 : variance;
            const float deviation = (float)rsqrt(variance + eps);
            if (blockIdx.x == 0) {
                saved[((i64)blockIdx.y * C + c) * 2] = (float)mean;
                saved[((i64)blockIdx.y * C + c) * 2 + 1] = deviation;
                if (running_mean) {
                    running_mean[c] = (float)((1 - momentum) * running_mean[c] + momentum * mean);
                    running_var[c] = (float)((1 - momentum) * running_var[c] + momentum * variance * rows / (rows - 1.0));
                }
            }
        } else {
            mean = running_mean[c];
            variance = running_var[c];
        }
        const double factor = weight[c] * rsqrt(variance + eps);
        a[c] = (float)factor;
        b[c] = (float)(bias[c] - mean * factor);
    }
    __syncthreads();
    const Place at = place(CP);
    if (!at.works) return;
    const float slope = slope_of(prelu);
    float factor[8], offset[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) factor[i] = a[at.channel + i], offset[i] = b[at.channel + i];
#if DROPOUT
    const uint2 key = key_of(*seed);
#endif
    for (i64 row = at.row; row < rows; row += at.step) {
        const i64 element = base + row * CP + at.channel;
        float v[8];
        load8(x + element, v);
#if DROPOUT
        float kept[8];
        keep8(element, key, layer, threshold, scale, kept);
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
}

// The gradient before the activation and dropout, of eight values with normalised values h; adds to that of the slope.
__device__ __forceinline__ void inner_gradient(const float h[8], const float weight[8], const float bias[8],
                                               const float kept[8], float slope, float gradient[8], float& of_slope) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float z = h[i] * weight[i] + bias[i];
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

struct Channels {
    float deviation[8], offset[8], weight[8], bias[8];
};

// Normalised values are x · deviation + offset. Unreal channels have only zeros.
__device__ __forceinline__ Channels channels(const float* saved, const float* weight, const float* bias, int channel, int C) {
    Channels result;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int c = channel + i;
        const bool real = c < C;
        const float deviation = real ? saved[c * 2 + 1] : 0.0f;
        result.deviation[i] = deviation;
        result.offset[i] = real ? -saved[c * 2] * deviation : 0.0f;
        result.weight[i] = real ? weight[c] : 0.0f;
        result.bias[i] = real ? bias[c] : 0.0f;
    }
    return result;
}

// Sums of the inner gradient, alone and times the normalised value: [groups, C, 2]; and of the slope's gradient.
extern "C" __global__ void gradient_sums(const scalar* x, const scalar* dy, const float* saved, const float* weight,
                                         const float* bias, const float* prelu, double* sums, double* slope_sum, i64 rows,
                                         int C, int CP, const i64* seed, u32 layer, u32 threshold, float scale) {
    extern __shared__ float shared[];
    const i64 base = (i64)blockIdx.y * rows * CP;
    const Place at = place(CP);
    float values[2][8] = {}, of_slope = 0.0f;
    if (at.works) {
        const Channels k = channels(saved + (i64)blockIdx.y * C * 2, weight, bias, at.channel, C);
        const float slope = slope_of(prelu);
#if DROPOUT
        const uint2 key = key_of(*seed);
#endif
#pragma unroll 2
        for (i64 row = at.row; row < rows; row += at.step) {
            const i64 element = base + row * CP + at.channel;
            float h[8], gradient[8], kept[8];
            load8(x + element, h);
            load8(dy + element, gradient);
#if DROPOUT
            keep8(element, key, layer, threshold, scale, kept);
#endif
#pragma unroll
            for (int i = 0; i < 8; ++i) h[i] = h[i] * k.deviation[i] + k.offset[i];
            inner_gradient(h, k.weight, k.bias, kept, slope, gradient, of_slope);
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

// The gradient of x; also those of weight, bias and slope from their sums, of one group's share each [groups, C].
// With `skip`, a gradient of the map's middle, of `inner` [d, h, w] out of `outer`, is added: that of a cropped copy.
extern "C" __global__ void gradient(const scalar* x, const scalar* dy, scalar* dx, const float* saved, const float* weight,
                                    const float* bias, const float* prelu, const double* sums, const double* slope_sum,
                                    float* weight_gradient, float* bias_gradient, float* prelu_gradient, i64 rows, int C,
                                    int CP, const i64* seed, u32 layer, u32 threshold, float scale, const scalar* skip,
                                    int outer_d, int outer_h, int outer_w, int inner_d, int inner_h, int inner_w) {
    const i64 base = (i64)blockIdx.y * rows * CP;
    if (blockIdx.x == 0) {
        for (int c = threadIdx.x; c < C; c += blockDim.x) {
            const i64 i = (i64)blockIdx.y * C + c;
            bias_gradient[i] = (float)sums[i * 2];
            weight_gradient[i] = (float)sums[i * 2 + 1];
        }
#if ACTIVATION == 3
        if (blockIdx.y == 0 && threadIdx.x == 0) *prelu_gradient = (float)*slope_sum;
#endif
    }
    const Place at = place(CP);
    if (!at.works) return;
    const Channels k = channels(saved + (i64)blockIdx.y * C * 2, weight, bias, at.channel, C);
    float mean[8], product[8], factor[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int c = at.channel + i;
        const double* sum = sums + ((i64)blockIdx.y * C + c) * 2;
        mean[i] = c < C ? (float)(sum[0] / rows) : 0.0f;
        product[i] = c < C ? (float)(sum[1] / rows) : 0.0f;
        factor[i] = k.weight[i] * k.deviation[i];
    }
    const float slope = slope_of(prelu);
    float unused = 0.0f;
#if DROPOUT
    const uint2 key = key_of(*seed);
#endif
    for (i64 row = at.row; row < rows; row += at.step) {
        const i64 element = base + row * CP + at.channel;
        float h[8], g[8], kept[8];
        load8(x + element, h);
        load8(dy + element, g);
#if DROPOUT
        keep8(element, key, layer, threshold, scale, kept);
#endif
#pragma unroll
        for (int i = 0; i < 8; ++i) h[i] = h[i] * k.deviation[i] + k.offset[i];
        inner_gradient(h, k.weight, k.bias, kept, slope, g, unused);
#pragma unroll
        for (int i = 0; i < 8; ++i) g[i] = factor[i] * (g[i] - mean[i] - h[i] * product[i]);
        if (skip) {
            const i64 voxel = (i64)blockIdx.y * rows + row;
            const int w = (int)(voxel % outer_w) - (outer_w - inner_w) / 2;
            const i64 over_w = voxel / outer_w;
            const int h_at = (int)(over_w % outer_h) - (outer_h - inner_h) / 2;
            const i64 over_h = over_w / outer_h;
            const int d = (int)(over_h % outer_d) - (outer_d - inner_d) / 2;
            const i64 image = over_h / outer_d;
            if (w >= 0 && w < inner_w && h_at >= 0 && h_at < inner_h && d >= 0 && d < inner_d) {
                float more[8];
                load8(skip + (((image * inner_d + d) * inner_h + h_at) * inner_w + w) * CP + at.channel, more);
#pragma unroll
                for (int i = 0; i < 8; ++i) g[i] += more[i];
            }
        }
        store8(dx + element, g);
    }
}

// The Monte-Carlo loss without its samples in memory, and the soft maps of the energy loss: every thread draws the samples
// of its voxel, forward and again backward.
//
// CLASSES, RANK, DRAWS and PAIRED (two mirrored samples of every draw) are constants. Noise is that of `StepNoise`: the
// same numbers as on the CPU. mean and diagonal [b, CLASSES, v], factor [b, RANK, CLASSES, v]; voxels and classes
// are dense, `*_stride` is that of the batch. Targets [b, t, v]. `first` images of the batch are in front of these.

#define SAMPLES (DRAWS * (1 + PAIRED))
#define RANK_STREAM 0xffffffffu
#define TILE 512

struct Voxel {
    float mean[CLASSES], deviation[CLASSES], factor[RANK > 0 ? RANK * CLASSES : 1];
};

__device__ __forceinline__ Voxel voxel(const float* mean, i64 mean_stride, const float* diagonal, i64 diagonal_stride,
                                       const float* factor, i64 factor_stride, int v, int x) {
    Voxel result;
#pragma unroll
    for (int k = 0; k < CLASSES; ++k) {
        result.mean[k] = mean[blockIdx.y * mean_stride + (i64)k * v + x];
        result.deviation[k] = sqrtf(diagonal[blockIdx.y * diagonal_stride + (i64)k * v + x]);
    }
#pragma unroll
    for (int i = 0; i < RANK * CLASSES; ++i) result.factor[i] = factor[blockIdx.y * factor_stride + (i64)i * v + x];
    return result;
}

// The noise of the factor's columns for this image, [DRAWS, RANK], the same for all voxels.
__device__ __forceinline__ void fill_rank_noise(float* noise, uint2 key, int first) {
    const u32 image = first + blockIdx.y;
    for (int i = threadIdx.x; i < DRAWS * RANK; i += blockDim.x)
        noise[i] = normal(key, RANK_STREAM, i / (RANK > 0 ? RANK : 1), image * RANK + i % (RANK > 0 ? RANK : 1));
    __syncthreads();
}

// What a draw adds to the mean; `noise` gets that of the diagonal.
__device__ __forceinline__ void draw(const Voxel& at, const float* rank_noise, uint2 key, u32 number, int v, int x,
                                     int first, float noise[CLASSES], float spread[CLASSES]) {
    const u32 image = first + blockIdx.y;
#pragma unroll
    for (int k = 0; k < CLASSES; ++k) {
        noise[k] = normal(key, 0, number, (image * CLASSES + k) * (u32)v + x);
        spread[k] = at.deviation[k] * noise[k];
#pragma unroll
        for (int q = 0; q < RANK; ++q) spread[k] += rank_noise[number * RANK + q] * at.factor[q * CLASSES + k];
    }
}

// Log-probabilities of the classes.
__device__ __forceinline__ void log_softmax(float logits[CLASSES]) {
    float largest = logits[0], sum = 0.0f;
#pragma unroll
    for (int k = 1; k < CLASSES; ++k) largest = fmaxf(largest, logits[k]);
#pragma unroll
    for (int k = 0; k < CLASSES; ++k) sum += __expf(logits[k] - largest);
    const float normalizer = largest + __logf(sum);
#pragma unroll
    for (int k = 0; k < CLASSES; ++k) logits[k] -= normalizer;
}

// The gradients of mean, standard deviation and factor at a voxel.
struct Gradient {
    float mean[CLASSES], deviation[CLASSES], factor[RANK > 0 ? RANK * CLASSES : 1];

    // Adds those of a draw, from the gradient of what it adds to the mean.
    __device__ __forceinline__ void add(const float* to_spread, const float* noise, const float* rank_noise) {
#pragma unroll
        for (int k = 0; k < CLASSES; ++k) {
            deviation[k] += to_spread[k] * noise[k];
#pragma unroll
            for (int q = 0; q < RANK; ++q) factor[q * CLASSES + k] += to_spread[k] * rank_noise[q];
        }
    }

    __device__ __forceinline__ void write(const Voxel& at, float* to_mean, float* to_diagonal, float* to_factor, int v,
                                          int x) const {
#pragma unroll
        for (int k = 0; k < CLASSES; ++k) {
            const i64 place = ((i64)blockIdx.y * CLASSES + k) * v + x;
            to_mean[place] = mean[k];
            to_diagonal[place] = deviation[k] / (2.0f * at.deviation[k]);
        }
#pragma unroll
        for (int i = 0; i < RANK * CLASSES; ++i) to_factor[((i64)blockIdx.y * RANK * CLASSES + i) * v + x] = factor[i];
    }
};

// log p(target | sample), summed over voxels: [SAMPLES, b, t], zeros before.
extern "C" __global__ void log_probability(const float* mean, i64 mean_stride, const float* diagonal, i64 diagonal_stride,
                                           const float* factor, i64 factor_stride, const i64* target, const i64* seed,
                                           double* log_p, int v, int t, int first) {
    extern __shared__ double sums[];  // [SAMPLES, t], then the rank noise
    float* rank_noise = reinterpret_cast<float*>(sums + SAMPLES * t);
    const uint2 key = key_of(*seed);
    for (int i = threadIdx.x; i < SAMPLES * t; i += blockDim.x) sums[i] = 0.0;
    fill_rank_noise(rank_noise, key, first);
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const bool inside = x < v;
    const int safe = inside ? x : v - 1;
    const Voxel at = voxel(mean, mean_stride, diagonal, diagonal_stride, factor, factor_stride, v, safe);
    for (int number = 0; number < DRAWS; ++number) {
        float noise[CLASSES], spread[CLASSES];
        draw(at, rank_noise, key, number, v, safe, first, noise, spread);
#pragma unroll
        for (int side = 0; side <= PAIRED; ++side) {
            float logits[CLASSES];
#pragma unroll
            for (int k = 0; k < CLASSES; ++k) logits[k] = at.mean[k] + (side ? -spread[k] : spread[k]);
            log_softmax(logits);
            for (int j = 0; j < t; ++j) {
                const int label = (int)target[((i64)blockIdx.y * t + j) * v + safe];
                float value = 0.0f;
#pragma unroll
                for (int k = 0; k < CLASSES; ++k) value = label == k ? logits[k] : value;
                const float sum = warp_sum(inside ? value : 0.0f);
                if (threadIdx.x % 32 == 0) atomicAdd(&sums[(side * DRAWS + number) * t + j], (double)sum);
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SAMPLES * t; i += blockDim.x)
        atomicAdd(&log_p[((i64)(i / t) * gridDim.y + blockIdx.y) * t + i % t], sums[i]);
}

// From log p [SAMPLES, b, t] and an exponent of p: the loss [b], the effective sample size [b, t], and the samples' shares of the sum [SAMPLES, b, t].
extern "C" __global__ void shares_of_samples(const double* log_p, double* loss, double* ess, float* shares, int b, int t,
                                             double exponent) {
    const int image = blockIdx.x * blockDim.x + threadIdx.x;
    if (image >= b) return;
    double total = 0.0;
    for (int j = 0; j < t; ++j) {
        const int place = image * t + j, step = b * t;
        double largest = log_p[place];
        for (int m = 1; m < SAMPLES; ++m) largest = fmax(largest, log_p[m * step + place]);
        double sum = 0.0, squares = 0.0;
        for (int m = 0; m < SAMPLES; ++m) sum += exp(exponent * (log_p[m * step + place] - largest));
        for (int m = 0; m < SAMPLES; ++m) {
            const double share = exp(exponent * (log_p[m * step + place] - largest)) / sum;
            shares[m * step + place] = (float)share;
            squares += share * share;
        }
        total += (log((double)SAMPLES) - log(sum)) / exponent - largest;
        ess[place] = 1.0 / squares;
    }
    loss[image] = total / t;
}

// The gradients of mean, diagonal and factor, dense, from that of the loss [b].
extern "C" __global__ void loss_gradient(const float* mean, i64 mean_stride, const float* diagonal, i64 diagonal_stride,
                                         const float* factor, i64 factor_stride, const i64* target, const i64* seed,
                                         const float* shares, const double* of_loss, float* mean_gradient,
                                         float* diagonal_gradient, float* factor_gradient, int v, int t, int first) {
    extern __shared__ float rank_noise[];
    const uint2 key = key_of(*seed);
    fill_rank_noise(rank_noise, key, first);
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= v) return;
    const Voxel at = voxel(mean, mean_stride, diagonal, diagonal_stride, factor, factor_stride, v, x);
    const float upstream = (float)(-of_loss[blockIdx.y] / t);
    Gradient to = {};
    for (int number = 0; number < DRAWS; ++number) {
        float noise[CLASSES], spread[CLASSES], to_spread[CLASSES] = {};
        draw(at, rank_noise, key, number, v, x, first, noise, spread);
#pragma unroll
        for (int side = 0; side <= PAIRED; ++side) {
            float logits[CLASSES];
#pragma unroll
            for (int k = 0; k < CLASSES; ++k) logits[k] = at.mean[k] + (side ? -spread[k] : spread[k]);
            log_softmax(logits);
            float all = 0.0f, to_logits[CLASSES] = {};
            for (int j = 0; j < t; ++j) {
                const float share = upstream * shares[((i64)(side * DRAWS + number) * gridDim.y + blockIdx.y) * t + j];
                const int label = (int)target[((i64)blockIdx.y * t + j) * v + x];
                all += share;
#pragma unroll
                for (int k = 0; k < CLASSES; ++k) to_logits[k] += label == k ? share : 0.0f;
            }
#pragma unroll
            for (int k = 0; k < CLASSES; ++k) {
                to_logits[k] -= all * __expf(logits[k]);
                to.mean[k] += to_logits[k];
                to_spread[k] += side ? -to_logits[k] : to_logits[k];
            }
        }
        to.add(to_spread, noise, rank_noise + number * RANK);
    }
    to.write(at, mean_gradient, diagonal_gradient, factor_gradient, v, x);
}

// The place of a voxel in soft maps [b, CLASSES - 1, tiles, maps, TILE].
__device__ __forceinline__ i64 map_place(int k, int map, int maps, int v, int x) {
    const i64 tiles = (v + TILE - 1) / TILE;
    return ((((i64)blockIdx.y * (CLASSES - 1) + k - 1) * tiles + x / TILE) * maps + map) * TILE + x % TILE;
}

// The probabilities of the foreground in every sample, then the targets: [b, CLASSES - 1, tiles, SAMPLES + t, TILE], with
// zeros beyond the last voxel.
extern "C" __global__ void soft_maps(const float* mean, i64 mean_stride, const float* diagonal, i64 diagonal_stride,
                                     const float* factor, i64 factor_stride, const i64* target, const i64* seed, float* maps,
                                     int v, int t, int first) {
    extern __shared__ float rank_noise[];
    const uint2 key = key_of(*seed);
    fill_rank_noise(rank_noise, key, first);
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const bool inside = x < v;
    const int safe = inside ? x : v - 1;
    const Voxel at = voxel(mean, mean_stride, diagonal, diagonal_stride, factor, factor_stride, v, safe);
    for (int number = 0; number < DRAWS; ++number) {
        float noise[CLASSES], spread[CLASSES];
        draw(at, rank_noise, key, number, v, safe, first, noise, spread);
#pragma unroll
        for (int side = 0; side <= PAIRED; ++side) {
            float logits[CLASSES];
#pragma unroll
            for (int k = 0; k < CLASSES; ++k) logits[k] = at.mean[k] + (side ? -spread[k] : spread[k]);
            log_softmax(logits);
#pragma unroll
            for (int k = 1; k < CLASSES; ++k)
                maps[map_place(k, side * DRAWS + number, SAMPLES + t, v, x)] = inside ? __expf(logits[k]) : 0.0f;
        }
    }
    for (int j = 0; j < t; ++j) {
        const int label = (int)target[((i64)blockIdx.y * t + j) * v + safe];
#pragma unroll
        for (int k = 1; k < CLASSES; ++k)
            maps[map_place(k, SAMPLES + j, SAMPLES + t, v, x)] = inside && label == k ? 1.0f : 0.0f;
    }
}

// The gradients of mean, diagonal and factor, dense, from that of the soft maps.
extern "C" __global__ void soft_maps_gradient(const float* mean, i64 mean_stride, const float* diagonal, i64 diagonal_stride,
                                              const float* factor, i64 factor_stride, const i64* seed, const float* of_maps,
                                              float* mean_gradient, float* diagonal_gradient, float* factor_gradient, int v,
                                              int t, int first) {
    extern __shared__ float rank_noise[];
    const uint2 key = key_of(*seed);
    fill_rank_noise(rank_noise, key, first);
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= v) return;
    const Voxel at = voxel(mean, mean_stride, diagonal, diagonal_stride, factor, factor_stride, v, x);
    Gradient to = {};
    for (int number = 0; number < DRAWS; ++number) {
        float noise[CLASSES], spread[CLASSES], to_spread[CLASSES] = {};
        draw(at, rank_noise, key, number, v, x, first, noise, spread);
#pragma unroll
        for (int side = 0; side <= PAIRED; ++side) {
            float logits[CLASSES], of_map[CLASSES] = {}, mean_of_maps = 0.0f;
#pragma unroll
            for (int k = 0; k < CLASSES; ++k) logits[k] = at.mean[k] + (side ? -spread[k] : spread[k]);
            log_softmax(logits);
#pragma unroll
            for (int k = 1; k < CLASSES; ++k) {
                of_map[k] = of_maps[map_place(k, side * DRAWS + number, SAMPLES + t, v, x)];
                mean_of_maps += __expf(logits[k]) * of_map[k];
            }
#pragma unroll
            for (int k = 0; k < CLASSES; ++k) {
                const float to_logit = __expf(logits[k]) * (of_map[k] - mean_of_maps);
                to.mean[k] += to_logit;
                to_spread[k] += side ? -to_logit : to_logit;
            }
        }
        to.add(to_spread, noise, rank_noise + number * RANK);
    }
    to.write(at, mean_gradient, diagonal_gradient, factor_gradient, v, x);
}

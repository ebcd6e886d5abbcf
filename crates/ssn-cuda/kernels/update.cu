// The optimizer's step for all parameters at once, and the copies in which the network computes.
//
// One row of the table per parameter. METHOD: 0 Adam, 1 AdamW, 2 SGD, 3 RMSprop.

struct Row {
    float* master;               // The parameter, dense: [outputs, inputs, kernel].
    void* working;               // Its copy, [outputs, kernel, padded inputs], or nothing.
    const void* gradient;        // In the form of the working copy if there is one, else of the parameter.
    float *first, *second, *third;  // The method's buffers.
    i64 count;                   // Numbers of the parameter.
    i64 inputs, kernel, padded;
    i64 first_block;             // The blocks of a row are consecutive.
    i64 number;                  // The place of its count of steps.
    i64 stored;                  // Numbers of the gradient in memory, the padded ones included.
    i64 single;                  // Whether the copy is in single precision; else in bfloat16.
};

#define PER_BLOCK 2048

__device__ __forceinline__ const Row& row_of(const Row* table, int rows) {
    int low = 0, high = rows - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (table[middle].first_block <= blockIdx.x) low = middle; else high = middle - 1;
    }
    return table[low];
}

// Where number i of a parameter lies in its working copy.
__device__ __forceinline__ i64 place_in_copy(const Row& row, i64 i) {
    const u32 kernel = (u32)row.kernel, inputs = (u32)row.inputs, k = (u32)i % kernel, over = (u32)i / kernel;
    return (i64)(over / inputs * kernel + k) * row.padded + over % inputs;
}

__device__ __forceinline__ float gradient_at(const Row& row, i64 i) {
    if (!row.working) return reinterpret_cast<const float*>(row.gradient)[i];
    const i64 place = place_in_copy(row, i);
    if (row.single) return reinterpret_cast<const float*>(row.gradient)[place];
    const u32 bits = reinterpret_cast<const unsigned short*>(row.gradient)[place];
    return __uint_as_float(bits << 16);
}

__device__ __forceinline__ unsigned short bf16_of(float value) {
    const u32 bits = __float_as_uint(value);
    if (value != value) return 0x7fc0;
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

__device__ __forceinline__ void write_copy(const Row& row, i64 i, float value) {
    if (!row.working) return;
    const i64 place = place_in_copy(row, i);
    if (row.single) reinterpret_cast<float*>(row.working)[place] = value;
    else reinterpret_cast<unsigned short*>(row.working)[place] = bf16_of(value);
}

// Adds the squares of all gradients to *sum, in the order of memory: what is padded is zero.
extern "C" __global__ void squared_norm(const Row* table, int rows, double* sum) {
    const Row& row = row_of(table, rows);
    const i64 blocks = (row.count + PER_BLOCK - 1) / PER_BLOCK, begin = blockIdx.x - row.first_block;
    float squares = 0.0f;
    for (i64 i = begin * blockDim.x + threadIdx.x; i < row.stored; i += blocks * blockDim.x) {
        const bool single = !row.working || row.single;
        const float g = single ? reinterpret_cast<const float*>(row.gradient)[i]
                               : __uint_as_float((u32) reinterpret_cast<const unsigned short*>(row.gradient)[i] << 16);
        squares += g * g;
    }
    squares = warp_sum(squares);
    __shared__ float parts[32];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = squares;
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0.0;
        for (int i = 0; i < blockDim.x / 32; ++i) total += parts[i];
        atomicAdd(sum, total);
    }
}

// results: loss, effective sample size, norm of the gradient, whether the step is applied, what gradients are multiplied by.
// Clears the sum for the next step.
extern "C" __global__ void decide(double* sum, const double* loss, const double* ess, double* results, double most) {
    const double norm = sqrt(*sum);
    const bool finite = isfinite(*loss) && isfinite(norm);
    results[0] = *loss;
    results[1] = ess ? *ess : -1.0;
    results[2] = norm;
    results[3] = finite;
    results[4] = fmin(1.0, most / (norm + 1e-6));
    *sum = 0.0;
}

struct Settings {
    double beta1, beta2, eps, decay, momentum, dampening;
    int nesterov, centered;
};

// One step. steps[row] counts from 1.
extern "C" __global__ void update(const Row* table, int rows, const double* results, const double* rate, const i64* steps,
                                  Settings s) {
    if (results[3] == 0.0) return;
    const Row& row = row_of(table, rows);
    const i64 begin = (blockIdx.x - row.first_block) * PER_BLOCK;
    const float clip = (float)results[4];
#if METHOD <= 1
    __shared__ float size, root;
    if (threadIdx.x == 0) {
        const double step = (double)steps[row.number];
        size = (float)(*rate / (1.0 - pow(s.beta1, step)));
        root = (float)sqrt(1.0 - pow(s.beta2, step));
    }
    __syncthreads();
#endif
    for (int j = threadIdx.x; j < PER_BLOCK; j += blockDim.x) {
        const i64 i = begin + j;
        if (i >= row.count) break;
        float p = row.master[i], g = gradient_at(row, i) * clip;
#if METHOD == 1
        p *= (float)(1.0 - *rate * s.decay);
#else
        g += (float)s.decay * p;
#endif
#if METHOD <= 1
        const float m = row.first[i] + (float)(1.0 - s.beta1) * (g - row.first[i]);
        const float v = (float)s.beta2 * row.second[i] + (float)(1.0 - s.beta2) * g * g;
        row.first[i] = m, row.second[i] = v;
        p -= size * m / (sqrtf(v) / root + (float)s.eps);
#elif METHOD == 2
        if (row.first) {
            const float buffer =
                steps[row.number] == 1 ? g : (float)s.momentum * row.first[i] + (float)(1.0 - s.dampening) * g;
            row.first[i] = buffer;
            g = s.nesterov ? g + (float)s.momentum * buffer : buffer;
        }
        p -= (float)*rate * g;
#else
        float square = (float)s.beta2 * row.first[i] + (float)(1.0 - s.beta2) * g * g;
        row.first[i] = square;
        if (s.centered) {
            const float mean = row.second[i] + (float)(1.0 - s.beta2) * (g - row.second[i]);
            row.second[i] = mean;
            square -= mean * mean;
        }
        float change = g / (sqrtf(square) + (float)s.eps);
        if (row.third) row.third[i] = change = (float)s.momentum * row.third[i] + change;
        p -= (float)*rate * change;
#endif
        row.master[i] = p;
        write_copy(row, i, p);
    }
}

// The working copies of parameters that were set from outside.
extern "C" __global__ void pack(const Row* table, int rows) {
    const Row& row = row_of(table, rows);
    const i64 begin = (blockIdx.x - row.first_block) * PER_BLOCK;
    for (int j = threadIdx.x; j < PER_BLOCK && begin + j < row.count; j += blockDim.x)
        write_copy(row, begin + j, row.master[begin + j]);
}

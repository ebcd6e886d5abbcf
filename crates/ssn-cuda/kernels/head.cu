// The linear maps of a head: outputs = W · features + bias at every voxel, in single precision.
//
// FEATURES real ones of FP in memory, OUTPUTS rows of W. Features [b, v, FP]; outputs are separate tensors [b, rows, v],
// whose first rows are `from`: PARTS of them.

struct Part {
    float* values;
    int from, rows;
};

struct Parts {
    Part part[3];
};

__device__ __forceinline__ void load_features(const scalar* x, float f[FP]) {
#pragma unroll
    for (int i = 0; i < FP; i += 8) load8(x + i, f + i);
}

extern "C" __global__ void linear(const scalar* x, const float* weight, const float* bias, Parts parts, int v) {
    extern __shared__ float w[];  // [OUTPUTS, FP]
    for (int i = threadIdx.x; i < OUTPUTS * FP; i += blockDim.x)
        w[i] = i % FP < FEATURES ? weight[i / FP * FEATURES + i % FP] : 0.0f;
    __syncthreads();
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= v) return;
    float f[FP];
    load_features(x + ((i64)blockIdx.y * v + at) * FP, f);
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        const Part& part = parts.part[p];
        for (int row = 0; row < part.rows; ++row) {
            const float* line = w + (part.from + row) * FP;
            float sum = bias[part.from + row];
#pragma unroll
            for (int i = 0; i < FP; ++i) sum += line[i] * f[i];
            part.values[((i64)blockIdx.y * part.rows + row) * v + at] = sum;
        }
    }
}

// The gradient of the features.
extern "C" __global__ void linear_gradient(Parts of_outputs, const float* weight, scalar* dx, int v) {
    extern __shared__ float w[];
    for (int i = threadIdx.x; i < OUTPUTS * FP; i += blockDim.x)
        w[i] = i % FP < FEATURES ? weight[i / FP * FEATURES + i % FP] : 0.0f;
    __syncthreads();
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= v) return;
    float f[FP] = {};
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        const Part& part = of_outputs.part[p];
        for (int row = 0; row < part.rows; ++row) {
            const float g = part.values[((i64)blockIdx.y * part.rows + row) * v + at];
            const float* line = w + (part.from + row) * FP;
#pragma unroll
            for (int i = 0; i < FP; ++i) f[i] += line[i] * g;
        }
    }
    scalar* to = dx + ((i64)blockIdx.y * v + at) * FP;
#pragma unroll
    for (int i = 0; i < FP; i += 8) store8(to + i, f + i);
}

// The gradients of W and bias: sums over voxels, added to [OUTPUTS, FEATURES + 1], the bias last.
//
// A block takes VOXELS at a time into shared memory. A thread owns 4 × 4 products; where there are fewer of those than
// threads, several threads share the voxels.
#define VOXELS 64
#define ROWS ((OUTPUTS + 3) / 4 * 4)
#define TILES ((ROWS / 4) * (FP / 4))

extern "C" __global__ void linear_sums(const scalar* x, Parts of_outputs, double* sums, int b, int v) {
    __shared__ float xs[VOXELS][FP + 4];
    __shared__ float gs[VOXELS][ROWS + 4];
    const int slices = max(1, (int)blockDim.x / TILES);
    const int tile = threadIdx.x % TILES, slice = threadIdx.x / TILES;
    const bool works = slice < slices;
    const int row = tile / (FP / 4) * 4, column = tile % (FP / 4) * 4;
    float product[4][4] = {}, alone[4] = {};
    const int per_image = (v + VOXELS - 1) / VOXELS;
    for (int chunk = blockIdx.x; chunk < b * per_image; chunk += gridDim.x) {
        const int image = chunk / per_image, begin = chunk % per_image * VOXELS;
        __syncthreads();
        for (int i = threadIdx.x; i < VOXELS * (FP / 8); i += blockDim.x) {
            const int n = i / (FP / 8), c = i % (FP / 8) * 8;
            float f[8] = {};
            if (begin + n < v) load8(x + ((i64)image * v + begin + n) * FP + c, f);
#pragma unroll
            for (int k = 0; k < 8; ++k) xs[n][c + k] = f[k];
        }
#pragma unroll
        for (int p = 0; p < PARTS; ++p) {
            const Part& part = of_outputs.part[p];
            for (int i = threadIdx.x; i < VOXELS * part.rows; i += blockDim.x) {
                const int r = i / VOXELS, n = i % VOXELS;
                gs[n][part.from + r] =
                    begin + n < v ? part.values[((i64)image * part.rows + r) * v + begin + n] : 0.0f;
            }
        }
        for (int i = threadIdx.x; i < VOXELS * (ROWS - OUTPUTS); i += blockDim.x)
            gs[i / (ROWS - OUTPUTS + (ROWS == OUTPUTS))][OUTPUTS + i % (ROWS - OUTPUTS + (ROWS == OUTPUTS))] = 0.0f;
        __syncthreads();
        if (works) {
            for (int n = slice; n < VOXELS; n += slices) {
                const float4 f = *reinterpret_cast<const float4*>(&xs[n][column]);
                const float4 g = *reinterpret_cast<const float4*>(&gs[n][row]);
                const float fs[4] = {f.x, f.y, f.z, f.w}, g4[4] = {g.x, g.y, g.z, g.w};
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    alone[j] += g4[j];
#pragma unroll
                    for (int k = 0; k < 4; ++k) product[j][k] += g4[j] * fs[k];
                }
            }
        }
    }
    if (!works) return;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        if (row + j >= OUTPUTS) continue;
        double* line = sums + (row + j) * (FEATURES + 1);
        if (column == 0) atomicAdd(line + FEATURES, (double)alone[j]);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            if (column + k < FEATURES) atomicAdd(line + column + k, (double)product[j][k]);
    }
}

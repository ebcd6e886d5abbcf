// Convolutions of bfloat16 maps with few channels by the tensor cores.
//
// Maps are [b, d, h, w, channels] with channels fastest, weights [o, taps, c]. A block keeps the voxels around a box of outputs
// in shared memory, and the rows of its matrix products are voxels of it, shifted by the tap: each voxel is fetched once or
// twice, and not once for every tap. CI and CO, multiples of 8, are the channels of the map that is read (in `weight_gradient`:
// of the input) and of the other one. TRANSPOSED: weights are [CI, taps, CO], taps backwards, as the gradient of the input has it.

struct Size3 {
    int d, h, w;
};

// `in` is the map that is read around a box, `out` that of the boxes; a box begins `padding` voxels after what it reads.
struct Sizes {
    Size3 in, out, kernel, padding, box, boxes;
};

// Rows of 16 bytes times an odd number: eight of them in a row lie in different banks.
__host__ __device__ constexpr int stride_of(int channels) { return (channels / 8 | 1) * 8; }

__device__ __forceinline__ void copy16(u32 to, const scalar* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

__device__ __forceinline__ void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all but the last LAST groups of copies are done.
template <int LAST>
__device__ __forceinline__ void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LAST) : "memory");
}

// 8 × 8 numbers from rows of 16 bytes whose addresses the lanes give.
template <bool T>
__device__ __forceinline__ void load_matrices(u32 (&m)[4], u32 address) {
    if (T)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                     : "r"(address));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                     : "r"(address));
}

template <bool T>
__device__ __forceinline__ void load_matrices(u32 (&m)[2], u32 address) {
    if (T)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(m[0]), "=r"(m[1])
                     : "r"(address));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(m[0]), "=r"(m[1]) : "r"(address));
}

// sums [16, 8] += a [16, 16] b [16, 8].
__device__ __forceinline__ void multiply(float (&s)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sums [16, 8] += a [16, 8] b [8, 8].
__device__ __forceinline__ void multiply(float (&s)[4], const u32 (&a)[2], u32 b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b));
}

// Voxels [from, from + size) of an image [in, C] to shared memory, zeros where there are none. A warp takes a row of voxels.
template <int C>
__device__ __forceinline__ void fetch_box(u32 to, const scalar* image, Size3 in, Size3 from, Size3 size) {
    constexpr int PIECES = C / 8;
    for (int row = threadIdx.x / 32; row < size.d * size.h; row += blockDim.x / 32) {
        const int z = from.d + row / size.h, y = from.h + row % size.h;
        const bool inside = (u32)z < (u32)in.d && (u32)y < (u32)in.h;
        const scalar* voxels = image + ((i64)z * in.h + y) * in.w * C;
        for (int i = threadIdx.x % 32; i < size.w * PIECES; i += 32) {
            const int x = i / PIECES, piece = i % PIECES;
            const bool here = inside && (u32)(from.w + x) < (u32)in.w;
            const u32 at = to + ((row * size.w + x) * stride_of(C) + piece * 8) * 2;
            copy16(at, here ? voxels + (i64)(from.w + x) * C + piece * 8 : image, here);
        }
    }
}

__device__ __forceinline__ Size3 halo_of(const Sizes& s) {
    return {s.box.d + s.kernel.d - 1, s.box.h + s.kernel.h - 1, s.box.w + s.kernel.w - 1};
}

// The first voxel of a box, and its image.
__device__ __forceinline__ Size3 box_at(const Sizes& s, int number, int& image) {
    const int x = number % s.boxes.w, y = number / s.boxes.w % s.boxes.h, z = number / (s.boxes.w * s.boxes.h) % s.boxes.d;
    image = number / (s.boxes.w * s.boxes.h * s.boxes.d);
    return {z * s.box.d, y * s.box.h, x * s.box.w};
}

__device__ __forceinline__ i64 volume(Size3 s) { return (i64)s.d * s.h * s.w; }

#ifdef CONVOLVE
// y = x * w, plus the middle of `added` [b, around, CO] if there is one. A warp has TILES times 16 rows, which are voxels, and all
// output channels. KW is the width of the kernel.
extern "C" __global__ __launch_bounds__(WARPS * 32, BLOCKS) void convolve(const scalar* x, const scalar* w, scalar* y, Sizes s,
                                                                          const scalar* added, Size3 around) {
    constexpr int XS = stride_of(CI), W_ROWS = TRANSPOSED ? CI : CO, W_COLUMNS = TRANSPOSED ? CO : CI;
    constexpr int WS = stride_of(W_COLUMNS), NT = CO / 8, TAP_BYTES = W_ROWS * WS * 2;
    extern __shared__ __align__(16) unsigned char memory[];
    const Size3 halo = halo_of(s);
    const u32 map = (u32)__cvta_generic_to_shared(memory), stages = map + (u32)volume(halo) * XS * 2;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, lines = s.kernel.d * s.kernel.h, taps = lines * KW;
    int image;
    const Size3 at = box_at(s, blockIdx.x, image);
    x += image * volume(s.in) * CI, y += image * volume(s.out) * CO;

    // The weights of a line of taps, to one of two places.
    const auto fetch_weights = [&](int line) {
        if (line < lines) {
            constexpr int PIECES = W_COLUMNS / 8;
            const u32 to = stages + line % 2 * (KW * TAP_BYTES);
            for (int i = threadIdx.x; i < W_ROWS * KW * PIECES; i += WARPS * 32) {
                const int row = i / (KW * PIECES), tap = i / PIECES % KW, piece = i % PIECES;
                const int of = TRANSPOSED ? taps - 1 - (line * KW + tap) : line * KW + tap;
                copy16(to + tap * TAP_BYTES + (row * WS + piece * 8) * 2, w + (row * taps + of) * W_COLUMNS + piece * 8, true);
            }
        }
        end_group();
    };
    fetch_box<CI>(map, x, s.in, {at.d - s.padding.d, at.h - s.padding.h, at.w - s.padding.w}, halo);
    fetch_weights(0);

    u32 rows[TILES];
#pragma unroll
    for (int m = 0; m < TILES; ++m) {
        int r = (warp * TILES + m) * 16 + lane % 16;
        if (r >= volume(s.box)) r = 0;
        const int vx = r % s.box.w, vy = r / s.box.w % s.box.h, vz = r / (s.box.w * s.box.h);
        rows[m] = map + (((vz * halo.h + vy) * halo.w + vx) * XS + lane / 16 * 8) * 2;
    }
    // Where a lane's rows of the weights begin: for 16 input channels of two tiles, for 8 of two tiles, and for 8 of one.
    const u32 lane16 = TRANSPOSED ? (lane % 16 * WS + lane / 16 * 8) * 2
                                  : ((lane / 16 * 8 + lane % 8) * WS + lane / 8 % 2 * 8) * 2;
    const u32 lane8 = TRANSPOSED ? (lane % 8 * WS + lane / 8 % 2 * 8) * 2 : lane % 16 * WS * 2;
    const u32 lane8_last = lane % 8 * WS * 2;
    constexpr u32 NEXT_TILE = TRANSPOSED ? 16 : 8 * WS * 2, NEXT_CHANNEL = TRANSPOSED ? WS * 2 : 2;

    float sums[TILES][NT][4] = {};
    for (int line = 0; line < lines; ++line) {
        wait_for_groups<0>();
        __syncthreads();
        fetch_weights(line + 1);
        const u32 shift = (line / s.kernel.h * halo.h + line % s.kernel.h) * halo.w * XS * 2;
        const u32 stage = stages + line % 2 * (KW * TAP_BYTES);
#pragma unroll
        for (int tap = 0; tap < KW; ++tap) {
            const u32 weights = stage + tap * TAP_BYTES;
#pragma unroll
            for (int k = 0; k + 16 <= CI; k += 16) {
                u32 a[TILES][4], b[(NT + 1) / 2][4];
#pragma unroll
                for (int m = 0; m < TILES; ++m) load_matrices<false>(a[m], rows[m] + shift + (tap * XS + k) * 2);
#pragma unroll
                for (int n = 0; n < NT; n += 2) {
                    const u32 from = weights + lane16 + n * NEXT_TILE + k * NEXT_CHANNEL;
                    if (n + 1 < NT)
                        load_matrices<TRANSPOSED>(b[n / 2], from);
                    else
                        load_matrices<TRANSPOSED>(reinterpret_cast<u32(&)[2]>(b[n / 2]), from);
                }
#pragma unroll
                for (int n = 0; n < NT; ++n)
#pragma unroll
                    for (int m = 0; m < TILES; ++m)
                        multiply(sums[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
            }
            if (CI % 16) {
                constexpr int K = CI / 16 * 16;
                u32 a[TILES][2], b[(NT + 1) / 2][2];
#pragma unroll
                for (int m = 0; m < TILES; ++m) load_matrices<false>(a[m], rows[m] + shift + (tap * XS + K) * 2);
#pragma unroll
                for (int n = 0; n < NT; n += 2)
                    load_matrices<TRANSPOSED>(b[n / 2], weights + (n + 1 < NT ? lane8 : lane8_last) + n * NEXT_TILE + K * NEXT_CHANNEL);
#pragma unroll
                for (int n = 0; n < NT; ++n)
#pragma unroll
                    for (int m = 0; m < TILES; ++m) multiply(sums[m][n], a[m], b[n / 2][n % 2]);
            }
        }
    }

#pragma unroll
    for (int m = 0; m < TILES; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int r = (warp * TILES + m) * 16 + lane / 4 + half * 8;
            const int vx = at.w + r % s.box.w, vy = at.h + r / s.box.w % s.box.h, vz = at.d + r / (s.box.w * s.box.h);
            if (r < volume(s.box) && vx < s.out.w && vy < s.out.h && vz < s.out.d) {
                scalar* to = y + (((i64)vz * s.out.h + vy) * s.out.w + vx) * CO + lane % 4 * 2;
                const int ax = vx + (around.w - s.out.w) / 2, ay = vy + (around.h - s.out.h) / 2, az = vz + (around.d - s.out.d) / 2;
                const scalar* from = added + (((image * (i64)around.d + az) * around.h + ay) * around.w + ax) * CO + lane % 4 * 2;
#pragma unroll
                for (int n = 0; n < NT; ++n) {
                    const u32 more = added ? *reinterpret_cast<const u32*>(from + n * 8) : 0;
                    *reinterpret_cast<u32*>(to + n * 8) = two_bf16(sums[m][n][half * 2] + __uint_as_float(more << 16),
                                                                   sums[m][n][half * 2 + 1] + __uint_as_float(more & 0xffff0000u));
                }
            }
        }
}
#endif

#ifdef WEIGHTS
// parts [gridDim.x, CO, taps, CI]: sums over the boxes of a block of dy [voxel, CO] x [voxel + tap, CI]. The columns of the
// product, eight channels of a tap at a time, are shared by the warps, UNITS each, and by the blocks of gridDim.y.
extern "C" __global__ __launch_bounds__(WARPS * 32, 1) void weight_gradient(const scalar* x, const scalar* dy, float* parts, Sizes s,
                                                                            int images) {
    constexpr int XS = stride_of(CI), YS = stride_of(CO), NT = CI / 8, MT = (CO + 15) / 16, ROWS = 256;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ u32 places[ROWS];
    const Size3 halo = halo_of(s);
    const u32 y_bytes = ROWS * YS * 2, stage_bytes = y_bytes + (u32)volume(halo) * XS * 2;
    const u32 begin = (u32)__cvta_generic_to_shared(memory);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, taps = (int)volume(s.kernel);
    const int total = images * (int)volume(s.boxes), box_volume = (int)volume(s.box), steps = (box_volume + 15) / 16;
    const int first = (blockIdx.y * WARPS + warp) * UNITS;

    for (int r = threadIdx.x; r < ROWS; r += WARPS * 32) {
        const int v = r < box_volume ? r : 0;
        const int vx = v % s.box.w, vy = v / s.box.w % s.box.h, vz = v / (s.box.w * s.box.h);
        places[r] = ((vz * halo.h + vy) * halo.w + vx) * XS * 2;
    }
    // Two units are loaded at once, each by half of the lanes.
    u32 shifts[(UNITS + 1) / 2];
#pragma unroll
    for (int i = 0; i < UNITS; i += 2) {
        int unit = first + i + (i + 1 < UNITS ? lane / 16 : 0);
        if (unit >= taps * NT) unit = 0;
        const int tap = unit / NT, tx = tap % s.kernel.w, ty = tap / s.kernel.w % s.kernel.h, tz = tap / (s.kernel.w * s.kernel.h);
        shifts[i / 2] = ((tz * halo.h + ty) * halo.w + tx) * XS * 2 + unit % NT * 16;
    }
    const auto fetch = [&](int number, int stage) {
        if (number < total) {
            int image;
            const Size3 at = box_at(s, number, image);
            const u32 to = begin + stage * stage_bytes;
            const scalar* gradients = dy + image * volume(s.out) * CO;
            for (int i = threadIdx.x; i < steps * 16 * (CO / 8); i += WARPS * 32) {
                const int r = i / (CO / 8), piece = i % (CO / 8);
                const int vx = at.w + r % s.box.w, vy = at.h + r / s.box.w % s.box.h, vz = at.d + r / (s.box.w * s.box.h);
                const bool here = r < box_volume && vx < s.out.w && vy < s.out.h && vz < s.out.d;
                const scalar* from = gradients + (((i64)vz * s.out.h + vy) * s.out.w + vx) * CO + piece * 8;
                copy16(to + (r * YS + piece * 8) * 2, here ? from : dy, here);
            }
            fetch_box<CI>(to + y_bytes, x + image * volume(s.in) * CI, s.in,
                          {at.d - s.padding.d, at.h - s.padding.h, at.w - s.padding.w}, halo);
        }
        end_group();
    };

    float sums[UNITS][MT][4] = {};
    // Voxels are the rows in shared memory, and the columns of the first factor.
    const u32 lane_y = ((lane / 16 * 8 + lane % 8) * YS + lane / 8 % 2 * 8) * 2, lane_y8 = lane % 16 * YS * 2;
    fetch(blockIdx.x, 0);
    int stage = 0;
    for (int number = blockIdx.x; number < total; number += gridDim.x, stage ^= 1) {
        wait_for_groups<0>();
        __syncthreads();
        fetch(number + gridDim.x, stage ^ 1);
        const u32 ys = begin + stage * stage_bytes, xs = ys + y_bytes;
        for (int step = 0; step < steps; ++step) {
            u32 a[MT][4];
            const u32 row = xs + places[step * 16 + lane % 16], from = ys + step * 16 * YS * 2;
#pragma unroll
            for (int m = 0; m < MT; ++m) {
                if (m * 16 + 16 <= CO) {
                    load_matrices<true>(a[m], from + m * 32 + lane_y);
                } else {
                    u32 low[2];
                    load_matrices<true>(low, from + m * 32 + lane_y8);
                    a[m][0] = low[0], a[m][1] = 0, a[m][2] = low[1], a[m][3] = 0;
                }
            }
#pragma unroll
            for (int i = 0; i < UNITS; i += 2) {
                u32 b[4];
                if (i + 1 < UNITS)
                    load_matrices<true>(b, row + shifts[i / 2]);
                else
                    load_matrices<true>(reinterpret_cast<u32(&)[2]>(b), row + shifts[i / 2]);
#pragma unroll
                for (int j = i; j < i + 2 && j < UNITS; ++j)
#pragma unroll
                    for (int m = 0; m < MT; ++m) multiply(sums[j][m], a[m], b[(j - i) * 2], b[(j - i) * 2 + 1]);
            }
        }
    }

    parts += (i64)blockIdx.x * CO * taps * CI;
#pragma unroll
    for (int i = 0; i < UNITS; ++i) {
        const int unit = first + i;
        if (unit >= taps * NT) break;
#pragma unroll
        for (int m = 0; m < MT; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int o = m * 16 + lane / 4 + half * 8;
                if (o < CO)
                    *reinterpret_cast<float2*>(parts + ((i64)o * taps + unit / NT) * CI + unit % NT * 8 + lane % 4 * 2) =
                        make_float2(sums[i][m][half * 2], sums[i][m][half * 2 + 1]);
            }
    }
}

// dw [count] = the sum of parts [number, count].
extern "C" __global__ void add_parts(const float* parts, scalar* dw, int number, int count) {
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2; i < count; i += gridDim.x * blockDim.x * 2) {
        float2 sum = make_float2(0, 0);
#pragma unroll 8
        for (int k = 0; k < number; ++k) {
            const float2 part = *reinterpret_cast<const float2*>(parts + (i64)k * count + i);
            sum.x += part.x, sum.y += part.y;
        }
        *reinterpret_cast<u32*>(dw + i) = two_bf16(sum.x, sum.y);
    }
}
#endif

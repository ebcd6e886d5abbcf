// Feature maps with channels fastest, [b, d, h, w, CP]: middles, joins of several scales, and the ways down and up of a U-Net.

struct Voxel3 {
    index image;
    int d, h, w;
};

__device__ __forceinline__ Voxel3 voxel_of(index place, int D, int H, int W) {
    const int w = (int)(place % (index)W);
    place /= (index)W;
    const int h = (int)(place % (index)H);
    place /= (index)H;
    return {place / (index)D, (int)(place % (index)D), h, w};
}

__device__ __forceinline__ i64 place_of(i64 image, int d, int h, int w, int D, int H, int W) {
    return ((image * D + d) * H + h) * W + w;
}

#define FOR_EACH(i, count) \
    for (index i = (index)blockIdx.x * blockDim.x + threadIdx.x; i < (index)(count); i += (index)gridDim.x * blockDim.x)

struct Size3 {
    int d, h, w;
};

// y += the middle of x, both with CP channels; y is [b, inner], x [b, outer].
extern "C" __global__ void add_middle(scalar* y, const scalar* x, i64 voxels, int CP, Size3 outer, Size3 inner) {
    const int lanes = CP / 8;
    FOR_EACH(i, voxels * lanes) {
        const index voxel = i / (index)lanes;
        const int channel = (int)(i % (index)lanes) * 8;
        const Voxel3 at = voxel_of(voxel, inner.d, inner.h, inner.w);
        const i64 from = place_of(at.image, at.d + (outer.d - inner.d) / 2, at.h + (outer.h - inner.h) / 2,
                                  at.w + (outer.w - inner.w) / 2, outer.d, outer.h, outer.w);
        float a[8], b[8];
        load8(y + (i64)voxel * CP + channel, a);
        load8(x + from * CP + channel, b);
#pragma unroll
        for (int k = 0; k < 8; ++k) a[k] += b[k];
        store8(y + (i64)voxel * CP + channel, a);
    }
}

// ---- Joins. One path: its channels, every voxel repeated `scale` times, cut by `start`, at `first` in the result. ----

struct Path {
    int d, h, w, channels, CP, first;
    Size3 scale, start;
};

// Channels that a thread moves at once: two where all numbers of channels are even.
#ifndef VECTOR
#define VECTOR 1
#endif

#if VECTOR == 2 && defined(BF16)
typedef u32 piece;
#elif VECTOR == 2
typedef float2 piece;
#else
typedef scalar piece;
#endif

// A path's share of the result [b, D, H, W, OUT]; channels from `end` on are cleared by the last path.
extern "C" __global__ void join(scalar* result, const scalar* x, Path p, i64 voxels, Size3 size, int OUT, int end) {
    const int written = (p.first + p.channels == end ? OUT - p.first : p.channels) / VECTOR;
    FOR_EACH(i, voxels * written) {
        const index voxel = i / (index)written;
        const int channel = (int)(i % (index)written) * VECTOR;
        piece value = {};
        if (channel < p.channels) {
            const Voxel3 at = voxel_of(voxel, size.d, size.h, size.w);
            const i64 from = place_of(at.image, (at.d + p.start.d) / p.scale.d, (at.h + p.start.h) / p.scale.h,
                                      (at.w + p.start.w) / p.scale.w, p.d, p.h, p.w);
            value = *reinterpret_cast<const piece*>(x + from * p.CP + channel);
        }
        *reinterpret_cast<piece*>(result + (i64)voxel * OUT + p.first + channel) = value;
    }
}

// The gradient of a path: sums over the repetitions of each of its voxels.
extern "C" __global__ void join_gradient(const scalar* of_result, scalar* of_x, Path p, i64 voxels, Size3 size, int OUT) {
    const int pieces = p.CP / VECTOR;
    FOR_EACH(i, voxels * pieces) {
        const index voxel = i / (index)pieces;
        const int channel = (int)(i % (index)pieces) * VECTOR;
        float sum[2] = {0.0f, 0.0f};
        if (channel < p.channels) {
            const Voxel3 at = voxel_of(voxel, p.d, p.h, p.w);
            const int d = at.d * p.scale.d - p.start.d, h = at.h * p.scale.h - p.start.h, w = at.w * p.scale.w - p.start.w;
            for (int z = max(d, 0); z < min(d + p.scale.d, size.d); ++z)
                for (int y = max(h, 0); y < min(h + p.scale.h, size.h); ++y)
                    for (int x = max(w, 0); x < min(w + p.scale.w, size.w); ++x) {
                        const scalar* from =
                            of_result + place_of(at.image, z, y, x, size.d, size.h, size.w) * OUT + p.first + channel;
                        const piece value = *reinterpret_cast<const piece*>(from);
                        const scalar* parts = reinterpret_cast<const scalar*>(&value);
                        for (int k = 0; k < VECTOR; ++k) sum[k] += load1(parts + k);
                    }
        }
        scalar* to = of_x + (i64)voxel * p.CP + channel;
#ifdef BF16
        const u32 both = two_bf16(sum[0], sum[1]);
#if VECTOR == 2
        *reinterpret_cast<u32*>(to) = both;
#else
        *to = (scalar)both;
#endif
#else
        for (int k = 0; k < VECTOR; ++k) to[k] = sum[k];
#endif
    }
}

// ---- The way down: the mean of blocks of `stride`. ----

extern "C" __global__ void pool(const scalar* x, scalar* y, i64 voxels, int CP, Size3 coarse, Size3 stride) {
    const int lanes = CP / 8;
    const Size3 fine = {coarse.d * stride.d, coarse.h * stride.h, coarse.w * stride.w};
    const float share = 1.0f / (stride.d * stride.h * stride.w);
    FOR_EACH(i, voxels * lanes) {
        const index voxel = i / (index)lanes;
        const int channel = (int)(i % (index)lanes) * 8;
        const Voxel3 at = voxel_of(voxel, coarse.d, coarse.h, coarse.w);
        float sum[8] = {};
        for (int d = 0; d < stride.d; ++d)
            for (int h = 0; h < stride.h; ++h)
                for (int w = 0; w < stride.w; ++w) {
                    float v[8];
                    load8(x + place_of(at.image, at.d * stride.d + d, at.h * stride.h + h, at.w * stride.w + w, fine.d,
                                       fine.h, fine.w) * CP + channel, v);
#pragma unroll
                    for (int k = 0; k < 8; ++k) sum[k] += v[k];
                }
#pragma unroll
        for (int k = 0; k < 8; ++k) sum[k] *= share;
        store8(y + (i64)voxel * CP + channel, sum);
    }
}

// The gradient of the finer map: its share of the pooled one's, plus that of the map itself, whose rows are `skip_row` apart.
extern "C" __global__ void pool_gradient(const scalar* of_pooled, const scalar* of_skip, i64 skip_row, scalar* dx, i64 voxels,
                                         int CP, Size3 coarse, Size3 stride) {
    const int lanes = CP / 8;
    const Size3 fine = {coarse.d * stride.d, coarse.h * stride.h, coarse.w * stride.w};
    const float share = 1.0f / (stride.d * stride.h * stride.w);
    FOR_EACH(i, voxels * lanes) {
        const index voxel = i / (index)lanes;
        const int channel = (int)(i % (index)lanes) * 8;
        const Voxel3 at = voxel_of(voxel, fine.d, fine.h, fine.w);
        float v[8], more[8];
        load8(of_pooled + place_of(at.image, at.d / stride.d, at.h / stride.h, at.w / stride.w, coarse.d, coarse.h,
                                   coarse.w) * CP + channel, v);
#pragma unroll
        for (int k = 0; k < 8; ++k) v[k] *= share;
        if (of_skip) {
            load8(of_skip + (i64)voxel * skip_row + channel, more);
#pragma unroll
            for (int k = 0; k < 8; ++k) v[k] += more[k];
        }
        store8(dx + (i64)voxel * CP + channel, v);
    }
}

// ---- The way up: linear interpolation by strides of 1 or 2, beside the map of the same level. ----

struct Between {
    int low, high;
    float share;  // That of the higher one.
};

// Where voxel `at` of the finer grid lies on the coarser one, of n voxels.
__device__ __forceinline__ Between between(int at, int stride, int n) {
    if (stride == 1) return {at, at, 0.0f};
    const float place = fmaxf((at + 0.5f) * 0.5f - 0.5f, 0.0f);
    const int low = (int)place;
    return {low, min(low + 1, n - 1), place - low};
}

// y [b, fine, CX + CS]: x [b, coarse, CX] interpolated, then skip [b, fine, CS].
extern "C" __global__ void upsample(const scalar* x, const scalar* skip, scalar* y, i64 voxels, int CX, int CS, Size3 coarse,
                                  Size3 stride) {
    const int lanes = (CX + CS) / 8;
    const Size3 fine = {coarse.d * stride.d, coarse.h * stride.h, coarse.w * stride.w};
    FOR_EACH(i, voxels * lanes) {
        const index voxel = i / (index)lanes;
        const int channel = (int)(i % (index)lanes) * 8;
        scalar* to = y + (i64)voxel * (CX + CS) + channel;
        float v[8] = {};
        if (channel >= CX) {
            load8(skip + (i64)voxel * CS + channel - CX, v);
            store8(to, v);
            continue;
        }
        const Voxel3 at = voxel_of(voxel, fine.d, fine.h, fine.w);
        const Between d = between(at.d, stride.d, coarse.d), h = between(at.h, stride.h, coarse.h),
                      w = between(at.w, stride.w, coarse.w);
        for (int a = 0; a < stride.d; ++a)
            for (int b = 0; b < stride.h; ++b)
                for (int c = 0; c < stride.w; ++c) {
                    const float share = (a ? d.share : 1.0f - d.share) * (b ? h.share : 1.0f - h.share) *
                                        (c ? w.share : 1.0f - w.share);
                    float more[8];
                    load8(x + place_of(at.image, a ? d.high : d.low, b ? h.high : h.low, c ? w.high : w.low, coarse.d,
                                       coarse.h, coarse.w) * CX + channel, more);
#pragma unroll
                    for (int k = 0; k < 8; ++k) v[k] += share * more[k];
                }
        store8(to, v);
    }
}

// The voxels of the finer grid that use voxel `at` of the coarser one.
__device__ __forceinline__ int2 users(int at, int stride, int n) {
    if (stride == 1) return make_int2(at, at);
    return make_int2(max(2 * at - 1, 0), min(2 * at + 2, 2 * n - 1));
}

// How much voxel `fine` uses voxel `at`.
__device__ __forceinline__ float use(int fine, int at, int stride, int n) {
    const Between b = between(fine, stride, n);
    return (b.low == at ? 1.0f - b.share : 0.0f) + (b.high == at ? b.share : 0.0f);
}

// The gradient of x.
extern "C" __global__ void upsample_gradient(const scalar* dy, scalar* dx, i64 voxels, int CX, int CS, Size3 coarse, Size3 stride) {
    const int lanes = CX / 8;
    const Size3 fine = {coarse.d * stride.d, coarse.h * stride.h, coarse.w * stride.w};
    FOR_EACH(i, voxels * lanes) {
        const index voxel = i / (index)lanes;
        const int channel = (int)(i % (index)lanes) * 8;
        const Voxel3 at = voxel_of(voxel, coarse.d, coarse.h, coarse.w);
        const int2 ds = users(at.d, stride.d, coarse.d), hs = users(at.h, stride.h, coarse.h), ws = users(at.w, stride.w, coarse.w);
        float sum[8] = {};
        for (int d = ds.x; d <= ds.y; ++d) {
            const float share_d = use(d, at.d, stride.d, coarse.d);
            for (int h = hs.x; h <= hs.y; ++h) {
                const float share_h = share_d * use(h, at.h, stride.h, coarse.h);
                for (int w = ws.x; w <= ws.y; ++w) {
                    const float share = share_h * use(w, at.w, stride.w, coarse.w);
                    float v[8];
                    load8(dy + place_of(at.image, d, h, w, fine.d, fine.h, fine.w) * (CX + CS) + channel, v);
#pragma unroll
                    for (int k = 0; k < 8; ++k) sum[k] += share * v[k];
                }
            }
        }
        store8(dx + (i64)voxel * CX + channel, sum);
    }
}

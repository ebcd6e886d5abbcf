// What the kernels share: number types, vectors of eight values, and the random numbers of the project.
//
// Compiled when they are first needed, for the GPU at hand, by NVRTC: no header of CUDA is used.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// Numbers of voxels and places in maps, whose divisions are dear in 64 bits; WIDE is for maps that need them.
#ifdef WIDE
typedef u64 index;
#else
typedef u32 index;
#endif

// ---- Eight neighboring channels in one access. BF16 chooses the type of feature maps. ----

#ifdef BF16
typedef unsigned short scalar;

__device__ __forceinline__ void load8(const scalar* p, float v[8]) {
    const uint4 w = *reinterpret_cast<const uint4*>(p);
    const u32 words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        v[2 * i] = __uint_as_float(words[i] << 16);
        v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

__device__ __forceinline__ u32 two_bf16(float low, float high) {
    u32 packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

__device__ __forceinline__ void store8(scalar* p, const float v[8]) {
    *reinterpret_cast<uint4*>(p) =
        make_uint4(two_bf16(v[0], v[1]), two_bf16(v[2], v[3]), two_bf16(v[4], v[5]), two_bf16(v[6], v[7]));
}

__device__ __forceinline__ float load1(const scalar* p) { return __uint_as_float((u32)*p << 16); }
#else
typedef float scalar;

__device__ __forceinline__ void load8(const scalar* p, float v[8]) {
    const float4 a = *reinterpret_cast<const float4*>(p), b = *reinterpret_cast<const float4*>(p + 4);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

__device__ __forceinline__ void store8(scalar* p, const float v[8]) {
    *reinterpret_cast<float4*>(p) = make_float4(v[0], v[1], v[2], v[3]);
    *reinterpret_cast<float4*>(p + 4) = make_float4(v[4], v[5], v[6], v[7]);
}

__device__ __forceinline__ float load1(const scalar* p) { return *p; }
#endif

// ---- Philox4x32-10, as in ssn-core. ----

__device__ __forceinline__ uint4 philox(uint4 c, uint2 k) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const u32 high0 = __umulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
        const u32 high1 = __umulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
        c = make_uint4(high1 ^ c.y ^ k.x, low1, high0 ^ c.w ^ k.y, low0);
        k = make_uint2(k.x + 0x9E3779B9u, k.y + 0xBB67AE85u);
    }
    return c;
}

__device__ __forceinline__ uint2 key_of(i64 seed) {
    return make_uint2((u32)(u64)seed, (u32)((u64)seed >> 32));
}

// ---- Standard normal numbers by address, as in ssn-core: every product and sum is rounded by itself. ----

__device__ __forceinline__ float f32(u32 bits) { return __uint_as_float(bits); }

__device__ __forceinline__ float horner(const u32* coefficients, int count, float x) {
    float value = f32(coefficients[count - 1]);
#pragma unroll
    for (int k = count - 2; k >= 0; --k) value = __fadd_rn(__fmul_rn(value, x), f32(coefficients[k]));
    return value;
}

__device__ __forceinline__ float2 box_muller(u32 radius_word, u32 angle_word) {
    const u32 LN[8] = {0xbefffffau, 0x3eaaab73u, 0xbe800362u, 0x3e4c6d34u,
                       0xbe297db6u, 0x3e186771u, 0xbe13b9ceu, 0x3db7ea59u};
    const u32 SIN[4] = {0x3f490fdbu, 0xbda55dddu, 0x3b232f63u, 0xb816cddcu};
    const u32 COS[3] = {0xbe9de9d1u, 0x3c81d8b4u, 0xb9a75576u};
    const u32 SQRT_HALF = 0x3f3504f3u;

    const float x = __fadd_rn((float)(int)(radius_word >> 1), 0.5f);
    const u32 shifted = __float_as_uint(x) - SQRT_HALF;
    const int exponent = (int)shifted >> 23;
    const float s = __fadd_rn(f32((shifted & 0x007fffffu) + SQRT_HALF), -1.0f);
    const float ln_mantissa = __fadd_rn(s, __fmul_rn(__fmul_rn(s, s), horner(LN, 8, s)));
    const float minus_ln = __fadd_rn(__fmul_rn((float)(31 - exponent), f32(0x3f317218u)), -ln_mantissa);
    const float r = __fsqrt_rn(__fadd_rn(minus_ln, minus_ln));

    const float t = __fmul_rn((float)(int)(angle_word << 2), f32(0x30000000u));  // · 2⁻³¹
    const float square = __fmul_rn(t, t);
    const float cosine = __fadd_rn(1.0f, __fmul_rn(square, horner(COS, 3, square)));
    const float sine = __fmul_rn(t, horner(SIN, 4, square));
    const u32 quadrant = angle_word >> 30;
    const float first = quadrant & 1 ? sine : cosine, second = quadrant & 1 ? cosine : sine;
    return make_float2(__fmul_rn(r, f32(__float_as_uint(first) ^ (((quadrant + 1) & 2) << 30))),
                       __fmul_rn(r, f32(__float_as_uint(second) ^ ((quadrant & 2) << 30))));
}

// Number `index` of a stream of one draw: see `normal_tile` in ssn-core.
__device__ __forceinline__ float normal(uint2 key, u32 stream, u32 draw, u32 index) {
    const u32 tile = index >> 6, j = (index >> 4) & 3, lane = index & 15;
    const uint4 words = philox(make_uint4(tile * 16 + lane, stream, draw, 0), key);
    const float2 pair = j < 2 ? box_muller(words.x, words.y) : box_muller(words.z, words.w);
    return j & 1 ? pair.y : pair.x;
}

// ---- Sums over a warp. ----

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

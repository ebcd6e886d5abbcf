// Standard normal numbers of a stream: [draws, rows, count], of rows that are `length` numbers apart.
extern "C" __global__ void normals(const i64* seed, float* out, u32 stream, u32 first_draw, i64 rows, i64 length, i64 first,
                                   i64 count, i64 total) {
    const uint2 key = key_of(*seed);
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < total; i += (i64)gridDim.x * blockDim.x) {
        const i64 column = i % count, row = i / count % rows, draw = i / count / rows;
        out[i] = normal(key, stream, first_draw + (u32)draw, (u32)(first + row * length + column));
    }
}

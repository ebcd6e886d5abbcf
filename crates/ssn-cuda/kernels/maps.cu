// Feature maps with channels fastest, [b, d, h, w, CP]: adding the middle of a map, and joining maps of several scales.

// y += the middle of x, both with CP channels; y is [b, inner], x [b, outer].
extern "C" __global__ void add_middle(scalar* y, const scalar* x, i64 voxels, int CP, int outer_d, int outer_h, int outer_w,
                                      int inner_d, int inner_h, int inner_w) {
    const int lanes = CP / 8;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < voxels * lanes; i += (i64)gridDim.x * blockDim.x) {
        const i64 voxel = i / lanes;
        const int channel = (int)(i % lanes) * 8;
        const int w = (int)(voxel % inner_w) + (outer_w - inner_w) / 2;
        const i64 over_w = voxel / inner_w;
        const int h = (int)(over_w % inner_h) + (outer_h - inner_h) / 2;
        const i64 over_h = over_w / inner_h;
        const int d = (int)(over_h % inner_d) + (outer_d - inner_d) / 2;
        const i64 image = over_h / inner_d;
        float a[8], b[8];
        load8(y + voxel * CP + channel, a);
        load8(x + (((image * outer_d + d) * outer_h + h) * outer_w + w) * CP + channel, b);
#pragma unroll
        for (int k = 0; k < 8; ++k) a[k] += b[k];
        store8(y + voxel * CP + channel, a);
    }
}

// One path of a join: its channels, every voxel repeated `scale` times along each axis, cut by `start`, at `first` in the result.
struct Path {
    int d, h, w, channels, CP, first;
    int scale_d, scale_h, scale_w, start_d, start_h, start_w;
};

// A path's share of the result [b, D, H, W, OUT]; channels from `end` on are cleared by the last path.
extern "C" __global__ void join(scalar* result, const scalar* x, Path p, i64 voxels, int D, int H, int W, int OUT, int end) {
    const int written = p.first + p.channels == end ? OUT - p.first : p.channels;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < voxels * written; i += (i64)gridDim.x * blockDim.x) {
        const i64 voxel = i / written;
        const int channel = (int)(i % written);
        scalar value = 0;
        if (channel < p.channels) {
            const int w = ((int)(voxel % W) + p.start_w) / p.scale_w;
            const i64 over_w = voxel / W;
            const int h = ((int)(over_w % H) + p.start_h) / p.scale_h;
            const i64 over_h = over_w / H;
            const int d = ((int)(over_h % D) + p.start_d) / p.scale_d;
            const i64 image = over_h / D;
            value = x[(((image * p.d + d) * p.h + h) * p.w + w) * p.CP + channel];
        }
        result[voxel * OUT + p.first + channel] = value;
    }
}

// The gradient of a path: sums over the repetitions of each of its voxels.
extern "C" __global__ void join_gradient(const scalar* of_result, scalar* of_x, Path p, i64 voxels, int D, int H, int W, int OUT) {
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < voxels * p.CP; i += (i64)gridDim.x * blockDim.x) {
        const i64 voxel = i / p.CP;
        const int channel = (int)(i % p.CP);
        float sum = 0.0f;
        if (channel < p.channels) {
            const int w = (int)(voxel % p.w) * p.scale_w - p.start_w;
            const i64 over_w = voxel / p.w;
            const int h = (int)(over_w % p.h) * p.scale_h - p.start_h;
            const i64 over_h = over_w / p.h;
            const int d = (int)(over_h % p.d) * p.scale_d - p.start_d;
            const i64 image = over_h / p.d;
            for (int z = max(d, 0); z < min(d + p.scale_d, D); ++z)
                for (int y = max(h, 0); y < min(h + p.scale_h, H); ++y)
                    for (int x = max(w, 0); x < min(w + p.scale_w, W); ++x)
                        sum += load1(of_result + (((image * D + z) * H + y) * W + x) * OUT + p.first + channel);
        }
#ifdef BF16
        of_x[i] = (scalar)two_bf16(sum, 0.0f);
#else
        of_x[i] = sum;
#endif
    }
}

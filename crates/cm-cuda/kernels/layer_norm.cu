// Layer normalisation, and rows of length 1: one warp a row.

// normal = (x - mean) / deviation and y = gain normal + bias.
KERNEL(layer_norm,
    Mat x, Mat gain, Mat bias, Mat normal, Mat deviation, Mat y, unsigned rows, unsigned columns,
    float epsilon) {
    after_others();
    unsigned row = FIRST >> 5, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const float* in = at(x) + (size_t)row * columns;
    float sum = 0.0f;
    for (unsigned i = lane; i < columns; i += 32) sum += in[i];
    float mean = warp_sum(sum) / (float)columns;
    float squares = 0.0f;
    for (unsigned i = lane; i < columns; i += 32) squares += (in[i] - mean) * (in[i] - mean);
    float spread = sqrtf(warp_sum(squares) / (float)columns + epsilon);
    float* centred = at(normal) + (size_t)row * columns;
    float* out = at(y) + (size_t)row * columns;
    const float *gains = at(gain), *biases = at(bias);
    for (unsigned i = lane; i < columns; i += 32) {
        float h = (in[i] - mean) / spread;
        centred[i] = h;
        out[i] = gains[i] * h + biases[i];
    }
    if (lane == 0) at(deviation)[row] = spread;
}

// With g = gain dy and h the normalised row: dx = (g - mean(g) - h mean(g h)) / deviation. Here g
// is rounded, not fused into what follows, so that g - mean(g) of a single column is exactly 0.
KERNEL(layer_norm_gradient,
    Mat dy, Mat gain, Mat normal, Mat deviation, Mat dx, unsigned rows, unsigned columns) {
    after_others();
    unsigned row = FIRST >> 5, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const float* grad = at(dy) + (size_t)row * columns;
    const float* centred = at(normal) + (size_t)row * columns;
    const float* gains = at(gain);
    float sum = 0.0f, along = 0.0f;
    for (unsigned i = lane; i < columns; i += 32) {
        float g = __fmul_rn(grad[i], gains[i]);
        sum += g;
        along += g * centred[i];
    }
    float mean = warp_sum(sum) / (float)columns, slope = warp_sum(along) / (float)columns;
    float spread = at(deviation)[row];
    float* out = at(dx) + (size_t)row * columns;
    for (unsigned i = lane; i < columns; i += 32) {
        float g = __fmul_rn(grad[i], gains[i]);
        out[i] = (g - mean - centred[i] * slope) / spread;
    }
}

// The same for rows of 32 LANE numbers or somewhat fewer, which stay in registers: all loads are
// under way together.
constexpr unsigned LANE = 16;

template <typename Each>
static __device__ __forceinline__ void each_of_lane(unsigned columns, Each each) {
#pragma unroll
    for (unsigned k = 0; k < LANE; k++) {
        unsigned i = 32 * k + (threadIdx.x & 31);
        if (i < columns) each(k, i);
    }
}

KERNEL(layer_norm_held,
    Mat x, Mat gain, Mat bias, Mat normal, Mat deviation, Mat y, unsigned rows, unsigned columns,
    float epsilon) {
    after_others();
    unsigned row = FIRST >> 5, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const float* in = at(x) + (size_t)row * columns;
    float* centred = at(normal) + (size_t)row * columns;
    float* out = at(y) + (size_t)row * columns;
    const float *gains = at(gain), *biases = at(bias);
    float own[LANE], g[LANE], b[LANE];
    each_of_lane(columns, [&](unsigned k, unsigned i) {
        own[k] = in[i], g[k] = gains[i], b[k] = biases[i];
    });
    float sum = 0.0f, squares = 0.0f;
    each_of_lane(columns, [&](unsigned k, unsigned) { sum += own[k]; });
    float mean = warp_sum(sum) / (float)columns;
    each_of_lane(columns, [&](unsigned k, unsigned) {
        squares += (own[k] - mean) * (own[k] - mean);
    });
    float spread = sqrtf(warp_sum(squares) / (float)columns + epsilon);
    each_of_lane(columns, [&](unsigned k, unsigned i) {
        float h = (own[k] - mean) / spread;
        centred[i] = h;
        out[i] = g[k] * h + b[k];
    });
    if (lane == 0) at(deviation)[row] = spread;
}

KERNEL(layer_norm_gradient_held,
    Mat dy, Mat gain, Mat normal, Mat deviation, Mat dx, unsigned rows, unsigned columns) {
    after_others();
    unsigned row = FIRST >> 5;
    if (row >= rows) return;
    const float* grad = at(dy) + (size_t)row * columns;
    const float* centred = at(normal) + (size_t)row * columns;
    const float* gains = at(gain);
    float* out = at(dx) + (size_t)row * columns;
    float own[LANE], h[LANE], spread = at(deviation)[row];
    each_of_lane(columns, [&](unsigned k, unsigned i) {
        own[k] = __fmul_rn(grad[i], gains[i]), h[k] = centred[i];
    });
    float sum = 0.0f, along = 0.0f;
    each_of_lane(columns, [&](unsigned k, unsigned) {
        sum += own[k];
        along += own[k] * h[k];
    });
    float mean = warp_sum(sum) / (float)columns, slope = warp_sum(along) / (float)columns;
    each_of_lane(columns, [&](unsigned k, unsigned i) {
        out[i] = (own[k] - mean - h[k] * slope) / spread;
    });
}

// A row divided by its length plus `epsilon`, by a warp.
static __device__ __forceinline__ void normalize(
    const float* in, float* out, unsigned columns, float epsilon) {
    unsigned lane = threadIdx.x & 31;
    double squares = 0.0;
    for (unsigned i = lane; i < columns; i += 32) squares += __fmul_rn(in[i], in[i]);
    float length = sqrtf((float)warp_sum(squares)) + epsilon;
    for (unsigned i = lane; i < columns; i += 32) out[i] = in[i] / length;
}

// Its gradient, which may take the place of `grad`:
// dx = dy / (l + epsilon) - x (x . dy) / (l (l + epsilon)^2), without the second term if l = 0.
static __device__ __forceinline__ void normalize_gradient(
    const float* in, const float* grad, float* out, unsigned columns, float epsilon) {
    unsigned lane = threadIdx.x & 31;
    double squares = 0.0, along = 0.0;
    for (unsigned i = lane; i < columns; i += 32) {
        squares += __fmul_rn(in[i], in[i]);
        along += (double)grad[i] * (double)in[i];
    }
    float norm = sqrtf((float)warp_sum(squares)), length = norm + epsilon;
    float share = (float)warp_sum(along) / length / length;
    share = norm == 0.0f ? 0.0f : share / norm;
    for (unsigned i = lane; i < columns; i += 32) out[i] = grad[i] / length - share * in[i];
}

// y is x with its rows divided by their lengths, one warp a row; z, if wanted, is y with its rows
// divided by theirs.
KERNEL(l2_normalize,
    Mat x, Mat y, Mat z, unsigned rows, unsigned columns, float epsilon, float next_epsilon) {
    after_others();
    unsigned row = FIRST >> 5;
    if (row >= rows) return;
    size_t start = (size_t)row * columns;
    float *out = at(y) + start, *next = maybe(z);
    normalize(at(x) + start, out, columns, epsilon);
    if (next) normalize(out, next + start, columns, next_epsilon);
}

// dx from dy. If `before` is given, x was made of it so, and dx is its gradient.
KERNEL(l2_normalize_gradient, Mat x, Mat dy, Mat dx, Mat before, unsigned rows, unsigned columns,
    float epsilon, float epsilon_before) {
    after_others();
    unsigned row = FIRST >> 5;
    if (row >= rows) return;
    size_t start = (size_t)row * columns;
    const float* first = maybe(before);
    float* out = at(dx) + start;
    normalize_gradient(at(x) + start, at(dy) + start, out, columns, epsilon);
    if (first) normalize_gradient(first + start, out, out, columns, epsilon_before);
}

// Layer normalisation: one warp a row.

// normal = (x - mean) / deviation and y = gain normal + bias.
extern "C" __global__ void layer_norm(
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
extern "C" __global__ void layer_norm_gradient(
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

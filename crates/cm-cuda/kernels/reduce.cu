// Sums, means, maxima and log-sum-exps of groups of numbers.

enum Reduction { SUM, MEAN, MAXIMUM, LOG_SUM_EXP, COUNT_EQUAL };

// y[g] = f of the `length` numbers of group g, which lie side by side: one block a group.
KERNEL(reduce_rows, Mat x, Mat y, unsigned length, int f) {
    after_others();
    const float* in = at(x) + (size_t)blockIdx.x * length;
    float* out = at(y) + blockIdx.x;
    if (f == SUM || f == MEAN) {
        double sum = 0.0;
        for (unsigned i = threadIdx.x; i < length; i += blockDim.x) sum += in[i];
        sum = block_sum(sum);
        float total = (float)sum;
        if (threadIdx.x == 0) *out = f == SUM ? total : total / (float)length;
        return;
    }
    float largest = -INFINITE;
    for (unsigned i = threadIdx.x; i < length; i += blockDim.x) largest = larger(largest, in[i]);
    largest = block_larger(largest);
    if (f == MAXIMUM || isinf(largest)) {
        if (threadIdx.x == 0) *out = largest;
        return;
    }
    double sum = 0.0;
    for (unsigned i = threadIdx.x; i < length; i += blockDim.x) sum += softmax_exp(in[i] - largest);
    float total = (float)block_sum(sum);
    if (threadIdx.x == 0) *out = largest + logf(total);
}

// The same for groups of at most 32 numbers: one warp a group.
KERNEL(reduce_short_rows, Mat x, Mat y, unsigned groups, unsigned length, int f) {
    after_others();
    unsigned group = FIRST >> 5, lane = threadIdx.x & 31;
    if (group >= groups) return;
    bool exists = lane < length;
    float own = exists ? at(x)[(size_t)group * length + lane] : 0.0f, found;
    if (f == SUM || f == MEAN) {
        float total = (float)warp_sum((double)own);
        found = f == SUM ? total : total / (float)length;
    } else {
        float largest = found = warp_larger(exists ? own : -INFINITE);
        if (f != MAXIMUM && !isinf(largest)) {
            double term = exists ? softmax_exp(own - largest) : 0.0f;
            found = largest + logf((float)warp_sum(term));
        }
    }
    if (lane == 0) at(y)[group] = found;
}

// Blocks that reduce columns have 32 threads for each of 8 columns, which are neighbours.
constexpr int COLUMNS = 8, WARPS = 8;

// The sum over a column's threads, in each of them, always in the same order.
static __device__ __forceinline__ double column_sum(double x, double (*parts)[COLUMNS]) {
    for (int step = COLUMNS; step < 32; step <<= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
    __syncthreads();
    if ((threadIdx.x & 31) < COLUMNS) parts[threadIdx.x >> 5][threadIdx.x & 31] = x;
    __syncthreads();
    x = 0.0;
    for (int p = 0; p < WARPS; p++) x += parts[p][threadIdx.x % COLUMNS];
    return x;
}

// The largest of a column's threads (NaN if there is one), in each of them.
static __device__ __forceinline__ float column_larger(float x, double (*parts)[COLUMNS]) {
    for (int step = COLUMNS; step < 32; step <<= 1) {
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    if ((threadIdx.x & 31) < COLUMNS) parts[threadIdx.x >> 5][threadIdx.x & 31] = x;
    __syncthreads();
    for (int p = 0; p < WARPS; p++) x = larger(x, (float)parts[p][threadIdx.x % COLUMNS]);
    return x;
}

// The same for the columns of x [rows, columns].
BOUNDED_KERNEL(reduce_columns, (256), Mat x, Mat y, unsigned rows, unsigned columns, int f) {
    after_others();
    __shared__ double parts[WARPS][COLUMNS];
    unsigned part = threadIdx.x / COLUMNS, column = blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    bool inside = column < columns, is_last = part == 0 && inside;
    const float* in = at(x) + (inside ? column : 0);
    float* out = at(y) + column;
    unsigned count = inside ? rows : 0;
    if (f == SUM || f == MEAN) {
        double sum = 0.0;
        for (unsigned i = part; i < count; i += 32) sum += in[(size_t)i * columns];
        float total = (float)column_sum(sum, parts);
        if (is_last) *out = f == SUM ? total : total / (float)rows;
        return;
    }
    float largest = -INFINITE;
    for (unsigned i = part; i < count; i += 32) largest = larger(largest, in[(size_t)i * columns]);
    largest = column_larger(largest, parts);
    if (f == MAXIMUM) {
        if (is_last) *out = largest;
        return;
    }
    double sum = 0.0;
    if (isinf(largest)) count = 0;
    for (unsigned i = part; i < count; i += 32) {
        sum += softmax_exp(in[(size_t)i * columns] - largest);
    }
    float total = (float)column_sum(sum, parts);
    if (is_last) *out = isinf(largest) ? largest : largest + logf(total);
}

// The column sums of x, or of the products of x and y if y is given.
BOUNDED_KERNEL(column_sums, (256), Mat x, Mat y, Mat sums, unsigned rows, unsigned columns) {
    after_others();
    __shared__ float parts[WARPS][COLUMNS];
    unsigned part = threadIdx.x / COLUMNS, column = blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    const float *a = at(x) + column, *b = maybe(y);
    unsigned count = column < columns ? rows : 0;
    float sum = 0.0f;
    if (b) {
        b += column;
#pragma unroll 4
        for (unsigned i = part; i < count; i += 32) {
            sum += a[(size_t)i * columns] * b[(size_t)i * columns];
        }
    } else {
#pragma unroll 8
        for (unsigned i = part; i < count; i += 32) sum += a[(size_t)i * columns];
    }
    for (int step = COLUMNS; step < 32; step <<= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    if ((threadIdx.x & 31) < COLUMNS) parts[threadIdx.x >> 5][threadIdx.x & 31] = sum;
    __syncthreads();
    if (part != 0 || column >= columns) return;
    sum = 0.0f;
    for (int p = 0; p < WARPS; p++) sum += parts[p][threadIdx.x];
    at(sums)[column] = sum;
}

// How many numbers of each group equal y[group]; numbers of a group are `step` apart, the first
// ones of neighbouring groups `apart`. One warp a group.
KERNEL(count_equal,
    Mat x, Mat y, Mat counts, unsigned groups, unsigned length, unsigned apart, unsigned step) {
    after_others();
    unsigned group = FIRST >> 5;
    if (group >= groups) return;
    const float* in = at(x) + (size_t)group * apart;
    float best = at(y)[group], count = 0.0f;
    for (unsigned i = threadIdx.x & 31; i < length; i += 32) {
        count += in[(size_t)i * step] == best ? 1.0f : 0.0f;
    }
    count = warp_sum(count);
    if ((threadIdx.x & 31) == 0) at(counts)[group] = count;
}

// The gradient of a maximum or log-sum-exp. `columns` is x's; the group is the row, the column or
// the whole.
KERNEL(reduce_gradient,
    Mat x, Mat y, Mat dy, Mat counts, Mat dx, unsigned columns, unsigned count, unsigned by_row,
    unsigned by_column, int f) {
    after_others();
    const float *in = at(x), *result = at(y), *grad = at(dy), *winners = maybe(counts);
    float* out = at(dx);
    for (unsigned i = FIRST; i < count; i += THREADS) {
        unsigned row = i / columns, column = i - row * columns;
        unsigned group = row * by_row + column * by_column;
        float g = grad[group], best;
        switch (f) {
            case MAXIMUM: g = in[i] == result[group] ? g / winners[group] : 0.0f; break;
            case LOG_SUM_EXP:
                best = result[group];
                g = best == -INFINITE ? 0.0f : g * softmax_exp(in[i] - best);
                break;
        }
        out[i] = g;
    }
}

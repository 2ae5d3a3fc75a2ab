// Moving rows and columns about.

// y [rows, columns] is x [rows, width] from column `start` on, and 0 elsewhere.
KERNEL(pad_columns,
    Mat x, Mat y, unsigned count, unsigned columns, unsigned start, unsigned width) {
    after_others();
    const float* in = at(x);
    float* out = at(y);
    for (unsigned i = FIRST; i < count; i += THREADS) {
        unsigned row = i / columns, column = i - row * columns;
        bool inside = column >= start && column < start + width;
        out[i] = inside ? in[(size_t)row * width + column - start] : 0.0f;
    }
}

// y[(i + distance) mod count] = x[i].
KERNEL(rotate, Mat x, Mat y, unsigned count, unsigned distance) {
    after_others();
    const float* in = at(x);
    float* out = at(y);
    for (unsigned i = FIRST; i < count; i += THREADS) {
        unsigned target = i + distance;
        out[target >= count ? target - count : target] = in[i];
    }
}

// Truncated, at most rows - 1, and 0 for negative numbers and NaN.
static __device__ __forceinline__ unsigned row_index(float index, unsigned rows) {
    if (!(index > 0.0f)) return 0;
    return index >= (float)rows ? rows - 1 : min((unsigned)index, rows - 1);
}

KERNEL(gather, Mat x, Mat index, Mat y, unsigned rows, unsigned columns, unsigned count) {
    after_others();
    const float *in = at(x), *indices = at(index);
    float* out = at(y);
    for (unsigned i = FIRST; i < count; i += THREADS) {
        unsigned row = i / columns, column = i - row * columns;
        out[i] = in[(size_t)row_index(indices[row], rows) * columns + column];
    }
}

// One block a row of dx, which adds the rows of dy that were taken from it in their order. Each
// warp finds them among 1024 at a time.
KERNEL(gather_gradient,
    Mat dy, Mat index, Mat dx, unsigned rows, unsigned columns, unsigned taken) {
    after_others();
    const float *grad = at(dy), *indices = at(index);
    float* out = at(dx) + (size_t)blockIdx.x * columns;
    unsigned lane = threadIdx.x & 31;
    for (unsigned start = 0; start == 0 || start < taken; start += 1024) {
        // A bit for each: lane l has those of the rows from start + 32 l on.
        unsigned bits = 0;
#pragma unroll 8
        for (unsigned k = 0; k < 32; k++) {
            unsigned i = start + 32 * k + lane;
            bool is_own = i < taken && row_index(indices[i], rows) == blockIdx.x;
            unsigned found = __ballot_sync(0xffffffffu, is_own);
            if (lane == k) bits = found;
        }
        unsigned holders = __ballot_sync(0xffffffffu, bits != 0);
        for (unsigned first = 0; first < columns; first += blockDim.x) {
            unsigned column = first + threadIdx.x;
            float sum = start > 0 && column < columns ? out[column] : 0.0f;
            for (unsigned rest = holders; rest; rest &= rest - 1) {
                unsigned holder = __ffs(rest) - 1;
                unsigned found = __shfl_sync(0xffffffffu, bits, holder);
                for (; found; found &= found - 1) {
                    unsigned i = start + 32 * holder + __ffs(found) - 1;
                    if (column < columns) sum += grad[(size_t)i * columns + column];
                }
            }
            if (column < columns) out[column] = sum;
        }
    }
}

// y[j, i] = x[i, j], in tiles of 32 x 32 by blocks of 32 x 8 threads.
KERNEL(transpose, Mat x, Mat y, unsigned rows, unsigned columns) {
    after_others();
    __shared__ float tile[32][33];
    const float* in = at(x);
    float* out = at(y);
    unsigned lane = threadIdx.x & 31, part = threadIdx.x >> 5;
    unsigned tiles = (columns + 31) / 32;
    unsigned row = blockIdx.x / tiles * 32, column = blockIdx.x % tiles * 32;
    for (unsigned i = part; i < 32; i += 8) {
        if (row + i < rows && column + lane < columns) {
            tile[i][lane] = in[(size_t)(row + i) * columns + column + lane];
        }
    }
    __syncthreads();
    for (unsigned i = part; i < 32; i += 8) {
        if (column + i < columns && row + lane < rows) {
            out[(size_t)(column + i) * rows + row + lane] = tile[lane][i];
        }
    }
}

KERNEL(diagonal, Mat x, Mat y, unsigned n) {
    after_others();
    for (unsigned i = FIRST; i < n; i += THREADS) at(y)[i] = at(x)[(size_t)i * (n + 1)];
}

// dx is dy on the diagonal and 0 elsewhere.
KERNEL(diagonal_gradient, Mat dy, Mat dx, unsigned n, unsigned count) {
    after_others();
    const float* grad = at(dy);
    float* out = at(dx);
    for (unsigned i = FIRST; i < count; i += THREADS) {
        unsigned row = i / n, column = i - row * n;
        out[i] = row == column ? grad[row] : 0.0f;
    }
}

// Cross entropy of square logits against their diagonal, and its gradient:
//   sum_i (-l_ii + (log sum_j exp l_ij + log sum_j exp l_ji) / 2) / n.
// Log-sum-exps of rows or of columns may be missing; the other ones then count whole.

// Blocks have eight warps. Two of them have a row, or 32 threads each a column of eight.
constexpr unsigned ROWS = 4, COLUMNS = 8, WARPS = 8;

// log sum exp of values of which this thread has those from `first` on, `step` apart: others of the
// group have the rest, and `larger_of` and `sum_of` put together what all of them have.
template <typename Value, typename Larger, typename Sum>
static __device__ __forceinline__ float log_sum_exp(
    unsigned first, unsigned step, unsigned count, Value value, Larger larger_of, Sum sum_of) {
    // The first ones are loaded at once and kept.
    constexpr unsigned KEPT = 8;
    float kept[KEPT];
#pragma unroll
    for (unsigned q = 0; q < KEPT; q++) {
        unsigned i = first + q * step;
        kept[q] = i < count ? value(i) : -INFINITE;
    }
    float largest = -INFINITE;
#pragma unroll
    for (unsigned q = 0; q < KEPT; q++) largest = larger(largest, kept[q]);
    for (unsigned i = first + KEPT * step; i < count; i += step) {
        largest = larger(largest, value(i));
    }
    largest = larger_of(largest);
    double sum = 0.0;
    if (!isinf(largest)) {
#pragma unroll
        for (unsigned q = 0; q < KEPT; q++) sum += softmax_exp(kept[q] - largest);
        for (unsigned i = first + KEPT * step; i < count; i += step) {
            sum += softmax_exp(value(i) - largest);
        }
    }
    float total = (float)sum_of(sum);
    return isinf(largest) ? largest : largest + logf(total);
}

// The log-sum-exps of rows, then, in blocks from `column_block` on, of columns.
BOUNDED_KERNEL(info_nce_sums, (256),
    Logits logits, Mat rows, Mat columns, unsigned n, unsigned column_block) {
    after_others();
    __shared__ float largest_of[WARPS][COLUMNS];
    __shared__ double sum_of[WARPS][COLUMNS];
    Values values(logits, n);
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (blockIdx.x < column_block) {
        unsigned row = blockIdx.x * ROWS + (warp >> 1), inside = min(row, n - 1);
        float found = log_sum_exp(threadIdx.x & 63, 64, n,
            [&](unsigned j) { return values.at_place(inside, j); },
            [&](float x) {
                x = warp_larger(x);
                if (lane == 0) largest_of[warp][0] = x;
                __syncthreads();
                return larger(x, largest_of[warp ^ 1][0]);
            },
            [&](double x) {
                x = warp_sum(x);
                if (lane == 0) sum_of[warp][0] = x;
                __syncthreads();
                return x + sum_of[warp ^ 1][0];
            });
        if ((threadIdx.x & 63) == 0 && row < n) at(rows)[row] = found;
        return;
    }
    unsigned column = (blockIdx.x - column_block) * COLUMNS + lane % COLUMNS;
    unsigned inside = min(column, n - 1);
    float found = log_sum_exp(threadIdx.x / COLUMNS, 32, n,
        [&](unsigned i) { return values.at_place(i, inside); },
        [&](float x) {
            for (unsigned step = COLUMNS; step < 32; step <<= 1) {
                x = larger(x, __shfl_xor_sync(0xffffffffu, x, step));
            }
            if (lane < COLUMNS) largest_of[warp][lane] = x;
            __syncthreads();
#pragma unroll
            for (unsigned p = 0; p < WARPS; p++) x = larger(x, largest_of[p][lane % COLUMNS]);
            return x;
        },
        [&](double x) {
            for (unsigned step = COLUMNS; step < 32; step <<= 1) {
                x += __shfl_xor_sync(0xffffffffu, x, step);
            }
            if (lane < COLUMNS) sum_of[warp][lane] = x;
            __syncthreads();
            x = 0.0;
#pragma unroll
            for (unsigned p = 0; p < WARPS; p++) x += sum_of[p][lane % COLUMNS];
            return x;
        });
    if (threadIdx.x < COLUMNS && column < n) at(columns)[column] = found;
}

KERNEL(info_nce, Logits logits, Mat rows, Mat columns, Mat loss, unsigned n) {
    after_others();
    Values values(logits, n);
    const float *r = maybe(rows), *c = maybe(columns);
    float row_weight = r ? (c ? 0.5f : 1.0f) : 0.0f, column_weight = c ? (r ? 0.5f : 1.0f) : 0.0f;
    double sum = 0.0;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        double term = -(double)values.at_place(i, i);
        if (r) term += row_weight * (double)r[i];
        if (c) term += column_weight * (double)c[i];
        sum += term;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) *at(loss) = (float)(sum / (double)n);
}

KERNEL(info_nce_gradient, Logits logits, Mat rows, Mat columns, Mat dy, Mat dl, Mat scaled,
    float factor, unsigned n, unsigned count) {
    after_others();
    Slopes slopes({logits, rows, columns, dy, dl, scaled, factor}, n);
    for (unsigned place = FIRST; place < count; place += THREADS) {
        unsigned i = place / n, j = place - i * n;
        slopes.put(i, j, slopes.at_place(i, j));
    }
}

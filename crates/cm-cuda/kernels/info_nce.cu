// Cross entropy of square logits against their diagonal, and its gradient:
//   sum_i (-l_ii + (log sum_j exp l_ij + log sum_j exp l_ji) / 2) / n.
// Log-sum-exps of rows or of columns may be missing; the other ones then count whole.

// Blocks have eight warps. Two of them have a row, or all of them eight columns.
constexpr unsigned ROWS = 4, COLUMNS = 8;

// The log-sum-exps of rows, then, in blocks from `column_block` on, of columns: first those of
// parts, which other kernels may make as well.
BOUNDED_KERNEL(info_nce_sums, (256),
    Logits logits, Mat rows, Mat columns, unsigned n, unsigned column_block) {
    after_others();
    extern __shared__ float of_parts[];
    Values values(logits, n);
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    bool is_row = blockIdx.x < column_block;
    unsigned parts = is_row ? (n + PART_COLUMNS - 1) / PART_COLUMNS
                            : (n + PART_ROWS - 1) / PART_ROWS;
    if (is_row) {
        unsigned own = warp >> 1, row = min(blockIdx.x * ROWS + own, n - 1);
        for (unsigned start = 0; start < parts; start += 16) {
            unsigned part = start + threadIdx.x % 64 / 4, j = part * PART_COLUMNS;
            float found = sum_of_row_part<1>(lane % 4, min(n - min(n, j), PART_COLUMNS),
                [&](unsigned k) { return values.at_place(row, j + k); });
            if (part < parts && lane % 4 == 0) of_parts[own * parts + part] = found;
        }
    } else {
        unsigned own = lane % COLUMNS;
        unsigned column = min((blockIdx.x - column_block) * COLUMNS + own, n - 1);
        for (unsigned part = warp; part < parts; part += 8) {
            unsigned i = part * PART_ROWS;
            float found = sum_of_column_part<COLUMNS>(lane / COLUMNS, min(n - i, PART_ROWS),
                [&](unsigned k) { return values.at_place(i + k, column); });
            if (lane < COLUMNS) of_parts[own * parts + part] = found;
        }
    }
    __syncthreads();
    if (warp > 0) return;
    unsigned own = lane / 4, count = own < (is_row ? ROWS : COLUMNS) ? parts : 0;
    float found = sum_of_parts(count, [&](unsigned p) { return of_parts[own * parts + p]; });
    unsigned place = is_row ? blockIdx.x * ROWS + own : (blockIdx.x - column_block) * COLUMNS + own;
    if (count > 0 && lane % 4 == 0 && place < n) at(is_row ? rows : columns)[place] = found;
}

KERNEL(info_nce, Logits logits, Mat rows, Mat columns, Mat loss, unsigned n, unsigned row_parts,
    unsigned column_parts) {
    after_others();
    Values values(logits, n);
    const float *r = maybe(rows), *c = maybe(columns);
    float row_weight = r ? (c ? 0.5f : 1.0f) : 0.0f, column_weight = c ? (r ? 0.5f : 1.0f) : 0.0f;
    auto of = [&](const float* sums, unsigned i, unsigned parts) {
        return sum_of_parts(
            sums && i < n ? parts : 0, [&](unsigned p) { return sums[(size_t)p * n + i]; });
    };
    double sum = 0.0;
    for (unsigned start = 0; start < n; start += blockDim.x / 4) {
        unsigned i = start + threadIdx.x / 4;
        float row = of(r, i, row_parts), column = of(c, i, column_parts);
        if (i >= n || threadIdx.x % 4 != 0) continue;
        double term = -(double)values.at_place(i, i);
        if (r) term += row_weight * (double)row;
        if (c) term += column_weight * (double)column;
        sum += term;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) *at(loss) = (float)(sum / (double)n);
}

KERNEL(info_nce_gradient, Logits logits, Mat rows, Mat columns, Mat dy, Mat dl, Mat scaled,
    float factor, unsigned n, unsigned count) {
    after_others();
    Slopes slopes({logits, rows, columns, dy, dl, scaled, factor, 1, 1}, n);
    for (unsigned place = FIRST; place < count; place += THREADS) {
        unsigned i = place / n, j = place - i * n;
        float row = slopes.rows ? slopes.rows[i] : 0.0f;
        float column = slopes.columns ? slopes.columns[j] : 0.0f;
        slopes.put(i, j, slopes.at_place(i, j, slopes.values.at_place(i, j), row, column));
    }
}

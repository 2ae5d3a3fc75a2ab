// InfoNCE's logits, their log-sum-exps and their gradient, which other kernels compute as well.

// log sum exp of values of which this thread has those from `first` on, `step` apart: others of the
// group have the rest, and `larger_of` and `sum_of` put together what all of them have. The first
// KEPT ones are loaded at once and kept.
template <unsigned KEPT, typename Real, typename Value, typename Larger, typename Sum>
static __device__ __forceinline__ float log_sum_exp(
    unsigned first, unsigned step, unsigned count, Value value, Larger larger_of, Sum sum_of) {
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
    Real sum = 0;
#pragma unroll
    for (unsigned q = 0; q < KEPT; q++) sum += softmax_exp(kept[q] - largest);
    for (unsigned i = first + KEPT * step; i < count; i += step) {
        sum += softmax_exp(value(i) - largest);
    }
    float total = (float)sum_of(sum);
    return isinf(largest) ? largest : largest + logf(total);
}

// The same by four threads of a warp that lie APART from each other; q is this one's number.
template <unsigned KEPT, unsigned APART, typename Value>
static __device__ __forceinline__ float log_sum_exp_by_four(
    unsigned q, unsigned count, Value value) {
    return log_sum_exp<KEPT, float>(q, 4, count, value,
        [](float x) {
            x = larger(x, __shfl_xor_sync(0xffffffffu, x, APART));
            return larger(x, __shfl_xor_sync(0xffffffffu, x, 2 * APART));
        },
        [](float x) {
            x += __shfl_xor_sync(0xffffffffu, x, APART);
            return x + __shfl_xor_sync(0xffffffffu, x, 2 * APART);
        });
}

// Log-sum-exps are made of those of parts of so many rows and columns, always in the same order.
constexpr unsigned PART_ROWS = 32, PART_COLUMNS = 16;

// Of up to 16 neighbours in a row, and of up to 32 in a column.
template <unsigned APART, typename Value>
static __device__ __forceinline__ float sum_of_row_part(unsigned q, unsigned count, Value value) {
    return log_sum_exp_by_four<PART_COLUMNS / 4, APART>(q, count, value);
}

template <unsigned APART, typename Value>
static __device__ __forceinline__ float sum_of_column_part(
    unsigned q, unsigned count, Value value) {
    return log_sum_exp_by_four<PART_ROWS / 4, APART>(q, count, value);
}

// Of all parts of a row or of a column, by four neighbours in a warp. One part is as it is.
template <typename Value>
static __device__ __forceinline__ float sum_of_parts(unsigned count, Value value) {
    return log_sum_exp_by_four<4, 1>(threadIdx.x % 4, count, value);
}

// Logits as a function of what they are computed of: scale x + shift + column.
struct Logits {
    Mat x, column;  // [n, n], and [1, n] or nothing
    float scale, shift;
};

static __device__ __forceinline__ float logit(
    float x, float scale, float shift, const float* column) {
    float value = __fadd_rn(__fmul_rn(scale, x), shift);
    return column ? value + *column : value;
}

struct Values {
    const float *x, *column;
    float scale, shift;
    unsigned n;

    __device__ __forceinline__ Values(const Logits& l, unsigned n)
        : x(at(l.x)), column(maybe(l.column)), scale(l.scale), shift(l.shift), n(n) {}

    __device__ __forceinline__ float at_place(unsigned i, unsigned j) const {
        return logit(x[(size_t)i * n + j], scale, shift, column ? &column[j] : nullptr);
    }
};

// What the kernel that makes x does besides: log-sum-exps of parts of rows of the logits and of
// columns, if these are wanted.
struct Sums {
    Mat column;         // [1, n] or nothing
    Mat rows, columns;  // [n / PART_COLUMNS, n] and [n / PART_ROWS, n]
    float scale, shift;
};

// Those of the DOWN x ACROSS parts of a tile at `row` and `column` of x [n, n], by eight warps.
// `values` are its numbers, LINE apart from row to row, and `added` what is added to its columns.
template <unsigned DOWN, unsigned ACROSS, unsigned LINE>
static __device__ __forceinline__ void sum_tile(const Sums& sums, const float* values,
    const float* added, unsigned row, unsigned column, unsigned n) {
    // Eight rows or columns at a time, first all rows.
    constexpr unsigned PARTS = DOWN * ACROSS, WARPS = 8;
    constexpr unsigned OF_ROWS = PARTS * PART_ROWS / 8, TASKS = OF_ROWS + PARTS * PART_COLUMNS / 8;
    unsigned lane = threadIdx.x & 31, q = lane % 4;
#pragma unroll
    for (unsigned first = 0; first < TASKS; first += WARPS) {
        unsigned task = first + (threadIdx.x >> 5);
        if (task >= TASKS) break;
        // Known to the compiler where rows take whole rounds.
        bool is_row = OF_ROWS % WARPS == 0 ? first < OF_ROWS : task < OF_ROWS;
        if (!is_row) task -= OF_ROWS;
        unsigned of_part = (is_row ? PART_ROWS : PART_COLUMNS) / 8, part = task / of_part;
        unsigned i = part / ACROSS * PART_ROWS, j = part % ACROSS * PART_COLUMNS;
        (is_row ? i : j) += task % of_part * 8 + lane / 4;
        bool exists = row + i < n && column + j < n;
        auto value = [&](unsigned i, unsigned j) {
            return logit(values[i * LINE + j], sums.scale, sums.shift, added ? added + j : nullptr);
        };
        if (is_row) {
            unsigned count = exists && sums.rows.p ? min(n - column - j, PART_COLUMNS) : 0;
            float found =
                sum_of_row_part<1>(q, count, [&](unsigned k) { return value(i, j + k); });
            size_t place = (size_t)((column + j) / PART_COLUMNS) * n + row + i;
            if (count > 0 && q == 0) at(sums.rows)[place] = found;
        } else {
            unsigned count = exists && sums.columns.p ? min(n - row - i, PART_ROWS) : 0;
            float found =
                sum_of_column_part<1>(q, count, [&](unsigned k) { return value(i + k, j); });
            size_t place = (size_t)((row + i) / PART_ROWS) * n + column + j;
            if (count > 0 && q == 0) at(sums.columns)[place] = found;
        }
    }
}

// What the gradient of the logits is computed of, and where it goes.
struct Gradient {
    Logits logits;
    Mat rows, columns;  // log-sum-exps, or nothing; in parts [parts, n]
    Mat dy;             // of the loss
    Mat dl, scaled;     // (softmax - identity) dy / n, and `factor` times that, if wanted
    float factor;
    unsigned row_parts, column_parts;
};

struct Slopes {
    Values values;
    const float *rows, *columns;  // to be put together by those who use them
    float *out, *out_scaled;
    float factor, scale, weight;

    __device__ __forceinline__ Slopes(const Gradient& g, unsigned n)
        : values(g.logits, n), rows(maybe(g.rows)), columns(maybe(g.columns)), out(maybe(g.dl)),
          out_scaled(maybe(g.scaled)), factor(g.factor), scale(*at(g.dy) / (float)n),
          weight(rows && columns ? 0.5f * scale : scale) {}

    // The slope of place (i, j), with its value and the log-sum-exps of row i and of column j.
    __device__ __forceinline__ float at_place(
        unsigned i, unsigned j, float value, float row, float column) const {
        float softmax = 0.0f;
        if (rows) softmax += softmax_exp(value - row);
        if (columns) softmax += softmax_exp(value - column);
        return weight * softmax - (i == j ? scale : 0.0f);
    }

    // Stores what is wanted of a place; the last of it. Not before all that is read has been: the
    // compiler keeps that order.
    __device__ __forceinline__ float put(unsigned i, unsigned j, float g) const {
        size_t place = (size_t)i * values.n + j;
        if (out) out[place] = g;
        if (!out_scaled) return g;
        g = __fmul_rn(factor, g);
        out_scaled[place] = g;
        return g;
    }
};

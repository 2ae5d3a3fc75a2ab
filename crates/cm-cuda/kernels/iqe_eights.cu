// IQE by pairs with groups of eight features, the usual size: everything a thread sweeps over lies
// in registers and shared memory. What it shares with other sizes is in `iqe.cuh`.

constexpr unsigned EIGHT = 8;
// Warps of a block.
constexpr unsigned WARPS = 8;
// Rows of y that a thread compares its row of x with.
constexpr unsigned OTHERS = 8;

// One group of a row in ascending order.
struct Sorted {
    float values[EIGHT];
    int features[EIGHT];

    __device__ __forceinline__ Sorted(const float* from, const float* index) {
        float4 a = *(const float4*)from, b = *(const float4*)(from + 4);
        int4 c = *(const int4*)index, d = *(const int4*)(index + 4);
        float v[EIGHT] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        int f[EIGHT] = {c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w};
#pragma unroll
        for (unsigned k = 0; k < EIGHT; k++) {
            values[k] = v[k];
            features[k] = f[k];
        }
    }
};

// Distances of 32 rows of x, a lane each, and OTHERS rows of y; warps have different groups.
// Totals, maxima and first largest groups if wanted.
BOUNDED_KERNEL(iqe_eights, (256),
    Mat values, Mat index, Mat y, Mat logit, Mat distances, Mat totals, Mat maxima, Mat args,
    unsigned n, unsigned m, Groups plain) {
    after_others();
    extern __shared__ __align__(16) float tile[];  // [groups, OTHERS, EIGHT]
    __shared__ float sums[WARPS][OTHERS][32], most[WARPS][OTHERS][32];
    __shared__ int which[WARPS][OTHERS][32], bad_x[32], bad_y[OTHERS];
    Groups groups = weighted(plain, logit);
    unsigned width = groups.count * EIGHT, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned across = (m + OTHERS - 1) / OTHERS;
    unsigned row = blockIdx.x / across * 32, column = blockIdx.x % across * OTHERS;
    unsigned i = min(row + lane, n - 1);
    if (threadIdx.x < 32) bad_x[threadIdx.x] = 0;
    if (threadIdx.x < OTHERS) bad_y[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned e = threadIdx.x * 4; e < OTHERS * width; e += 1024) {
        unsigned other = e / width, feature = e - other * width;
        const float* from = at(y) + (size_t)min(column + other, m - 1) * width + feature;
        float4 right = *(const float4*)from;
        bool fine = finite(right.x) && finite(right.y) && finite(right.z) && finite(right.w);
        if (!fine) bad_y[other] = 1;
        unsigned group = feature / EIGHT;
        *(float4*)(tile + (group * OTHERS + other) * EIGHT + feature % EIGHT) = right;
    }
    __syncthreads();
    float total[OTHERS], maximum[OTHERS];
    int arg[OTHERS];
#pragma unroll
    for (unsigned j = 0; j < OTHERS; j++) {
        total[j] = 0.0f;
        maximum[j] = -INFINITE;
        arg[j] = 0x7fffffff;
    }
    bool fine = true;
    for (unsigned group = warp; group < groups.count; group += WARPS) {
        size_t place = (size_t)i * width + group * EIGHT;
        Sorted own(at(values) + place, at(index) + place);
        const float* right = tile + group * OTHERS * EIGHT;
#pragma unroll
        for (unsigned k = 0; k < EIGHT; k++) fine &= finite(own.values[k]);
#pragma unroll
        for (unsigned j = 0; j < OTHERS; j++) {
            float reach = -INFINITE, length = 0.0f;
#pragma unroll
            for (unsigned k = 0; k < EIGHT; k++) {
                float start = fmaxf(own.values[k], reach);
                reach = fmaxf(right[j * EIGHT + own.features[k]], start);
                length += reach - start;
            }
            total[j] += length;
            if (length > maximum[j]) {
                maximum[j] = length;
                arg[j] = (int)group;
            }
        }
    }
    if (!fine) bad_x[lane] = 1;
#pragma unroll
    for (unsigned j = 0; j < OTHERS; j++) {
        sums[warp][j][lane] = total[j];
        most[warp][j][lane] = maximum[j];
        which[warp][j][lane] = arg[j];
    }
    __syncthreads();
    // A thread a pair, neighbours at neighbouring columns.
    unsigned j = threadIdx.x % OTHERS, own = threadIdx.x / OTHERS;
    if (row + own >= n || column + j >= m) return;
    float sum = 0.0f, largest = -INFINITE;
    int first = 0x7fffffff;
#pragma unroll
    for (unsigned part = 0; part < WARPS; part++) {
        sum += sums[part][j][own];
        float length = most[part][j][own];
        int group = which[part][j][own];
        if (length > largest || (length == largest && group < first)) {
            largest = length;
            first = group;
        }
    }
    size_t place = (size_t)(row + own) * m + column + j;
    bool is_bad = bad_x[own] || bad_y[j];
    at(distances)[place] = is_bad ? NOT_A_NUMBER : reduced(groups, sum, largest);
    float *t = maybe(totals), *l = maybe(maxima), *a = maybe(args);
    if (t) t[place] = sum;
    if (l) l[place] = largest;
    // None is larger than the others if all are NaN.
    if (a) a[place] = __int_as_float(min(first, (int)groups.count - 1));
}

// Calls add(k) for the left end of every piece of the union of one group's intervals: from
// own.values[k] to ends[own.features[k]].
template <typename F>
static __device__ __forceinline__ void each_piece(const Sorted& own, const float* ends, F add) {
    float reach = -INFINITE;
#pragma unroll
    for (unsigned k = 0; k < EIGHT; k++) {
        float left = own.values[k], right = ends[own.features[k]];
        if (right > left && left >= reach) add(k);
        reach = fmaxf(reach, right);
    }
}

// The same where left ends may be equal: of those that begin a piece, the one that reaches
// farthest, then the first feature.
template <typename F>
static __device__ __forceinline__ void each_tied_piece(
    const Sorted& own, const float* ends, F add) {
    float reach = -INFINITE, begin = 0.0f, farthest = 0.0f;
    int chosen = -1, feature = 0;
#pragma unroll
    for (int k = 0; k < (int)EIGHT; k++) {
        float left = own.values[k], right = ends[own.features[k]];
        bool counts = right > left, is_new = left >= reach;
        bool is_better = left == begin
            && (right > farthest || (right == farthest && own.features[k] < feature));
        if (counts && (is_new || is_better)) {
            if (is_new && chosen >= 0) add(chosen);
            chosen = k;
            begin = left;
            farthest = right;
            feature = own.features[k];
        }
        reach = fmaxf(reach, right);
    }
    if (chosen >= 0) add(chosen);
}

// The gradient of x is what falls to the left ends of pieces; that of y, what falls to the left
// ends when the intervals are reflected, [-y, -x].
//
// A block has 32 rows of one side, a lane each, and one group; its warps share the rows of the
// other side among them. `values` and `index` are those of the one side, of y with the opposite
// sign; `grad` and `args` are [n, m].
template <bool OF_X>
static __device__ __forceinline__ void piece_gradient(
    Mat values, Mat index, Mat others, Mat logit, Mat grad, Mat args, Mat out, unsigned n,
    unsigned m, const Groups& plain) {
    __shared__ __align__(16) float ends[WARPS][32 * EIGHT], weights[WARPS][32 * 33];
    Groups groups = weighted(plain, logit);
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned group = blockIdx.x % groups.count, row = blockIdx.x / groups.count * 32;
    unsigned owners = OF_X ? n : m, count = OF_X ? m : n;
    unsigned width = groups.count * EIGHT, start = group * EIGHT;
    size_t place = (size_t)min(row + lane, owners - 1) * width + start;
    Sorted own(at(values) + place, at(index) + place);
    const float *g = at(grad), *which = maybe(args);
    float sums[EIGHT] = {};
    bool tied = false;
    if (!OF_X) {
#pragma unroll
        for (unsigned k = 1; k < EIGHT; k++) tied |= own.values[k] == own.values[k - 1];
    }
    float *to = ends[warp], *weight_of = weights[warp];
    for (unsigned first = warp * 32; first < count; first += WARPS * 32) {
        const float* from = at(others) + (size_t)min(first + lane, count - 1) * width + start;
        float4 a = *(const float4*)from, b = *(const float4*)(from + 4);
        if (!OF_X) {
            a = make_float4(-a.x, -a.y, -a.z, -a.w);
            b = make_float4(-b.x, -b.y, -b.z, -b.w);
        }
        __syncwarp();
        *(float4*)(to + lane * EIGHT) = a;
        *(float4*)(to + lane * EIGHT + 4) = b;
        // Lanes are at neighbouring columns: the other side's rows for x, their own for y.
        unsigned down = OF_X ? row : first, column = (OF_X ? first : row) + lane;
#pragma unroll 16
        for (unsigned q = 0; q < 32; q++) {
            size_t pair = (size_t)(down + q) * m + column;
            bool inside = down + q < n && column < m;
            float weight = inside ? pair_weight(groups, which, pair, group, g[pair]) : 0.0f;
            weight_of[OF_X ? lane * 33 + q : q * 33 + lane] = weight;
        }
        __syncwarp();
        if (!tied) {
#pragma unroll 4
            for (unsigned j = 0; j < 32; j++) {
                float weight = weight_of[j * 33 + lane];
                each_piece(own, to + j * EIGHT, [&](unsigned k) { sums[k] += weight; });
            }
        } else {
            for (unsigned j = 0; j < 32; j++) {
                float weight = weight_of[j * 33 + lane];
                each_tied_piece(own, to + j * EIGHT, [&](int chosen) {
#pragma unroll
                    for (int k = 0; k < (int)EIGHT; k++) sums[k] += k == chosen ? weight : 0.0f;
                });
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < EIGHT; k++) to[k * 32 + lane] = sums[k];
    __syncthreads();
    // Warps add up different ends.
    if (row + lane >= owners) return;
    float sum = 0.0f;
#pragma unroll
    for (unsigned part = 0; part < WARPS; part++) sum += ends[part][warp * 32 + lane];
    int feature = __float_as_int((at(index) + place)[warp]);
    at(out)[place + feature] = OF_X ? -sum : sum;
}

BOUNDED_KERNEL(iqe_eights_x, (256),
    Mat values, Mat index, Mat y, Mat logit, Mat grad, Mat args, Mat dx, unsigned n, unsigned m,
    Groups groups) {
    after_others();
    piece_gradient<true>(values, index, y, logit, grad, args, dx, n, m, groups);
}

BOUNDED_KERNEL(iqe_eights_y, (256),
    Mat values, Mat index, Mat x, Mat logit, Mat grad, Mat args, Mat dy, unsigned n, unsigned m,
    Groups groups) {
    after_others();
    piece_gradient<false>(values, index, x, logit, grad, args, dy, n, m, groups);
}

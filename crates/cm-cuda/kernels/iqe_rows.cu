// IQE by rows with groups of at most 32 features: WIDTH lanes of a warp have one group, a feature
// each, and sort them among themselves. `iqe.cuh` says what it is.

constexpr unsigned ALL_LANES = 0xffffffffu;

// One interval of a group, in the order of the left ends.
template <int WIDTH>
struct Interval {
    float x, y;
    int feature;
    bool exists;  // there are fewer features than lanes
    float reach;  // how far the intervals before it reach

    // The lane's own feature comes in, another one goes out.
    __device__ __forceinline__ Interval(const float* left, const float* right, unsigned size) {
        int lane = threadIdx.x & (WIDTH - 1);
        bool inside = lane < (int)size;
        float own_x = inside ? left[lane] : 0.0f, own_y = inside ? right[lane] : -INFINITE;
        unsigned long long key = inside ? ordered(own_x) : ALL_LANES;
        key = key << 32 | (unsigned)lane;
#pragma unroll
        for (int run = 2; run <= WIDTH; run *= 2)
#pragma unroll
            for (int step = run / 2; step > 0; step /= 2) {
                unsigned long long other = __shfl_xor_sync(ALL_LANES, key, step, WIDTH);
                bool wants_less = ((lane & step) == 0) == ((lane & run) == 0);
                if ((other < key) == wants_less) key = other;
            }
        feature = (int)(unsigned)key;
        exists = feature < (int)size;
        x = __shfl_sync(ALL_LANES, own_x, feature, WIDTH);
        y = __shfl_sync(ALL_LANES, own_y, feature, WIDTH);
        float farthest = y;
#pragma unroll
        for (int step = 1; step < WIDTH; step *= 2) {
            float before = __shfl_up_sync(ALL_LANES, farthest, step, WIDTH);
            if (lane >= step) farthest = fmaxf(farthest, before);
        }
        reach = __shfl_up_sync(ALL_LANES, farthest, 1, WIDTH);
        if (lane == 0) reach = -INFINITE;
    }

    // What it adds to the length of the union.
    __device__ __forceinline__ float length() const {
        float start = fmaxf(x, reach);
        return exists ? fmaxf(y, start) - start : 0.0f;
    }
};

// The distances between rows, a block a row.
template <int WIDTH>
static __device__ __forceinline__ void rows(
    const float* left, const float* right, const Groups& groups, float* total, float* maximum,
    int* arg, bool* is_bad) {
    unsigned lane = threadIdx.x & (WIDTH - 1), segments = blockDim.x / WIDTH;
    for (unsigned first = 0; first < groups.count; first += segments) {
        unsigned group = first + threadIdx.x / WIDTH;
        size_t start = (size_t)min(group, groups.count - 1) * groups.size;
        Interval<WIDTH> interval(left + start, right + start, groups.size);
        *is_bad |= interval.exists && !(finite(interval.x) && finite(interval.y));
        float length = interval.length();
#pragma unroll
        for (int step = WIDTH / 2; step > 0; step /= 2) {
            length += __shfl_xor_sync(ALL_LANES, length, step, WIDTH);
        }
        if (group >= groups.count || lane != 0) continue;
        *total += length;
        if (length > *maximum) {
            *maximum = length;
            *arg = (int)group;
        }
    }
}

BOUNDED_KERNEL(iqe_rows, (256),
    Mat x, Mat y, Mat logit, Mat distances, Mat totals, Mat maxima, Mat args, Groups plain) {
    after_others();
    __shared__ int first_largest;
    Groups groups = weighted(plain, logit);
    unsigned row = blockIdx.x;
    size_t start = (size_t)row * groups.count * groups.size;
    const float *left = at(x) + start, *right = at(y) + start;
    float total = 0.0f, maximum = -INFINITE;
    int arg = 0x7fffffff;
    bool is_bad = false;
    if (threadIdx.x == 0) first_largest = arg;
    if (groups.size <= 8) {
        rows<8>(left, right, groups, &total, &maximum, &arg, &is_bad);
    } else if (groups.size <= 16) {
        rows<16>(left, right, groups, &total, &maximum, &arg, &is_bad);
    } else {
        rows<32>(left, right, groups, &total, &maximum, &arg, &is_bad);
    }
    is_bad = __syncthreads_or(is_bad);
    total = (float)block_sum((double)total);
    float largest = block_larger(maximum);
    if (maximum == largest) atomicMin(&first_largest, arg);
    __syncthreads();
    if (threadIdx.x != 0) return;
    at(distances)[row] = is_bad ? NOT_A_NUMBER : reduced(groups, total, largest);
    float *t = maybe(totals), *m = maybe(maxima), *which = maybe(args);
    if (t) t[row] = total;
    if (m) m[row] = largest;
    if (which) which[row] = __int_as_float(min(first_largest, (int)groups.count - 1));
}

// Gradients to x and y of a group, as `union_gradient` of `iqe.cu`: a piece of the union begins at
// an interval that those before it do not reach, and ends with the last one that reaches farther
// than all before.
template <int WIDTH>
static __device__ __forceinline__ void rows_gradient(
    Mat x, Mat y, Mat grad, Mat args, Mat dx, Mat dy, unsigned n, const Groups& groups) {
    unsigned place = blockIdx.x * (blockDim.x / WIDTH) + threadIdx.x / WIDTH;
    bool inside = place < n * groups.count;
    place = min(place, n * groups.count - 1);
    unsigned row = place / groups.count, group = place % groups.count;
    size_t start = (size_t)place * groups.size;
    Interval<WIDTH> interval(at(x) + start, at(y) + start, groups.size);
    float weight = pair_weight(groups, maybe(args), row, group, at(grad)[row]);
    bool counts = interval.exists && interval.y > fmaxf(interval.x, interval.reach);
    bool begins = counts && !(interval.reach > interval.x);
    unsigned lane = threadIdx.x & 31, own = lane & (WIDTH - 1);
    unsigned mask = WIDTH == 32 ? ALL_LANES : (1u << (WIDTH & 31)) - 1;
    unsigned all = __ballot_sync(ALL_LANES, counts) >> (lane - own) & mask;
    unsigned first = __ballot_sync(ALL_LANES, begins) >> (lane - own) & mask;
    unsigned later = all & ~((2u << own) - 1);
    bool ends = counts && (later == 0 || (first & (later & -later)) != 0);
    if (!inside || !interval.exists) return;
    at(dx)[start + interval.feature] = begins ? -weight : 0.0f;
    at(dy)[start + interval.feature] = ends ? weight : 0.0f;
}

BOUNDED_KERNEL(iqe_rows_gradient, (256),
    Mat x, Mat y, Mat logit, Mat grad, Mat args, Mat dx, Mat dy, unsigned n, Groups plain) {
    after_others();
    Groups groups = weighted(plain, logit);
    if (groups.size <= 8) {
        rows_gradient<8>(x, y, grad, args, dx, dy, n, groups);
    } else if (groups.size <= 16) {
        rows_gradient<16>(x, y, grad, args, dx, dy, n, groups);
    } else {
        rows_gradient<32>(x, y, grad, args, dx, dy, n, groups);
    }
}

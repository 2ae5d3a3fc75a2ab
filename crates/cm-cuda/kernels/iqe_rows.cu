// IQE by rows with groups of at most 32 features: a block has a row, each thread a group at a time,
// whose left ends it sorts in registers. `iqe.cuh` says what it is.

// As many groups as are in shared memory at a time. Their features lie an odd number apart, so that
// threads do not get into each other's way.
constexpr unsigned TOGETHER = 128;

// One group's features in the order of their left ends, SIZE of them with those that do not exist.
template <int SIZE>
struct Sorted {
    // A left end's bits, in the order of integers, above the feature's number.
    unsigned long long key[SIZE];

    __device__ __forceinline__ Sorted(const float* left, unsigned size) {
#pragma unroll
        for (int i = 0; i < SIZE; i++) {
            unsigned bits = i < (int)size ? ordered(left[i]) : 0xffffffffu;
            key[i] = (unsigned long long)bits << 32 | (unsigned)i;
        }
        // Runs twice as long each time, by Batcher's odd-even merges.
#pragma unroll
        for (int run = 1; run < SIZE; run *= 2) {
#pragma unroll
            for (int step = run; step >= 1; step /= 2) {
#pragma unroll
                for (int i = 0; i < SIZE; i++) {
                    int j = i + step, offset = step == run ? 0 : step;
                    bool is_first = i >= offset && ((i - offset) & (2 * step - 1)) < step;
                    if (is_first && j < SIZE && i / (2 * run) == j / (2 * run)) put_in_order(i, j);
                }
            }
        }
    }

    __device__ __forceinline__ void put_in_order(int i, int j) {
        unsigned long long a = key[i], b = key[j];
        key[i] = a < b ? a : b;
        key[j] = a < b ? b : a;
    }
};

// The length of the union of a group's intervals, and in `ends` a bit for each feature that a piece
// of it begins at, and for each that it ends at: as `union_gradient` of `iqe.cu`.
template <int SIZE>
static __device__ __forceinline__ float union_of(
    const float* left, const float* right, unsigned size, uint2* ends, bool* is_bad) {
    Sorted<SIZE> sorted(left, size);
    float length = 0.0f, reach = -INFINITE;
    unsigned begin = 0, end = 0, pending = 0;
#pragma unroll
    for (int i = 0; i < SIZE; i++) {
        if (i >= (int)size) break;
        unsigned feature = (unsigned)sorted.key[i];
        float x = from_ordered((unsigned)(sorted.key[i] >> 32)), y = right[feature];
        *is_bad |= !(finite(x) && finite(y));
        float start = fmaxf(x, reach);
        length += fmaxf(y, start) - start;
        if (y > start) {
            if (!(reach > x)) {
                end |= pending;
                begin |= 1u << feature;
            }
            pending = 1u << feature;
        }
        reach = fmaxf(y, reach);
    }
    *ends = make_uint2(begin, end | pending);
    return length;
}

// Brings `count` features of groups of `size` to shared memory, groups an odd number apart. Several
// loads are under way at a time.
static __device__ __forceinline__ void stage(
    float* to, const float* from, unsigned count, unsigned size) {
    unsigned apart = size | 1;
    if ((size & 3) == 0 && ((size_t)from & 15) == 0) {
        for (unsigned start = 4 * threadIdx.x; start < count; start += 16 * blockDim.x) {
            float4 x[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                unsigned i = start + 4 * e * blockDim.x;
                if (i < count) x[e] = *(const float4*)(from + i);
            }
#pragma unroll
            for (int e = 0; e < 4; e++) {
                unsigned i = start + 4 * e * blockDim.x, group = i / size;
                float* place = to + group * apart + (i - group * size);
                if (i < count) place[0] = x[e].x, place[1] = x[e].y;
                if (i < count) place[2] = x[e].z, place[3] = x[e].w;
            }
        }
        return;
    }
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
        unsigned group = i / size;
        to[group * apart + (i - group * size)] = from[i];
    }
}

BOUNDED_KERNEL(iqe_rows, (TOGETHER),
    Mat x, Mat y, Mat logit, Mat distances, Mat totals, Mat maxima, Mat args, Mat marks,
    Groups plain) {
    after_others();
    extern __shared__ float shared[];
    __shared__ int first_largest;
    Groups groups = weighted(plain, logit);
    unsigned row = blockIdx.x, size = groups.size, apart = size | 1;
    size_t start = (size_t)row * groups.count * size;
    const float *left = at(x) + start, *right = at(y) + start;
    float *shared_left = shared, *shared_right = shared + blockDim.x * apart;
    float* all_marks = maybe(marks);
    float maximum = -INFINITE;
    double total = 0.0;
    int arg = 0x7fffffff;
    bool is_bad = false;
    if (threadIdx.x == 0) first_largest = arg;
    for (unsigned first = 0; first < groups.count; first += blockDim.x) {
        unsigned here = min(blockDim.x, groups.count - first) * size;
        __syncthreads();
        stage(shared_left, left + (size_t)first * size, here, size);
        stage(shared_right, right + (size_t)first * size, here, size);
        __syncthreads();
        unsigned group = first + threadIdx.x;
        if (group >= groups.count) continue;
        const float *a = shared_left + threadIdx.x * apart, *b = shared_right + threadIdx.x * apart;
        uint2 ends;
        float length = size <= 8  ? union_of<8>(a, b, size, &ends, &is_bad)
                     : size <= 16 ? union_of<16>(a, b, size, &ends, &is_bad)
                                  : union_of<32>(a, b, size, &ends, &is_bad);
        if (all_marks) ((uint2*)all_marks)[(size_t)row * groups.count + group] = ends;
        total += length;
        if (length > maximum) {
            maximum = length;
            arg = (int)group;
        }
    }
    is_bad = __syncthreads_or(is_bad);
    float sum = (float)block_sum(total), largest = block_larger(maximum);
    if (maximum == largest) atomicMin(&first_largest, arg);
    __syncthreads();
    if (threadIdx.x != 0) return;
    at(distances)[row] = is_bad ? NOT_A_NUMBER : reduced(groups, sum, largest);
    float *t = maybe(totals), *m = maybe(maxima), *which = maybe(args);
    if (t) t[row] = sum;
    if (m) m[row] = largest;
    if (which) which[row] = __int_as_float(min(first_largest, (int)groups.count - 1));
}

// In-place updates of cells, many in one launch.

struct AdamEntry {
    Mat p, m, v, g;
    unsigned count;
    unsigned first_block;
};

struct AdamTable {
    AdamEntry entry[32];
};

struct Rule {
    float scale, rate, root;
};

// A gradient, or 0 if its square would be closer to 0 than 1e-30.
static __device__ __forceinline__ float squarable(float g) {
    return fabsf(g) < 1e-15f ? 0.0f : g;
}

static __device__ __forceinline__ float without_tiny(float x) {
    return fabsf(x) < 1e-30f ? 0.0f : x;
}

// The entry that this block works on; `first_block` ascends.
template <typename Entry>
static __device__ __forceinline__ const Entry& entry_of(const Entry* entries, unsigned count) {
    unsigned found = 0;
    for (unsigned i = 1; i < count; i++) {
        if (entries[i].first_block <= blockIdx.x) found = i;
    }
    return entries[found];
}

#define PER_BLOCK 2048

// One sum of squares a block.
extern "C" __global__ void sum_of_squares(
    AdamTable table, unsigned entries, Mat partial, unsigned partial_start) {
    after_others();
    const AdamEntry& entry = entry_of(table.entry, entries);
    const float* g = at(entry.g);
    unsigned start = (blockIdx.x - entry.first_block) * PER_BLOCK;
    unsigned end = min(start + PER_BLOCK, entry.count);
    double sum = 0.0;
    for (unsigned i = start + threadIdx.x; i < end; i += blockDim.x) {
        float x = squarable(g[i]);
        sum += (double)x * (double)x;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) at(partial)[partial_start + blockIdx.x] = (float)sum;
}

// Counts the step and works out its numbers.
extern "C" __global__ void adam_rule(
    Mat step, Mat rule, Mat partial, unsigned partials, float clip, float learning_rate,
    float decay_steps, float decay_to, float beta1, float beta2) {
    after_others();
    double squares = 0.0;
    const float* parts = maybe(partial);
    if (parts) {
        for (unsigned i = threadIdx.x; i < partials; i += blockDim.x) squares += (double)parts[i];
    }
    squares = block_sum(squares);
    if (threadIdx.x != 0) return;
    float norm = (float)sqrt(squares);
    float t = *at(step) + 1.0f;
    *at(step) = t;
    float correction1 = (float)(1.0 - pow((double)beta1, (double)t));
    float correction2 = (float)(1.0 - pow((double)beta2, (double)t));
    // Along half a period of the cosine, if it falls.
    double rate = (double)learning_rate;
    if (decay_steps > 0.0f) {
        double done = fmin(((double)t - 1.0) / (double)decay_steps, 1.0), to = (double)decay_to;
        rate *= to + (1.0 - to) * 0.5 * (1.0 + cospi(done));
    }
    float* out = at(rule);
    out[0] = parts && norm > clip ? clip / norm : 1.0f;
    out[1] = (float)rate / correction1;
    out[2] = 1.0f / sqrtf(correction2);
}

struct AdamNumbers {
    float scale, rate, root, beta1, beta2, epsilon;
};

static __device__ __forceinline__ void adam_number(
    const AdamNumbers& rule, float g, float& p, float& m, float& v) {
    float grad = squarable(rule.scale * g);
    m = without_tiny(rule.beta1 * m + (1.0f - rule.beta1) * grad);
    v = without_tiny(rule.beta2 * v + (1.0f - rule.beta2) * grad * grad);
    p -= rule.rate * m / (sqrtf(v) * rule.root + rule.epsilon);
}

static __device__ __forceinline__ bool is_aligned(const float* p) {
    return ((size_t)p & 15) == 0;
}

// Blocks of PER_BLOCK / 8 threads. Where everything is aligned, each takes two groups of four
// numbers and asks for all of them before it writes: the kernel is as fast as memory.
extern "C" __global__ void __launch_bounds__(PER_BLOCK / 8) adam(
    AdamTable table, unsigned entries, Mat rule, float beta1, float beta2, float epsilon) {
    after_others();
    const AdamEntry& entry = entry_of(table.entry, entries);
    const float *numbers = at(rule), *g = at(entry.g);
    AdamNumbers rule_of = {numbers[0], numbers[1], numbers[2], beta1, beta2, epsilon};
    float *p = at(entry.p), *m = at(entry.m), *v = at(entry.v);
    unsigned start = (blockIdx.x - entry.first_block) * PER_BLOCK;
    unsigned end = min(start + PER_BLOCK, entry.count);
    bool wide = is_aligned(g) && is_aligned(p) && is_aligned(m) && is_aligned(v);
    if (wide && end - start == PER_BLOCK) {
        unsigned first = start / 4 + threadIdx.x, second = first + PER_BLOCK / 8;
        float4 grad[2] = {((const float4*)g)[first], ((const float4*)g)[second]};
        float4 value[2] = {((const float4*)p)[first], ((const float4*)p)[second]};
        float4 mean[2] = {((const float4*)m)[first], ((const float4*)m)[second]};
        float4 square[2] = {((const float4*)v)[first], ((const float4*)v)[second]};
#pragma unroll
        for (int i = 0; i < 2; i++) {
            adam_number(rule_of, grad[i].x, value[i].x, mean[i].x, square[i].x);
            adam_number(rule_of, grad[i].y, value[i].y, mean[i].y, square[i].y);
            adam_number(rule_of, grad[i].z, value[i].z, mean[i].z, square[i].z);
            adam_number(rule_of, grad[i].w, value[i].w, mean[i].w, square[i].w);
            unsigned place = i == 0 ? first : second;
            ((float4*)p)[place] = value[i];
            ((float4*)m)[place] = mean[i];
            ((float4*)v)[place] = square[i];
        }
        return;
    }
    for (unsigned i = start + threadIdx.x; i < end; i += blockDim.x) {
        adam_number(rule_of, g[i], p[i], m[i], v[i]);
    }
}

struct PairEntry {
    Mat target, source;
    unsigned count;
    unsigned first_block;
};

struct PairTable {
    PairEntry entry[64];
};

// target = keep target + take source: gradient descent and target networks.
extern "C" __global__ void blend(PairTable table, unsigned entries, float keep, float take) {
    after_others();
    const PairEntry& entry = entry_of(table.entry, entries);
    float* target = at(entry.target);
    const float* source = at(entry.source);
    unsigned start = (blockIdx.x - entry.first_block) * PER_BLOCK;
    unsigned end = min(start + PER_BLOCK, entry.count);
    for (unsigned i = start + threadIdx.x; i < end; i += blockDim.x) {
        target[i] = __fadd_rn(__fmul_rn(keep, target[i]), __fmul_rn(take, source[i]));
    }
}

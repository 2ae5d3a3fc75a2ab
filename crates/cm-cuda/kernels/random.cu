// Draws addressed by seed, step and stream. The seeds are one 64-bit number per replica, the step
// one for all.

typedef unsigned long long Number;

static __device__ __forceinline__ Number seed_of(const Number* seeds) {
    return seeds[blockIdx.z];
}

extern "C" __global__ void draw(
    const Number* seeds, const Number* step, Mat y, unsigned count, unsigned stream, int normal) {
    after_others();
    float* out = at(y);
    unsigned blocks = (count + 3) / 4;
    for (unsigned block = FIRST; block < blocks; block += THREADS) {
        Words words = philox(seed_of(seeds), *step, stream, block);
        float four[4];
        if (normal) {
            normal_four(words, four);
        } else {
            for (int i = 0; i < 4; i++) four[i] = unit(words.w[i]);
        }
        for (int i = 0; i < 4; i++) {
            if (4 * block + i < count) out[4 * block + i] = four[i];
        }
    }
}

// One warp a row; each lane has a run of neighbouring columns.
extern "C" __global__ void categorical(
    const Number* seeds, const Number* step, Mat logits, Mat y, unsigned rows, unsigned columns,
    unsigned stream) {
    after_others();
    unsigned row = FIRST >> 5, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const float* l = at(logits) + (size_t)row * columns;
    unsigned each = (columns + 31) / 32;
    unsigned first = min(lane * each, columns), end = min(first + each, columns);
    float largest = -INFINITE;
    for (unsigned i = first; i < end; i++) largest = larger(largest, l[i]);
    largest = warp_larger(largest);
    float sum = 0.0f;
    for (unsigned i = first; i < end; i++) sum += expf(l[i] - largest);
    // What the lanes before this one have together, added in their order.
    float before = 0.0f, total = 0.0f;
    for (int other = 0; other < 32; other++) {
        float part = __shfl_sync(0xffffffffu, sum, other);
        if (other == lane) before = total;
        total += part;
    }
    Words words = philox(seed_of(seeds), *step, stream, row / 4);
    float threshold = unit(words.w[row % 4]) * total;
    bool mine = before + sum > threshold;
    unsigned lanes = __ballot_sync(0xffffffffu, mine);
    unsigned chosen_lane = lanes ? __ffs(lanes) - 1 : 32;
    if (chosen_lane == 32) {
        if (lane == 0) at(y)[row] = (float)(columns - 1);
        return;
    }
    if (lane != chosen_lane) return;
    unsigned chosen = first;
    float running = 0.0f;
    for (unsigned i = first; i < end; i++) {
        float weight = expf(l[i] - largest);
        running += weight;
        if (weight > 0.0f) chosen = i;
        if (before + running > threshold) break;
    }
    at(y)[row] = (float)chosen;
}

// Index i is the rank of word i among the first n words, the smaller position first among equals.
extern "C" __global__ void permutation(
    const Number* seeds, const Number* step, Mat y, unsigned n, unsigned stream) {
    after_others();
    __shared__ unsigned words[1024];
    unsigned position = FIRST;
    unsigned mine = philox(seed_of(seeds), *step, stream, position / 4).w[position % 4];
    unsigned rank = 0;
    for (unsigned start = 0; start < n; start += 1024) {
        __syncthreads();
        for (unsigned block = threadIdx.x; block < 256; block += blockDim.x) {
            Words four = philox(seed_of(seeds), *step, stream, start / 4 + block);
            for (int i = 0; i < 4; i++) words[4 * block + i] = four.w[i];
        }
        __syncthreads();
        unsigned end = min(1024u, n - start);
        for (unsigned i = 0; i < end; i++) {
            rank += words[i] < mine || (words[i] == mine && start + i < position) ? 1 : 0;
        }
    }
    if (position < n) at(y)[position] = (float)rank;
}

extern "C" __global__ void advance(Number* step) {
    after_others();
    *step += 1;
}

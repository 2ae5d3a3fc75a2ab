// Functions of the numbers at one place of several matrices, one after the other.

enum Op {
    LOAD, AFFINE, MAP, MAP_GRADIENT, ZIP, ZIP_RIGHT, LEFT_GRADIENT, RIGHT_GRADIENT, DIVIDE
};

// What is done to the number that a chain has come to. Other matrices are read with steps of 0
// where they are repeated.
struct Step {
    Mat x, y, out;
    unsigned x_row, x_column, y_row, y_column;
    int op, f;
    float low, high;
};

constexpr int MOST_STEPS = 12, CHAIN_THREADS = 256;

struct Chain {
    Step step[MOST_STEPS];
};

enum Pairwise { ADD, SUB, MUL, DIV, MAX, MIN };

static __device__ __forceinline__ float both(int f, float u, float v) {
    switch (f) {
        case ADD: return u + v;
        case SUB: return u - v;
        case MUL: return u * v;
        case DIV: return u / v;
        case MAX: return (u > v || isnan(u)) ? u : v;
        default: return (u < v || isnan(u)) ? u : v;
    }
}

// 1 for the winner, a half each for equals, 0 for the loser.
static __device__ __forceinline__ float share(bool wins, bool equal) {
    return (wins ? 1.0f : 0.0f) + (equal ? 0.5f : 0.0f);
}

static __device__ __forceinline__ float left_gradient(int f, float g, float u, float v) {
    switch (f) {
        case MUL: return g * v;
        case DIV: return g / v;
        case MAX: return g * share(u > v, u == v);
        case MIN: return g * share(u < v, u == v);
        default: return g;
    }
}

static __device__ __forceinline__ float right_gradient(int f, float g, float u, float v) {
    switch (f) {
        case SUB: return -g;
        case MUL: return g * u;
        case DIV: return -g * u / (v * v);
        case MAX: return g * share(v > u, u == v);
        case MIN: return g * share(v < u, u == v);
        default: return g;
    }
}

// Everything is loaded before anything is computed, so that loads are under way together.
BOUNDED_KERNEL(chain, (CHAIN_THREADS),
    Chain chain, unsigned steps, unsigned columns, unsigned count) {
    after_others();
    __shared__ float loaded[2 * MOST_STEPS][CHAIN_THREADS];
    for (unsigned i = FIRST; i < count; i += THREADS) {
        unsigned row = i / columns, column = i - row * columns;
#pragma unroll 4
        for (unsigned s = 0; s < steps; s++) {
            const Step& step = chain.step[s];
            const float *x = maybe(step.x), *y = maybe(step.y);
            if (x) loaded[2 * s][threadIdx.x] = x[row * step.x_row + column * step.x_column];
            if (y) loaded[2 * s + 1][threadIdx.x] = y[row * step.y_row + column * step.y_column];
        }
        float value = 0.0f;
#pragma unroll 1
        for (unsigned s = 0; s < steps; s++) {
            const Step& step = chain.step[s];
            float x = loaded[2 * s][threadIdx.x], y = loaded[2 * s + 1][threadIdx.x];
            switch (step.op) {
                case LOAD: value = x; break;
                case AFFINE: value = __fadd_rn(__fmul_rn(step.low, value), step.high); break;
                case MAP: value = value_of(step.f, value, step.low, step.high); break;
                case MAP_GRADIENT:
                    value = gradient_of(step.f, x, value, step.low, step.high);
                    break;
                case ZIP: value = both(step.f, value, x); break;
                case ZIP_RIGHT: value = both(step.f, x, value); break;
                case LEFT_GRADIENT: value = left_gradient(step.f, value, x, y); break;
                case RIGHT_GRADIENT: value = right_gradient(step.f, value, x, y); break;
                case DIVIDE: value = value / step.low; break;
            }
            float* out = maybe(step.out);
            if (out) out[i] = value;
        }
    }
}

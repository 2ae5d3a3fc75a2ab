// Functions of the numbers at one place of several matrices, one after the other.

enum Op {
    LOAD, AFFINE, MAP, MAP_GRADIENT, ZIP, ZIP_RIGHT, LEFT_GRADIENT, RIGHT_GRADIENT, DIVIDE,
    LEFT_ASIDE
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

// What becomes of each number, with what was loaded for it.
#define FOR_EACH(RESULT)                                                                          \
    _Pragma("unroll") for (int q = 0; q < EACH; q++) {                                            \
        float value = values[q], x = loaded[2 * s][q][threadIdx.x];                               \
        float y = loaded[2 * s + 1][q][threadIdx.x];                                              \
        values[q] = RESULT;                                                                       \
    }                                                                                             \
    break

// EACH numbers a thread, whose steps are looked up once. Everything is loaded before anything is
// computed, so that loads are under way together.
template <int EACH>
static __device__ __forceinline__ void run(
    const Chain& chain, unsigned steps, unsigned columns, unsigned count) {
    constexpr unsigned WIDTH = CHAIN_THREADS / EACH;
    __shared__ float loaded[2 * MOST_STEPS][EACH][WIDTH];
    for (unsigned start = blockIdx.x * CHAIN_THREADS + threadIdx.x; start < count;
         start += gridDim.x * CHAIN_THREADS) {
        unsigned row[EACH], column[EACH];
#pragma unroll
        for (int q = 0; q < EACH; q++) {
            // Those beyond the end take the last number's place, and are not stored.
            unsigned i = min(start + q * WIDTH, count - 1);
            row[q] = i / columns;
            column[q] = i - row[q] * columns;
        }
#pragma unroll 4
        for (unsigned s = 0; s < steps; s++) {
            const Step& step = chain.step[s];
            const float *x = maybe(step.x), *y = maybe(step.y);
#pragma unroll
            for (int q = 0; q < EACH; q++) {
                float *to_x = &loaded[2 * s][q][threadIdx.x], *to_y = to_x + EACH * WIDTH;
                if (x) *to_x = x[row[q] * step.x_row + column[q] * step.x_column];
                if (y) *to_y = y[row[q] * step.y_row + column[q] * step.y_column];
            }
        }
        float values[EACH] = {};
#pragma unroll 1
        for (unsigned s = 0; s < steps; s++) {
            const Step& step = chain.step[s];
            float low = step.low, high = step.high;
            int f = step.f;
            float* out = maybe(step.out);
            float before[EACH];
#pragma unroll
            for (int q = 0; q < EACH; q++) before[q] = values[q];
            switch (step.op) {
                case LOAD: FOR_EACH(x);
                case AFFINE: FOR_EACH(__fadd_rn(__fmul_rn(low, value), high));
                case MAP: FOR_EACH(value_of(f, value, low, high));
                case MAP_GRADIENT: FOR_EACH(gradient_of(f, x, value, low, high));
                case ZIP: FOR_EACH(both(f, value, x));
                case ZIP_RIGHT: FOR_EACH(both(f, x, value));
                case LEFT_ASIDE:
                case LEFT_GRADIENT: FOR_EACH(left_gradient(f, value, x, y));
                case RIGHT_GRADIENT: FOR_EACH(right_gradient(f, value, x, y));
                case DIVIDE: FOR_EACH(value / low);
            }
#pragma unroll
            for (int q = 0; q < EACH; q++) {
                if (out && start + q * WIDTH < count) out[start + q * WIDTH] = values[q];
                if (step.op == LEFT_ASIDE) values[q] = before[q];
            }
        }
    }
}

BOUNDED_KERNEL(chain, (CHAIN_THREADS),
    Chain chain, unsigned steps, unsigned columns, unsigned count) {
    after_others();
    run<1>(chain, steps, columns, count);
}

// For so many numbers that a device is busy.
BOUNDED_KERNEL(chain_of_many, (CHAIN_THREADS / 4),
    Chain chain, unsigned steps, unsigned columns, unsigned count) {
    after_others();
    run<4>(chain, steps, columns, count);
}

// Functions of one and two numbers, sums of gradients, constants.

KERNEL(fill, Mat y, unsigned count, float value) {
    after_others();
    float* out = at(y);
    for (unsigned i = FIRST; i < count; i += THREADS) out[i] = value;
}

KERNEL(affine, Mat x, Mat y, unsigned count, float scale, float shift) {
    after_others();
    const float* in = at(x);
    float* out = at(y);
    for (unsigned i = FIRST; i < count; i += THREADS) {
        out[i] = __fadd_rn(__fmul_rn(scale, in[i]), shift);
    }
}

KERNEL(map, Mat x, Mat y, unsigned count, int f, float low, float high) {
    after_others();
    const float* in = at(x);
    float* out = at(y);
    for (unsigned i = FIRST; i < count; i += THREADS) out[i] = value_of(f, in[i], low, high);
}

KERNEL(map_gradient, Mat x, Mat dy, Mat dx, unsigned count, int f, float low, float high) {
    after_others();
    const float *in = at(x), *grad = at(dy);
    float* out = at(dx);
    for (unsigned i = FIRST; i < count; i += THREADS) {
        out[i] = gradient_of(f, in[i], grad[i], low, high);
    }
}

// One of the matrices that a gradient is the sum of, and the elements of the sum it covers.
struct Part {
    Mat x;
    unsigned start;
    unsigned end;
};

struct Parts {
    Part part[8];
};

// The sum of at most eight matrices, each covering a run of the result, in the order given; times a
// factor if there is one. `wide`: all runs are whole quads.
KERNEL(add_parts, Mat y, Parts parts, Mat factor, unsigned parts_count, unsigned count, int wide) {
    after_others();
    const float* times = maybe(factor);
    float* out = at(y);
    if (wide) {
        for (unsigned i = 4 * FIRST; i < count; i += 4 * THREADS) {
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
            for (unsigned p = 0; p < 8; p++) {
                if (p < parts_count && i >= parts.part[p].start && i < parts.part[p].end) {
                    float4 x = *(const float4*)(at(parts.part[p].x) + (i - parts.part[p].start));
                    sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
                }
            }
            if (times) {
                float4 f = *(const float4*)(times + i);
                sum.x *= f.x, sum.y *= f.y, sum.z *= f.z, sum.w *= f.w;
            }
            *(float4*)(out + i) = sum;
        }
        return;
    }
    for (unsigned i = FIRST; i < count; i += THREADS) {
        float sum = 0.0f;
#pragma unroll
        for (unsigned p = 0; p < 8; p++) {
            if (p < parts_count && i >= parts.part[p].start && i < parts.part[p].end) {
                sum += at(parts.part[p].x)[i - parts.part[p].start];
            }
        }
        out[i] = times ? sum * times[i] : sum;
    }
}

enum Pairwise { ADD, SUB, MUL, DIV, MAX, MIN };

// 1 for the winner, a half each for equals, 0 for the loser.
static __device__ __forceinline__ float share(bool wins, bool equal) {
    return (wins ? 1.0f : 0.0f) + (equal ? 0.5f : 0.0f);
}

// z = f(x, y) with steps of 0 where an input is repeated.
KERNEL(zip,
    Mat x, Mat y, Mat z, unsigned columns, unsigned count, unsigned x_row, unsigned x_column,
    unsigned y_row, unsigned y_column, int f) {
    after_others();
    const float *a = at(x), *b = at(y);
    float* out = at(z);
    for (unsigned i = FIRST; i < count; i += THREADS) {
        unsigned row = i / columns, column = i - row * columns;
        float u = a[row * x_row + column * x_column], v = b[row * y_row + column * y_column];
        float result = 0.0f;
        switch (f) {
            case ADD: result = u + v; break;
            case SUB: result = u - v; break;
            case MUL: result = u * v; break;
            case DIV: result = u / v; break;
            case MAX: result = (u > v || isnan(u)) ? u : v; break;
            case MIN: result = (u < v || isnan(u)) ? u : v; break;
        }
        out[i] = result;
    }
}

// The gradient of the left (side 0) or right (side 1) input, before repetitions are summed.
KERNEL(zip_gradient,
    Mat dz, Mat x, Mat y, Mat d, unsigned columns, unsigned count, unsigned x_row,
    unsigned x_column, unsigned y_row, unsigned y_column, int f, int side) {
    after_others();
    const float *grad = at(dz), *a = at(x), *b = at(y);
    float* out = at(d);
    for (unsigned i = FIRST; i < count; i += THREADS) {
        unsigned row = i / columns, column = i - row * columns;
        float u = a[row * x_row + column * x_column], v = b[row * y_row + column * y_column];
        float g = grad[i];
        if (side == 0) {
            switch (f) {
                case MUL: g = g * v; break;
                case DIV: g = g / v; break;
                case MAX: g = g * share(u > v, u == v); break;
                case MIN: g = g * share(u < v, u == v); break;
            }
        } else {
            switch (f) {
                case SUB: g = -g; break;
                case MUL: g = g * u; break;
                case DIV: g = -g * u / (v * v); break;
                case MAX: g = g * share(v > u, u == v); break;
                case MIN: g = g * share(v < u, u == v); break;
            }
        }
        out[i] = g;
    }
}

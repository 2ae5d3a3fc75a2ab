// InfoNCE's logits and their gradient, which other kernels compute as well.

// Logits as a function of what they are computed of: scale x + shift + column.
struct Logits {
    Mat x, column;  // [n, n], and [1, n] or nothing
    float scale, shift;
};

struct Values {
    const float *x, *column;
    float scale, shift;
    unsigned n;

    __device__ __forceinline__ Values(const Logits& l, unsigned n)
        : x(at(l.x)), column(maybe(l.column)), scale(l.scale), shift(l.shift), n(n) {}

    __device__ __forceinline__ float at_place(unsigned i, unsigned j) const {
        float value = __fadd_rn(__fmul_rn(scale, x[(size_t)i * n + j]), shift);
        return column ? value + column[j] : value;
    }
};

// What the gradient of the logits is computed of, and where it goes.
struct Gradient {
    Logits logits;
    Mat rows, columns;  // log-sum-exps, or nothing
    Mat dy;             // of the loss
    Mat dl, scaled;     // (softmax - identity) dy / n, and `factor` times that, if wanted
    float factor;
};

struct Slopes {
    Values values;
    const float *rows, *columns;
    float *out, *out_scaled;
    float factor, scale, weight;

    __device__ __forceinline__ Slopes(const Gradient& g, unsigned n)
        : values(g.logits, n), rows(maybe(g.rows)), columns(maybe(g.columns)), out(maybe(g.dl)),
          out_scaled(maybe(g.scaled)), factor(g.factor), scale(*at(g.dy) / (float)n),
          weight(rows && columns ? 0.5f * scale : scale) {}

    __device__ __forceinline__ float at_place(unsigned i, unsigned j) const {
        float value = values.at_place(i, j), softmax = 0.0f;
        if (rows) softmax += softmax_exp(value - rows[i]);
        if (columns) softmax += softmax_exp(value - columns[j]);
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

// Log-density of a normal distribution squashed by tanh, each term in double precision.

#define LN_SQRT_TWO_PI 0.9189385332046728
#define BOUND ((double)0.999f)

static __device__ double artanh(double x) {
    return 0.5 * log((1.0 + x) / (1.0 - x));
}

// Mills' ratio P(N > x) / density(x) for x >= 0.
static __device__ double upper_tail_ratio(double x) {
    return 1.2533141373155002512 * erfcx(x * 0.70710678118654752440);
}

// ln P(N < x) and its derivative, right also where the probability is tiny.
static __device__ void log_normal_cdf(double x, double* value, double* slope) {
    double log_density = -0.5 * x * x - LN_SQRT_TWO_PI;
    *value = x > 0.0 ? log1p(-upper_tail_ratio(x) * exp(log_density))
                     : log(upper_tail_ratio(-x)) + log_density;
    *slope = exp(log_density - *value);
}

struct Term {
    double value, mean, scale, action;
};

static __device__ Term term_of(double mean, double scale, double action) {
    Term term;
    if (fabs(action) >= BOUND) {
        double sign = action > 0.0 ? 1.0 : -1.0, value, slope;
        double x = (sign * mean - artanh(BOUND)) / scale;
        log_normal_cdf(x, &value, &slope);
        term.value = value - log(1.0 - BOUND);
        term.mean = slope * sign / scale;
        term.scale = -slope * x / scale;
        term.action = 0.0;
        return term;
    }
    double z = (artanh(action) - mean) / scale, slope = 1.0 / (1.0 - action * action);
    term.value = -0.5 * z * z - log(scale) - LN_SQRT_TWO_PI + log(slope);
    term.mean = z / scale;
    term.scale = (z * z - 1.0) / scale;
    term.action = (2.0 * action - z / scale) * slope;
    return term;
}

KERNEL(density, Mat mean, Mat scale, Mat action, Mat y, unsigned rows, unsigned columns) {
    after_others();
    for (unsigned row = FIRST; row < rows; row += THREADS) {
        double sum = 0.0;
        for (unsigned i = 0; i < columns; i++) {
            size_t place = (size_t)row * columns + i;
            sum += term_of(at(mean)[place], at(scale)[place], at(action)[place]).value;
        }
        at(y)[row] = (float)sum;
    }
}

// Gradients to those of mean, scale and action that are given.
KERNEL(density_gradient,
    Mat mean, Mat scale, Mat action, Mat dy, Mat d_mean, Mat d_scale, Mat d_action,
    unsigned columns, unsigned count) {
    after_others();
    float *to_mean = maybe(d_mean), *to_scale = maybe(d_scale), *to_action = maybe(d_action);
    for (unsigned i = FIRST; i < count; i += THREADS) {
        Term term = term_of(at(mean)[i], at(scale)[i], at(action)[i]);
        double grad = at(dy)[i / columns];
        if (to_mean) to_mean[i] = (float)(term.mean * grad);
        if (to_scale) to_scale[i] = (float)(term.scale * grad);
        if (to_action) to_action[i] = (float)(term.action * grad);
    }
}

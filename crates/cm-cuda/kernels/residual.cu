// MRN and Max by rows: distances and gradients. What they share with pairs is in `residual.cuh`.

// The distances between rows: one warp a row.
KERNEL(residual_rows, Mat x, Mat y, Mat distances, unsigned n, Split split) {
    after_others();
    unsigned row = FIRST >> 5, lane = threadIdx.x & 31;
    if (row >= n) return;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    const float *u = at(x) + (size_t)row * width, *v = at(y) + (size_t)row * width;
    float total = 0.0f, bad = 0.0f;
    for (unsigned component = 0; component < split.components; component++) {
        unsigned start = component * run, middle = start + split.symmetric, end = start + run;
        float square = 0.0f, best = 0.0f;
        for (unsigned k = start + lane; k < middle; k += 32) {
            float d = u[k] - v[k];
            square = fmaf(d, d, square);
            if (!finite(u[k]) || !finite(v[k])) bad = 1.0f;
        }
        for (unsigned k = middle + lane; k < end; k += 32) {
            best = fmaxf(best, u[k] - v[k]);
            if (!finite(u[k]) || !finite(v[k])) bad = 1.0f;
        }
        if (split.symmetric > 0) {
            square = warp_sum(square) + split.offset;
            total += regular(square) ? sqrtf(square)
                                     : careful_norm(u + start, v + start, split.symmetric);
        }
        total += warp_larger(best);
    }
    bad = warp_larger(bad);
    if (lane == 0) at(distances)[row] = bad > 0.0f ? NOT_A_NUMBER : total * split.share;
}

// Gradients to x and y (each if given) of the distances between rows.
KERNEL(residual_rows_gradient, Mat x, Mat y, Mat grad, Mat dx, Mat dy, unsigned n, Split split) {
    after_others();
    unsigned row = FIRST >> 5, lane = threadIdx.x & 31;
    if (row >= n) return;
    unsigned run = split.symmetric + split.asymmetric, width = run * split.components;
    const float *u = at(x) + (size_t)row * width, *v = at(y) + (size_t)row * width;
    float *to_x = maybe(dx), *to_y = maybe(dy);
    if (to_x) to_x += (size_t)row * width;
    if (to_y) to_y += (size_t)row * width;
    float g = at(grad)[row] * split.share;
    for (unsigned component = 0; component < split.components; component++) {
        unsigned start = component * run, middle = start + split.symmetric, end = start + run;
        if (split.symmetric > 0) {
            float square = 0.0f;
            for (unsigned k = start + lane; k < middle; k += 32) {
                float d = u[k] - v[k];
                square = fmaf(d, d, square);
            }
            square = warp_sum(square) + split.offset;
            float norm = regular(square) ? sqrtf(square)
                                         : careful_norm(u + start, v + start, split.symmetric);
            float weight = g / norm;
            Scaled pair = {1.0f, false, 1.0f};
            if (!regular(norm * norm) || !finite(weight)) {
                pair = scaled(u + start, v + start, split.symmetric);
                weight = pair.norm > 0.0f ? g / pair.norm : 0.0f;
                if (pair.norm == 0.0f) pair.scale = 1.0f;
            }
            for (unsigned k = start + lane; k < middle; k += 32) {
                float term = weight * (difference(u[k], v[k], pair.half) / pair.scale);
                if (weight == 0.0f) term = 0.0f;
                if (to_x) to_x[k] = term;
                if (to_y) to_y[k] = -term;
            }
        }
        float best = 0.0f;
        int arg = 0x7fffffff;
        for (unsigned k = middle + lane; k < end; k += 32) {
            float d = u[k] - v[k];
            if (d > best) {
                best = d;
                arg = (int)k;
            }
        }
        float most = warp_larger(best);
        if (best != most || most == 0.0f) arg = 0x7fffffff;
        for (int step = 16; step > 0; step >>= 1) {
            arg = min(arg, __shfl_xor_sync(0xffffffffu, arg, step));
        }
        for (unsigned k = middle + lane; k < end; k += 32) {
            float term = (int)k == arg ? g : 0.0f;
            if (to_x) to_x[k] = term;
            if (to_y) to_y[k] = -term;
        }
    }
}

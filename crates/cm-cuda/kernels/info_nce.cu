// Cross entropy of square logits against their diagonal. Rows' and columns' log-sum-exps come from
// `reduce.cu`; either may be missing.

KERNEL(info_nce, Mat logits, Mat rows, Mat columns, Mat loss, unsigned n) {
    after_others();
    const float *l = at(logits), *r = maybe(rows), *c = maybe(columns);
    float row_weight = r ? (c ? 0.5f : 1.0f) : 0.0f, column_weight = c ? (r ? 0.5f : 1.0f) : 0.0f;
    double sum = 0.0;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        double term = -(double)l[(size_t)i * (n + 1)];
        if (r) term += row_weight * (double)r[i];
        if (c) term += column_weight * (double)c[i];
        sum += term;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) *at(loss) = (float)(sum / (double)n);
}

// dl = (softmax - identity) dy / n.
KERNEL(info_nce_gradient,
    Mat logits, Mat rows, Mat columns, Mat dy, Mat dl, unsigned n, unsigned count) {
    after_others();
    const float *l = at(logits), *r = maybe(rows), *c = maybe(columns);
    float* out = at(dl);
    float scale = *at(dy) / (float)n, weight = r && c ? 0.5f * scale : scale;
    for (unsigned i = FIRST; i < count; i += THREADS) {
        unsigned row = i / n, column = i - row * n;
        float softmax = 0.0f;
        if (r) softmax += softmax_exp(l[i] - r[row]);
        if (c) softmax += softmax_exp(l[i] - c[column]);
        out[i] = weight * softmax - (row == column ? scale : 0.0f);
    }
}

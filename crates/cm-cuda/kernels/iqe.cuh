// IQE: the length of the union of the intervals [x_i, max(x_i, y_i)] of each group, reduced over
// groups.
//
// The order of the left ends depends on x alone, so it is found once per row of x; then a pair is
// one sweep from left to right.

struct Groups {
    unsigned count;
    unsigned size;
    float total_weight;
    float maximum_weight;
    int kind;  // 0 total, 1 maximum, 2 both
};

// With a learned logit the weights are its; s = sigmoid(logit).
static __device__ __forceinline__ Groups weighted(Groups groups, Mat logit) {
    if (logit.p) {
        double s = 1.0 / (1.0 + exp(-(double)*at(logit)));
        groups.total_weight = (float)((1.0 - s) / (double)groups.count);
        groups.maximum_weight = (float)s;
    }
    return groups;
}

// A weight of 0 must not meet a length that overflowed.
static __device__ __forceinline__ float reduced(const Groups& groups, float total, float maximum) {
    if (groups.kind == 0) return groups.total_weight * total;
    if (groups.kind == 1) return maximum;
    return groups.total_weight * total + groups.maximum_weight * maximum;
}

// Maps floats to integers in the same order, NaN somewhere.
static __device__ __forceinline__ unsigned ordered(float x) {
    unsigned bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Back from there.
static __device__ __forceinline__ float from_ordered(unsigned bits) {
    return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

// The weight of one group's length in the gradient of a pair, or of rows.
static __device__ __forceinline__ float pair_weight(
    const Groups& groups, const float* args, size_t place, unsigned group, float grad) {
    bool most = groups.kind != 0 && __float_as_int(args[place]) == (int)group;
    return grad * (most ? groups.total_weight + groups.maximum_weight : groups.total_weight);
}

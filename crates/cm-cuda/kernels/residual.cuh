// MRN and Max: share * sum over components of [ |x_s - y_s| + max_i relu(x_a,i - y_a,i) ].
//
// A component owns a run of features, first its symmetric part s, then its asymmetric part a.

struct Split {
    unsigned components;
    unsigned symmetric;
    unsigned asymmetric;
    float offset;  // what each squared norm is raised by
    float share;   // one over the components
};

#define SMALLEST_SQUARE 9.8607613e-32f

// Whether a plain sum of squares can be trusted.
static __device__ __forceinline__ bool regular(float square) {
    return square >= SMALLEST_SQUARE && square <= LARGEST;
}

// |x - y| = norm * scale, twice that if `half`; `scale` is the largest difference.
struct Scaled {
    float scale;
    bool half;
    float norm;
};

static __device__ __forceinline__ float difference(float x, float y, bool half) {
    return half ? x * 0.5f - y * 0.5f : x - y;
}

static __device__ __noinline__ Scaled scaled(const float* x, const float* y, unsigned count) {
    Scaled result = {0.0f, false, 0.0f};
    for (unsigned i = 0; i < count; i++) {
        float size = fabsf(difference(x[i], y[i], false));
        if (size > result.scale) result.scale = size;
    }
    if (!finite(result.scale)) {
        result.half = true;
        result.scale = 0.0f;
        for (unsigned i = 0; i < count; i++) {
            float size = fabsf(difference(x[i], y[i], true));
            if (size > result.scale) result.scale = size;
        }
    }
    if (result.scale == 0.0f) return result;
    float square = 0.0f;
    for (unsigned i = 0; i < count; i++) {
        float ratio = difference(x[i], y[i], result.half) / result.scale;
        square += ratio * ratio;
    }
    result.norm = sqrtf(square);
    return result;
}

// |x - y| where squares overflow or underflow; exactly 0 only for x = y, NaN if a feature is not
// finite.
static __device__ __noinline__ float careful_norm(const float* x, const float* y, unsigned count) {
    Scaled s = scaled(x, y, count);
    if (s.scale == 0.0f) {
        // All differences are 0, or some are not numbers.
        float sum = 0.0f;
        for (unsigned i = 0; i < count; i++) sum += x[i] - y[i];
        return sum;
    }
    float norm = s.norm * s.scale;
    return s.half ? norm + norm : norm;
}

// Whether grad / norm would not do as the weight of a difference. Equal points weigh nothing.
static __device__ __forceinline__ bool is_special(float norm, float grad) {
    return norm != 0.0f && !(regular(norm * norm) && finite(grad / norm));
}

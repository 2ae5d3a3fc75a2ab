// Functions of one number and their derivatives; the codes are those of `ops/elementwise.rs`.

enum Function {
    IDENTITY, RELU, SILU, GELU, TANH, SIGMOID, SOFTPLUS, EXP, LOG, SQUARE, SQRT, ABS, STEP, CLAMP
};

// To two units in the last place: an exact division has branches, which would keep neighbouring
// numbers from being computed side by side.
static __device__ __forceinline__ float sigmoid(float x) {
    return __fdividef(1.0f, 1.0f + expf(-x));
}

// What SiLU multiplies its input by: 0 below -60, where the product is closer to 0 than 1e-24.
// Without a branch, for the same reason.
static __device__ __forceinline__ float silu_gate(float x) {
    float gate = sigmoid(fmaxf(x, -60.0f));
    return x < -60.0f ? 0.0f : gate;
}

static __device__ __forceinline__ float gelu_tanh(float x) {
    return tanhf(0.7978845608f * (x + 0.044715f * x * x * x));
}

static __device__ __forceinline__ float value_of(int f, float x, float low, float high) {
    switch (f) {
        case RELU: return x < 0.0f ? 0.0f : x;
        case SILU: return x * silu_gate(x);
        case GELU: return 0.5f * x * (1.0f + gelu_tanh(x));
        case TANH: return tanhf(x);
        case SIGMOID: return sigmoid(x);
        case SOFTPLUS: {
            float tail = log1pf(expf(-fabsf(x)));
            return x > 0.0f ? x + tail : tail;
        }
        case EXP: return expf(x);
        case LOG: return logf(x);
        case SQUARE: return x * x;
        case SQRT: return sqrtf(x);
        case ABS: return fabsf(x);
        case STEP: return x > 0.0f ? 1.0f : 0.0f;
        case CLAMP: return x < low ? low : (x > high ? high : x);
        default: return x;
    }
}

// dy f'(x).
static __device__ __forceinline__ float gradient_of(
    int f, float x, float dy, float low, float high) {
    switch (f) {
        case RELU: return x > 0.0f ? dy : 0.0f;
        case SILU: {
            float s = silu_gate(x);
            return dy * (s * (1.0f + x * (1.0f - s)));
        }
        case GELU: {
            float t = gelu_tanh(x);
            float inner = 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
            return dy * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner);
        }
        case TANH: {
            float y = tanhf(x);
            return dy * (1.0f - y * y);
        }
        case SIGMOID: {
            float y = sigmoid(x);
            return dy * y * (1.0f - y);
        }
        case SOFTPLUS: return dy * sigmoid(x);
        case EXP: return dy * expf(x);
        case LOG: return dy / x;
        case SQUARE: return 2.0f * dy * x;
        case SQRT: return x == 0.0f ? 0.0f : 0.5f * dy / sqrtf(x);
        case ABS: return x == 0.0f ? 0.0f : copysignf(1.0f, x) * dy;
        case STEP: return 0.0f;
        case CLAMP: return x >= low && x <= high ? dy : 0.0f;
        default: return dy;
    }
}

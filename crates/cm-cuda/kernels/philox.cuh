// Philox 4x32-10 and Box-Muller exactly as cm-random has them: single IEEE operations, no fused
// multiply-add, so every bit is the same.

struct Words {
    unsigned w[4];
};

static __device__ __forceinline__ Words philox(
    unsigned long long seed, unsigned long long step, unsigned stream, unsigned index) {
    unsigned c0 = index, c1 = stream, c2 = (unsigned)step, c3 = (unsigned)(step >> 32);
    unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned low0 = 0xd2511f53u * c0, high0 = __umulhi(0xd2511f53u, c0);
        unsigned low1 = 0xcd9e8d57u * c2, high1 = __umulhi(0xcd9e8d57u, c2);
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    Words words = {{c0, c1, c2, c3}};
    return words;
}

static __device__ __forceinline__ float unit(unsigned word) {
    return __fmul_rn((float)(word >> 8), 1.0f / 16777216.0f);
}

#define TIMES(a, b) __fmul_rn(a, b)
#define PLUS(a, b) __fadd_rn(a, b)
#define MINUS(a, b) __fsub_rn(a, b)

static __device__ __forceinline__ float natural_log(float u) {
    unsigned shifted = __float_as_uint(u) - 0x3f3504f3u;
    float exponent = (float)((int)shifted >> 23);
    float m = __uint_as_float((shifted & 0x007fffffu) + 0x3f3504f3u);
    float s = __fdiv_rn(MINUS(m, 1.0f), PLUS(m, 1.0f));
    float q = TIMES(s, s);
    float tail = PLUS(1.0f / 7.0f, TIMES(q, 1.0f / 9.0f));
    tail = PLUS(1.0f / 5.0f, TIMES(q, tail));
    tail = PLUS(1.0f / 3.0f, TIMES(q, tail));
    tail = TIMES(q, tail);
    float ln_2 = 0.693147182464599609375f;
    return PLUS(TIMES(exponent, ln_2), TIMES(2.0f, PLUS(s, TIMES(s, tail))));
}

// Two standard normal numbers from two words.
static __device__ __forceinline__ void normal_pair(
    unsigned radius_word, unsigned angle_word, float* first, float* second) {
    float u = TIMES((float)((radius_word >> 8) + 1u), 1.0f / 16777216.0f);
    float radius = __fsqrt_rn(TIMES(-2.0f, natural_log(u)));
    unsigned part = (angle_word >> 8) & 0x003fffffu;
    int odd = (int)(2u * part + 1u) - (1 << 22);
    float x = TIMES((float)odd, 0.785398185253143310546875f / 4194304.0f);
    float q = TIMES(x, x);
    float tail = MINUS(1.0f / 5040.0f, TIMES(q, 1.0f / 362880.0f));
    tail = MINUS(1.0f / 120.0f, TIMES(q, tail));
    tail = MINUS(1.0f / 6.0f, TIMES(q, tail));
    float sine = MINUS(x, TIMES(TIMES(x, q), tail));
    tail = MINUS(1.0f / 40320.0f, TIMES(q, 1.0f / 3628800.0f));
    tail = MINUS(1.0f / 720.0f, TIMES(q, tail));
    tail = MINUS(1.0f / 24.0f, TIMES(q, tail));
    tail = MINUS(0.5f, TIMES(q, tail));
    float cosine = MINUS(1.0f, TIMES(q, tail));
    bool quarter = (angle_word >> 30 & 1u) == 1u;
    float a = quarter ? -sine : cosine, b = quarter ? cosine : sine;
    float sign = angle_word >> 31 ? -1.0f : 1.0f;
    *first = TIMES(radius, TIMES(sign, a));
    *second = TIMES(radius, TIMES(sign, b));
}

// Element `e` of the normal numbers of a stream.
static __device__ __forceinline__ void normal_four(Words words, float* four) {
    normal_pair(words.w[0], words.w[1], four, four + 1);
    normal_pair(words.w[2], words.w[3], four + 2, four + 3);
}

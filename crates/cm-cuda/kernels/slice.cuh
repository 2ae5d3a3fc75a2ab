// A slice of an operand on its way from memory to where wgmma reads it: loaded into registers,
// rounded to nearest, stored with K contiguous and swizzled. PRECISION is 1 (TF32) or 2 (bf16).

constexpr int BK = 32;  // of K, a slice
#if PRECISION == 1
constexpr int LINE_BYTES = 128, CHUNK = 4, QUAD = 4, DEPTH = 8;
#else
constexpr int LINE_BYTES = 64, CHUNK = 8, QUAD = 2, DEPTH = 16;
#endif
constexpr int CHUNKS = BK / CHUNK;  // pieces of 16 bytes in a line

// Where chunk `chunk` of line `line` lies in a tile: swizzled, in bytes.
static __device__ __forceinline__ int place_of(int line, int chunk) {
#if PRECISION == 1
    return line * 128 + ((chunk ^ (line & 7)) << 4);
#else
    return line * 64 + ((chunk ^ ((line >> 1) & 3)) << 4);
#endif
}

// A tile as wgmma addresses it: groups of eight lines, swizzled over a line.
static __device__ __forceinline__ unsigned long long descriptor(unsigned address) {
    constexpr unsigned long long KIND = PRECISION == 1 ? 1 : 2;
    return (unsigned long long)((address & 0x3ffff) >> 4) | (1ull << 16)
        | ((unsigned long long)(8 * LINE_BYTES >> 4) << 32) | (KIND << 62);
}

// 16 bytes of a line from CHUNK numbers `step` apart.
static __device__ __forceinline__ uint4 rounded(const float* x, int step) {
#if PRECISION == 1
    return make_uint4(
        to_tf32(x[0]), to_tf32(x[step]), to_tf32(x[2 * step]), to_tf32(x[3 * step]));
#else
    return make_uint4(
        to_bf16_pair(x[0], x[step]), to_bf16_pair(x[2 * step], x[3 * step]),
        to_bf16_pair(x[4 * step], x[5 * step]), to_bf16_pair(x[6 * step], x[7 * step]));
#endif
}

// A slice of an operand: LINES rows of A (columns of B) by BK, of which each of COUNT threads holds
// some. K is contiguous in memory if DEEP; lines of memory are whole quads if WIDE.
template <int LINES, bool DEEP, bool WIDE, int COUNT>
struct Slice {
    static constexpr int FLOATS = LINES * BK / COUNT, BYTES = LINES * LINE_BYTES;
    static constexpr int SIZE = DEEP ? CHUNK : CHUNK * QUAD, UNITS = FLOATS / SIZE;
    static_assert(UNITS * SIZE == FLOATS, "threads share a slice evenly");

    // First line and chunk of a unit. Neighbouring threads read whole lines of the cache and write
    // to different banks.
    static __device__ __forceinline__ void unit(int i, int& line, int& chunk) {
        int u = i * COUNT + threadIdx.x;
        if (DEEP) {
            line = u / CHUNKS;
            chunk = u % CHUNKS;
        } else if (PRECISION == 1) {
            line = 4 * ((u & 1) | ((u >> 3 & 3) << 1) | ((u >> 6) << 3));
            chunk = (u >> 1 & 3) | ((u >> 5 & 1) << 2);
        } else {
            line = 2 * ((u & 1) | ((u >> 3) << 1));
            chunk = u >> 1 & 3;
        }
    }

    // Asks for the slice from `first` (a line) and `k` on; what lies outside becomes 0.
    static __device__ __forceinline__ void load(
        float* held, const float* source, int pitch, int first, int lines, int k, int depth) {
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
            int line, chunk;
            unit(i, line, chunk);
            float* to = held + i * SIZE;
            int row = first + line, at = k + chunk * CHUNK;
            if (DEEP) {
                const float* from = source + (size_t)row * pitch + at;
                if constexpr (WIDE) {
#pragma unroll
                    for (int c = 0; c < CHUNK; c += 4) {
                        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                        if (row < lines && at + c < depth) x = *(const float4*)(from + c);
                        to[c] = x.x, to[c + 1] = x.y, to[c + 2] = x.z, to[c + 3] = x.w;
                    }
                } else {
#pragma unroll
                    for (int c = 0; c < CHUNK; c++) {
                        to[c] = row < lines && at + c < depth ? from[c] : 0.0f;
                    }
                }
            } else {
#pragma unroll
                for (int c = 0; c < CHUNK; c++) {
                    const float* from = source + (size_t)(at + c) * pitch + row;
                    bool inside = at + c < depth;
                    float* four = to + c * QUAD;
                    if constexpr (WIDE) {
#if PRECISION == 1
                        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                        if (inside && row < lines) x = *(const float4*)from;
                        four[0] = x.x, four[1] = x.y, four[2] = x.z, four[3] = x.w;
#else
                        float2 x = make_float2(0.0f, 0.0f);
                        if (inside && row < lines) x = *(const float2*)from;
                        four[0] = x.x, four[1] = x.y;
#endif
                    } else {
#pragma unroll
                        for (int q = 0; q < QUAD; q++) {
                            four[q] = inside && row + q < lines ? from[q] : 0.0f;
                        }
                    }
                }
            }
        }
    }

    static __device__ __forceinline__ void store(const float* held, char* tile) {
#pragma unroll
        for (int i = 0; i < UNITS; i++) {
            int line, chunk;
            unit(i, line, chunk);
            if (DEEP) {
                *(uint4*)(tile + place_of(line, chunk)) = rounded(held + i * SIZE, 1);
            } else {
#pragma unroll
                for (int q = 0; q < QUAD; q++) {
                    uint4 x = rounded(held + i * SIZE + q, QUAD);
                    *(uint4*)(tile + place_of(line + q, chunk)) = x;
                }
            }
        }
    }

    // Adds what is held of each line over K.
    static __device__ __forceinline__ void add(const float* held, float* sums) {
#pragma unroll
        for (int i = 0; i < UNITS; i++)
#pragma unroll
            for (int q = 0; q < QUAD; q++)
#pragma unroll
                for (int c = 0; c < CHUNK; c++) sums[i * QUAD + q] += held[i * SIZE + c * QUAD + q];
    }
};

// C = epilogue(A B) by Hopper's warpgroup products (wgmma): PRECISION is 1 (TF32) or 2 (bf16), sums
// in fp32.
//
// Operands are fp32 in memory, in either order. Threads load them into registers, round them to
// nearest and store them as wgmma wants them: K contiguous, swizzled. While a slice is multiplied,
// the next one is on its way.
//
// The blocks of a cluster share one tile of C: each sums up a part of K, then finishes some of the
// rows from the parts' sums, which are added in their order.

// One tile of C [m, n] a cluster.
template <typename Shape, bool WIDE, bool A_DEEP, bool B_DEEP, bool ACTIVATED>
static __device__ __forceinline__ void product(
    Mat a, Mat b, Mat c, int m, int n, int k, int a_pitch, int b_pitch, int wide,
    const Epilogue& epilogue) {
    constexpr int SLICES = Shape::SLICES, SIDE = Shape::SIDE;
    typedef Slice<Shape::SIDE, A_DEEP, WIDE, Shape::COUNT> A;
    typedef Slice<Shape::SIDE, B_DEEP, WIDE, Shape::COUNT> B;
    constexpr int STAGE = SLICES * (A::BYTES + B::BYTES);
    // The driver aligns shared memory to 16 bytes only; the swizzle needs more.
    extern __shared__ __align__(16) char memory[];
    char* shared = memory + ((1024 - ((unsigned)__cvta_generic_to_shared(memory) & 1023)) & 1023);
    unsigned base = (unsigned)__cvta_generic_to_shared(shared);
    const float *left = at(a), *right = at(b);
    unsigned blocks = cluster_size();
    int row = (int)blockIdx.y * SIDE, column = (int)cluster_number() * SIDE;
    int group = threadIdx.x >> 7;
    float held_a[SLICES * A::FLOATS], held_b[SLICES * B::FLOATS];
    auto load = [&](int from, int end) {
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            int at = from + s * BK;
            A::load(held_a + s * A::FLOATS, left, a_pitch, row, m, at, end);
            B::load(held_b + s * B::FLOATS, right, b_pitch, column, n, at, end);
        }
    };
    bool summed = !B_DEEP && epilogue.sums.p && row == 0;
    float own[B_DEEP ? 1 : B::UNITS * QUAD] = {0.0f};
    Sums<SIDE> sums;
    // Parts begin at multiples of 64; their number is a power of two.
    int units = (k + 63) >> 6, part = (int)cluster_rank(), shift = 31 - __clz(blocks);
    int begin = (units * part >> shift) << 6, end = min(k, (units * (part + 1) >> shift) << 6);
    load(begin, end);
    for (int from = begin, turn = 0; from < end; from += SLICES * BK, turn++) {
        char* stage = shared + (turn & 1) * STAGE;
        unsigned where = base + (turn & 1) * STAGE;
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            A::store(held_a + s * A::FLOATS, stage + s * A::BYTES);
            B::store(held_b + s * B::FLOATS, stage + SLICES * A::BYTES + s * B::BYTES);
            if constexpr (!B_DEEP) {
                if (summed) B::add(held_b + s * B::FLOATS, own);
            }
        }
        fence_stores();
        wait_products();
        __syncthreads();
        begin_products();
#pragma unroll
        for (int s = 0; s < SLICES; s++) {
            unsigned at_a = where + s * A::BYTES + group * 64 * LINE_BYTES;
            unsigned at_b = where + SLICES * A::BYTES + s * B::BYTES;
            unsigned long long x = descriptor(at_a), y = descriptor(at_b);
#pragma unroll
            for (int e = 0; e < BK / DEPTH; e++) {
                sums.multiply(x + 2 * e, y + 2 * e, turn + s + e);
            }
        }
        commit_products();
        if (from + SLICES * BK < end) load(from + SLICES * BK, end);
    }
    wait_products();
    sums.settle();
    __syncthreads();

    // Through shared memory, so that whole lines are read and written below.
    constexpr int LINE = Shape::SIDE + 4;
    float* result = (float*)shared;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3;
    int i = group * 64 + warp * 16 + (lane >> 2), j = (lane & 3) * 2;
#pragma unroll
    for (int e = 0; e < SIDE / 8; e++) {
        float2 upper = make_float2(sums.sum[4 * e], sums.sum[4 * e + 1]);
        float2 lower = make_float2(sums.sum[4 * e + 2], sums.sum[4 * e + 3]);
        *(float2*)(result + i * LINE + 8 * e + j) = upper;
        *(float2*)(result + (i + 8) * LINE + 8 * e + j) = lower;
    }
    float* beside = result + Shape::SIDE * LINE;
    if constexpr (!B_DEEP) {
        if (summed) put_sums<Shape, B>(beside, own);
    }
    bool whole = wide & 4;
    if (ACTIVATED) finish_layer<Shape>(result, c, row, column, m, n, whole, epilogue);
    else finish_gradient<Shape>(result, c, row, column, m, n, whole, epilogue);
    if constexpr (!B_DEEP) {
        if (epilogue.sums.p && row == 0) finish_sums<Shape>(beside, epilogue.sums, column, n);
    }
    if (blocks > 1) {
        // Nobody leaves before its partial sums were read.
        cluster_arrive();
        cluster_wait();
    }
}

#define PRODUCT(NAME, SHAPE, A_DEEP, B_DEEP, ACTIVATED)                                           \
    extern "C" __global__ void __launch_bounds__(SHAPE::COUNT, SHAPE::BLOCKS) NAME##_##SHAPE(     \
        Mat a, Mat b, Mat c, int m, int n, int k, int a_pitch, int b_pitch, int wide,             \
        Epilogue epilogue) {                                                                      \
        product<SHAPE, IS_WIDE, A_DEEP, B_DEEP, ACTIVATED>(                                       \
            a, b, c, m, n, k, a_pitch, b_pitch, wide, epilogue);                                  \
    }

// For few tiles and for many, as `ops/product.rs` chooses them.
typedef Shape<64, 2, 3> small;
typedef Shape<128, 1, 2> large;

// Layers x w + b, and the products x^T dz and dz w^T of their gradients.
PRODUCT(plain, small, true, false, true)
PRODUCT(plain, large, true, false, true)
PRODUCT(right, small, true, true, false)
PRODUCT(right, large, true, true, false)
PRODUCT(left, small, false, false, false)
PRODUCT(left, large, false, false, false)

// Instructions of Hopper alone: clusters of blocks, copies of many bytes, products of warpgroups.

static __device__ __forceinline__ unsigned cluster_size() {
    unsigned x;
    asm("mov.u32 %0, %%cluster_nctaid.x;\n" : "=r"(x));
    return x;
}

static __device__ __forceinline__ unsigned cluster_rank() {
    unsigned x;
    asm("mov.u32 %0, %%cluster_ctaid.x;\n" : "=r"(x));
    return x;
}

// Waits for every thread of the cluster; what they wrote to shared memory is seen by all.
static __device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.aligned;\n" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;\n" ::: "memory");
}

// Stores into the shared memory of another block of the cluster, where this block has `place`.
static __device__ __forceinline__ unsigned remote(const float* place, unsigned block) {
    unsigned local = (unsigned)__cvta_generic_to_shared(place), there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(there) : "r"(local), "r"(block));
    return there;
}

static __device__ __forceinline__ void put_remote(const float* place, unsigned block, float2 x) {
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};\n"
                 ::"r"(remote(place, block)), "f"(x.x), "f"(x.y) : "memory");
}

// A barrier in shared memory that is passed when one thread has said how many bytes to expect, and
// they have arrived.
static __device__ __forceinline__ void begin_barrier(unsigned barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n" ::"r"(barrier) : "memory");
}

// Copies may use the barriers that this thread began.
static __device__ __forceinline__ void fence_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

static __device__ __forceinline__ void expect_bytes(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n"
                 ::"r"(barrier), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void wait_barrier(unsigned barrier, unsigned parity) {
    asm volatile(
        "{ .reg .pred passed;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 passed, [%0], %1;\n"
        "@!passed bra again; }\n"
        ::"r"(barrier), "r"(parity) : "memory");
}

// Asks for bytes of global memory; both addresses are multiples of 16.
static __device__ __forceinline__ void copy_bytes(
    unsigned shared, const char* global, unsigned bytes, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n"
        ::"r"(shared), "l"(global), "r"(bytes), "r"(barrier) : "memory");
}

// 64 or 128 lines of an operand's blocks as wgmma addresses them: groups of eight lines, swizzled.
static __device__ __forceinline__ unsigned long long descriptor(unsigned address) {
    return (unsigned long long)((address & 0x3ffff) >> 4) | (1ull << 16) | (64ull << 32)
        | (1ull << 62);
}

static __device__ __forceinline__ void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

static __device__ __forceinline__ void commit_products() {
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

// Waits for all but the last LEFT groups of this warp's products.
template <int LEFT>
static __device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(LEFT) : "memory");
}

#if PRECISION == 1
#define SHAPE(N) "wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32 "
#define ENDING ", p, 1, 1; }\n"
#else
#define SHAPE(N) "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 "
#define ENDING ", p, 1, 1, 0, 0; }\n"
#endif
#define EIGHT(I) "+f"(sum[I]), "+f"(sum[I + 1]), "+f"(sum[I + 2]), "+f"(sum[I + 3]), \
    "+f"(sum[I + 4]), "+f"(sum[I + 5]), "+f"(sum[I + 6]), "+f"(sum[I + 7])

// A warpgroup's sums: 64 rows by N columns. A first product that does not `add` replaces them.
template <int N>
struct Sums;

template <>
struct Sums<32> {
    float sum[16];

    __device__ __forceinline__ void multiply(
        unsigned long long a, unsigned long long b, int add) {
        asm volatile(
            "{ .reg .pred p; setp.ne.b32 p, %18, 0;\n" SHAPE(32)
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
            "%16, %17" ENDING
            : EIGHT(0), EIGHT(8)
            : "l"(a), "l"(b), "r"(add));
    }

    // The compiler may not use the sums before.
    __device__ __forceinline__ void settle() {
        asm volatile("" : EIGHT(0), EIGHT(8)::"memory");
    }
};

template <>
struct Sums<64> {
    float sum[32];

    __device__ __forceinline__ void multiply(
        unsigned long long a, unsigned long long b, int add) {
        asm volatile(
            "{ .reg .pred p; setp.ne.b32 p, %34, 0;\n" SHAPE(64)
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
            "%32, %33" ENDING
            : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24)
            : "l"(a), "l"(b), "r"(add));
    }

    __device__ __forceinline__ void settle() {
        asm volatile("" : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24)::"memory");
    }
};

template <>
struct Sums<128> {
    float sum[64];

    __device__ __forceinline__ void multiply(
        unsigned long long a, unsigned long long b, int add) {
        asm volatile(
            "{ .reg .pred p; setp.ne.b32 p, %66, 0;\n" SHAPE(128)
            "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
            "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
            "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
            "%64, %65" ENDING
            : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56)
            : "l"(a), "l"(b), "r"(add));
    }

    __device__ __forceinline__ void settle() {
        asm volatile(
            "" : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48),
            EIGHT(56)::"memory");
    }
};

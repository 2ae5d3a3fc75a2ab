// Instructions that CUDA C++ has no name for: asynchronous copies and tensor cores.

// Asks for 16 bytes, or for zeros where there is nothing.
static __device__ __forceinline__ void copy_16(void* shared, const float* global, bool inside) {
    unsigned target = (unsigned)__cvta_generic_to_shared(shared);
    int size = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n"
                 ::"r"(target), "l"(global), "r"(size) : "memory");
}

static __device__ __forceinline__ void copy_4(void* shared, const float* global, bool inside) {
    unsigned target = (unsigned)__cvta_generic_to_shared(shared);
    int size = inside ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n"
                 ::"r"(target), "l"(global), "r"(size) : "memory");
}

// Ends a group of copies.
static __device__ __forceinline__ void commit_copies() {
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// Waits for all but the last `LEFT` groups of this thread.
template <int LEFT>
static __device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(LEFT) : "memory");
}

// Rounded to the nearest TF32 number.
static __device__ __forceinline__ unsigned to_tf32(float x) {
    unsigned y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}

// The bits that a TF32 number has.
static __device__ __forceinline__ float cut_tf32(float x) {
    return __uint_as_float(__float_as_uint(x) & 0xffffe000u);
}

// Two numbers rounded to bfloat16.
static __device__ __forceinline__ unsigned to_bf16_pair(float low, float high) {
    unsigned y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

// c += a b with a 16 x 8 and b 8 x 8 over the warp.
static __device__ __forceinline__ void multiply_tf32(
    float* c, const unsigned* a, const unsigned* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// c += a b with a 16 x 16 and b 16 x 8 over the warp.
static __device__ __forceinline__ void multiply_bf16(
    float* c, const unsigned* a, const unsigned* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

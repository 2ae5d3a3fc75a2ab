// What every kernel shares. Compiled by NVRTC: no host headers.
//
// A matrix of all replicas is its first replica's address and the distance to the next one's, in
// floats (0 if the replicas share one copy). `blockIdx.z` is the replica everywhere.

struct Mat {
    float* p;
    long long stride;
};

static __device__ __forceinline__ float* at(Mat m) {
    return m.p + (long long)blockIdx.z * m.stride;
}

// The address, or null if the matrix was not given.
static __device__ __forceinline__ float* maybe(Mat m) {
    return m.p ? m.p + (long long)blockIdx.z * m.stride : nullptr;
}

// Waits for the kernels that this one comes after, and lets those that come after it get ready.
// Every kernel calls it before it touches memory.
static __device__ __forceinline__ void after_others() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\n" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}

#define KERNEL(NAME, ...) extern "C" __global__ void NAME(__VA_ARGS__)
// With the bounds on threads and blocks that the compiler is told.
#define BOUNDED_KERNEL(NAME, BOUNDS, ...)                                                         \
    extern "C" __global__ void __launch_bounds__ BOUNDS NAME(__VA_ARGS__)

#define INFINITE __int_as_float(0x7f800000)
#define NOT_A_NUMBER __int_as_float(0x7fffffff)
#define LARGEST 3.402823466e38f

// Index of this thread among all of its replica, and their number.
#define FIRST (blockIdx.x * blockDim.x + threadIdx.x)
#define THREADS (gridDim.x * blockDim.x)

static __device__ __forceinline__ bool finite(float x) {
    return fabsf(x) <= LARGEST;
}

// The larger, or NaN if there is one.
static __device__ __forceinline__ float larger(float a, float b) {
    return (a > b || isnan(a)) ? a : b;
}

// exp(x) of a softmax: 0 below -40, where no sum of such terms in single precision can tell.
static __device__ __forceinline__ float softmax_exp(float x) {
    return x < -40.0f ? 0.0f : expf(x);
}

static __device__ __forceinline__ double warp_sum(double x) {
    for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

static __device__ __forceinline__ float warp_sum(float x) {
    for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

static __device__ __forceinline__ float warp_larger(float x) {
    for (int step = 16; step > 0; step >>= 1) x = larger(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

// The sum over the block, in every thread, always in the same order. Every thread must call it;
// blocks are whole warps.
static __device__ double block_sum(double x) {
    __shared__ double parts[32];
    int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    x = warp_sum(x);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) parts[warp] = x;
    __syncthreads();
    x = (threadIdx.x & 31) < warps ? parts[threadIdx.x & 31] : 0.0;
    return warp_sum(x);
}

// The largest over the block (NaN if there is one), in every thread.
static __device__ float block_larger(float x) {
    __shared__ float parts[32];
    int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    x = warp_larger(x);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) parts[warp] = x;
    __syncthreads();
    x = (threadIdx.x & 31) < warps ? parts[threadIdx.x & 31] : -INFINITE;
    return warp_larger(x);
}

// Matrices stored as operands of products. Each block of threads takes a square of 64 x 64, each
// thread four rows of four numbers.

static __device__ __forceinline__ void pack_square(
    Mat x, const Made& made, int m, int n, int square) {
    const float* from = at(x);
    bool wide = (n & 3) == 0 && ((size_t)from & 15) == 0;
    Forms forms(made, m, n, (n & 3) == 0);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int row = square / forms.across * 64 + (warp >> 2) * 32 + (lane >> 2) * 4;
    int column = square % forms.across * 64 + (warp & 3) * 16 + (lane & 3) * 4;
    Patch patch;
    load_patch(patch, from, row, column, m, n, wide);
    forms.put(patch, row, column, 2);
}

extern "C" __global__ void __launch_bounds__(256) pack(
    Mat x, int m, int n, Mat rows, Mat columns, Mat sums) {
    after_others();
    pack_square(x, {rows, columns, sums}, m, n, blockIdx.x);
}

struct PackEntry {
    Mat x;
    Made made;
    int m, n;
    unsigned first_block;
};

struct PackTable {
    PackEntry entry[24];
};

// Many matrices at once; `first_block` ascends.
extern "C" __global__ void __launch_bounds__(256) pack_all(PackTable table, unsigned entries) {
    after_others();
    unsigned found = 0;
    for (unsigned i = 1; i < entries; i++) {
        if (table.entry[i].first_block <= blockIdx.x) found = i;
    }
    const PackEntry& e = table.entry[found];
    pack_square(e.x, e.made, e.m, e.n, blockIdx.x - e.first_block);
}

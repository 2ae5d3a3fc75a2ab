// Constants, and sums of gradients.

KERNEL(fill, Mat y, unsigned count, float value) {
    after_others();
    float* out = at(y);
    for (unsigned i = FIRST; i < count; i += THREADS) out[i] = value;
}

// One of the matrices that a gradient is the sum of, and the elements of the sum it covers.
struct Part {
    Mat x;
    unsigned start;
    unsigned end;
};

struct Parts {
    Part part[8];
};

// The sum of at most eight matrices, each covering a run of the result, in the order given; times a
// factor if there is one. `wide`: all runs are whole quads.
KERNEL(add_parts, Mat y, Parts parts, Mat factor, unsigned parts_count, unsigned count, int wide) {
    after_others();
    const float* times = maybe(factor);
    float* out = at(y);
    if (wide) {
        for (unsigned i = 4 * FIRST; i < count; i += 4 * THREADS) {
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
            for (unsigned p = 0; p < 8; p++) {
                if (p < parts_count && i >= parts.part[p].start && i < parts.part[p].end) {
                    float4 x = *(const float4*)(at(parts.part[p].x) + (i - parts.part[p].start));
                    sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
                }
            }
            if (times) {
                float4 f = *(const float4*)(times + i);
                sum.x *= f.x, sum.y *= f.y, sum.z *= f.z, sum.w *= f.w;
            }
            *(float4*)(out + i) = sum;
        }
        return;
    }
    for (unsigned i = FIRST; i < count; i += THREADS) {
        float sum = 0.0f;
#pragma unroll
        for (unsigned p = 0; p < 8; p++) {
            if (p < parts_count && i >= parts.part[p].start && i < parts.part[p].end) {
                sum += at(parts.part[p].x)[i - parts.part[p].start];
            }
        }
        out[i] = times ? sum * times[i] : sum;
    }
}

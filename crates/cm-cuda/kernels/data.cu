// A batch from a data set in the device's memory.

typedef unsigned long long Number;

struct Widths {
    unsigned rows;    // of the data
    unsigned batch;
    unsigned state;
    unsigned action;
    unsigned slots;   // steps whose row numbers are there
    unsigned columns; // row numbers that a row of the batch has
    unsigned stay;    // whether the next state is the state where the goal is
    unsigned stream;  // of the noise
    float deviation;  // of the noise; none if 0
};

// Row b of the batch: its state's and its goal's number are 32-bit integers `indices[slot][0][b]`
// and `indices[slot][1][b]` with the slot that this step has. Noise is added to states and goals
// after everything else was taken from them. One thread an element of a row of state, next state,
// goal, action, goal's action and the steps between.
extern "C" __global__ void gather_batch(
    const Number* seeds, const Number* step, Mat observations, Mat actions, Mat indices, Mat state,
    Mat action, Mat next, Mat goal, Mat goal_action, Mat ahead, Widths w) {
    after_others();
    const float *all_states = at(observations), *all_actions = at(actions);
    const unsigned* numbers = (const unsigned*)at(indices) + *step % w.slots * w.columns * w.batch;
    unsigned width = 3 * w.state + 2 * w.action + 1;
    for (unsigned i = FIRST; i < w.batch * width; i += THREADS) {
        unsigned b = i / width, column = i % width;
        unsigned own = min(numbers[b], w.rows - 1), far = min(numbers[w.batch + b], w.rows - 1);
        if (column < 3 * w.state) {
            unsigned part = column / w.state, k = column % w.state, place = b * w.state + k;
            bool moves = part == 1 && !(w.stay && own == far);
            unsigned row = part == 2 ? far : min(own + moves, w.rows - 1);
            float x = all_states[(size_t)row * w.state + k];
            if (part != 1 && w.deviation > 0.0f) {
                unsigned number = place + (part == 2 ? w.batch * w.state : 0);
                float four[4];
                normal_four(philox(seeds[blockIdx.z], *step, w.stream, number / 4), four);
                x = __fadd_rn(x, __fmul_rn(w.deviation, four[number % 4]));
            }
            at(part == 0 ? state : (part == 1 ? next : goal))[place] = x;
        } else if (column < 3 * w.state + 2 * w.action) {
            unsigned k = column - 3 * w.state;
            bool later = k >= w.action;
            k -= later ? w.action : 0;
            float x = all_actions[(size_t)(later ? far : own) * w.action + k];
            at(later ? goal_action : action)[b * w.action + k] = x;
        } else {
            at(ahead)[b] = (float)(far > own ? far - own : own - far);
        }
    }
}

// One kind of further goals: row b is the state whose number is `indices[slot][column][b]`. One
// thread an element.
extern "C" __global__ void gather_goals(
    const Number* step, Mat observations, Mat indices, Mat goal, unsigned column, Widths w) {
    after_others();
    const float* all_states = at(observations);
    const unsigned* numbers =
        (const unsigned*)at(indices) + (*step % w.slots * w.columns + column) * w.batch;
    for (unsigned i = FIRST; i < w.batch * w.state; i += THREADS) {
        unsigned row = min(numbers[i / w.state], w.rows - 1);
        at(goal)[i] = all_states[(size_t)row * w.state + i % w.state];
    }
}

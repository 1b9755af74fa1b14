/* Products of a few rows with a large matrix, x Wᵀ, float32: the twin of F.linear where rows are at most eight.

   Some rows of W are taken at once, each with all rows of x, so that W comes from memory once and what was loaded of both is used
   several times over. Every sum is made by one thread in an order that depends on the inputs alone: the numbers are the same to
   the last bit with any number of threads, and of a row with any others beside it.

   K inputs, N outputs. */

#include "sixteen.h"

/* How many rows of W at once: as many as leave their sums with every row of x in registers. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define AT_ONCE(rows) ((rows) <= 6 ? 4 : 2)
#else
#define AT_ONCE(rows) ((rows) <= 2 ? 4 : (rows) <= 6 ? 2 : 1)
#endif
#define MOST_SUMS 24

static inline float sum_of_native(Native x) {
#if NATIVE == 16
    return sum_of(x);
#elif NATIVE == 8
    return sum_of_eight(x);
#else
    return sum_of_four(x);
#endif
}

static inline __attribute__((always_inline)) void some(const float *x, const float *weight, float *out, ptrdiff_t inputs,
                                                       ptrdiff_t outputs, const int rows, const int many) {
    Native sums[MOST_SUMS];
#pragma GCC unroll 24
    for (int i = 0; i < rows * many; i++) sums[i] = (Native){0};
    ptrdiff_t k = 0;
    for (; k + NATIVE <= inputs; k += NATIVE) {
        Native here[4];
#pragma GCC unroll 4
        for (int u = 0; u < many; u++) here[u] = *(const Native *)(weight + u * inputs + k);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const Native of_x = *(const Native *)(x + r * inputs + k);
#pragma GCC unroll 4
            for (int u = 0; u < many; u++) sums[r * many + u] += here[u] * of_x;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int u = 0; u < many; u++) {
            float total = sum_of_native(sums[r * many + u]);
            for (ptrdiff_t rest = k; rest < inputs; rest++) total += weight[u * inputs + rest] * x[r * inputs + rest];
            out[r * outputs + u] = total;
        }
}

/* From the first to before the last output, with a number of rows that the compiler knows. */
static inline __attribute__((always_inline)) void all(const float *x, const float *weight, float *out, ptrdiff_t inputs,
                                                      ptrdiff_t outputs, ptrdiff_t first, ptrdiff_t last, const int rows) {
    ptrdiff_t n = first;
    for (; n + AT_ONCE(rows) <= last; n += AT_ONCE(rows))
        some(x, weight + n * inputs, out + n, inputs, outputs, rows, AT_ONCE(rows));
    for (; n < last; n++) some(x, weight + n * inputs, out + n, inputs, outputs, rows, 1);
}

#define SHARE 64 /* outputs that a thread takes at a time */

void lmlab_few_rows(const float *x, const float *weight, float *out, int64_t rows, int64_t inputs, int64_t outputs,
                    int32_t threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t first = 0; first < outputs; first += SHARE) {
        const int64_t last = first + SHARE < outputs ? first + SHARE : outputs;
        switch (rows) {
        case 1: all(x, weight, out, inputs, outputs, first, last, 1); break;
        case 2: all(x, weight, out, inputs, outputs, first, last, 2); break;
        case 3: all(x, weight, out, inputs, outputs, first, last, 3); break;
        case 4: all(x, weight, out, inputs, outputs, first, last, 4); break;
        case 5: all(x, weight, out, inputs, outputs, first, last, 5); break;
        case 6: all(x, weight, out, inputs, outputs, first, last, 6); break;
        case 7: all(x, weight, out, inputs, outputs, first, last, 7); break;
        default: all(x, weight, out, inputs, outputs, first, last, 8); break;
        }
    }
}

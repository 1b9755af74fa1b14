/* What lies between the products of a training step: norms, squares and sums, each in one pass over memory.

   N rows of D numbers, D a multiple of 16; float32, or bf16 where something is `narrow`. Inside all is float32. Sums are made in an
   order that does not depend on the number of threads. */

#include "sixteen.h"

#define CHUNK 64 /* rows whose share of the gradient of a weight is summed up by one thread */

/* out = (x - mean) · spread · weight for each row; stats: mean and spread (1 over the standard deviation), N × 2. */
void lmlab_norm(const float *x, const float *weight, void *out, int32_t narrow, float *stats, int64_t N, int64_t D,
                int32_t threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t n = 0; n < N; n++) {
        const float *row = x + n * D;
        Sixteen sums = {0}, squares = {0};
        for (int64_t d = 0; d < D; d += 16) sums += *(const Sixteen *)(row + d);
        const float mean = sum_of(sums) / D;
        for (int64_t d = 0; d < D; d += 16) {
            const Sixteen away = *(const Sixteen *)(row + d) - mean;
            squares += away * away;
        }
        const float spread = 1.0f / sqrtf(sum_of(squares) / D + 1e-5f);
        for (int64_t d = 0; d < D; d += 16)
            put(out, n * D + d, narrow, (*(const Sixteen *)(row + d) - mean) * spread * *(const Sixteen *)(weight + d));
        stats[2 * n] = mean, stats[2 * n + 1] = spread;
    }
}

/* The gradients of x and of the weight, the latter as parts, one for every CHUNK rows, each D.

   With y = (x - mean) · spread and g = grad · weight:  dx = spread · (g - mean of g - y · mean of g∘y). */
void lmlab_norm_back(const void *grad, int32_t narrow, const float *x, const float *weight, const float *stats,
                     float *grad_x, float *parts, int64_t N, int64_t D, int32_t threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t chunk = 0; chunk < (N + CHUNK - 1) / CHUNK; chunk++) {
        float *part = parts + chunk * D;
        for (int64_t d = 0; d < D; d += 16) *(Sixteen *)(part + d) = (Sixteen){0};
        for (int64_t n = chunk * CHUNK; n < (chunk + 1) * CHUNK && n < N; n++) {
            const float *row = x + n * D, mean = stats[2 * n], spread = stats[2 * n + 1];
            Sixteen sums = {0}, along = {0};
            for (int64_t d = 0; d < D; d += 16) {
                const Sixteen given = taken(grad, n * D + d, narrow), y = (*(const Sixteen *)(row + d) - mean) * spread;
                const Sixteen g = given * *(const Sixteen *)(weight + d);
                *(Sixteen *)(part + d) += given * y;
                sums += g, along += g * y;
            }
            const float level = sum_of(sums) / D, slope = sum_of(along) / D;
            for (int64_t d = 0; d < D; d += 16) {
                const Sixteen g = taken(grad, n * D + d, narrow) * *(const Sixteen *)(weight + d);
                const Sixteen y = (*(const Sixteen *)(row + d) - mean) * spread;
                *(Sixteen *)(grad_x + n * D + d) = (g - level - y * slope) * spread;
            }
        }
    }
}

/* max(x, 0) in place, and its square; what is no number stays none. */
void lmlab_squares(void *x, void *squares, int32_t narrow, int64_t count, int32_t threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < count; i += 16) {
        if (narrow) {
            const Sixteen positive = positive_of(taken(x, i, narrow));
            put(x, i, narrow, positive);
            put(squares, i, narrow, positive * positive);
        } else
            for (int p = 0; p < 16; p += NATIVE) {
                Native *at = (Native *)((float *)x + i + p);
                *at = native_chosen(*at < 0.0f, (Native){0}, *at);
                *(Native *)((float *)squares + i + p) = *at * *at;
            }
    }
}

/* Its derivative, grad · 2 max(x, 0), in place of grad. */
void lmlab_squares_back(void *grad, const void *positive, int32_t narrow, int64_t count, int32_t threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < count; i += 16)
        put(grad, i, narrow, taken(grad, i, narrow) * 2.0f * taken(positive, i, narrow));
}

/* x + change, float32 and bf16 to float32. */
void lmlab_added(const float *x, const void *change, float *out, int64_t count, int32_t threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < count; i += 16) *(Sixteen *)(out + i) = *(const Sixteen *)(x + i) + taken(change, i, 1);
}

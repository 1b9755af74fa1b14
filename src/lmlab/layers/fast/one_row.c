/* One more token of one text through a decoder Transformer, float32: the twin of `logits` in one_row.py, in one call.

   Every sum is made by one thread in an order that does not depend on how many there are: the numbers are the same to the last
   bit with any number of threads.

   D width of the stream, H heads, R width of a head, C context, F hidden units of a block, V vocabulary. */

#include <math.h>
#include <stddef.h>
#include <string.h>
#ifdef _OPENMP
extern int omp_get_thread_num(void);
extern int omp_get_num_threads(void);
#else
static int omp_get_thread_num(void) { return 0; }
static int omp_get_num_threads(void) { return 1; }
#endif
#include "exponential.h"

typedef struct {
    const float *norm_attention, *qkv, *out, *norm_mlp, *up, *down;
} Block;

typedef struct {
    int32_t layers, width, heads, context, hidden, vocab, gelu;
    float scale;
    const float *embedding;           /* V+1 × D */
    const float *position;            /* C × D, or none: then positions are rotary */
    const float *cosines, *sines;     /* C × R */
    const float *norm, *output;       /* D, V × D */
    const Block *blocks;
} Model;

typedef struct {
    float *stream, *attended, *qkv, *hidden; /* D, D, 3D, F */
    float *scores;                           /* H × C */
    float *normed;                           /* D for each thread */
} Buffers;

static inline float sum_of(Sixteen x) {
    float total = 0.0f;
    for (int i = 0; i < 8; i++) x[i] += x[i + 8];
    for (int i = 0; i < 4; i++) x[i] += x[i + 4];
    total = (x[0] + x[2]) + (x[1] + x[3]);
    return total;
}

/* Products of so many rows of a matrix with one vector. The order of each sum is that of a row alone. */
#define DOTS(name, ROWS)                                                                              \
    static inline void name(const float *restrict matrix, ptrdiff_t columns, const float *restrict x, \
                            float *restrict found) {                                                  \
        Sixteen total[ROWS];                                                                          \
        for (int r = 0; r < ROWS; r++) total[r] = (Sixteen){0};                                       \
        ptrdiff_t k = 0;                                                                              \
        for (; k + 16 <= columns; k += 16) {                                                          \
            Sixteen here = *(const Sixteen *)(x + k);                                                 \
            for (int r = 0; r < ROWS; r++) total[r] += *(const Sixteen *)(matrix + r * columns + k) * here; \
        }                                                                                             \
        for (int r = 0; r < ROWS; r++) found[r] = sum_of(total[r]);                                   \
        for (; k < columns; k++)                                                                      \
            for (int r = 0; r < ROWS; r++) found[r] += matrix[r * columns + k] * x[k];                \
    }

#ifdef __AVX512F__
#define TOGETHER 8
#else
#define TOGETHER 4 /* more do not fit into the registers */
#endif
DOTS(some_dots, TOGETHER)
DOTS(one_dot, 1)

static void multiply(const float *matrix, ptrdiff_t first, ptrdiff_t end, ptrdiff_t columns, const float *x, float *out) {
    ptrdiff_t n = first;
    for (; n + TOGETHER <= end; n += TOGETHER) some_dots(matrix + n * columns, columns, x, out + n);
    for (; n < end; n++) one_dot(matrix + n * columns, columns, x, out + n);
}

static void multiply_and_add(const float *matrix, ptrdiff_t first, ptrdiff_t end, ptrdiff_t columns, const float *x,
                             float *onto) {
    float found[TOGETHER];
    ptrdiff_t n = first;
    for (; n + TOGETHER <= end; n += TOGETHER) {
        some_dots(matrix + n * columns, columns, x, found);
        for (int r = 0; r < TOGETHER; r++) onto[n + r] += found[r];
    }
    for (; n < end; n++) {
        one_dot(matrix + n * columns, columns, x, found);
        onto[n] += found[0];
    }
}

/* Layer norm without a bias. */
static void norm(const float *x, const float *weight, ptrdiff_t width, float *out) {
    double total = 0.0, squares = 0.0;
    for (ptrdiff_t d = 0; d < width; d++) total += x[d];
    float mean = (float)(total / width);
    for (ptrdiff_t d = 0; d < width; d++) {
        out[d] = x[d] - mean;
        squares += (double)out[d] * out[d];
    }
    float shrink = (float)(1.0 / sqrt(squares / width + 1e-5));
    for (ptrdiff_t d = 0; d < width; d++) out[d] = out[d] * shrink * weight[d];
}

static void activate(float *x, ptrdiff_t first, ptrdiff_t end, int gelu) {
    if (!gelu) {
        for (ptrdiff_t n = first; n < end; n++) {
            float positive = x[n] > 0.0f || x[n] != x[n] ? x[n] : 0.0f; /* what is no number stays none */
            x[n] = positive * positive;
        }
        return;
    }
    for (ptrdiff_t n = first; n < end; n += 16) {
        Sixteen part = {0};
        size_t bytes = (end - n < 16 ? end - n : 16) * sizeof(float);
        memcpy(&part, x + n, bytes);
        Sixteen inner = -1.5957691216057308f * (part + 0.044715f * part * part * part);
        part = part / (1.0f + exponentials(inner));
        memcpy(x + n, &part, bytes);
    }
}

/* Turn one head by its position: the halves are exchanged, and the table of sines has their signs. */
static void rotate(float *head, const float *cosines, const float *sines, ptrdiff_t width) {
    ptrdiff_t half = width / 2;
    for (ptrdiff_t d = 0; d < half; d++) {
        float first = head[d], second = head[d + half];
        head[d] = first * cosines[d] + second * sines[d];
        head[d + half] = second * cosines[d + half] + first * sines[d + half];
    }
}

/* Scores to shares, in place; numbers beyond `count` up to the next sixteen are written to as well. */
static void softmax(float *scores, ptrdiff_t count, float scale) {
    float top = scores[0];
    int none = 0; /* whether there is something that is no number: it then makes all of them none */
    for (ptrdiff_t t = 0; t < count; t++) {
        top = scores[t] > top ? scores[t] : top;
        none |= scores[t] != scores[t];
    }
    if (none) top = NAN;
    ptrdiff_t whole = (count + 15) / 16 * 16;
    for (ptrdiff_t t = count; t < whole; t++) scores[t] = -INFINITY;
    Sixteen total = {0};
    for (ptrdiff_t t = 0; t < whole; t += 16) {
        Sixteen share = exponentials((*(Sixteen *)(scores + t) - top) * scale);
        *(Sixteen *)(scores + t) = share;
        total += share;
    }
    float all = sum_of(total);
    for (ptrdiff_t t = 0; t < count; t++) scores[t] /= all;
}

/* Averages of the values, R of them. */
static void average(const float *shares, const float *values, ptrdiff_t count, ptrdiff_t width, float *restrict out) {
    ptrdiff_t d = 0;
    for (; d + 32 <= width; d += 32) {
        Sixteen left = {0}, right = {0};
        for (ptrdiff_t t = 0; t < count; t++) {
            left += shares[t] * *(const Sixteen *)(values + t * width + d);
            right += shares[t] * *(const Sixteen *)(values + t * width + d + 16);
        }
        *(Sixteen *)(out + d) = left;
        *(Sixteen *)(out + d + 16) = right;
    }
    for (; d < width; d++) {
        float total = 0.0f;
        for (ptrdiff_t t = 0; t < count; t++) total += shares[t] * values[t * width + d];
        out[d] = total;
    }
}

/* Where the part of one thread of so many begins, in whole groups of rows. */
static ptrdiff_t share(ptrdiff_t count, int thread, int threads) {
    ptrdiff_t groups = (count + TOGETHER - 1) / TOGETHER;
    ptrdiff_t start = groups * thread / threads * TOGETHER;
    return start < count ? start : count;
}

#define MINE(count) share(count, thread, threads), share(count, thread + 1, threads)

static void step(const Model *m, Buffers b, int32_t token, int32_t position, float *caches, float *logits, int thread,
                 int threads) {
    const ptrdiff_t D = m->width, H = m->heads, R = D / H, C = m->context, F = m->hidden;
    const ptrdiff_t padded = (C + 15) / 16 * 16;
    float *normed = b.normed + thread * D;
    if (thread == 0)
        for (ptrdiff_t d = 0; d < D; d++) {
            float place = m->position ? m->position[position * D + d] : 0.0f;
            b.stream[d] = m->embedding[token * D + d] * m->scale + place;
        }
    for (int32_t l = 0; l < m->layers; l++) {
        const Block *block = m->blocks + l;
        float *keys = caches + (ptrdiff_t)l * 2 * H * C * R, *values = keys + H * C * R;
#pragma omp barrier
        norm(b.stream, block->norm_attention, D, normed);
        multiply(block->qkv, MINE(3 * D), D, normed, b.qkv);
#pragma omp barrier
        for (ptrdiff_t h = H * thread / threads; h < H * (thread + 1) / threads; h++) {
            float *query = b.qkv + h * R, *key = query + D, *scores = b.scores + h * padded;
            if (!m->position) {
                rotate(query, m->cosines + position * R, m->sines + position * R, R);
                rotate(key, m->cosines + position * R, m->sines + position * R, R);
            }
            memcpy(keys + (h * C + position) * R, key, R * sizeof(float));
            memcpy(values + (h * C + position) * R, key + D, R * sizeof(float));
            multiply(keys + h * C * R, 0, position + 1, R, query, scores);
            softmax(scores, position + 1, 1.0f / sqrtf((float)R));
            average(scores, values + h * C * R, position + 1, R, b.attended + h * R);
        }
#pragma omp barrier
        multiply_and_add(block->out, MINE(D), D, b.attended, b.stream);
#pragma omp barrier
        norm(b.stream, block->norm_mlp, D, normed);
        multiply(block->up, MINE(F), D, normed, b.hidden);
        activate(b.hidden, MINE(F), m->gelu);
#pragma omp barrier
        multiply_and_add(block->down, MINE(D), F, b.hidden, b.stream);
    }
#pragma omp barrier
    norm(b.stream, m->norm, D, normed);
    multiply(m->output, MINE(m->vocab), D, normed, logits);
}

/* Writes the caches, L × 2 × H × C × R, at this position, and the V logits of what follows. */
void lmlab_one_row(const Model *model, const Buffers *buffers, int32_t token, int32_t position, float *caches,
                   float *logits, int32_t threads) {
#pragma omp parallel num_threads(threads)
    step(model, *buffers, token, position, caches, logits, omp_get_thread_num(), omp_get_num_threads());
}

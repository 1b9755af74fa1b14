/* One more token of one text through a decoder Transformer, float32: the twin of `logits` in one_row.py, in one call.

   Every sum is made by one thread in an order that does not depend on how many there are: the numbers are the same to the last
   bit with any number of threads.

   D width of the stream, H heads, R width of a head, C context, F hidden units of a block, V vocabulary. */

#include <string.h>
#ifdef _OPENMP
extern int omp_get_thread_num(void);
extern int omp_get_num_threads(void);
#else
static int omp_get_thread_num(void) { return 0; }
static int omp_get_num_threads(void) { return 1; }
#endif
#include "sixteen.h"

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
    float *parts;                            /* two for every PART of the vocabulary */
} Buffers;

/* One row of a matrix with a vector. Rows are taken one after the other, so that memory is read from one end to the other, and asked
   for before it is needed: that is what a step waits for. */
#define AHEAD 1536 /* numbers */

static inline float dot(const float *restrict row, const float *restrict x, ptrdiff_t columns) {
    Native sums[4 * PIECES], pieces[PIECES];
    for (int p = 0; p < 4 * PIECES; p++) sums[p] = (Native){0};
    ptrdiff_t k = 0;
    for (; k + 64 <= columns; k += 64) {
        for (int i = 0; i < 64; i += 16) __builtin_prefetch(row + k + i + AHEAD);
        for (int p = 0; p < 4 * PIECES; p++)
            sums[p] += *(const Native *)(row + k + p * NATIVE) * *(const Native *)(x + k + p * NATIVE);
    }
    for (; k + 16 <= columns; k += 16)
        for (int p = 0; p < PIECES; p++)
            sums[p] += *(const Native *)(row + k + p * NATIVE) * *(const Native *)(x + k + p * NATIVE);
    for (int p = 0; p < PIECES; p++)
        pieces[p] = (sums[p] + sums[p + PIECES]) + (sums[p + 2 * PIECES] + sums[p + 3 * PIECES]);
    float total = sum_of_pieces(pieces);
    for (; k < columns; k++) total += row[k] * x[k];
    return total;
}

static __attribute__((noinline)) void multiply(const float *matrix, ptrdiff_t first, ptrdiff_t end, ptrdiff_t columns, const float *x, float *out) {
    for (ptrdiff_t n = first; n < end; n++) out[n] = dot(matrix + n * columns, x, columns);
}

static __attribute__((noinline)) void multiply_and_add(const float *matrix, ptrdiff_t first, ptrdiff_t end, ptrdiff_t columns, const float *x,
                             float *onto) {
    for (ptrdiff_t n = first; n < end; n++) onto[n] += dot(matrix + n * columns, x, columns);
}

/* Layer norm without a bias. */
static __attribute__((noinline)) void norm(const float *x, const float *weight, ptrdiff_t width, float *out) {
    Sixteen sums = {0}, squares = {0};
    ptrdiff_t d = 0;
    for (; d + 16 <= width; d += 16) sums += *(const Sixteen *)(x + d);
    float total = sum_of(sums), square = 0.0f;
    for (; d < width; d++) total += x[d];
    const float mean = total / width;
    for (d = 0; d + 16 <= width; d += 16) {
        Sixteen away = *(const Sixteen *)(x + d) - mean;
        squares += away * away;
    }
    for (; d < width; d++) square += (x[d] - mean) * (x[d] - mean);
    const float shrink = 1.0f / sqrtf((sum_of(squares) + square) / width + 1e-5f);
    for (d = 0; d < width; d++) out[d] = (x[d] - mean) * shrink * weight[d];
}

static __attribute__((noinline)) void activate(float *x, ptrdiff_t first, ptrdiff_t end, int gelu) {
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

/* What is no number is higher than all: it then makes all of them none. */
static __attribute__((noinline)) float highest(const float *x, ptrdiff_t count) {
    float top = x[0];
    int none = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        top = x[i] > top ? x[i] : top;
        none |= x[i] != x[i];
    }
    return none ? NAN : top;
}

/* Scores to shares, in place; numbers beyond `count` up to the next sixteen are written to as well. */
static __attribute__((noinline)) void softmax(float *scores, ptrdiff_t count, float scale) {
    const float top = highest(scores, count);
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
static __attribute__((noinline)) void average(const float *shares, const float *values, ptrdiff_t count, ptrdiff_t width, float *restrict out) {
    ptrdiff_t d = 0;
    for (; d + 32 <= width; d += 32) {
        Native sums[2 * PIECES];
        for (int p = 0; p < 2 * PIECES; p++) sums[p] = (Native){0};
        for (ptrdiff_t t = 0; t < count; t++)
            for (int p = 0; p < 2 * PIECES; p++)
                sums[p] += shares[t] * *(const Native *)(values + t * width + d + p * NATIVE);
        for (int p = 0; p < 2 * PIECES; p++) *(Native *)(out + d + p * NATIVE) = sums[p];
    }
    for (; d < width; d++) {
        float total = 0.0f;
        for (ptrdiff_t t = 0; t < count; t++) total += shares[t] * values[t * width + d];
        out[d] = total;
    }
}

/* Where the part of one thread of so many begins, in whole lines of memory: two never write to the same. */
static ptrdiff_t share(ptrdiff_t count, int thread, int threads) {
    ptrdiff_t start = (count + 15) / 16 * thread / threads * 16;
    return start < count ? start : count;
}

#define PART 1024

/* Logits to log-probabilities, in place. Parts of fixed size are summed up each by one thread, then all of them by everyone. */
static __attribute__((noinline)) void log_softmax(float *x, ptrdiff_t count, float *parts, int thread, int threads) {
    const ptrdiff_t all = (count + PART - 1) / PART;
    for (ptrdiff_t p = all * thread / threads; p < all * (thread + 1) / threads; p++) {
        const ptrdiff_t first = p * PART, end = first + PART < count ? first + PART : count;
        parts[2 * p] = highest(x + first, end - first);
        Sixteen total = {0};
        for (ptrdiff_t v = first; v < end; v += 16) {
            Sixteen here = all_of(-INFINITY);
            memcpy(&here, x + v, (end - v < 16 ? end - v : 16) * sizeof(float));
            total += exponentials(here - parts[2 * p]);
        }
        parts[2 * p + 1] = sum_of(total);
    }
#pragma omp barrier
    float top = parts[0], total = 0.0f;
    for (ptrdiff_t p = 1; p < all; p++) top = parts[2 * p] > top || parts[2 * p] != parts[2 * p] ? parts[2 * p] : top;
    for (ptrdiff_t p = 0; p < all; p++) total += parts[2 * p + 1] * expf(parts[2 * p] - top);
    const float whole = top + logf(total);
    for (ptrdiff_t v = share(count, thread, threads); v < share(count, thread + 1, threads); v++) x[v] -= whole;
}

#define MINE(count) share(count, thread, threads), share(count, thread + 1, threads)

static void step(const Model *m, Buffers b, int32_t token, int32_t position, float *caches, float *logp, int thread,
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
    multiply(m->output, MINE(m->vocab), D, normed, logp);
#pragma omp barrier
    log_softmax(logp, m->vocab, b.parts, thread, threads);
}

/* Writes the caches, L × 2 × H × C × R, at this position, and the V log-probabilities of what follows. */
void lmlab_one_row(const Model *model, const Buffers *buffers, int32_t token, int32_t position, float *caches,
                   float *logp, int32_t threads) {
#pragma omp parallel num_threads(threads)
    step(model, *buffers, token, position, caches, logp, omp_get_thread_num(), omp_get_num_threads());
}

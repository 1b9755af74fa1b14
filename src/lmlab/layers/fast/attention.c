/* Attention for training, forward and backward: the twin of torch's kernel in layers/attention.py, rotation included.

   A head of a row is one piece of work, done by one thread from beginning to end, so that the numbers are the same with any
   number of threads. It takes 32 queries at a time, and keeps their scores the other way round, keys × queries: then every
   vector holds one key's scores of sixteen queries, and sums over keys need nothing from other lanes. Backward, the scores
   are made again from what the forward pass leaves, one number a query (the log of the sum).

   B rows, T positions, H heads, R width of a head, a multiple of 16. Packed as one product makes them: B × T × 3 × H × R, float32
   or (`narrow`) bf16; inside all is float32. */

#include <string.h>
#ifdef _OPENMP
extern int omp_get_thread_num(void);
#else
static int omp_get_thread_num(void) { return 0; }
#endif
#include "sixteen.h"

#define LANES 32   /* queries at a time */
#define WIDEST 512 /* head */
#define AHEAD 16   /* positions */
#ifdef __AVX512F__
#define DEEP 8 /* rows × vectors that a product keeps in registers */
#define BROAD 2
#else
#define DEEP 4
#define BROAD 1
#endif

typedef struct {
    const void *qkv;
    void *out; /* B × T × H × R */
    float *logs; /* B × H × T */
    const void *grad_out;
    void *grad_qkv;
    const float *cosines, *sines; /* T × R, or none */
    const uint8_t *text; /* B × T: what holds text may be looked at; none: all */
    float *room; /* `lmlab_attention_room` numbers for each thread */
    int64_t B, T, H, R;
    int32_t causal, narrow, threads;
} Work;

/* The R numbers of one position, scaled, and turned by the position where there are tables: the halves are exchanged, and the
   table of sines has their signs. Backward, the derivative of that. */
static __attribute__((noinline)) void turn(const void *from, ptrdiff_t from_at, int from_narrow, const float *cosines, const float *sines,
                        ptrdiff_t R, float scale, int back, void *to, ptrdiff_t to_at, int to_narrow) {
    const ptrdiff_t half = R / 2;
    if (!cosines) {
        for (ptrdiff_t d = 0; d < R; d += 16) put(to, to_at + d, to_narrow, taken(from, from_at + d, from_narrow) * scale);
        return;
    }
    const ptrdiff_t other = back ? half : 0;
    if (half % 16 == 0) {
        for (ptrdiff_t d = 0; d < half; d += 16) {
            const Sixteen first = taken(from, from_at + d, from_narrow) * scale;
            const Sixteen second = taken(from, from_at + half + d, from_narrow) * scale;
            put(to, to_at + d, to_narrow,
                first * *(const Sixteen *)(cosines + d) + second * *(const Sixteen *)(sines + d + other));
            put(to, to_at + half + d, to_narrow,
                second * *(const Sixteen *)(cosines + half + d) + first * *(const Sixteen *)(sines + half + d - other));
        }
        return;
    }
    float x[WIDEST], y[WIDEST];
    for (ptrdiff_t d = 0; d < R; d += 16) *(Sixteen *)(x + d) = taken(from, from_at + d, from_narrow) * scale;
    for (ptrdiff_t d = 0; d < half; d++) {
        y[d] = x[d] * cosines[d] + x[d + half] * sines[d + other];
        y[d + half] = x[d + half] * cosines[d + half] + x[d] * sines[d + half - other];
    }
    for (ptrdiff_t d = 0; d < R; d += 16) put(to, to_at + d, to_narrow, *(Sixteen *)(y + d));
}

/* ROWS × (16 · VECTORS) of a · b, summed over K, in registers. a has a stride for rows and one for what is summed over. */
#define BLOCK(name, ROWS, VECTORS)                                                                                 \
    static inline void name(const float *restrict a, ptrdiff_t a_row, ptrdiff_t a_k, const float *restrict b,      \
                            ptrdiff_t b_k, float *restrict c, ptrdiff_t c_row, ptrdiff_t K, int add) {             \
        Native sums[ROWS][PIECES * VECTORS];                                                                       \
        for (int m = 0; m < ROWS; m++)                                                                             \
            for (int n = 0; n < PIECES * VECTORS; n++)                                                             \
                sums[m][n] = add ? *(const Native *)(c + m * c_row + NATIVE * n) : (Native){0};                    \
        for (ptrdiff_t k = 0; k < K; k++) {                                                                        \
            Native right[PIECES * VECTORS];                                                                        \
            for (int n = 0; n < PIECES * VECTORS; n++) right[n] = *(const Native *)(b + k * b_k + NATIVE * n);     \
            for (int m = 0; m < ROWS; m++)                                                                         \
                for (int n = 0; n < PIECES * VECTORS; n++) sums[m][n] += a[m * a_row + k * a_k] * right[n];        \
        }                                                                                                          \
        for (int m = 0; m < ROWS; m++)                                                                             \
            for (int n = 0; n < PIECES * VECTORS; n++) *(Native *)(c + m * c_row + NATIVE * n) = sums[m][n];       \
    }

BLOCK(broad_block, DEEP, BROAD)
BLOCK(narrow_block, DEEP, 1)
BLOCK(single_block, 1, 1)

/* c = a · b, or c += a · b: M × N, summed over K; N is a multiple of 16. Made once, not wherever it is used: that takes a compiler
   seconds. */
static __attribute__((noinline)) void multiply(const float *a, ptrdiff_t a_row, ptrdiff_t a_k, const float *b, ptrdiff_t b_k, float *c,
                            ptrdiff_t c_row, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, int add) {
    ptrdiff_t n = 0;
    for (; n + 16 * BROAD <= N; n += 16 * BROAD) {
        ptrdiff_t m = 0;
        for (; m + DEEP <= M; m += DEEP)
            broad_block(a + m * a_row, a_row, a_k, b + n, b_k, c + m * c_row + n, c_row, K, add);
        for (; m < M; m++)
            for (int i = 0; i < 16 * BROAD; i += 16)
                single_block(a + m * a_row, a_row, a_k, b + n + i, b_k, c + m * c_row + n + i, c_row, K, add);
    }
    for (; n < N; n += 16) {
        ptrdiff_t m = 0;
        for (; m + DEEP <= M; m += DEEP)
            narrow_block(a + m * a_row, a_row, a_k, b + n, b_k, c + m * c_row + n, c_row, K, add);
        for (; m < M; m++) single_block(a + m * a_row, a_row, a_k, b + n, b_k, c + m * c_row + n, c_row, K, add);
    }
}

/* Rows lie far apart, and the processor does not guess the next: they are asked for before they are needed. */
static inline void ask(const void *from, ptrdiff_t at, ptrdiff_t count, int narrow) {
    const ptrdiff_t size = narrow ? 2 : 4;
    for (ptrdiff_t d = 0; d < count * size; d += 64) __builtin_prefetch((const char *)from + at * size + d);
}

/* Positions of a head, turned and scaled, T × R, and zeros up to whole blocks of queries. */
static void gather(const Work *w, ptrdiff_t b, ptrdiff_t h, int which, float scale, float *to) {
    const ptrdiff_t T = w->T, R = w->R, whole = (T + LANES - 1) / LANES * LANES;
    const int turns = w->cosines && which < 2;
    for (ptrdiff_t t = 0; t < T; t++) {
        const ptrdiff_t at = (((b * T + t) * 3 + which) * w->H + h) * R;
        ask(w->qkv, at + AHEAD * 3 * w->H * R, R, w->narrow);
        turn(w->qkv, at, w->narrow, turns ? w->cosines + t * R : NULL, turns ? w->sines + t * R : NULL, R,
             scale, 0, to, t * R, 0);
    }
    memset(to + T * R, 0, (whole - T) * R * sizeof(float));
}

#ifdef __AVX512F__
#include <immintrin.h>

/* 16 × 16 numbers, rows become columns. */
static inline void transpose(const float *from, ptrdiff_t from_row, float *to, ptrdiff_t to_row) {
    __m512i r[16], t[16];
    for (int i = 0; i < 16; i++) r[i] = _mm512_loadu_si512(from + i * from_row);
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 4; i++) {
        r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
    }
    for (int i = 0; i < 16; i++) _mm512_storeu_si512(to + i * to_row, r[i]);
}
#else
static inline void transpose(const float *from, ptrdiff_t from_row, float *to, ptrdiff_t to_row) {
    for (int d = 0; d < 16; d++)
        for (int i = 0; i < 16; i++) to[d * to_row + i] = from[i * from_row + d];
}
#endif

/* LANES rows of R numbers, the other way round. */
static __attribute__((noinline)) void turn_over(const float *rows, ptrdiff_t R, float *to) {
    for (ptrdiff_t d = 0; d < R; d += 16)
        for (int i = 0; i < LANES; i += 16) transpose(rows + i * R + d, R, to + d * LANES + i, LANES);
}

/* -∞ where a query may not look. */
static void hide(const Work *w, ptrdiff_t b, ptrdiff_t first, ptrdiff_t seen, float *scores) {
    if (w->causal)
        for (ptrdiff_t j = first + 1; j < seen; j++)
            for (ptrdiff_t i = 0; i < j - first && i < LANES; i++) scores[j * LANES + i] = -INFINITY;
    if (w->text)
        for (ptrdiff_t j = 0; j < seen; j++)
            if (!w->text[b * w->T + j])
                for (int i = 0; i < LANES; i++) scores[j * LANES + i] = -INFINITY;
}

/* Scores of a block of queries with the first `seen` keys, keys × LANES. */
static void score(const Work *w, ptrdiff_t b, ptrdiff_t first, ptrdiff_t seen, const float *keys, const float *queries_RL,
                  float *scores) {
    multiply(keys, w->R, 1, queries_RL, LANES, scores, LANES, seen, LANES, w->R, 0);
    hide(w, b, first, seen, scores);
}

static inline Native higher(Native x, Native y) {
    const NativeWhole which = (x > y) | (x != x);
    return (Native)((which & (NativeWhole)x) | (~which & (NativeWhole)y));
}

/* Scores of LANES queries to shares that are not divided by their sum yet, keys × LANES; the highest scores and the sums. */
static inline void softmax(float *scores, ptrdiff_t seen, float top_of[LANES], float total_of[LANES]) {
    Native top[LANES / NATIVE], total[LANES / NATIVE];
    for (int p = 0; p < LANES / NATIVE; p++) top[p] = (Native){0} - INFINITY, total[p] = (Native){0};
    for (ptrdiff_t j = 0; j < seen; j++)
        for (int p = 0; p < LANES / NATIVE; p++) top[p] = higher(*(Native *)(scores + j * LANES + p * NATIVE), top[p]);
    for (int p = 0; p < LANES / NATIVE; p++) *(Native *)(top_of + p * NATIVE) = top[p];
    for (ptrdiff_t j = 0; j < seen; j++) {
        for (int v = 0; v < LANES; v += 16) {
            Sixteen *at = (Sixteen *)(scores + j * LANES + v);
            *at = exponentials(*at - *(Sixteen *)(top_of + v));
        }
        for (int p = 0; p < LANES / NATIVE; p++) total[p] += *(Native *)(scores + j * LANES + p * NATIVE);
    }
    for (int p = 0; p < LANES / NATIVE; p++) *(Native *)(total_of + p * NATIVE) = total[p];
}

static inline ptrdiff_t seen_by(const Work *w, ptrdiff_t first) {
    return w->causal && first + LANES < w->T ? first + LANES : w->T;
}

static void head_forward(const Work *w, ptrdiff_t b, ptrdiff_t h, float *room) {
    const ptrdiff_t T = w->T, R = w->R, whole = (T + LANES - 1) / LANES * LANES;
    float *queries = room, *keys = queries + whole * R, *values = keys + whole * R, *turned = values + whole * R;
    float *scores = turned + LANES * R, *found = scores + whole * LANES, *logs = w->logs + (b * w->H + h) * T;
    gather(w, b, h, 0, 1.0f / sqrtf((float)R), queries);
    gather(w, b, h, 1, 1.0f, keys);
    gather(w, b, h, 2, 1.0f, values);
    for (ptrdiff_t first = 0; first < T; first += LANES) {
        const ptrdiff_t seen = seen_by(w, first), here = T - first < LANES ? T - first : LANES;
        float top_of[LANES], total_of[LANES];
        turn_over(queries + first * R, R, turned);
        score(w, b, first, seen, keys, turned, scores);
        softmax(scores, seen, top_of, total_of);
        multiply(scores, 1, LANES, values, R, found, R, LANES, R, seen, 0);
        for (ptrdiff_t i = 0; i < here; i++) {
            const ptrdiff_t at = ((b * T + first + i) * w->H + h) * R;
            for (ptrdiff_t d = 0; d < R; d += 16)
                put(w->out, at + d, w->narrow, *(Sixteen *)(found + i * R + d) / total_of[i]);
            logs[first + i] = top_of[i] + logf(total_of[i]);
        }
    }
}

/* Gradients of so many positions, turned back, to where they belong. */
static void put_grads(const Work *w, ptrdiff_t b, ptrdiff_t h, int which, ptrdiff_t first, ptrdiff_t count,
                      const float *grads, float scale) {
    const ptrdiff_t R = w->R;
    const int turns = w->cosines && which < 2;
    for (ptrdiff_t t = first; t < first + count; t++) {
        const ptrdiff_t at = (((b * w->T + t) * 3 + which) * w->H + h) * R;
        ask(w->grad_qkv, at + AHEAD * 3 * w->H * R, R, w->narrow);
        turn(grads, (t - first) * R, 0, turns ? w->cosines + t * R : NULL, turns ? w->sines + t * R : NULL, R, scale, 1,
             w->grad_qkv, at, w->narrow);
    }
}

static void head_back(const Work *w, ptrdiff_t b, ptrdiff_t h, float *room) {
    const ptrdiff_t T = w->T, R = w->R, whole = (T + LANES - 1) / LANES * LANES;
    const float scale = 1.0f / sqrtf((float)R);
    float *queries = room, *keys = queries + whole * R, *values = keys + whole * R;
    float *grads = values + whole * R; /* of queries, keys and values */
    float *turned = grads + 3 * whole * R, *grad_out = turned + LANES * R, *grad_turned = grad_out + LANES * R;
    float *shares = grad_turned + LANES * R, *changes = shares + whole * LANES;
    const float *logs = w->logs + (b * w->H + h) * T;
    gather(w, b, h, 0, scale, queries);
    gather(w, b, h, 1, 1.0f, keys);
    gather(w, b, h, 2, 1.0f, values);
    memset(grads + whole * R, 0, 2 * whole * R * sizeof(float));
    for (ptrdiff_t first = 0; first < T; first += LANES) {
        const ptrdiff_t seen = seen_by(w, first), here = T - first < LANES ? T - first : LANES;
        float log_of[LANES] = {0}, along[LANES] = {0};
        memset(grad_out, 0, LANES * R * sizeof(float));
        for (ptrdiff_t i = 0; i < here; i++) {
            const ptrdiff_t at = ((b * T + first + i) * w->H + h) * R;
            ask(w->grad_out, at + AHEAD * w->H * R, R, w->narrow);
            ask(w->out, at + AHEAD * w->H * R, R, w->narrow);
            Sixteen sums = {0};
            for (ptrdiff_t d = 0; d < R; d += 16) {
                const Sixteen grad = taken(w->grad_out, at + d, w->narrow);
                *(Sixteen *)(grad_out + i * R + d) = grad;
                sums += grad * taken(w->out, at + d, w->narrow);
            }
            for (int d = 0; d < 16; d++) along[i] += sums[d];
            log_of[i] = logs[first + i];
        }
        turn_over(queries + first * R, R, turned);
        turn_over(grad_out, R, grad_turned);
        score(w, b, first, seen, keys, turned, shares);
        multiply(values, R, 1, grad_turned, LANES, changes, LANES, seen, LANES, R, 0);
        for (ptrdiff_t j = 0; j < seen; j++)
            for (int v = 0; v < LANES; v += 16) {
                Sixteen *share = (Sixteen *)(shares + j * LANES + v), *change = (Sixteen *)(changes + j * LANES + v);
                *share = exponentials(*share - *(Sixteen *)(log_of + v));
                *change = *share * (*change - *(Sixteen *)(along + v));
            }
        multiply(changes, 1, LANES, keys, R, grads + first * R, R, LANES, R, seen, 0);
        multiply(changes, LANES, 1, queries + first * R, R, grads + whole * R, R, seen, R, LANES, 1);
        multiply(shares, LANES, 1, grad_out, R, grads + 2 * whole * R, R, seen, R, LANES, 1);
    }
    for (int which = 0; which < 3; which++)
        put_grads(w, b, h, which, 0, T, grads + which * whole * R, which == 0 ? scale : 1.0f);
}

#include "attention_tiles.h"

/* Numbers that one thread needs beside what it is given. */
int64_t lmlab_attention_room(int64_t T, int64_t R) {
    const int64_t whole = (T + LANES - 1) / LANES * LANES;
    return 6 * whole * R + 6 * LANES * R + 4 * whole * LANES;
}

/* Whether products of bf16 run on units for tiles here. */
int32_t lmlab_attention_by_tiles(void) { return tiles_here(); }

/* Fills `out` and `logs`; or, `back`, `grad_qkv` from those and `grad_out`. */
void lmlab_attention(const Work *work, int32_t back) {
    const int64_t count = work->B * work->H, size = lmlab_attention_room(work->T, work->R);
    const int tiles = work->narrow && work->R % 32 == 0 && tiles_here();
#pragma omp parallel for schedule(dynamic) num_threads(work->threads)
    for (int64_t i = 0; i < count; i++) {
        float *room = work->room + omp_get_thread_num() * size;
        const int64_t b = i / work->H, h = i % work->H;
        if (tiles)
            (back ? head_back_by_tiles : head_forward_by_tiles)(work, b, h, room);
        else
            (back ? head_back : head_forward)(work, b, h, room);
    }
}

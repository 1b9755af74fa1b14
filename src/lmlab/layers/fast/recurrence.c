/* A layer of recurrent cells over all steps of a stretch, forward and backward: layers/cells.py has the equations.

   Rows do not meet: a thread takes some of them through all steps, so that no thread waits for another between two steps, and
   the numbers are the same with any number of threads. W x + b is given, as one product over all steps; the gradients of W, U
   and b are left to such products too. Here is what has to wait for the step before it: U h, or its derivative, and what the
   gates make of it.

   B rows, T steps, H width of the state, a multiple of 16, G = gates × H. float32, or (`narrow`) bf16; inside all is float32,
   and so is the state between two steps. What belongs to one step lies together in memory, as it is read and written. */

#include "native.h"

#ifdef __AVX512F__
#define BROAD 32 /* columns of a panel, and rows, that a product keeps in registers */
#define DEEP 8
#else
#define BROAD 16
#define DEEP 4
#endif
#define AT_ONCE 4 /* panels, where rows are few */

enum { TANH = 1, GRU = 3 }; /* kinds of cell, by how many gates they have */

typedef struct {
    void *gates; /* T × B × G: W x + b, and after it what the gates were, where `kept` is given */
    void *states; /* (T + 1) × B × H: the first is given */
    const void *u; /* G × H */
    void *kept; /* T × B × H, of GRU: U h of its candidate; none where nothing is to be learned */
    const void *grad_h; /* T × B × H, of the states after the first */
    void *grads; /* T × B × (TANH: H; GRU: ĥ, z, r and r ∘ ĥ, each H) */
    void *grad_begin; /* B × H, or none */
    float *panels; /* `lmlab_recurrence_panels` numbers */
    float *room; /* `lmlab_recurrence_room` numbers for each row */
    int64_t B, T, H;
    int32_t kind, narrow, threads;
} Work;

static inline int64_t whole(int64_t columns) { return (columns + BROAD - 1) / BROAD * BROAD; }

static inline float number(const void *from, int64_t at, int narrow) {
    union {
        uint32_t bits;
        float number;
    } wide = {narrow ? (uint32_t)((const uint16_t *)from)[at] << 16 : ((const uint32_t *)from)[at]};
    return wide.number;
}

/* U, or what becomes of it when it is turned over, K × N, as panels of BROAD columns, one after the other, each K × BROAD; what
   is beyond N is zero. */
static void lay_out(const Work *w, int turned) {
    const int64_t G = w->kind * w->H, K = turned ? w->H : G, N = turned ? G : w->H;
    const int64_t by_row = turned ? 1 : N, by_column = turned ? K : 1;
#pragma omp parallel for num_threads(w->threads)
    for (int64_t n = 0; n < whole(N); n += 16)
        for (int64_t k = 0; k < K; k += 16) {
            float *to = w->panels + n / BROAD * BROAD * K + k * BROAD + n % BROAD;
            for (int64_t j = 0; j < 16; j++)
                for (int64_t i = 0; i < 16; i++)
                    to[j * BROAD + i] = n < N ? number(w->u, (k + j) * by_row + (n + i) * by_column, w->narrow) : 0.0f;
        }
}

/* ROWS × PANELS of a · b, summed over K in registers, in the order of K whatever the block. */
#define BLOCK(name, ROWS, PANELS)                                                                                  \
    static inline void name(const float *restrict a, ptrdiff_t a_row, const float *restrict b, float *restrict c,  \
                            ptrdiff_t c_row, ptrdiff_t K) {                                                        \
        Native sums[ROWS][PANELS][BROAD / NATIVE];                                                                 \
        for (int m = 0; m < ROWS; m++)                                                                             \
            for (int p = 0; p < PANELS; p++)                                                                       \
                for (int n = 0; n < BROAD / NATIVE; n++) sums[m][p][n] = (Native){0};                              \
        for (ptrdiff_t k = 0; k < K; k++)                                                                          \
            for (int p = 0; p < PANELS; p++) {                                                                     \
                const float *at = b + p * K * BROAD + k * BROAD;                                                   \
                Native right[BROAD / NATIVE];                                                                      \
                for (int n = 0; n < BROAD / NATIVE; n++) right[n] = *(const Native *)(at + NATIVE * n);            \
                for (int m = 0; m < ROWS; m++)                                                                     \
                    for (int n = 0; n < BROAD / NATIVE; n++) sums[m][p][n] += a[m * a_row + k] * right[n];         \
            }                                                                                                      \
        for (int m = 0; m < ROWS; m++)                                                                             \
            for (int p = 0; p < PANELS; p++)                                                                       \
                for (int n = 0; n < BROAD / NATIVE; n++)                                                           \
                    *(Native *)(c + m * c_row + p * BROAD + NATIVE * n) = sums[m][p][n];                           \
    }

BLOCK(deep_block, DEEP, 1)
BLOCK(half_block, DEEP / 2, 1)
BLOCK(pair_block, 2, AT_ONCE / 2)
BLOCK(broad_block, 1, AT_ONCE)
BLOCK(single_block, 1, 1)

/* c = a · b, M × N of which N are in whole panels. */
static __attribute__((noinline)) void multiply(const float *a, ptrdiff_t a_row, const float *b, float *c, ptrdiff_t c_row,
                                               ptrdiff_t M, ptrdiff_t N, ptrdiff_t K) {
    const ptrdiff_t few = M / (DEEP / 2) * (DEEP / 2); /* from here on */
    for (ptrdiff_t n = 0; n < N; n += BROAD) {
        ptrdiff_t m = 0;
        for (; m + DEEP <= M; m += DEEP) deep_block(a + m * a_row, a_row, b + n * K, c + m * c_row + n, c_row, K);
        if (m < few) half_block(a + m * a_row, a_row, b + n * K, c + m * c_row + n, c_row, K);
    }
    for (ptrdiff_t m = few; m < M; m += 2) {
        const float *left = a + m * a_row;
        float *to = c + m * c_row;
        const int both = m + 2 <= M;
        ptrdiff_t n = 0;
        for (; both && n + AT_ONCE / 2 * BROAD <= N; n += AT_ONCE / 2 * BROAD)
            pair_block(left, a_row, b + n * K, to + n, c_row, K);
        for (; !both && n + AT_ONCE * BROAD <= N; n += AT_ONCE * BROAD) broad_block(left, a_row, b + n * K, to + n, c_row, K);
        for (; n < N; n += BROAD)
            for (int i = 0; i <= both; i++) single_block(left + i * a_row, a_row, b + n * K, to + i * c_row + n, c_row, K);
    }
}

int64_t lmlab_recurrence_panels(int64_t gates, int64_t H) {
    const int64_t forward = whole(gates * H) * H, back = whole(H) * gates * H;
    return forward > back ? forward : back;
}

int64_t lmlab_recurrence_room(int64_t gates, int64_t H) { return H + gates * H + whole(gates * H); }

/* What the gates of one row make of U h, and the state after it, which takes the place of the one before. The candidate waits
   for its gate: apart from it, more of them are under way at once. */
static inline void forward_row(const Work *w, ptrdiff_t b, ptrdiff_t t, float *sums, float *h) {
    const ptrdiff_t H = w->H, at = t * w->B + b, of = at * w->kind * H;
    for (ptrdiff_t d = 0; w->kind == GRU && d < 2 * H; d += NATIVE) {
        const Native gate = sigmoids(native_taken(w->gates, of + d, w->narrow) + *(const Native *)(sums + d));
        *(Native *)(sums + d) = gate;
        if (w->kept) native_put(w->gates, of + d, w->narrow, gate);
    }
    for (ptrdiff_t d = 0; d < H; d += NATIVE) {
        Native after;
        if (w->kind == TANH) {
            after = tanhs(native_taken(w->gates, of + d, w->narrow) + *(const Native *)(sums + d));
        } else {
            const Native z = *(const Native *)(sums + d), r = *(const Native *)(sums + H + d);
            const Native u = *(const Native *)(sums + 2 * H + d);
            const Native candidate = tanhs(native_taken(w->gates, of + 2 * H + d, w->narrow) + r * u);
            after = (1.0f - z) * *(const Native *)(h + d) + z * candidate;
            if (w->kept) {
                native_put(w->gates, of + 2 * H + d, w->narrow, candidate);
                native_put(w->kept, at * H + d, w->narrow, u);
            }
        }
        *(Native *)(h + d) = after;
        native_put(w->states, (at + w->B) * H + d, w->narrow, after);
    }
}

static void forward(const Work *w, ptrdiff_t first, ptrdiff_t rows) {
    const ptrdiff_t H = w->H, G = w->kind * H;
    float *h = w->room + first * lmlab_recurrence_room(w->kind, H), *sums = h + rows * H;
    for (ptrdiff_t i = 0; i < rows * H; i += NATIVE) *(Native *)(h + i) = native_taken(w->states, first * H + i, w->narrow);
    for (ptrdiff_t t = 0; t < w->T; t++) {
        multiply(h, H, w->panels, sums, whole(G), rows, whole(G), H);
        for (ptrdiff_t i = 0; i < rows; i++) forward_row(w, first + i, t, sums + i * whole(G), h + i * H);
    }
}

/* The gradients of what the gates of one row were made of. `back`: what later steps want of the state, and then what of that is
   wanted of the state before it without U; `through`: what is to go through U. */
static inline void back_row(const Work *w, ptrdiff_t b, ptrdiff_t t, float *back, float *through) {
    const ptrdiff_t H = w->H, at = t * w->B + b, of = at * w->kind * H, to = at * (w->kind == TANH ? H : 4 * H);
    const int narrow = w->narrow;
    for (ptrdiff_t d = 0; d < H; d += NATIVE) {
        const Native wanted = *(Native *)(back + d) + native_taken(w->grad_h, at * H + d, narrow);
        if (w->kind == TANH) {
            const Native h = native_taken(w->states, (at + w->B) * H + d, narrow), change = wanted * (1.0f - h * h);
            native_put(w->grads, to + d, narrow, change);
            *(Native *)(through + d) = change, *(Native *)(back + d) = (Native){0};
            continue;
        }
        const Native z = native_taken(w->gates, of + d, narrow), r = native_taken(w->gates, of + H + d, narrow);
        const Native candidate = native_taken(w->gates, of + 2 * H + d, narrow);
        const Native before = native_taken(w->states, at * H + d, narrow);
        const Native to_candidate = wanted * z * (1.0f - candidate * candidate), to_u = to_candidate * r;
        const Native to_z = wanted * (candidate - before) * z * (1.0f - z);
        const Native to_r = to_u * native_taken(w->kept, at * H + d, narrow) * (1.0f - r);
        native_put(w->grads, to + d, narrow, to_candidate), native_put(w->grads, to + H + d, narrow, to_z);
        native_put(w->grads, to + 2 * H + d, narrow, to_r), native_put(w->grads, to + 3 * H + d, narrow, to_u);
        *(Native *)(through + d) = to_z, *(Native *)(through + H + d) = to_r, *(Native *)(through + 2 * H + d) = to_u;
        *(Native *)(back + d) = wanted * (1.0f - z);
    }
}

static void backward(const Work *w, ptrdiff_t first, ptrdiff_t rows) {
    const ptrdiff_t H = w->H, G = w->kind * H;
    float *back = w->room + first * lmlab_recurrence_room(w->kind, H), *through = back + rows * H, *found = through + rows * G;
    for (ptrdiff_t i = 0; i < rows * H; i += NATIVE) *(Native *)(back + i) = (Native){0};
    for (ptrdiff_t t = w->T - 1; t >= 0; t--) {
        for (ptrdiff_t i = 0; i < rows; i++) back_row(w, first + i, t, back + i * H, through + i * G);
        if (!t && !w->grad_begin) break;
        multiply(through, G, w->panels, found, whole(H), rows, whole(H), G);
        for (ptrdiff_t i = 0; i < rows; i++)
            for (ptrdiff_t d = 0; d < H; d += NATIVE)
                *(Native *)(back + i * H + d) += *(Native *)(found + i * whole(H) + d);
    }
    for (ptrdiff_t i = 0; w->grad_begin && i < rows * H; i += NATIVE)
        native_put(w->grad_begin, first * H + i, w->narrow, *(Native *)(back + i));
}

void lmlab_recurrence(const Work *w, int32_t back) {
    lay_out(w, !back);
#pragma omp parallel for num_threads(w->threads) schedule(static)
    for (int32_t share = 0; share < w->threads; share++) {
        const int64_t first = w->B * share / w->threads, last = w->B * (share + 1) / w->threads;
        if (first < last) (back ? backward : forward)(w, first, last - first);
    }
}

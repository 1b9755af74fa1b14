/* The same in bf16 on processors with units for products of tiles (AMX): 16 rows of 32 numbers with 32 numbers of 16 columns.

   What stands on the left of a product lies as rows along what is summed over. What stands on the right lies as pairs: two
   numbers that are summed one after the other share 32 bits. So a block of scores, keys × queries, is paired along keys where it
   weighs values (and its product comes out the other way round, R × queries), and lies as it is where keys and values learn. */

#if defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__AVX512BW__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

static int tiles_here(void) {
    static int here = -1; /* whoever asks at the same time finds the same */
    if (here < 0) here = syscall(SYS_arch_prctl, 0x1023, 18) == 0; /* may this process keep tiles? */
    return here;
}

static void configure(void) {
    struct {
        uint8_t palette, start, none[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    for (int i = 0; i < 8; i++) shape.bytes[i] = 64, shape.rows[i] = 16;
    _tile_loadconfig(&shape);
}

/* c = left · right, or c += that: 32 × 32 at a time, M × N, summed over K, all multiples of 32; strides in bytes. */
static inline void multiply_tiles(const void *left, ptrdiff_t left_row, const void *right, ptrdiff_t right_row, float *c,
                                  ptrdiff_t c_row, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, int add) {
    for (ptrdiff_t m = 0; m < M; m += 32)
        for (ptrdiff_t n = 0; n < N; n += 32) {
            char *at = (char *)c + m * c_row + 4 * n, *below = at + 16 * c_row;
            if (add) {
                _tile_loadd(0, at, c_row);
                _tile_loadd(1, at + 64, c_row);
                _tile_loadd(2, below, c_row);
                _tile_loadd(3, below + 64, c_row);
            } else {
                _tile_zero(0);
                _tile_zero(1);
                _tile_zero(2);
                _tile_zero(3);
            }
            for (ptrdiff_t k = 0; k < K; k += 32) {
                const char *a = (const char *)left + m * left_row + 2 * k;
                const char *b = (const char *)right + k / 2 * right_row + 4 * n;
                _tile_loadd(4, a, left_row);
                _tile_loadd(6, b, right_row);
                _tile_loadd(7, b + 64, right_row);
                _tile_dpbf16ps(0, 4, 6);
                _tile_dpbf16ps(1, 4, 7);
                _tile_loadd(5, a + 16 * left_row, left_row);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
            _tile_stored(0, at, c_row);
            _tile_stored(1, at + 64, c_row);
            _tile_stored(2, below, c_row);
            _tile_stored(3, below + 64, c_row);
        }
}

/* Rows 2i and 2i + 1 as pairs: 32 rows of `width` numbers to 16 rows of as many pairs. */
static inline void pair_rows(const uint16_t *rows, ptrdiff_t width, uint32_t *pairs, ptrdiff_t pairs_row) {
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5,
                                         36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    for (int i = 0; i < 16; i++)
        for (ptrdiff_t d = 0; d < width; d += 32) {
            const __m512i even = _mm512_loadu_si512(rows + 2 * i * width + d);
            const __m512i odd = _mm512_loadu_si512(rows + (2 * i + 1) * width + d);
            _mm512_storeu_si512(pairs + i * pairs_row + d, _mm512_permutex2var_epi16(even, low, odd));
            _mm512_storeu_si512(pairs + i * pairs_row + d + 16, _mm512_permutex2var_epi16(even, high, odd));
        }
}

/* A block of 32 rows of R numbers as pairs along R, R/2 × 32: what a product with other rows of R numbers takes on its right. */
static inline void pairs_across(const uint16_t *rows, ptrdiff_t R, uint32_t *pairs) {
    for (ptrdiff_t d = 0; d < R / 2; d += 16)
        for (int i = 0; i < LANES; i += 16)
            transpose((const float *)(rows + i * R) + d, R / 2, (float *)pairs + d * LANES + i, LANES);
}

/* All rows the other way round, whole × R to R × whole. room: 16 · R pairs. */
static void turn_all_over(const uint16_t *rows, ptrdiff_t whole, ptrdiff_t R, uint16_t *to, uint32_t *room) {
    for (ptrdiff_t t = 0; t < whole; t += 32) {
        pair_rows(rows + t * R, R, room, R);
        for (ptrdiff_t d = 0; d < R; d += 16)
            transpose((const float *)room + d, R, (float *)(to + d * whole + t), whole / 2);
    }
}

/* Scores or shares of two keys, as pairs. */
static inline void pair(Sixteen one, Sixteen other, uint32_t *to) {
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)one));
    const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)other));
    _mm512_storeu_si512(to, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
}

/* R × LANES numbers back to LANES rows of R. */
static inline void turn_back_over(const float *from, ptrdiff_t R, float *rows) {
    for (ptrdiff_t d = 0; d < R; d += 16)
        for (int i = 0; i < LANES; i += 16) transpose(from + d * LANES + i, LANES, rows + i * R + d, R);
}

static void gather_narrow(const Work *w, ptrdiff_t b, ptrdiff_t h, int which, float scale, uint16_t *to) {
    const ptrdiff_t T = w->T, R = w->R, whole = (T + LANES - 1) / LANES * LANES;
    const int turns = w->cosines && which < 2;
    for (ptrdiff_t t = 0; t < T; t++) {
        const ptrdiff_t at = (((b * T + t) * 3 + which) * w->H + h) * R;
        ask(w->qkv, at + AHEAD * 3 * w->H * R, R, 1);
        turn(w->qkv, at, 1, turns ? w->cosines + t * R : NULL, turns ? w->sines + t * R : NULL, R, scale, 0, to, t * R, 1);
    }
    memset(to + T * R, 0, (whole - T) * R * sizeof(uint16_t));
}

/* What queries are scaled by before they are bf16: 1/√R where that is a power of two, which rounds nothing; else scores are, in
   float32. Queries that are rounded a second time leave gradients seven times as far off where scores lie far apart. */
static inline float scale_of_queries(ptrdiff_t R) {
    int power;
    const float scale = 1.0f / sqrtf((float)R);
    return frexpf(scale, &power) == 0.5f ? scale : 1.0f;
}

/* As `score`, for all keys up to the end of a block. scale: of the scores. */
static void score_by_tiles(const Work *w, ptrdiff_t b, ptrdiff_t first, ptrdiff_t seen, const uint16_t *keys,
                           const uint32_t *queries, float scale, float *scores) {
    multiply_tiles(keys, 2 * w->R, queries, 4 * LANES, scores, 4 * LANES, seen, LANES, w->R, 0);
    if (scale != 1.0f)
        for (ptrdiff_t i = 0; i < seen * LANES; i += 16) *(Sixteen *)(scores + i) *= scale;
    hide(w, b, first, seen < w->T ? seen : w->T, scores);
    for (ptrdiff_t j = w->T; j < seen; j++)
        for (int i = 0; i < LANES; i++) scores[j * LANES + i] = -INFINITY;
}

static inline ptrdiff_t seen_in_blocks(const Work *w, ptrdiff_t first) {
    return w->causal ? first + LANES : (w->T + LANES - 1) / LANES * LANES;
}

static void head_forward_by_tiles(const Work *w, ptrdiff_t b, ptrdiff_t h, float *room) {
    const ptrdiff_t T = w->T, R = w->R, whole = (T + LANES - 1) / LANES * LANES;
    uint16_t *queries = (uint16_t *)room, *keys = queries + whole * R, *values = keys + whole * R;
    uint16_t *values_over = values + whole * R;
    uint32_t *paired = (uint32_t *)(values_over + whole * R), *shares = paired + LANES * R / 2;
    float *scores = (float *)(shares + whole / 2 * LANES), *found = scores + whole * LANES, *rows = found + LANES * R;
    float *logs = w->logs + (b * w->H + h) * T;
    const float of_queries = scale_of_queries(R), of_scores = 1.0f / sqrtf((float)R) / of_queries;
    configure();
    gather_narrow(w, b, h, 0, of_queries, queries);
    gather_narrow(w, b, h, 1, 1.0f, keys);
    gather_narrow(w, b, h, 2, 1.0f, values);
    turn_all_over(values, whole, R, values_over, (uint32_t *)rows);
    for (ptrdiff_t first = 0; first < T; first += LANES) {
        const ptrdiff_t seen = seen_in_blocks(w, first), here = T - first < LANES ? T - first : LANES;
        float top_of[LANES], total_of[LANES];
        pairs_across(queries + first * R, R, paired);
        score_by_tiles(w, b, first, seen, keys, paired, of_scores, scores);
        softmax(scores, seen, top_of, total_of);
        for (ptrdiff_t j = 0; j < seen; j += 2)
            for (int v = 0; v < LANES; v += 16)
                pair(*(Sixteen *)(scores + j * LANES + v), *(Sixteen *)(scores + (j + 1) * LANES + v),
                     shares + j / 2 * LANES + v);
        multiply_tiles(values_over, 2 * whole, shares, 4 * LANES, found, 4 * LANES, R, LANES, seen, 0);
        for (ptrdiff_t d = 0; d < R; d++)
            for (int v = 0; v < LANES; v += 16) *(Sixteen *)(found + d * LANES + v) /= *(Sixteen *)(total_of + v);
        turn_back_over(found, R, rows);
        for (ptrdiff_t i = 0; i < here; i++) {
            const ptrdiff_t at = ((b * T + first + i) * w->H + h) * R;
            for (ptrdiff_t d = 0; d < R; d += 16) put(w->out, at + d, 1, *(Sixteen *)(rows + i * R + d));
            logs[first + i] = top_of[i] + logf(total_of[i]);
        }
    }
    _tile_release();
}

static void head_back_by_tiles(const Work *w, ptrdiff_t b, ptrdiff_t h, float *room) {
    const ptrdiff_t T = w->T, R = w->R, whole = (T + LANES - 1) / LANES * LANES;
    const float scale = 1.0f / sqrtf((float)R), of_queries = scale_of_queries(R), of_scores = scale / of_queries;
    const float *logs = w->logs + (b * w->H + h) * T;
    uint16_t *queries = (uint16_t *)room, *keys = queries + whole * R, *values = keys + whole * R;
    uint16_t *keys_over = values + whole * R, *grad_out = keys_over + whole * R; /* LANES × R of the latter */
    uint32_t *paired = (uint32_t *)(grad_out + LANES * R), *pairs = paired + LANES * R / 2; /* across R; along queries */
    uint32_t *changes = pairs + LANES * R / 2; /* of scores, paired along keys */
    uint16_t *plain_shares = (uint16_t *)(changes + whole / 2 * LANES), *plain_changes = plain_shares + whole * LANES;
    float *scores = (float *)(plain_changes + whole * LANES), *slopes = scores + whole * LANES;
    float *grads = slopes + whole * LANES; /* of keys and values */
    float *found = grads + 2 * whole * R, *rows = found + LANES * R;
    configure();
    gather_narrow(w, b, h, 0, of_queries, queries);
    gather_narrow(w, b, h, 1, 1.0f, keys);
    gather_narrow(w, b, h, 2, 1.0f, values);
    turn_all_over(keys, whole, R, keys_over, (uint32_t *)rows);
    memset(grads, 0, 2 * whole * R * sizeof(float));
    for (ptrdiff_t first = 0; first < T; first += LANES) {
        const ptrdiff_t seen = seen_in_blocks(w, first), here = T - first < LANES ? T - first : LANES;
        float log_of[LANES] = {0}, along[LANES] = {0};
        memset(grad_out, 0, LANES * R * sizeof(uint16_t));
        for (ptrdiff_t i = 0; i < here; i++) {
            const ptrdiff_t at = ((b * T + first + i) * w->H + h) * R;
            ask(w->grad_out, at + AHEAD * w->H * R, R, 1);
            ask(w->out, at + AHEAD * w->H * R, R, 1);
            memcpy(grad_out + i * R, (const uint16_t *)w->grad_out + at, R * sizeof(uint16_t));
            Sixteen sums = {0};
            for (ptrdiff_t d = 0; d < R; d += 16) sums += taken(w->grad_out, at + d, 1) * taken(w->out, at + d, 1);
            along[i] = sum_of(sums), log_of[i] = logs[first + i];
        }
        pairs_across(queries + first * R, R, paired);
        score_by_tiles(w, b, first, seen, keys, paired, of_scores, scores);
        pairs_across(grad_out, R, paired);
        multiply_tiles(values, 2 * R, paired, 4 * LANES, slopes, 4 * LANES, seen, LANES, R, 0);
        for (ptrdiff_t j = 0; j < seen; j += 2) {
            Sixteen share[4], change[4]; /* two keys, twice sixteen queries */
            for (int part = 0; part < 4; part++) {
                const ptrdiff_t at = (j + part / 2) * LANES + part % 2 * 16;
                share[part] = exponentials(*(Sixteen *)(scores + at) - *(Sixteen *)(log_of + part % 2 * 16));
                change[part] = share[part] * (*(Sixteen *)(slopes + at) - *(Sixteen *)(along + part % 2 * 16));
                put(plain_shares, at, 1, share[part]);
                put(plain_changes, at, 1, change[part]);
            }
            pair(change[0], change[2], changes + j / 2 * LANES);
            pair(change[1], change[3], changes + j / 2 * LANES + 16);
        }
        multiply_tiles(keys_over, 2 * whole, changes, 4 * LANES, found, 4 * LANES, R, LANES, seen, 0);
        turn_back_over(found, R, rows);
        put_grads(w, b, h, 0, first, here, rows, scale);
        pair_rows(queries + first * R, R, pairs, R);
        multiply_tiles(plain_changes, 2 * LANES, pairs, 4 * R, grads, 4 * R, seen, R, LANES, 1);
        pair_rows(grad_out, R, pairs, R);
        multiply_tiles(plain_shares, 2 * LANES, pairs, 4 * R, grads + whole * R, 4 * R, seen, R, LANES, 1);
    }
    _tile_release();
    put_grads(w, b, h, 1, 0, T, grads, of_scores);
    put_grads(w, b, h, 2, 0, T, grads + whole * R, 1.0f);
}
#else
static int tiles_here(void) { return 0; }
static void head_forward_by_tiles(const Work *w, ptrdiff_t b, ptrdiff_t h, float *room) { head_forward(w, b, h, room); }
static void head_back_by_tiles(const Work *w, ptrdiff_t b, ptrdiff_t h, float *room) { head_back(w, b, h, room); }
#endif

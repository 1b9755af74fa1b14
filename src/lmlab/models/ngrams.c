/* Counting n-grams, and what Kneser-Ney makes of the counts: twins of what `_ngram_count_by_sorting.py` and `_ngram_smooth.py` do
   with arrays, with the same results to the last bit.

   Positions are kept in the order of the n-grams that end there. Those of one n-gram lie side by side, and the n-grams one longer
   are found by sorting each such group by the token that comes next. Groups are independent, so each call takes a stretch of
   them, and several threads take one each. Nothing is searched, and memory is read in order wherever it can be.

   V: the begin symbol, which is larger than any token; restarts[w]: a history never reaches back beyond token w. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__GNUC__) || defined(__TINYC__)
#define __builtin_prefetch(...) /* what it asks for comes later then */
#endif

#pragma STDC FP_CONTRACT OFF /* a product that is rounded before it is added, as NumPy has it */

#define FIRST 0x80000000u /* marks the first position of a kind of n-gram; positions are smaller */
#define AHEAD 24          /* positions that are looked at before their turn, to be in the cache then */
#define FEW 48            /* so many are sorted by insertion */
#define DIGIT 11          /* bits that a pass of sorting looks at */

/* The history that a position is, of one token: itself, or the begin symbol where a history may not go beyond it. */
static inline int32_t as_history(int32_t token, const uint8_t *restarts, int32_t V) {
    return token == V || restarts[token] ? V : token;
}

/* How many positions of this stretch are each history of one token. */
void lmlab_histories(const int32_t *tokens, int64_t first, int64_t last, const uint8_t *restarts, int32_t V, int32_t *counts) {
    for (int64_t i = first; i < last; i++) counts[as_history(tokens[i], restarts, V)]++;
}

/* Put the positions of this stretch where their histories have room: `next` says where, and is used up. */
void lmlab_by_history(const int32_t *tokens, int64_t first, int64_t last, const uint8_t *restarts, int32_t V, int32_t *next,
                      uint32_t *places) {
    for (int64_t i = first; i < last; i++) places[next[as_history(tokens[i], restarts, V)]++] = i;
}

/* Where stretches of whole groups begin that hold `block` positions or somewhat more: the group, and the position. */
int64_t lmlab_stretches(const int32_t *sizes, int64_t groups, int64_t block, int64_t *group, int64_t *place) {
    int64_t count = 0, at = 0, begun = -block;
    for (int64_t g = 0; g < groups; g++) {
        if (at - begun >= block) {
            group[count] = g, place[count++] = at;
            begun = at;
        }
        at += sizes[g];
    }
    return count;
}

/* Sort what is made of a token and a position by token, positions ascending as they were. `spare`: room for as many. */
static uint64_t *sorted(uint64_t *pairs, uint64_t *spare, int64_t size, int32_t bits) {
    if (size <= FEW) {
        for (int64_t i = 1; i < size; i++) {
            const uint64_t pair = pairs[i];
            int64_t j = i;
            for (; j > 0 && pairs[j - 1] > pair; j--) pairs[j] = pairs[j - 1];
            pairs[j] = pair;
        }
        return pairs;
    }
    const int digit = size < (1 << DIGIT) ? 8 : DIGIT; /* counters take time too */
    const uint64_t last = (1u << digit) - 1;
    for (int shift = 32; shift < 32 + bits; shift += digit) {
        int64_t starts[1 << DIGIT], before = 0;
        memset(starts, 0, (last + 1) * sizeof *starts);
        for (int64_t i = 0; i < size; i++) starts[(pairs[i] >> shift) & last]++;
        for (uint64_t d = 0; d <= last; d++) {
            const int64_t here = starts[d];
            starts[d] = before;
            before += here;
        }
        for (int64_t i = 0; i < size; i++) spare[starts[(pairs[i] >> shift) & last]++] = pairs[i];
        uint64_t *other = pairs;
        pairs = spare, spare = other;
    }
    return pairs;
}

/* Go one token on from the positions of some groups: places[0 ..) become the positions of the longer n-grams that follow, in
   their order, the first of each kind marked. Not all go on: the text may end or restart there.

   longer: the histories have two tokens or more. found: how many positions and how many kinds. Returns 0, or 1 where memory
   is short. */
int64_t lmlab_extend(const int32_t *tokens, int64_t count, const uint8_t *restarts, int32_t V, int32_t bits, int32_t longer,
                     const int32_t *sizes, int64_t groups, uint32_t *places, int64_t *found) {
    int64_t largest = 0, all = 0, in = 0, out = 0, kinds = 0;
    for (int64_t g = 0; g < groups; g++) {
        all += sizes[g];
        if (sizes[g] > largest) largest = sizes[g];
    }
    uint64_t *room = malloc(2 * (largest + 1) * sizeof(uint64_t));
    if (!room) return 1;
    for (int64_t g = 0; g < groups; g++) {
        int64_t size = 0;
        for (int64_t end = in + sizes[g]; in < end; in++) {
            if (in + AHEAD < all) __builtin_prefetch(tokens + places[in + AHEAD]);
            const uint64_t here = places[in], next = here + 1;
            if (next == (uint64_t)count || tokens[next] == V || (longer && restarts[tokens[here]])) continue;
            room[size++] = (uint64_t)tokens[next] << 32 | next;
        }
        const uint64_t *pairs = sorted(room, room + largest, size, bits);
        int64_t before = -1;
        for (int64_t i = 0; i < size; i++) {
            const int64_t token = pairs[i] >> 32;
            places[out++] = (uint32_t)pairs[i] | (token != before ? FIRST : 0);
            kinds += token != before;
            before = token;
        }
    }
    free(room);
    found[0] = out, found[1] = kinds;
    return 0;
}

/* Name the n-grams that `lmlab_extend` found at these positions, `kind` the first of them: their keys, how often each occurs,
   and the id of each without its first token. The marks are taken away.

   below: the ids of the n-grams one shorter, by the position where they end; NULL: they are the tokens. ids: those of these,
   likewise; NULL where nobody will ask. */
void lmlab_name(const int32_t *tokens, const uint8_t *restarts, int32_t V, int32_t bits, uint32_t *places, int64_t size,
                const int32_t *below, int32_t *ids, int64_t kind, int64_t *keys, int32_t *counts, int32_t *suffix) {
    const int32_t *shorter = below ? below : tokens;
    kind--;
    for (int64_t i = 0; i < size; i++) {
        if (i + AHEAD < size) {
            const uint32_t soon = places[i + AHEAD] & ~FIRST;
            if (places[i + AHEAD] & FIRST) {
                __builtin_prefetch(tokens + soon);
                __builtin_prefetch(shorter + soon);
            }
            if (ids) __builtin_prefetch(ids + soon, 1);
        }
        const uint32_t at = places[i] & ~FIRST;
        if (places[i] & FIRST) {
            kind++;
            const int64_t history = below ? below[at - 1] : as_history(tokens[at - 1], restarts, V);
            keys[kind] = history << bits | tokens[at];
            suffix[kind] = shorter[at];
            counts[kind] = 0;
            places[i] = at;
        }
        counts[kind]++;
        if (ids) ids[at] = kind;
    }
}

/* How many n-grams have each of the ids from first up to last, without it, as their suffix: how many tokens precede those. */
void lmlab_preceding(const int32_t *suffix, int64_t size, int32_t first, int32_t last, int32_t *preceding) {
    for (int64_t i = 0; i < size; i++) {
        if (i + AHEAD < size) __builtin_prefetch(preceding + suffix[i + AHEAD], 1);
        if (suffix[i] >= first && suffix[i] < last) preceding[suffix[i]]++;
    }
}

/* One order of interpolated Kneser-Ney, for n-grams of whole histories: p of each, and the weight γ of each history.

   discount: by counts 0, 1, 2, 3 and more; below: p one order below, by suffix. Discounts are not added up one by one, so that
   their sum does not depend on an order. Returns how many histories there are. */
int64_t lmlab_interpolate(const int64_t *keys, const int32_t *counts, const int32_t *suffix, int64_t size, int32_t bits,
                          const float *discount, const float *below, float *p, int64_t *histories, double *gammas) {
    int64_t runs = 0;
    for (int64_t start = 0, end; start < size; start = end) {
        const int64_t history = keys[start] >> bits;
        double total = 0, of_count[4] = {0};
        for (end = start; end < size && keys[end] >> bits == history; end++) {
            if (end + AHEAD < size) __builtin_prefetch(below + suffix[end + AHEAD]);
            total += counts[end];
            of_count[counts[end] < 3 ? counts[end] : 3]++;
        }
        double gamma = of_count[1] * discount[1] + of_count[2] * discount[2] + of_count[3] * discount[3];
        if (total == 0) gamma = total = 1; /* no training token at all: the empty history has nothing to say */
        gamma /= total;
        histories[runs] = history, gammas[runs++] = gamma;
        for (int64_t i = start; i < end; i++) {
            const double spared = discount[counts[i] < 3 ? counts[i] : 3];
            p[i] = (counts[i] - spared) / total + gamma * below[suffix[i]];
        }
    }
    return runs;
}

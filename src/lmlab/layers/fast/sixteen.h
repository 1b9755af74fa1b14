/* Sixteen numbers at once, as the compiler makes them of whatever the processor has: sums, e to the power of them, and bf16. */

#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef float Sixteen __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t SixteenWhole __attribute__((vector_size(64), aligned(4), may_alias));

static inline Sixteen all_of(float x) { return x - (Sixteen){0}; }

/* Where `which` holds (all bits set) the one, else the other. */
static inline Sixteen chosen(SixteenWhole which, Sixteen one, Sixteen other) {
    return (Sixteen)((which & (SixteenWhole)one) | (~which & (SixteenWhole)other));
}

/* As many numbers as one register holds. What a loop carries on in registers must be of this kind: of wider ones the compiler makes
   pieces in memory. */
#if defined(__AVX512F__)
#define NATIVE 16
#elif defined(__AVX__)
#define NATIVE 8
#else
#define NATIVE 4
#endif
#define PIECES (16 / NATIVE) /* of sixteen */
typedef float Native __attribute__((vector_size(4 * NATIVE), aligned(4), may_alias));
typedef int32_t NativeWhole __attribute__((vector_size(4 * NATIVE), aligned(4), may_alias));

static inline Native native_chosen(NativeWhole which, Native one, Native other) {
    return (Native)((which & (NativeWhole)one) | (~which & (NativeWhole)other));
}

/* e to the power of what lies between -ln 2 / 2 and ln 2 / 2. */
static inline Native near_nothing(Native r) {
    Native p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return p * r * r + r + 1.0f;
}

/* e to the power of each, within about one unit in the last place; 0 below -87, and what is no number stays none. Of what is above
   88, e^88 where the processor has no instruction for the last step. */
#ifdef __AVX512F__
#include <immintrin.h>

static inline Native native_exponentials(Native asked) {
    const __m512 x = _mm512_max_ps(_mm512_set1_ps(-1000.0f), (__m512)asked);
    const __m512 whole = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341f)), 8);
    const Native r = (Native)_mm512_fnmadd_ps(
        whole, _mm512_set1_ps(-2.12194440e-4f), _mm512_fnmadd_ps(whole, _mm512_set1_ps(0.693359375f), x));
    return (Native)_mm512_scalef_ps((__m512)near_nothing(r), whole);
}
#else
static inline Native native_exponentials(Native x) {
    const float round_up = 12582912.0f; /* 1.5 · 2^23: adding it leaves the nearest whole number in the lowest bits */
    const Native asked = x;
    x = native_chosen(x > 88.0f, 88.0f - (Native){0}, x);
    const Native moved = x * 1.44269504088896341f + round_up, whole = moved - round_up;
    const NativeWhole power = (NativeWhole)moved - 0x4B400000;
    Native p = near_nothing((x - whole * 0.693359375f) - whole * -2.12194440e-4f); /* ln 2 in two pieces */
    p = (Native)((NativeWhole)p + (power << 23));
    p = (Native)(~(asked < -87.0f) & (NativeWhole)p);
    return native_chosen(asked != asked, asked, p);
}
#endif

/* The same of sixteen: in pieces, since of what is wider than a register the compiler makes something slow. */
static inline Sixteen exponentials(Sixteen x) {
    union {
        Sixteen all;
        Native piece[PIECES];
    } sixteen = {x};
    for (int p = 0; p < PIECES; p++) sixteen.piece[p] = native_exponentials(sixteen.piece[p]);
    return sixteen.all;
}

typedef float Eight __attribute__((vector_size(32)));
typedef float Four __attribute__((vector_size(16)));

static inline float sum_of_four(Four x) { return (x[0] + x[2]) + (x[1] + x[3]); }

static inline float sum_of_eight(Eight x) {
    union {
        Eight all;
        Four half[2];
    } eight = {x};
    return sum_of_four(eight.half[0] + eight.half[1]);
}

static inline float sum_of(Sixteen x) {
    union {
        Sixteen all;
        Eight half[2];
    } sixteen = {x};
    return sum_of_eight(sixteen.half[0] + sixteen.half[1]);
}

/* The same of sixteen in pieces, in the same order. */
static inline float sum_of_pieces(const Native x[PIECES]) {
#if NATIVE == 16
    return sum_of(x[0]);
#elif NATIVE == 8
    return sum_of_eight(x[0] + x[1]);
#else
    return sum_of_four((x[0] + x[2]) + (x[1] + x[3]));
#endif
}

typedef uint16_t SixteenHalf __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint16_t NativeHalf __attribute__((vector_size(2 * NATIVE), aligned(2), may_alias));
typedef uint32_t NativeBits __attribute__((vector_size(4 * NATIVE), aligned(4), may_alias));
typedef uint32_t SixteenBits __attribute__((vector_size(64), aligned(4), may_alias));

/* Sixteen numbers from memory and to it. */

static inline Sixteen taken(const void *from, ptrdiff_t at, int narrow) {
    if (!narrow) return *(const Sixteen *)((const float *)from + at);
    return (Sixteen)(__builtin_convertvector(*(const SixteenHalf *)((const uint16_t *)from + at), SixteenBits) << 16);
}

static inline void put(void *to, ptrdiff_t at, int narrow, Sixteen x) {
    if (!narrow) {
        *(Sixteen *)((float *)to + at) = x;
        return;
    }
    /* to the nearest, ties to even; what is no number stays none */
#ifdef __AVX512BF16__
    *(SixteenHalf *)((uint16_t *)to + at) = (SixteenHalf)_mm512_cvtneps_pbh((__m512)x);
#else
    union {
        Sixteen all;
        Native piece[PIECES];
    } sixteen = {x};
    for (int p = 0; p < PIECES; p++) {
        const NativeBits bits = (NativeBits)sixteen.piece[p];
        const NativeBits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, none = (bits | 0x400000) >> 16;
        const NativeBits found =
            (NativeBits)native_chosen(sixteen.piece[p] != sixteen.piece[p], (Native)none, (Native)rounded);
        *(NativeHalf *)((uint16_t *)to + at + p * NATIVE) = __builtin_convertvector(found, NativeHalf);
    }
#endif
}

/* max(x, 0); what is no number stays none. In pieces: comparisons of what is wider than a register are made number by number. */
static inline Sixteen positive_of(Sixteen x) {
    union {
        Sixteen all;
        Native piece[PIECES];
    } sixteen = {x};
    for (int p = 0; p < PIECES; p++) sixteen.piece[p] = native_chosen(sixteen.piece[p] < 0.0f, (Native){0}, sixteen.piece[p]);
    return sixteen.all;
}

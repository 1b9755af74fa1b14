/* As many numbers at once as a register holds, from memory and to it, and what the gates of recurrent cells do to them. */

#pragma once
#include "sixteen.h"

#if NATIVE == 16
static inline Native native_taken(const void *from, ptrdiff_t at, int narrow) { return taken(from, at, narrow); }

static inline void native_put(void *to, ptrdiff_t at, int narrow, Native x) { put(to, at, narrow, x); }
#else

static inline Native native_taken(const void *from, ptrdiff_t at, int narrow) {
    if (!narrow) return *(const Native *)((const float *)from + at);
    return (Native)(__builtin_convertvector(*(const NativeHalf *)((const uint16_t *)from + at), NativeBits) << 16);
}

static inline void native_put(void *to, ptrdiff_t at, int narrow, Native x) {
    if (!narrow) {
        *(Native *)((float *)to + at) = x;
        return;
    }
    const NativeBits bits = (NativeBits)x; /* to the nearest, ties to even; what is no number stays none */
    const Native rounded = (Native)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16), none = (Native)((bits | 0x400000) >> 16);
    const NativeBits found = (NativeBits)native_chosen(x != x, none, rounded);
    *(NativeHalf *)((uint16_t *)to + at) = __builtin_convertvector(found, NativeHalf);
}
#endif

/* 1 / (1 + e^-x) and tanh x, within 3 units in the last place; of the first, 1e-38 may stand for less; what is no number stays
   none. */
static inline Native sigmoids(Native x) { return 1.0f / (1.0f + native_exponentials(-x)); }

static inline Native tanhs(Native x) {
    const Native size = (Native)((NativeWhole)x & 0x7fffffff), square = x * x;
    Native p = square * -5.70498872745e-3f + 2.06390887954e-2f; /* where 1 - 2 / (e^2x + 1) would be small and rough */
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    const Native large = 1.0f - 2.0f / (native_exponentials(size + size) + 1.0f);
    const Native with_sign = (Native)((NativeWhole)large | ((NativeWhole)x & (int32_t)0x80000000));
    return native_chosen(size < 0.625f, p * square * x + x, with_sign);
}

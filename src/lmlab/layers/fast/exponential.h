/* e to the power of sixteen numbers at once, within about one unit in the last place. Below -87 it is 0, above 88 it is e^88;
   what is no number stays none. */

#include <stdint.h>

typedef float Sixteen __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t SixteenWhole __attribute__((vector_size(64), aligned(4), may_alias));

static inline Sixteen all_of(float x) { return x - (Sixteen){0}; }

/* Where `which` holds (all bits set) the one, else the other. */
static inline Sixteen chosen(SixteenWhole which, Sixteen one, Sixteen other) {
    return (Sixteen)((which & (SixteenWhole)one) | (~which & (SixteenWhole)other));
}

static inline Sixteen exponentials(Sixteen x) {
    const float round_up = 12582912.0f; /* 1.5 · 2^23: adding it leaves the nearest whole number in the lowest bits */
    const Sixteen asked = x;
    x = chosen(x > 88.0f, all_of(88.0f), x);
    Sixteen moved = x * 1.44269504088896341f + round_up;
    Sixteen whole = moved - round_up;
    SixteenWhole power = (SixteenWhole)moved - 0x4B400000;
    /* ln 2 in two pieces, the first of which multiplies exactly */
    Sixteen r = x - whole * 0.693359375f;
    r = r - whole * -2.12194440e-4f;
    Sixteen p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    p = (Sixteen)((SixteenWhole)p + (power << 23));
    p = (Sixteen)(~(asked < -87.0f) & (SixteenWhole)p);
    return chosen(asked != asked, asked, p);
}

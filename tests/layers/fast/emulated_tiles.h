/* The instructions for tiles of bf16 in plain C, for processors with AVX-512 that lack them: included before a kernel, so that what
   it does with tiles can be held against its twin anywhere. */

#include <immintrin.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef __AMX_BF16__
#undef __AVX512BF16__
#define __AMX_BF16__ 1
#define __AVX512BF16__ 1

static _Thread_local char emulated[8][1024];

static inline uint16_t rounded_to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return x == x ? (bits + 0x7fff + ((bits >> 16) & 1)) >> 16 : bits >> 16 | 64;
}

static inline float from_bf16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float found;
    memcpy(&found, &bits, 4);
    return found;
}

static inline __m256i emulated_rounding(__m512 x) {
    float numbers[16];
    uint16_t found[16];
    _mm512_storeu_ps(numbers, x);
    for (int i = 0; i < 16; i++) found[i] = rounded_to_bf16(numbers[i]);
    return _mm256_loadu_si256((const __m256i *)found);
}

static inline void emulated_load(int tile, const char *from, long row) {
    for (int i = 0; i < 16; i++) memcpy(emulated[tile] + 64 * i, from + i * row, 64);
}

static inline void emulated_store(int tile, char *to, long row) {
    for (int i = 0; i < 16; i++) memcpy(to + i * row, emulated[tile] + 64 * i, 64);
}

static inline void emulated_product(int sums, int left, int right) {
    float *c = (float *)emulated[sums];
    const uint16_t *a = (const uint16_t *)emulated[left], *b = (const uint16_t *)emulated[right];
    for (int m = 0; m < 16; m++)
        for (int k = 0; k < 32; k++)
            for (int n = 0; n < 16; n++) c[16 * m + n] += from_bf16(a[32 * m + k]) * from_bf16(b[k / 2 * 32 + 2 * n + k % 2]);
}

#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_loadconfig
#undef _tile_release
#define _mm512_cvtneps_pbh emulated_rounding
#define _tile_zero(tile) memset(emulated[tile], 0, 1024)
#define _tile_loadd(tile, from, row) emulated_load(tile, (const char *)(from), row)
#define _tile_stored(tile, to, row) emulated_store(tile, (char *)(to), row)
#define _tile_dpbf16ps(sums, left, right) emulated_product(sums, left, right)
#define _tile_loadconfig(shape) ((void)(shape))
#define _tile_release() ((void)0)
#define syscall(...) 0 /* the permission to use tiles */

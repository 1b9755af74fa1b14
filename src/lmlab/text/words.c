/* The words of a text by number, looked up in the table of `word_table.py`, and what is met for the first time put there.

   The text holds no character 0, no whitespace but ASCII's, and at least 16 bytes beyond its end. */

#include <stdint.h>
#include <string.h>

#define PACKED 16 /* bytes of the longest word that is two numbers */
#define EMPTY -1

typedef struct {
    uint64_t low, high;
    int32_t number, unused;
} Slot;

typedef struct {
    int64_t place, start, end; /* among the numbers; in the text */
} Miss;

static inline int is_space(uint8_t byte) { return byte <= 32 && (byte >= 28 || (byte >= 9 && byte <= 13)); }

/* The bytes of a word as one number, or as many of them as fit; little-endian, as is every machine this is used on. */
static inline uint64_t first_bytes(const uint8_t *word, int64_t length) {
    uint64_t eight;
    memcpy(&eight, word, 8);
    return length >= 8 ? eight : eight & ((1ULL << 8 * length) - 1);
}

/* The number of whitespace that is one token and is met often: a single byte, or "\n ", " \n", "  " and " \n "; EMPTY: others. */
static inline int32_t known_gap(const uint8_t *gap, int64_t length, const int32_t *known) {
    if (length == 1) return known[gap[0]];
    if (length == 2 && gap[0] == '\n' && gap[1] == ' ') return known[33];
    if (length == 2 && gap[0] == ' ' && gap[1] == '\n') return known[34];
    if (length == 2 && gap[0] == ' ' && gap[1] == ' ') return known[35];
    if (length == 3 && gap[0] == ' ' && gap[1] == '\n' && gap[2] == ' ') return known[36];
    return EMPTY;
}

/* The tokens of text[from .. to), which begins and ends with a word, as numbers; `from` is moved on to where this ended.

   A word that is not in the table gets the next number, and is a miss; so is a word too long for it, and whitespace that is not
   known as above, whose numbers are EMPTY. It ends early where no more misses can be noted or no more words be put into the
   table. Returns how many misses there are; `found`: how many tokens. */
int64_t lmlab_words(const uint8_t *text, int64_t *from, int64_t to, Slot *table, int32_t bits, int64_t room, int32_t next,
                    const int32_t *known, int32_t *numbers, int64_t *found, Miss *misses, int64_t most_misses) {
    int64_t at = *from, tokens = 0, missed = 0;
    const uint64_t last = (1ULL << bits) - 1;
    while (at < to && missed + 1 < most_misses && room > 0) {
        const int64_t start = at;
        while (at < to && !is_space(text[at])) at++;
        const int64_t length = at - start;
        if (length > PACKED) {
            misses[missed++] = (Miss){tokens, start, at};
            numbers[tokens++] = EMPTY;
        } else {
            const uint64_t low = first_bytes(text + start, length);
            const uint64_t high = length > 8 ? first_bytes(text + start + 8, length - 8) : 0;
            uint64_t slot = ((low ^ (high * 0xC2B2AE3D27D4EB4FULL)) * 0x9E3779B97F4A7C15ULL) >> (64 - bits);
            while (table[slot].number != EMPTY && (table[slot].low != low || table[slot].high != high))
                slot = (slot + 1) & last;
            if (table[slot].number == EMPTY) {
                table[slot] = (Slot){low, high, next++, 0};
                room--;
                misses[missed++] = (Miss){tokens, start, at};
            }
            numbers[tokens++] = table[slot].number;
        }
        if (at == to) break;
        const int64_t gap = at;
        while (is_space(text[at])) at++;
        if (at - gap == 1 && text[gap] == ' ') continue;
        const int32_t number = known_gap(text + gap, at - gap, known);
        if (number == EMPTY) misses[missed++] = (Miss){tokens, gap, at};
        numbers[tokens++] = number;
    }
    *from = at;
    *found = tokens;
    return missed;
}

/* The name that a mistyped word probably means: messages that refuse a name suggest it, or list all. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

enum { WORD = 64 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* The least number of insertions, deletions, replacements and swaps of neighbours that turn a into b, row by row of the table of
 * their beginnings; capitals count as small letters. */
static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t rows[3][WORD + 1];
    for (size_t j = 0; j <= b_size; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_size; i++) {
        const size_t *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            bool differs = lower(a[i - 1]) != lower(b[j - 1]);
            row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + differs);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1])) {
                row[j] = smaller(row[j], before[j - 2] + 1);
            }
        }
    }
    return rows[a_size % 3][b_size];
}

bool bwi_nearer(size_t *least, const char *word, size_t size, const char *name)
{
    size_t length = strlen(name);
    size_t limit = *least < SIZE_MAX ? *least : size / 3 + 2; /* further away is another word, not a slip */
    if (size > WORD || length > WORD || length == 0) {
        return false;
    }
    size_t away = distance(word, size, name, length);
    if (away >= limit || away >= size) {
        return false;
    }
    *least = away;
    return true;
}

bwi_known bwi_known_begin(bw_context *ctx, const char *word, size_t size)
{
    return (bwi_known){.word = word, .size = size, .least = SIZE_MAX, .list = {.ctx = ctx}};
}

void bwi_known_add(bwi_known *known, const char *names)
{
    bwi_text_add(&known->list, "%s%.*s", known->list.length ? ", " : "there are ", (int)strcspn(names, " "), names);
    for (const char *name = names; *name; name += strspn(name, " ")) {
        char one[sizeof known->nearest];
        size_t length = strcspn(name, " ");
        snprintf(one, sizeof one, "%.*s", (int)length, name);
        if (bwi_nearer(&known->least, known->word, known->size, one)) {
            memcpy(known->nearest, one, sizeof one);
        }
        name += length;
    }
}

const char *bwi_known_hint(bwi_known *known)
{
    if (known->nearest[0]) {
        known->list.length = 0;
        bwi_text_add(&known->list, "did you mean '%s'?", known->nearest);
    }
    return known->list.bytes ? known->list.bytes : "";
}

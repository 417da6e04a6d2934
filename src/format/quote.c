/*
 * Text from files in messages: short and printable, whatever the bytes are. Letters of all languages are shown as they are; control
 * characters, also those beyond ASCII that move a terminal's cursor or turn the direction of text, and what is no UTF-8 are not.
 */
#include "format/format.h"

#define QUOTE_LIMIT 60

/* The code point at `at` and the bytes that it takes; 0 bytes: it is no UTF-8. */
static size_t decode(const unsigned char *at, size_t size, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80 ? 1 : at[0] < 0xC0 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : at[0] < 0xF8 ? 4 : 0;
    if (length == 0 || length > size) {
        return 0;
    }
    *code = length == 1 ? at[0] : at[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80) {
            return 0;
        }
        *code = *code << 6 | (at[i] & 0x3Fu);
    }
    return *code >= least[length] && *code <= 0x10FFFF ? length : 0;
}

static bool is_shown(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0, 0x1F},        {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},   {0x200B, 0x200F}, {0x2028, 0x202E},
                  {0x2060, 0x206F}, {0xD800, 0xF8FF}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFF}, {0xE0000, 0x10FFFF}};
    for (size_t i = 0; i < BWI_COUNT(hidden); i++) {
        if (code >= hidden[i].first && code <= hidden[i].last) {
            return false;
        }
    }
    return true;
}

char *bwi_quote(char buffer[BWI_QUOTE_SIZE], const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    char *to = buffer;
    size_t at = 0;
    *to++ = '\'';
    while (at < size && at < QUOTE_LIMIT) {
        uint32_t code = 0;
        size_t length = decode(from + at, size - at, &code);
        if (at + length > QUOTE_LIMIT) {
            break;
        }
        bool shown = length > 0 && is_shown(code);
        for (size_t i = 0; i < length && shown; i++) {
            *to++ = (char)from[at + i];
        }
        if (!shown) {
            *to++ = '?';
        }
        at += length > 0 ? length : 1;
    }
    *to++ = '\'';
    if (size > at) {
        *to++ = '.';
        *to++ = '.';
        *to++ = '.';
    }
    *to = 0;
    return buffer;
}

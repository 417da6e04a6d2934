/* Text from files in messages: short and printable, whatever the bytes are. */
#include "format/format.h"

#define QUOTE_LIMIT 60

char *bwi_quote(char buffer[BWI_QUOTE_SIZE], const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    char *to = buffer;
    *to++ = '\'';
    for (size_t i = 0; i < size && i < QUOTE_LIMIT; i++) {
        *to++ = from[i] >= 0x20 && from[i] < 0x7f ? (char)from[i] : '?';
    }
    *to++ = '\'';
    if (size > QUOTE_LIMIT) {
        *to++ = '.';
        *to++ = '.';
        *to++ = '.';
    }
    *to = 0;
    return buffer;
}

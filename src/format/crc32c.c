/* CRC-32C: polynomial 0x1EDC6F41, reflected. Eight bytes at a time, by the processor where it can, else by tables. */
#include "format/internal.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82F63B78u

static uint32_t table[8][256];

static void fill_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        }
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int k = 1; k < 8; k++) {
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
        }
    }
}

static uint32_t by_tables(uint32_t crc, const unsigned char *at, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_tables);
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^ table[3][at[4]] ^
              table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    for (; size > 0; size--) {
        crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
    }
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_processor(uint32_t crc, const unsigned char *at, size_t size)
{
    uint64_t sum = crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        sum = __builtin_ia32_crc32di(sum, word);
    }
    crc = (uint32_t)sum;
    for (; size > 0; size--) {
        crc = __builtin_ia32_crc32qi(crc, *at++);
    }
    return crc;
}
#endif

uint32_t bwi_crc32c_tables(const void *bytes, size_t size)
{
    return ~by_tables(~0u, bytes, size);
}

uint32_t bwi_crc32c(const void *bytes, size_t size)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) {
        return ~by_processor(~0u, bytes, size);
    }
#endif
    return bwi_crc32c_tables(bytes, size);
}

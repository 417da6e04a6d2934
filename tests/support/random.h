/* Draws random bits for tests with xorshift, the same in every run. */
#ifndef BWI_TEST_RANDOM_H
#define BWI_TEST_RANDOM_H

#include <stdint.h>

static inline uint64_t random_bits(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#endif

/* The convolution of builds without oneDNN: the same shapes and comparisons as oneDNN's. */
#define TEST_DIRECT
#include "test_convolution.c"

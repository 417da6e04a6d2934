/* The table of layers. */
#include "layer/rows.h"

#include <string.h>

const bwi_layer_row *const bwi_layer_rows[] = {&bwi_layer_conv2d,  &bwi_layer_maxpool2d, &bwi_layer_flatten,
                                               &bwi_layer_dense,   &bwi_layer_batchnorm, &bwi_layer_activation,
                                               &bwi_layer_relu,    &bwi_layer_softmax,   NULL};

const bwi_layer_row *bwi_layer_row_find(const char *name, int length)
{
    for (int i = 0; bwi_layer_rows[i]; i++) {
        for (const char *at = bwi_layer_rows[i]->names; *at;) {
            size_t n = strcspn(at, " ");
            if (n == (size_t)length && memcmp(at, name, n) == 0) {
                return bwi_layer_rows[i];
            }
            at += n + strspn(at + n, " ");
        }
    }
    return NULL;
}

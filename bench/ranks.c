/*
 * What a sum over ranks costs, by its size:
 *
 *     BATCHWISE_MPI=$PWD/build/libbatchwise_mpi_openmpi.so mpirun -n 2 build/bench/ranks
 *
 * Each figure is the median of repeated sums; the line at the end is a straight line through them, latency and bandwidth, by least
 * squares of relative errors.
 */
#include "rank/rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 22, ROUNDS = 41, SIZES = 12 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Fits seconds = latency + bytes / bandwidth, with weights that make errors relative. */
static void fit(const double *bytes, const double *seconds, int count)
{
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (int i = 0; i < count; i++) {
        double weight = 1 / (seconds[i] * seconds[i]);
        w += weight;
        wx += weight * bytes[i];
        wy += weight * seconds[i];
        wxx += weight * bytes[i] * bytes[i];
        wxy += weight * bytes[i] * seconds[i];
    }
    double slope = (w * wxy - wx * wy) / (w * wxx - wx * wx), latency = (wy - slope * wx) / w;
    printf("latency %.1f us, bandwidth %.2f GB/s\n", latency * 1e6, 1e-9 / slope);
}

int main(void)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 1;
    bw_ranks_mpi(&options);
    bw_context *ctx = bw_open(&options);
    if (bw_ranks_count(options.ranks) < 2) {
        fprintf(stderr, "ranks: expected two or more processes of mpirun, found one: %s\n", bw_message(ctx));
        bw_close(ctx);
        bw_ranks_close(options.ranks);
        return 1;
    }
    float *values = calloc(MOST, sizeof *values);
    double bytes[SIZES], seconds[SIZES], taken[ROUNDS];
    bw_status status = !values ? BW_RESOURCE_EXHAUSTED : BW_OK;
    for (int k = 0; k < SIZES && status == BW_OK; k++) {
        int64_t count = (int64_t)MOST >> 2 * (SIZES - 1 - k);
        count = count > 0 ? count : 1;
        for (int r = 0; r < ROUNDS && status == BW_OK; r++) {
            double begin = bwi_now();
            status = bwi_rank_of(ctx)->sum_floats(ctx, values, count);
            taken[r] = bwi_now() - begin;
        }
        qsort(taken, ROUNDS, sizeof *taken, compare);
        bytes[k] = (double)count * sizeof *values;
        seconds[k] = taken[ROUNDS / 2];
        if (options.rank == 0) {
            printf("%10.0f bytes %12.1f us\n", bytes[k], seconds[k] * 1e6);
        }
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s\n", bw_message(ctx));
    } else if (options.rank == 0) {
        fit(bytes, seconds, SIZES);
    }
    fflush(stdout);
    free(values);
    bw_close(ctx);
    bw_ranks_close(options.ranks);
    return status != BW_OK;
}

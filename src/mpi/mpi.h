/*
 * mpi: the few functions of MPI that ranks need, behind a plain C table. Each MPI has its own types and numbers, so library.c is
 * compiled once for each that is installed, by its own mpicc, into libbatchwise_mpi_<name>.so; rank loads one of them and knows no
 * MPI itself. Everything goes through a communicator of our own. Functions return 0 or a number that `describe` explains.
 */
#ifndef BWI_MPI_H
#define BWI_MPI_H

#include <stddef.h>
#include <stdint.h>

#define BWI_MPI_VERSION 1

/* What one message that is under way is known by; large enough for the handle of any MPI. */
typedef struct bwi_mpi_request {
    uint64_t words[2];
} bwi_mpi_request;

typedef struct bwi_mpi_world {
    int rank, count;
    int threads; /* more than one thread may call, one at a time */
    char implementation[128];
} bwi_mpi_world;

typedef struct bwi_mpi_calls {
    uint32_t version; /* BWI_MPI_VERSION; comes first for ever */
    uint32_t size;    /* of this table */
    /* Starts MPI, unless the program did, and makes the communicator. */
    int (*open)(bwi_mpi_world *world);
    /* Begin to send and to receive; the bytes stay where they are until `test` says done. */
    int (*send)(bwi_mpi_request *request, const void *bytes, size_t size, int to, int tag);
    int (*receive)(bwi_mpi_request *request, void *bytes, size_t size, int from, int tag); /* from -1: anybody */
    /* Whether it is done; then `size` bytes have come from rank `from`, if it was a receive. It is done only once. */
    int (*test)(bwi_mpi_request *request, int *done, int *from, size_t *size);
    void (*cancel)(bwi_mpi_request *request);
    void (*describe)(int error, char *text, size_t size);
    void (*abort)(int code); /* ends all processes of the job */
    void (*close)(void);     /* waits for the others; leaves MPI running if the program started it */
} bwi_mpi_calls;

/* The library's only symbol. */
#define BWI_MPI_SYMBOL "batchwise_mpi"
typedef const bwi_mpi_calls *(*bwi_mpi_entry)(void);

#endif

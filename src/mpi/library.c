/*
 * libbatchwise_mpi: the table of mpi.h, for the MPI whose compiler made this file. Errors are returned, since a library must not
 * end the program of its user. Threads: MPI_THREAD_SERIALIZED is asked for; where there is less, `threads` says so.
 */
#include "mpi/mpi.h"

#include <mpi.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(bwi_mpi_request), "an MPI whose requests are larger than two words");

static MPI_Comm ours = MPI_COMM_NULL;
static int started_here;

static MPI_Request load(const bwi_mpi_request *request)
{
    MPI_Request handle;
    memcpy(&handle, request, sizeof handle);
    return handle;
}

static void store(bwi_mpi_request *request, MPI_Request handle)
{
    memcpy(request, &handle, sizeof handle);
}

/* The first line of the implementation's name, such as "Open MPI v4.1.4". */
static void name_implementation(char *text, size_t size)
{
    char whole[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    whole[0] = 0;
    MPI_Get_library_version(whole, &length);
    whole[strcspn(whole, ",\n")] = 0;
    snprintf(text, size, "%s", whole);
    for (char *c = text; *c; c++) {
        *c = *c == '\t' ? ' ' : *c;
    }
}

/* A program that has started MPI itself keeps it, with the threads that it asked for. */
static int open_mpi(bwi_mpi_world *world)
{
    int running = 0, ended = 0, level = MPI_THREAD_SINGLE;
    int error = MPI_Initialized(&running);
    if (error == MPI_SUCCESS) {
        error = MPI_Finalized(&ended);
    }
    if (error != MPI_SUCCESS || ended) {
        return error != MPI_SUCCESS ? error : MPI_ERR_OTHER;
    }
    error = running ? MPI_Query_thread(&level) : MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (error == MPI_SUCCESS) {
        started_here = !running;
        error = MPI_Comm_dup(MPI_COMM_WORLD, &ours);
    }
    if (error == MPI_SUCCESS) {
        error = MPI_Comm_set_errhandler(ours, MPI_ERRORS_RETURN);
    }
    if (error == MPI_SUCCESS) {
        error = MPI_Comm_rank(ours, &world->rank);
    }
    if (error == MPI_SUCCESS) {
        error = MPI_Comm_size(ours, &world->count);
    }
    world->threads = level >= MPI_THREAD_SERIALIZED;
    name_implementation(world->implementation, sizeof world->implementation);
    return error;
}

static int begin_send(bwi_mpi_request *request, const void *bytes, size_t size, int to, int tag)
{
    MPI_Request handle = MPI_REQUEST_NULL;
    int error = size > INT_MAX ? MPI_ERR_COUNT : MPI_Isend(bytes, (int)size, MPI_BYTE, to, tag, ours, &handle);
    store(request, handle);
    return error;
}

static int begin_receive(bwi_mpi_request *request, void *bytes, size_t size, int from, int tag)
{
    MPI_Request handle = MPI_REQUEST_NULL;
    int source = from < 0 ? MPI_ANY_SOURCE : from;
    int error = size > INT_MAX ? MPI_ERR_COUNT : MPI_Irecv(bytes, (int)size, MPI_BYTE, source, tag, ours, &handle);
    store(request, handle);
    return error;
}

static int test(bwi_mpi_request *request, int *done, int *from, size_t *size)
{
    MPI_Request handle = load(request);
    MPI_Status status;
    int bytes = 0;
    int error = MPI_Test(&handle, done, &status);
    store(request, handle);
    if (error == MPI_SUCCESS && *done) {
        error = MPI_Get_count(&status, MPI_BYTE, &bytes);
        *from = status.MPI_SOURCE;
        *size = bytes < 0 ? 0 : (size_t)bytes;
    }
    return error;
}

static void cancel(bwi_mpi_request *request)
{
    MPI_Request handle = load(request);
    if (handle != MPI_REQUEST_NULL) {
        MPI_Cancel(&handle);
        MPI_Request_free(&handle);
    }
    store(request, MPI_REQUEST_NULL);
}

static void describe(int error, char *text, size_t size)
{
    char whole[MPI_MAX_ERROR_STRING];
    int length = 0;
    whole[0] = 0;
    MPI_Error_string(error, whole, &length);
    whole[strcspn(whole, "\n")] = 0;
    snprintf(text, size, "%s", whole);
}

static void abort_all(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

static void close_mpi(void)
{
    MPI_Comm_free(&ours);
    if (started_here) {
        MPI_Finalize();
    }
}

#pragma GCC visibility push(default)
const bwi_mpi_calls *batchwise_mpi(void);
const bwi_mpi_calls *batchwise_mpi(void)
{
    static const bwi_mpi_calls calls = {
        .version = BWI_MPI_VERSION,
        .size = sizeof calls,
        .open = open_mpi,
        .send = begin_send,
        .receive = begin_receive,
        .test = test,
        .cancel = cancel,
        .describe = describe,
        .abort = abort_all,
        .close = close_mpi,
    };
    return &calls;
}
#pragma GCC visibility pop

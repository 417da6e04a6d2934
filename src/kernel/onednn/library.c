/*
 * library: the parts of oneDNN that belong to the process: the engine, the instruction set it may use, and the number of OpenMP
 * threads. A tile is computed by one thread, so oneDNN gets one: its scratchpads and its division of work depend on the number that
 * is set when a primitive is described, and results must not depend on it.
 */
#include "kernel/onednn/api.h"

#include <pthread.h>
#include <string.h>

/* Functions of the OpenMP runtime that oneDNN itself is linked with; omp.h belongs to a compiler, which may come with another. */
extern int omp_get_max_threads(void);
extern void omp_set_num_threads(int threads);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bwi_dnnl_library library;

static void library_open(void)
{
    dnnl_status_t status = dnnl_engine_create(&library.engine, dnnl_cpu, 0);
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_create(&library.attributes);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_scratchpad_mode(library.attributes, dnnl_scratchpad_mode_user);
    }
    /* Otherwise an environment variable could lower the precision. */
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_fpmath_mode(library.attributes, dnnl_fpmath_mode_strict);
    }
    library.status = status;
}

const bwi_dnnl_library *bwi_dnnl_library_of(void)
{
    if (pthread_once(&once, library_open) != 0) {
        library.status = dnnl_runtime_error;
    }
    return &library;
}

void bwi_onednn_limit(const char *instruction_set)
{
    /* oneDNN takes a limit only before its first use in the process: a later one is refused, and has no effect. */
    if (instruction_set && strcmp(instruction_set, "avx2") == 0) {
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    } else if (instruction_set && strcmp(instruction_set, "portable") == 0) {
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    }
}

int bwi_onednn_begin(void)
{
    int setting = omp_get_max_threads();
    omp_set_num_threads(1);
    return setting;
}

void bwi_onednn_end(int setting)
{
    omp_set_num_threads(setting);
}

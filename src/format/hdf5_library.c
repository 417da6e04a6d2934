/* Entering and leaving the HDF5 library, and its files that exist in memory only. */
#include "format/hdf5_library.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

enum { CORE_STEP = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void bwi_hdf5_enter(bwi_hdf5_host *h)
{
    static bool entered;
    pthread_mutex_lock(&lock);
    /* At the process's end the library would print about what a damaged file has left in it. All files here are closed; a
     * host that uses the library itself has begun it before, and then nothing changes. */
    if (!entered) {
        H5dont_atexit();
    }
    entered = true;
    *h = (bwi_hdf5_host){0};
    H5Eget_auto2(H5E_DEFAULT, &h->print, &h->print_data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLget_loading_state(&h->plugins);
    H5PLset_loading_state(0);
}

void bwi_hdf5_leave(const bwi_hdf5_host *h)
{
    H5PLset_loading_state(h->plugins);
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, h->print, h->print_data);
    pthread_mutex_unlock(&lock);
}

/* The driver looks whether a file of the given name exists, and takes equal names for the same file: a name that cannot
 * exist, and another one each time. */
hid_t bwi_hdf5_memory(char name[64])
{
    static unsigned serial;
    snprintf(name, 64, "/dev/null/batchwise-%u", serial++);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && (H5Pset_fapl_core(access, CORE_STEP, 0) < 0 || H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0)) {
        H5Pclose(access);
        return -1;
    }
    return access;
}

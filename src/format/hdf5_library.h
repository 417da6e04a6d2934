/*
 * The HDF5 library's manners, and the only place that includes it. It keeps its state in globals: calls are made under one lock, and
 * what they change for the host program (its error printing, its plugins) is put back each time.
 */
#ifndef BWI_FORMAT_HDF5_LIBRARY_H
#define BWI_FORMAT_HDF5_LIBRARY_H

#include <hdf5.h>

/* The host program's settings, which are put back. */
typedef struct bwi_hdf5_host {
    H5E_auto2_t print;
    void *print_data;
    unsigned plugins;
} bwi_hdf5_host;

/* To be called before and after calls of the library. */
void bwi_hdf5_enter(bwi_hdf5_host *host);
void bwi_hdf5_leave(const bwi_hdf5_host *host);
/* Properties for a file that is in memory only, and a name for it; negative: it failed. */
hid_t bwi_hdf5_memory(char name[64]);

#endif

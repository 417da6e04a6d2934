/*
 * Finds out whether an MPI launcher started this process, and loads the library for its MPI. Names of libmpi are never guessed: the
 * library was compiled for one MPI, and is installed beside ours or named by $BATCHWISE_MPI.
 */
#include "rank/mpi_group.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *environment(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static const char *chosen(void)
{
    return environment("BATCHWISE_MPI");
}

/* What launchers tell the processes that they start. Open MPI's comes first, since its mpirun runs within Slurm, too; Slurm alone
 * does not tell which MPI its programs are made for. */
bwi_launcher bwi_launcher_find(void)
{
    static const struct {
        const char *variable, *name, *flavor;
    } known[] = {
        {"OMPI_COMM_WORLD_SIZE", "mpirun of Open MPI", "openmpi"},
        {"PMI_SIZE", "mpiexec of MPICH", "mpich"},
        {"MV2_COMM_WORLD_SIZE", "mpirun of MVAPICH", "mpich"},
        {"SLURM_STEP_NUM_TASKS", "srun", NULL},
    };
    bwi_launcher found = {.name = NULL};
    for (size_t i = 0; i < BWI_COUNT(known) && !found.name; i++) {
        const char *count = environment(known[i].variable);
        if (count) {
            found = (bwi_launcher){known[i].name, known[i].flavor, (int)strtol(count, NULL, 10)};
        }
    }
    const char *kind = environment("SLURM_MPI_TYPE");
    if (found.name && !found.flavor && kind) {
        found.flavor = strncmp(kind, "pmix", 4) == 0 ? "openmpi" : strcmp(kind, "pmi2") == 0 ? "mpich" : NULL;
    }
    const char *asked = chosen();
    if (asked && strcmp(asked, "none") == 0) {
        return (bwi_launcher){.name = NULL};
    }
    if (asked && !found.name) {
        found = (bwi_launcher){.name = "BATCHWISE_MPI"};
    }
    return found;
}

/* ---- Folders ---- */

/* The folder of the file that this code is in: the shared library, or the program. */
static bool own_folder(char *folder, size_t size)
{
    Dl_info info;
    char path[PATH_MAX];
    static const char here;
    if (dladdr((const void *)&here, &info) == 0 || !info.dli_fname || !realpath(info.dli_fname, path)) {
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length < 0 ? 0 : length] = 0;
    }
    char *slash = strrchr(path, '/');
    return slash && snprintf(folder, size, "%.*s", (int)(slash - path), path) < (int)size;
}

/* Where an installation has the library, seen from the shared library and from a program; the build has it beside both. */
static bool find_file(const char *flavor, char *path, size_t size)
{
    static const char *const below[] = {"", "/batchwise", "/" BW_FROM_PROGRAMS "/batchwise"};
    char folder[PATH_MAX];
    bool have_folder = own_folder(folder, sizeof folder);
    for (size_t i = 0; have_folder && i < BWI_COUNT(below); i++) {
        int length = snprintf(path, size, "%s%s/libbatchwise_mpi_%s.so", folder, below[i], flavor);
        if (length > 0 && (size_t)length < size && access(path, R_OK) == 0) {
            return true;
        }
    }
    snprintf(path, size, "%s/batchwise/libbatchwise_mpi_%s.so", BW_FULL_LIBDIR, flavor);
    return access(path, R_OK) == 0;
}

/* Chooses the file: the one that was asked for, the one of the launcher's MPI, or the only one. */
static bool choose(const bwi_launcher *launcher, char *path, size_t size, char *failure, size_t failure_size)
{
    const char *asked = chosen(), *flavor = launcher->flavor;
    bool named = asked && (strcmp(asked, "openmpi") == 0 || strcmp(asked, "mpich") == 0);
    if (asked && !named) {
        snprintf(path, size, "%s", asked);
        if (!strchr(asked, '/') || access(asked, R_OK) != 0) {
            snprintf(failure, failure_size,
                     "BATCHWISE_MPI: expected openmpi, mpich, none or the path of a libbatchwise_mpi, found '%s'", asked);
            return false;
        }
        return true;
    }
    flavor = named ? asked : flavor;
    if (!flavor) {
        bool openmpi = find_file("openmpi", path, size), mpich = find_file("mpich", path, size);
        if (openmpi && mpich) {
            snprintf(failure, failure_size,
                     "%s does not tell which MPI this program should use: set BATCHWISE_MPI to openmpi or mpich", launcher->name);
            return false;
        }
        flavor = openmpi ? "openmpi" : "mpich";
    }
    if (find_file(flavor, path, size)) {
        return true;
    }
    snprintf(failure, failure_size,
             "%s started this program %s, but libbatchwise_mpi_%s.so, which ranks need, is not installed: build Batchwise where "
             "that MPI's mpicc is, or set BATCHWISE_MPI to the library; BATCHWISE_MPI=none trains alone in each process",
             launcher->name, launcher->count > 1 ? "several times" : "", flavor);
    return false;
}

#ifdef BW_STATIC

const bwi_mpi_calls *bwi_mpi_load(const bwi_launcher *launcher, char *failure, size_t size)
{
    char path[PATH_MAX];
    if (choose(launcher, path, sizeof path, failure, size)) {
        snprintf(failure, size,
                 "%s started this program, which is linked statically and cannot load %s; BATCHWISE_MPI=none trains alone",
                 launcher->name, path);
    }
    return NULL;
}

#else

const bwi_mpi_calls *bwi_mpi_load(const bwi_launcher *launcher, char *failure, size_t size)
{
    char path[PATH_MAX];
    if (!choose(launcher, path, sizeof path, failure, size)) {
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* global, since parts of MPI that it loads itself look for its names */
    bwi_mpi_entry entry = NULL;
    if (library) {
        *(void **)&entry = dlsym(library, BWI_MPI_SYMBOL);
    }
    if (!entry) {
        snprintf(failure, size, "%s cannot be loaded: %s", path, dlerror());
        return NULL;
    }
    const bwi_mpi_calls *calls = entry();
    if (calls->version != BWI_MPI_VERSION) {
        snprintf(failure, size, "%s has version %u of the interface, expected %d: it belongs to another version of Batchwise", path,
                 calls->version, BWI_MPI_VERSION);
        return NULL;
    }
    return calls;
}

#endif

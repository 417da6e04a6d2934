#!/usr/bin/env bash
# run.sh BUILD: installs from the build folder into a temporary prefix; then the program in the README must compile, link and
# run against it by pkg-config (shared and static) and by CMake, and nothing may be missing from the tree.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/support/folder.sh
. "$top/tests/support/folder.sh"
prefix=$work/prefix
cc=${CC:-cc}

cmake --install "$1" --prefix "$prefix" >"$work/log"
pkgconfig=$(dirname "$(find "$prefix" -name batchwise.pc)")
export PKG_CONFIG_PATH=$pkgconfig
library=$(pkg-config --variable=libdir batchwise)

# Into a folder with a blank in its name, by CMake and by make.
DESTDIR="$work/a b" cmake --install "$1" --prefix /usr >"$work/log"
"$work/a b/usr/bin/batchwise" --version >"$work/log"
make -C "$top" -n install SETUP=no DESTDIR='a b' PREFIX='/c d' >"$work/log" # not piped: grep -q would not read to the end
grep -qF 'DESTDIR="a b" cmake --install build --prefix "/c d"' "$work/log"

# The sources in such a folder: configured, a file of the library compiled, and a page of the command made, by its command alone, since
# Ninja would build the library first.
sources="$work/a b/sources"
mkdir -p "$sources/tests"
cp -r "$top"/{CMakeLists.txt,LICENSE,README.md,bench,cmake,completions,data,include,man,src,tools} "$sources"
cp -r "$top"/tests/{bits,support} "$sources/tests"
cmake -G Ninja -S "$sources" -B "$sources/build" -DBW_TESTS=OFF -DBW_ONE_STEP_OBJECT=OFF -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Debug >"$work/log" 2>&1 &&
    ninja -C "$sources/build" CMakeFiles/batchwise_objects.dir/src/base/text.c.o >"$work/log" || { cat "$work/log"; exit 1; }
(cd "$sources/build" && mkdir -p embedded && ninja -t commands embedded/cli_page_script.c | tail -n 1 >"$work/embed.sh" && sh -e "$work/embed.sh")
[ -s "$sources/build/embedded/cli_page_script.c" ] || { echo 'no page is made in a folder with a blank'; exit 1; }

for file in bin/batchwise include/batchwise.h share/batchwise/digits.npz share/batchwise/begun.keras share/bash-completion/completions/batchwise \
    share/zsh/site-functions/_batchwise share/fish/vendor_completions.d/batchwise.fish; do
    [ -s "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
for library_of_mpi in "$1"/libbatchwise_mpi_*.so; do # built where there is an MPI
    [ ! -e "$library_of_mpi" ] || [ -s "$library/batchwise/${library_of_mpi##*/}" ] || { echo "not installed: $library_of_mpi"; exit 1; }
done
if command -v scdoc >/dev/null; then
    grep -q batchwise "$prefix/share/man/man1/batchwise.1"
    grep -q batchwise "$prefix/share/man/man1/batchwise-train.1"
fi

"$prefix/bin/batchwise" --version | grep -qxF "batchwise $(pkg-config --modversion batchwise)"

# Nothing but bw_ functions leaves the shared library, each with the version of the interface.
version=BATCHWISE_$(pkg-config --modversion batchwise | cut -d. -f1,2)
if nm -D --defined-only "$library/libbatchwise.so" | awk -v version="$version" '$3 != version && $3 !~ "^bw_[a-z0-9_]*@@" version "$" { print "exported: " $3; bad = 1 } END { exit !bad }'; then
    exit 1
fi

# Nor do unprefixed names lie open in the static one, where they could clash with a program's.
if nm --defined-only --extern-only "$library/libbatchwise.a" 2>/dev/null |
    awk 'NF == 3 && $3 !~ /^bwi?_/ { print "global in libbatchwise.a: " $3; bad = 1 } END { exit !bad }'; then
    exit 1
fi

awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$top/README.md" >"$work/digits.c"
mkdir "$work/data"
cp "$prefix/share/batchwise/digits.npz" "$work/data"

check() { # NAME COMMAND: the program learns
    (cd "$work" && LD_LIBRARY_PATH=$library "${@:2}" 2>/dev/null) | awk -v name="$1" \
        '{ print name ": " $0 } $1 == "accuracy" && $2 > 0.9 { good = 1 } END { exit !good }'
}

# The flags are lists of words.
# shellcheck disable=SC2046
$cc -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$work/shared" "$work/digits.c" $(pkg-config --cflags --libs batchwise)
check pkg-config "$work/shared"

# A private prefix by a path in the program, without LD_LIBRARY_PATH.
# shellcheck disable=SC2046
$cc -o "$work/rpath" "$work/digits.c" $(pkg-config --cflags --libs batchwise) -Wl,-rpath,"$library"
(unset LD_LIBRARY_PATH && cd "$work" && ./rpath >"$work/log" 2>&1) || { cat "$work/log"; exit 1; }
grep -q '^accuracy' "$work/log"

# shellcheck disable=SC2046
$cc -o "$work/static" "$work/digits.c" $(pkg-config --cflags --libs --static batchwise | sed 's/-lbatchwise/-l:libbatchwise.a/')
check 'pkg-config --static' "$work/static"

# A program that is optimised at link time, with static functions named like the library's own.
cat >"$work/lto.c" <<'END'
#include <batchwise.h>
static __attribute__((noinline)) int backward(int n) { return 3 * n; }
static __attribute__((noinline)) int forward(int n) { return backward(n) + 1; }
static __attribute__((noinline)) int destroy(int n) { return forward(n) + backward(n); }
int main(int count, char **words)
{
    (void)words;
    bw_context *ctx = bw_open(NULL);
    bw_status status = bw_build(bw_model_parse(ctx, "dense(1)"), 1, (int64_t[]){3}, 0);
    printf("%s %d\n", bw_status_name(status), destroy(count));
    bw_close(ctx);
    return 0;
}
END
# shellcheck disable=SC2046
$cc -O2 -flto -o "$work/lto" "$work/lto.c" $(pkg-config --cflags --libs --static batchwise | sed 's/-lbatchwise/-l:libbatchwise.a/')
[ "$("$work/lto")" = 'OK 7' ] || { echo "static, -flto: expected 'OK 7', found '$("$work/lto")'"; exit 1; }

# A program that loads the library, uses it and unloads it, over and over: no thread stays, and memory does not grow.
cat >"$work/load.c" <<'END'
#include <batchwise.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        puts(dlerror());
        exit(1);
    }
    return found;
}
#define GET(name)                                    \
    __typeof__(&name) p_##name;                      \
    do {                                             \
        void *found = find(library, #name);          \
        memcpy(&p_##name, &found, sizeof p_##name);  \
    } while (0)
static void use(const char *path)
{
    static float x[64 * 4];
    static int y[64];
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        puts(dlerror());
        exit(1);
    }
    GET(bw_open);
    GET(bw_close);
    GET(bw_from_arrays);
    GET(bw_model_parse);
    GET(bw_fit);
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 3;
    bw_context *ctx = p_bw_open(&options);
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 4, .shape = {16, 4, 4, 1}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {16}};
    if (p_bw_fit(p_bw_model_parse(ctx, "conv2d(4,3,relu) flatten dense(2,softmax)"), p_bw_from_arrays(ctx, &inputs, &targets, NULL), NULL, NULL) != BW_OK) {
        puts("training fails");
        exit(1);
    }
    p_bw_close(ctx);
    dlclose(library);
}
static int entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;
    while (readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count;
}
static long kilobytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%*d %ld", &pages) != 1) {
        exit(1);
    }
    fclose(file);
    return pages * 4;
}
int main(int count, char **words)
{
    long before = 0;
    int threads = entries("/proc/self/task"), files = 0;
    (void)count;
    for (int k = 0; k < 50; k++) {
        use(words[1]);
        if (k == 9) {
            before = kilobytes();
            files = entries("/proc/self/fd");
        }
    }
    for (int k = 0; k < 200 && entries("/proc/self/task") > threads; k++) {
        usleep(10000);
    }
    long grown = kilobytes() - before;
    printf("threads %d to %d, files %d to %d, grown by %ld KiB\n", threads, entries("/proc/self/task"), files, entries("/proc/self/fd"), grown);
    return entries("/proc/self/task") > threads || entries("/proc/self/fd") > files || grown > 2048;
}
END
# shellcheck disable=SC2046
$cc -std=gnu11 -O1 -o "$work/load" "$work/load.c" $(pkg-config --cflags batchwise) -ldl
"$work/load" "$library/libbatchwise.so" || { echo 'loading and unloading leaves something behind'; exit 1; }

cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(consumer C)
find_package(batchwise 0.1 REQUIRED)
add_executable(by_cmake digits.c)
target_link_libraries(by_cmake batchwise::batchwise)
add_executable(by_cmake_static digits.c)
target_link_libraries(by_cmake_static batchwise::batchwise_static)
END
cmake -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" >"$work/log"
cmake --build "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
check CMake "$work/build/by_cmake"
check 'CMake, static' "$work/build/by_cmake_static"

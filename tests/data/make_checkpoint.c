/*
 * Makes tests/data/checkpoint/dense.bin, a seed of the fuzzing target `checkpoint`: the length of the manifest as 4 bytes, the
 * manifest, and the file of values, of the model that the target resumes.
 *
 *   cc -Iinclude tests/data/make_checkpoint.c build/libbatchwise.so -o make_checkpoint
 *   ./make_checkpoint tests/data/checkpoint/dense.bin
 */
#include <batchwise.h>

#include <stdint.h>
#include <stdio.h>

static void copy(const char *path, FILE *to, int with_length)
{
    FILE *from = fopen(path, "rb");
    unsigned char bytes[1 << 16];
    uint32_t size = from ? (uint32_t)fread(bytes, 1, sizeof bytes, from) : 0;
    if (with_length) {
        fwrite(&size, sizeof size, 1, to);
    }
    fwrite(bytes, 1, size, to);
    if (from) {
        fclose(from);
    }
}

int main(int count, char **words)
{
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "input(4) dense(5,relu) dense(3,softmax)");
    FILE *to = count > 1 ? fopen(words[1], "wb") : NULL;
    if (!to || bw_build(model, 0, NULL, 1) != BW_OK || bw_checkpoint(model, "made", 1, NULL) != BW_OK) {
        fprintf(stderr, "make_checkpoint: %s\n", to ? bw_message(ctx) : "expected a path that can be written");
        return 1;
    }
    copy("made/1/manifest.json", to, 1);
    copy("made/1/step.safetensors", to, 0);
    bw_close(ctx);
    return fclose(to) != 0;
}

/*
 * A program that learns from its users while they use it. A background thread, with a context of its own and a budget of 32 MiB,
 * makes an update whenever enough examples have come in; the foreground asks for predictions from the weights of the last complete
 * update. Closing the program cancels what runs, and the model keeps its last update.
 */
#include <batchwise.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FEATURES = 3, WEIGHTS = FEATURES + 1, ENOUGH = 32, WANTED = 2000 };

/* What the two threads share. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    float x[WANTED][FEATURES], y[WANTED];
    int64_t count;          /* examples so far */
    float weights[WEIGHTS]; /* of the newest model */
    int updates;
    bool over;
    bw_status status;
} app = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void publish(bw_model *model)
{
    float weights[WEIGHTS];
    if (bw_variable_get(model, 0, weights, FEATURES) == BW_OK && bw_variable_get(model, 1, weights + FEATURES, 1) == BW_OK) {
        pthread_mutex_lock(&app.lock);
        memcpy(app.weights, weights, sizeof weights);
        app.updates++;
        pthread_cond_signal(&app.changed);
        pthread_mutex_unlock(&app.lock);
    }
}

/* Trains on all examples so far, one epoch. They are never moved, so those that come in meanwhile do not disturb. */
static bw_status learn(bw_context *ctx, bw_model *model, int64_t count)
{
    bw_array x = {.data = app.x, .dtype = BW_F32, .ndim = 2, .shape = {count, FEATURES}};
    bw_array y = {.data = app.y, .dtype = BW_F32, .ndim = 1, .shape = {count}};
    bw_dataset *examples = bw_shuffle(bw_from_arrays(ctx, &x, &y, NULL), (uint64_t)count);
    bw_status status = bw_fit(model, examples, NULL, NULL);
    bw_dataset_free(examples);
    return status;
}

static void *run_learner(void *unused)
{
    (void)unused;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.memory = 32 << 20;
    options.workers = 1; /* the other CPUs are the program's */
    bw_context *ctx = bw_open(&options);
    bw_model *model = bw_model_parse(ctx, "input(3) dense(1)");
    bw_status status = bw_compile(model, "adam(lr=0.05)", "mse", NULL);
    for (int64_t seen = 0; status == BW_OK;) {
        pthread_mutex_lock(&app.lock);
        while (!app.over && app.count < seen + ENOUGH) {
            pthread_cond_wait(&app.changed, &app.lock);
        }
        bool over = app.over;
        seen = app.count;
        pthread_mutex_unlock(&app.lock);
        status = over ? BW_CANCELLED : learn(ctx, model, seen);
        if (status == BW_OK) {
            publish(model);
        }
    }
    app.status = status == BW_CANCELLED ? BW_OK : status;
    bw_close(ctx);
    return NULL;
}

/* The user corrects a guess: y = x0 - x1 + 2*x2 + 1. */
static void use(bw_random *random)
{
    float x[FEATURES], y = 1;
    const float truth[FEATURES] = {1, -1, 2};
    for (int k = 0; k < FEATURES; k++) {
        x[k] = bw_random_normal(random);
        y += truth[k] * x[k];
    }
    pthread_mutex_lock(&app.lock);
    float guess = app.weights[FEATURES] + app.weights[0] * x[0] + app.weights[1] * x[1] + app.weights[2] * x[2];
    memcpy(app.x[app.count], x, sizeof x);
    app.y[app.count++] = y;
    if (app.count % 400 == 0) {
        printf("example %4lld, model %3d: guessed %6.2f, it was %6.2f\n", (long long)app.count, app.updates, (double)guess,
               (double)y);
    }
    pthread_cond_signal(&app.changed);
    pthread_mutex_unlock(&app.lock);
}

int main(void)
{
    pthread_t learner;
    bw_random random = {.seed = 1};
    if (pthread_create(&learner, NULL, run_learner, NULL) != 0) {
        return 1;
    }
    for (int i = 0; i < WANTED; i++) {
        use(&random);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    pthread_mutex_lock(&app.lock);
    app.over = true;
    pthread_cond_signal(&app.changed);
    pthread_mutex_unlock(&app.lock);
    pthread_join(learner, NULL);
    if (app.status != BW_OK) {
        fprintf(stderr, "the learner failed with %s\n", bw_status_name(app.status));
    }
    return app.status != BW_OK;
}

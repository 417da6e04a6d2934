/*
 * A program that learns from its users while they use it. A background thread, with a context of its own and a budget of 32 MiB,
 * trains whenever enough examples have come in; the foreground guesses with the weights of the last complete training.
 */
#include <batchwise.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { FEATURES = 3, ENOUGH = 32, WANTED = 2000 };

/* What the two threads share. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    float x[WANTED][FEATURES], y[WANTED];
    float weights[FEATURES + 1]; /* of the newest model, and its bias */
    int count, trainings;        /* examples and trainings so far */
} app = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Trains on all examples so far, one epoch, and publishes the weights. Examples are never moved, so new ones do not disturb. */
static bw_status learn(bw_context *ctx, bw_model *model, int count)
{
    bw_array x = {.data = app.x, .dtype = BW_F32, .ndim = 2, .shape = {count, FEATURES}};
    bw_array y = {.data = app.y, .dtype = BW_F32, .ndim = 1, .shape = {count}};
    bw_dataset *examples = bw_shuffle(bw_from_arrays(ctx, &x, &y, NULL), (uint64_t)count);
    bw_status status = bw_fit(model, examples, NULL, NULL);
    pthread_mutex_lock(&app.lock);
    status = status == BW_OK ? bw_variable_get(model, 0, app.weights, FEATURES) : status;
    status = status == BW_OK ? bw_variable_get(model, 1, app.weights + FEATURES, 1) : status;
    app.trainings++;
    pthread_mutex_unlock(&app.lock);
    bw_dataset_free(examples);
    return status;
}

static void *run_learner(void *failed)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.memory = 32 << 20;
    options.workers = 1; /* the other CPUs are the program's */
    bw_context *ctx = bw_open(&options);
    bw_model *model = bw_model_parse(ctx, "input(3) dense(1)");
    bw_status status = bw_compile(model, "adam(lr=0.05)", "mse", NULL);
    for (int seen = 0; status == BW_OK && seen < WANTED;) {
        pthread_mutex_lock(&app.lock);
        while (app.count < WANTED && app.count < seen + ENOUGH) {
            pthread_cond_wait(&app.changed, &app.lock);
        }
        seen = app.count;
        pthread_mutex_unlock(&app.lock);
        status = learn(ctx, model, seen);
    }
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status == BW_OK ? NULL : failed;
}

/* The user corrects a guess: right is x0 - x1 + 2*x2 + 1. */
static void use(bw_random *random)
{
    pthread_mutex_lock(&app.lock);
    float *x = app.x[app.count], guess = app.weights[FEATURES];
    for (int k = 0; k < FEATURES; k++) {
        x[k] = bw_random_normal(random);
        guess += app.weights[k] * x[k];
    }
    float right = app.y[app.count++] = x[0] - x[1] + 2 * x[2] + 1;
    if (app.count % 400 == 0) {
        printf("example %4d, training %3d: guessed %6.2f, right is %6.2f\n", app.count, app.trainings, (double)guess,
               (double)right);
    }
    pthread_cond_signal(&app.changed);
    pthread_mutex_unlock(&app.lock);
}

int main(void)
{
    pthread_t learner;
    bw_random random = {.seed = 1};
    void *failed = NULL;
    if (pthread_create(&learner, NULL, run_learner, &app) != 0) {
        return 1;
    }
    for (int i = 0; i < WANTED; i++) {
        use(&random);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    pthread_join(learner, &failed);
    return failed ? 1 : 0;
}

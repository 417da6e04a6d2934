/*
 * Serves the live page by libmicrohttpd, whose thread does all of the work: the training publishes a text, and is done. There is
 * one state, the newest: a listener that is slow skips the ones between, so no queue can grow. Connections, their memory and their
 * idle time are limited. Who comes while there are too many ends the oldest connection that is no listener, so that requests
 * without an end keep nobody out.
 *
 * Only GET of two paths is answered, no file is read, and the Host header must name this machine: a page from elsewhere whose name
 * was made to point to 127.0.0.1 (DNS rebinding) is refused.
 */
#include "cli/server.h"

#include "cli/page.h"

#ifdef BW_HAVE_MICROHTTPD

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
    MOST_CONNECTIONS = 16,
    LEAVING_CONNECTIONS = 8, /* that were told to go and have not gone yet */
    MOST_LISTENERS = 8,
    IDLE_SECONDS = 30,
    LAST_SECONDS = 2,
    CONNECTION_BYTES = 16 << 10,
    BLOCK = 8 << 10
};

/* A text that several connections may be sending. */
typedef struct state {
    int users;
    size_t length;
    char *text;
} state;

/* One connection to /events. */
typedef struct listener {
    struct MHD_Connection *connection;
    bool used, waits; /* waits: it has the newest state, and is suspended until there is another */
    state *sending;   /* NULL: nothing */
    size_t sent;      /* bytes of the event's text, counting "data: " and the empty line at its end */
    int64_t version;  /* of the state that it has or is sending */
} listener;

/* Any connection. */
typedef struct guest {
    int socket;
    int64_t number; /* in the order of their coming; 0: there is none */
    bool listens, leaves;
} guest;

/* The server's thread alone uses them. */
static guest guests[MOST_CONNECTIONS + LEAVING_CONNECTIONS];
static int64_t guest_count; /* of all that ever came */

static struct {
    struct MHD_Daemon *daemon; /* NULL: there is no server */
    int port;
    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    state *newest;
    int64_t version;
    bool last; /* the newest state is the last one */
    int listeners;
    listener list[MOST_LISTENERS];
} server = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- States ---------------------------------------------------------------------------------------------- */

static void release(state *s)
{
    if (s && --s->users == 0) {
        free(s->text);
        free(s);
    }
}

static state *borrow_newest(void)
{
    server.newest->users++;
    return server.newest;
}

void cli_server_publish(char *text, size_t length, bool last)
{
    state *made = malloc(sizeof *made);
    if (!made) {
        free(text);
        return;
    }
    *made = (state){.users = 1, .text = text, .length = length};
    pthread_mutex_lock(&server.lock);
    release(server.newest);
    server.newest = made;
    server.version++;
    server.last = last;
    for (int k = 0; k < MOST_LISTENERS; k++) {
        if (server.list[k].waits) {
            server.list[k].waits = false;
            MHD_resume_connection(server.list[k].connection);
        }
    }
    pthread_mutex_unlock(&server.lock);
}

bool cli_server_has_listeners(void)
{
    pthread_mutex_lock(&server.lock);
    bool any = server.listeners > 0;
    pthread_mutex_unlock(&server.lock);
    return any;
}

/* ---- Events ---------------------------------------------------------------------------------------------- */

static const char before[] = "data: ", after[] = "\n\n";

/* Copies what the event has at `at`: the word, the text, the empty line. Returns how much. */
static size_t copy_event(const state *s, size_t at, char *to, size_t most)
{
    const struct {
        const char *text;
        size_t length;
    } parts[] = {{before, sizeof before - 1}, {s->text, s->length}, {after, sizeof after - 1}};
    size_t copied = 0;
    for (int k = 0; k < 3; k++) {
        if (at < parts[k].length) {
            size_t length = parts[k].length - at < most - copied ? parts[k].length - at : most - copied;
            memcpy(to + copied, parts[k].text + at, length);
            copied += length;
            at += length;
        }
        at = at > parts[k].length ? at - parts[k].length : 0;
        if (copied == most) {
            break;
        }
    }
    return copied;
}

/* Fills a block of a listener's stream. One that has everything is suspended, and costs nothing until the next state; the lock is
 * held meanwhile, so that a state cannot come in between. */
static ssize_t read_events(void *user, uint64_t position, char *to, size_t most)
{
    listener *l = user;
    ssize_t length = 0;
    (void)position;
    pthread_mutex_lock(&server.lock);
    if (!l->sending && l->version < server.version) {
        l->sending = borrow_newest();
        l->version = server.version;
        l->sent = 0;
    }
    if (l->sending) {
        size_t copied = copy_event(l->sending, l->sent, to, most);
        l->sent += copied;
        length = (ssize_t)copied;
        if (l->sent == l->sending->length + sizeof before - 1 + sizeof after - 1) {
            release(l->sending);
            l->sending = NULL;
        }
    } else if (server.last) {
        length = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        l->waits = true;
        MHD_suspend_connection(l->connection);
    }
    pthread_mutex_unlock(&server.lock);
    return length;
}

static void end_listener(void *user)
{
    listener *l = user;
    pthread_mutex_lock(&server.lock);
    release(l->sending);
    *l = (listener){.used = false};
    server.listeners--;
    pthread_cond_signal(&server.changed);
    pthread_mutex_unlock(&server.lock);
}

static listener *add_listener(struct MHD_Connection *connection)
{
    listener *found = NULL;
    pthread_mutex_lock(&server.lock);
    for (int k = 0; k < MOST_LISTENERS && !found; k++) {
        found = server.list[k].used ? NULL : &server.list[k];
    }
    if (found) {
        *found = (listener){.connection = connection, .used = true};
        server.listeners++;
    }
    pthread_mutex_unlock(&server.lock);
    return found;
}

/* ---- Connections ----------------------------------------------------------------------------------------- */

/* Ends the oldest connection that is no listener, if more than MOST_CONNECTIONS are here. Its bytes stop; libmicrohttpd sees this
 * next, and closes it. */
static void make_room(void)
{
    guest *oldest = NULL;
    int here = 0;
    for (size_t k = 0; k < sizeof guests / sizeof guests[0]; k++) {
        guest *g = &guests[k];
        here += g->number && !g->leaves;
        if (g->number && !g->leaves && !g->listens && (!oldest || g->number < oldest->number)) {
            oldest = g;
        }
    }
    if (here > MOST_CONNECTIONS && oldest) {
        oldest->leaves = true;
        shutdown(oldest->socket, SHUT_RDWR);
    }
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context, enum MHD_ConnectionNotificationCode code)
{
    (void)user;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        guest *gone = *context;
        if (gone) {
            *gone = (guest){.number = 0};
        }
        return;
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    for (size_t k = 0; info && k < sizeof guests / sizeof guests[0]; k++) {
        if (!guests[k].number) {
            guests[k] = (guest){.socket = info->connect_fd, .number = ++guest_count};
            *context = &guests[k];
            make_room();
            return;
        }
    }
}

static void set_listens(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    guest *g = info ? info->socket_context : NULL;
    if (g) {
        g->listens = true;
    }
}

/* ---- Requests -------------------------------------------------------------------------------------------- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type, struct MHD_Response *response)
{
    static const char *const headers[][2] = {{"Cache-Control", "no-store"},
                                             {"X-Content-Type-Options", "nosniff"},
                                             {"Referrer-Policy", "no-referrer"},
                                             {"Cross-Origin-Resource-Policy", "same-origin"},
                                             {"Content-Security-Policy", "frame-ancestors 'none'"}};
    if (!response) {
        return MHD_NO;
    }
    for (size_t k = 0; k < sizeof headers / sizeof headers[0]; k++) {
        (void)MHD_add_response_header(response, headers[k][0], headers[k][1]);
    }
    (void)MHD_add_response_header(response, "Content-Type", type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        (void)MHD_add_response_header(response, "Allow", "GET");
    }
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
    size_t length = strlen(text);
    void *copy = malloc(length);
    if (!copy) {
        return MHD_NO;
    }
    memcpy(copy, text, length);
    return answer(connection, status, "text/plain; charset=utf-8",
                  MHD_create_response_from_buffer(length, copy, MHD_RESPMEM_MUST_FREE));
}

/* The page holds the newest state, so that it shows something before the first event. */
static enum MHD_Result answer_page(struct MHD_Connection *connection)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (!memory) {
        return MHD_NO;
    }
    pthread_mutex_lock(&server.lock);
    state *newest = borrow_newest();
    cli_page_kind kind = server.last ? CLI_PAGE_OVER : CLI_PAGE_LIVE;
    pthread_mutex_unlock(&server.lock);
    cli_page_open(memory, kind);
    fwrite(newest->text, 1, newest->length, memory);
    cli_page_close(memory);
    pthread_mutex_lock(&server.lock);
    release(newest);
    pthread_mutex_unlock(&server.lock);
    if (fclose(memory) != 0) {
        free(text);
        return MHD_NO;
    }
    return answer(connection, MHD_HTTP_OK, "text/html; charset=utf-8",
                  MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result answer_events(struct MHD_Connection *connection)
{
    listener *l = add_listener(connection);
    if (!l) {
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many pages are open\n");
    }
    set_listens(connection);
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_events, l, end_listener);
    if (!response) {
        end_listener(l);
    }
    return answer(connection, MHD_HTTP_OK, "text/event-stream", response);
}

static bool is_here(const char *host)
{
    char expected[2][32];
    pthread_mutex_lock(&server.lock);
    int port = server.port;
    pthread_mutex_unlock(&server.lock);
    snprintf(expected[0], sizeof expected[0], "127.0.0.1:%d", port);
    snprintf(expected[1], sizeof expected[1], "localhost:%d", port);
    return host && (strcmp(host, expected[0]) == 0 || strcmp(host, expected[1]) == 0);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path, const char *method,
                                  const char *version, const char *data, size_t *size, void **request)
{
    static int seen;
    (void)user;
    (void)version;
    (void)data;
    if (!*request) { /* the headers are read, the body is not */
        *request = &seen;
        return MHD_YES;
    }
    *size = 0;
    if (!is_here(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"))) {
        return refuse(connection, MHD_HTTP_FORBIDDEN, "expected the Host 127.0.0.1 with the port\n");
    }
    if (strcmp(method, "GET") != 0) {
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET\n");
    }
    return strcmp(path, "/") == 0         ? answer_page(connection)
           : strcmp(path, "/events") == 0 ? answer_events(connection)
                                          : refuse(connection, MHD_HTTP_NOT_FOUND, "there is no such page\n");
}

/* ---- Its life -------------------------------------------------------------------------------------------- */

/* The lock is held until the port is known: the first request may come before. Sockets are polled: with epoll, whose events tell
 * of changes only, libmicrohttpd 0.9.75 overlooks the end of a connection that comes with the last bytes of an unfinished request,
 * and keeps the connection until it has been idle for too long. */
int cli_server_start(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char *nothing = strdup("{\"live\":true,\"over\":false,\"runs\":[]}");
    if (!nothing) {
        cli_fail("no memory for a server");
        return 0;
    }
    cli_server_publish(nothing, strlen(nothing), false);
    if (!server.newest) { /* requests expect one */
        cli_fail("no memory for a server");
        return 0;
    }
    pthread_mutex_lock(&server.lock);
    errno = 0;
    server.daemon = MHD_start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, (uint16_t)port, NULL, NULL, on_request, NULL, MHD_OPTION_SOCK_ADDR,
        (struct sockaddr *)&address, MHD_OPTION_CONNECTION_LIMIT, (unsigned)(MOST_CONNECTIONS + LEAVING_CONNECTIONS),
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, NULL, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    const union MHD_DaemonInfo *info = server.daemon ? MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    server.port = info && info->port > 0 ? info->port : 0;
    int error = errno;
    pthread_mutex_unlock(&server.lock);
    if (server.port == 0) {
        cli_fail("--watch: cannot serve at port %d of 127.0.0.1: %s", port, error != 0 ? strerror(error) : "it may be in use");
        cli_server_stop();
    }
    return server.port;
}

/* Suspended connections must be resumed before the server stops; they then end, since the last state was sent. */
static void let_go(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LAST_SECONDS;
    pthread_mutex_lock(&server.lock);
    server.last = true;
    for (int k = 0; k < MOST_LISTENERS; k++) {
        if (server.list[k].waits) {
            server.list[k].waits = false;
            MHD_resume_connection(server.list[k].connection);
        }
    }
    for (int waited = 0; server.listeners > 0 && waited == 0;) {
        waited = pthread_cond_timedwait(&server.changed, &server.lock, &until);
    }
    pthread_mutex_unlock(&server.lock);
}

void cli_server_stop(void)
{
    if (server.daemon) {
        let_go();
        MHD_stop_daemon(server.daemon);
        server.daemon = NULL;
    }
    release(server.newest);
    server.newest = NULL;
}

#else

#include <stdlib.h>

int cli_server_start(int port)
{
    (void)port;
    cli_fail("--watch is not part of this build: libmicrohttpd was not there when it was made");
    return 0;
}

void cli_server_publish(char *text, size_t length, bool last)
{
    (void)length;
    (void)last;
    free(text);
}

bool cli_server_has_listeners(void)
{
    return false;
}

void cli_server_stop(void)
{
}

#endif

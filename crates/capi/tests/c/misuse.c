/* What goes wrong in C is a status and a message, and the volume goes on; many threads at once. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "want.h"

#define PAGE 4096
#define THREADS 4
#define COMMITS 25
#define MANY 1000

#define SAYS(text)                                                                                \
    do {                                                                                          \
        if (!strstr(tantalum_error_message(), text)) {                                            \
            fprintf(stderr, "line %d: \"%s\" says nothing of \"%s\"\n", __LINE__,                 \
                    tantalum_error_message(), text);                                              \
            failures++;                                                                           \
        }                                                                                         \
    } while (0)

static void creating_and_opening(const char *path)
{
    TantalumVolume *volume = (TantalumVolume *)path;
    WANT(INVALID_INPUT, tantalum_create(NULL, 8 << 20, 0));
    SAYS("config_path is NULL");
    WANT(INVALID_INPUT, tantalum_create("", 8 << 20, 0));
    WANT(INVALID_INPUT, tantalum_create(path, 0, 0));
    WANT(INVALID_INPUT, tantalum_create(path, 4097, 0));
    SAYS("4097");
    WANT(INVALID_INPUT, tantalum_create(path, 8 << 20, 6));
    SAYS("flags 0x6");
    WANT(IO, tantalum_open(path, 0, &volume));
    if (volume) {
        fprintf(stderr, "a handle after an error\n");
        failures++;
    }
    WANT(OK, tantalum_create(path, 8 << 20, 0));
    WANT(INVALID_INPUT, tantalum_create(path, 8 << 20, 0));
    WANT(INVALID_INPUT, tantalum_create(path, 16 << 20, TANTALUM_CREATE_OVERWRITE));
    WANT(OK, tantalum_create(path, 0, TANTALUM_CREATE_OVERWRITE));
    WANT(INVALID_INPUT, tantalum_open(path, 0, NULL));
    WANT(INVALID_INPUT, tantalum_open(path, 8, &volume));
    WANT(INVALID_INPUT, tantalum_open(NULL, 0, &volume));
    WANT(OK, tantalum_close(NULL));
}

static void null_arguments(TantalumVolume *volume)
{
    unsigned char page[PAGE];
    TantalumLimits limits;
    TantalumPair pair = {1, 2};
    uint64_t number = 1;
    WANT(INVALID_INPUT, tantalum_limits(NULL, &limits));
    WANT(INVALID_INPUT, tantalum_limits(volume, NULL));
    WANT(INVALID_INPUT, tantalum_read(NULL, 0, 1, page));
    WANT(INVALID_INPUT, tantalum_read(volume, 0, 1, NULL));
    WANT(INVALID_INPUT, tantalum_write(NULL, 0, 1, page));
    WANT(INVALID_INPUT, tantalum_write(volume, 0, 1, NULL));
    WANT(INVALID_INPUT, tantalum_flush(NULL));
    WANT(INVALID_INPUT, tantalum_trim(NULL, 0, 1));
    WANT(INVALID_INPUT, tantalum_share(NULL, &pair, 1));
    WANT(INVALID_INPUT, tantalum_share_range(NULL, 0, 8, 1));
    WANT(INVALID_INPUT, tantalum_begin(NULL, &number));
    WANT(INVALID_INPUT, tantalum_begin(volume, NULL));
    WANT(INVALID_INPUT, tantalum_commit(NULL, 0));
    WANT(INVALID_INPUT, tantalum_abort(NULL, 0));
    WANT(INVALID_INPUT, tantalum_read_tx(NULL, 0, 0, 1, page));
    WANT(INVALID_INPUT, tantalum_write_tx(NULL, 0, 0, 1, page));
    WANT(INVALID_INPUT, tantalum_write_scattered(NULL, &number, page, 1));
    WANT(INVALID_INPUT, tantalum_write_scattered(volume, NULL, page, 1));
    WANT(INVALID_INPUT, tantalum_write_scattered(volume, &number, NULL, 1));
    WANT(OK, tantalum_write_scattered(volume, NULL, NULL, 0));
    WANT(OK, tantalum_read(volume, 0, 0, NULL));
}

static void limits_and_transactions(TantalumVolume *volume)
{
    unsigned char page[PAGE] = {1};
    TantalumLimits limits;
    uint64_t tx, other, nine = 9;
    WANT(OK, tantalum_limits(volume, &limits));
    if (limits.pages != (8 << 20) / PAGE || limits.page_bytes != PAGE ||
        limits.durability != TANTALUM_DURABILITY_ON_ACK) {
        fprintf(stderr, "these are not the limits\n");
        failures++;
    }
    /* What is out of bounds is refused before the buffer is touched. */
    WANT(OUT_OF_RANGE, tantalum_read(volume, limits.pages, 1, page));
    WANT(OUT_OF_RANGE, tantalum_read(volume, 1, UINT64_MAX, page));
    WANT(OUT_OF_RANGE, tantalum_write(volume, limits.pages - 1, 2, page));
    WANT(OUT_OF_RANGE, tantalum_trim(volume, UINT64_MAX, 2));
    WANT(TOO_LARGE, tantalum_write(volume, 0, limits.atomic_write_pages_max + 1ULL, page));
    WANT(TOO_LARGE, tantalum_write_scattered(volume, &tx, page, SIZE_MAX));
    WANT(UNKNOWN_TRANSACTION, tantalum_commit(volume, 12345));
    WANT(UNKNOWN_TRANSACTION, tantalum_write_tx(volume, 12345, 0, 1, page));
    WANT(OK, tantalum_begin(volume, &tx));
    WANT(OK, tantalum_begin(volume, &other));
    WANT(OK, tantalum_write_tx(volume, tx, 9, 1, page));
    WANT(CONFLICT, tantalum_write_tx(volume, other, 9, 1, page));
    WANT(CONFLICT, tantalum_write(volume, 9, 1, page));
    WANT(CONFLICT, tantalum_trim(volume, 8, 3));
    WANT(CONFLICT, tantalum_write_scattered(volume, &nine, page, 1));
    WANT(OK, tantalum_abort(volume, other));
    WANT(OK, tantalum_commit(volume, tx));
    WANT(UNKNOWN_TRANSACTION, tantalum_commit(volume, tx));
    /* Left open: closing aborts it. */
    WANT(OK, tantalum_begin(volume, &tx));
    WANT(OK, tantalum_write_tx(volume, tx, 10, 1, page));
}

/* A commit in one call needs none, however many are open. */
static void many_transactions(TantalumVolume *volume)
{
    unsigned char page[PAGE] = {1};
    uint64_t open[MANY], number;
    int count = 0;
    while (count < MANY && tantalum_begin(volume, &open[count]) == TANTALUM_STATUS_OK) {
        count++;
    }
    WANT(TOO_MANY_TRANSACTIONS, tantalum_begin(volume, &number));
    number = 9;
    WANT(OK, tantalum_write_scattered(volume, &number, page, 1));
    while (count > 0) {
        WANT(OK, tantalum_abort(volume, open[--count]));
    }
}

static void sharing(TantalumVolume *volume)
{
    unsigned char page[2 * PAGE];
    TantalumLimits limits;
    TantalumPair pairs[2] = {{20, 10}, {21, 11}};
    WANT(OK, tantalum_limits(volume, &limits));
    if (limits.share_pairs_max == 0) {
        WANT(UNSUPPORTED, tantalum_share(volume, pairs, 2));
        WANT(UNSUPPORTED, tantalum_share_range(volume, 20, 10, 2));
        return;
    }
    memset(page, 7, PAGE);
    memset(page + PAGE, 8, PAGE);
    WANT(OK, tantalum_write(volume, 10, 2, page));
    WANT(TOO_LARGE, tantalum_share(volume, pairs, limits.share_pairs_max + (size_t)1));
    WANT(INVALID_INPUT, tantalum_share(volume, NULL, 1));
    WANT(INVALID_INPUT, tantalum_share_range(volume, 11, 10, 2));
    WANT(OUT_OF_RANGE, tantalum_share_range(volume, limits.pages, 10, 1));
    WANT(OK, tantalum_share(volume, pairs, 2));
    WANT(OK, tantalum_share_range(volume, 30, 20, 2));
    memset(page, 9, PAGE);
    WANT(OK, tantalum_write(volume, 10, 1, page));
    WANT(OK, tantalum_read(volume, 30, 2, page));
    if (page[0] != 7 || page[PAGE] != 8) {
        fprintf(stderr, "a share did not keep what it took\n");
        failures++;
    }
}

typedef struct {
    TantalumVolume *volume;
    uint64_t first;
    int wrong;
} Worker;

/* Each thread commits to its own pages, and looks at its own messages. */
static void *work(void *argument)
{
    Worker *worker = argument;
    unsigned char pages[2 * PAGE];
    uint64_t numbers[2] = {worker->first, worker->first + 5};
    char wanted[32];
    for (int commit = 1; commit <= COMMITS; commit++) {
        memset(pages, commit, sizeof pages);
        worker->wrong += tantalum_write_scattered(worker->volume, numbers, pages, 2) !=
                         TANTALUM_STATUS_OK;
        uint64_t beyond = 1000000 + worker->first;
        worker->wrong += tantalum_read(worker->volume, beyond, 1, pages) !=
                         TANTALUM_STATUS_OUT_OF_RANGE;
        snprintf(wanted, sizeof wanted, "%llu", (unsigned long long)beyond);
        worker->wrong += strstr(tantalum_error_message(), wanted) == NULL;
    }
    worker->wrong += tantalum_read(worker->volume, numbers[1], 1, pages) != TANTALUM_STATUS_OK;
    worker->wrong += pages[PAGE - 1] != COMMITS;
    return NULL;
}

static void threads(TantalumVolume *volume)
{
    pthread_t thread[THREADS];
    Worker worker[THREADS];
    for (int number = 0; number < THREADS; number++) {
        worker[number] = (Worker){volume, 100 + 10 * (uint64_t)number, 0};
        if (pthread_create(&thread[number], NULL, work, &worker[number]) != 0) {
            abort();
        }
    }
    for (int number = 0; number < THREADS; number++) {
        pthread_join(thread[number], NULL);
        failures += worker[number].wrong;
    }
}

static void reading_only(const char *path, uint32_t placement)
{
    TantalumVolume *volume, *second;
    unsigned char page[PAGE], other[PAGE];
    uint64_t transaction;
    WANT(OK, tantalum_open(path, placement | TANTALUM_OPEN_READ_ONLY, &volume));
    WANT(OK, tantalum_open(path, TANTALUM_OPEN_READ_ONLY, &second));
    WANT(OK, tantalum_read(volume, 100, 1, page));
    WANT(OK, tantalum_read(second, 100, 1, other));
    if (memcmp(page, other, PAGE) != 0) {
        fprintf(stderr, "two readers see different contents\n");
        failures++;
    }
    WANT(READ_ONLY, tantalum_write(volume, 10, 1, page));
    SAYS("read-only");
    WANT(READ_ONLY, tantalum_trim(volume, 10, 1));
    WANT(READ_ONLY, tantalum_begin(volume, &transaction));
    WANT(OK, tantalum_flush(volume));
    WANT(OK, tantalum_close(second));
    WANT(LOCKED, tantalum_open(path, 0, &second));
    WANT(OK, tantalum_close(volume));
}

static void versions(void)
{
    char header[32];
    snprintf(header, sizeof header, "%d.%d.%d", TANTALUM_VERSION_MAJOR, TANTALUM_VERSION_MINOR,
             TANTALUM_VERSION_PATCH);
    if (strcmp(header, tantalum_version()) != 0) {
        fprintf(stderr, "the header is of %s, the library of %s\n", header, tantalum_version());
        failures++;
    }
}

int main(int arguments, char **argument)
{
    if (arguments != 2) {
        return 2;
    }
    versions();
    const char *path = argument[1];
    const uint32_t placements[2] = {0, TANTALUM_OPEN_OWN_THREAD};
    creating_and_opening(path);
    for (int at = 0; at < 2; at++) {
        TantalumVolume *volume, *second;
        unsigned char page[PAGE];
        WANT(OK, tantalum_open(path, placements[at], &volume));
        WANT(LOCKED, tantalum_open(path, 0, &second));
        null_arguments(volume);
        limits_and_transactions(volume);
    many_transactions(volume);
        threads(volume);
        WANT(OK, tantalum_close(volume));
        WANT(OK, tantalum_open(path, placements[at], &volume));
        WANT(OK, tantalum_read(volume, 10, 1, page));
        if (page[0] != 0) {
            fprintf(stderr, "a transaction that was left open is there\n");
            failures++;
        }
        sharing(volume);
        WANT(OK, tantalum_trim(volume, 10, 1));
        WANT(OK, tantalum_close(volume));
        reading_only(path, placements[at]);
    }
    printf("%d failures\n", failures);
    return failures != 0;
}

/* Pages reach their homes through a double-write area, as InnoDB's do, but by share: each page is
 * written once, and no power cut can leave a home torn. Then a transaction.
 *
 *     cargo build --release --package tantalum-capi
 *     cc -I crates/capi/include crates/capi/examples/double_write.c \
 *        target/release/libtantalum.a -lpthread -ldl -lm -o double_write
 *     ./double_write /path/VOLUME.toml
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tantalum.h"

#define BATCH 16           /* pages that one flush of the buffer pool evicts */
#define AREA 0             /* the double-write area: pages 0 to BATCH - 1 */
#define FIRST_HOME 64      /* the database begins here */

static void check(TantalumStatus status, const char *what)
{
    if (status != TANTALUM_STATUS_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, tantalum_status_name(status),
                tantalum_error_message());
        exit(1);
    }
}

static void expect(int is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

/* The homes of a batch are scattered over the database. */
static uint64_t home_of(uint64_t slot)
{
    return FIRST_HOME + slot * 7 % 101;
}

static void fill(unsigned char *page, uint64_t home, uint64_t round, size_t page_bytes)
{
    memset(page, (int)(home + round * 13), page_bytes);
    memcpy(page, &home, sizeof home);
    memcpy(page + sizeof home, &round, sizeof round);
}

/* Writes a batch to the area, makes it durable, and gives it to the homes: by share where the volume
 * can, else by a second write. */
static void flush_batch(TantalumVolume *volume, const TantalumLimits *limits,
                        const unsigned char *batch)
{
    check(tantalum_write(volume, AREA, BATCH, batch), "writing the area");
    check(tantalum_flush(volume), "flushing the area");
    if (limits->share_pairs_max >= BATCH) {
        TantalumPair pairs[BATCH];
        for (uint64_t slot = 0; slot < BATCH; slot++) {
            pairs[slot].to = home_of(slot);
            pairs[slot].from = AREA + slot;
        }
        check(tantalum_share(volume, pairs, BATCH), "sharing");
    } else {
        for (uint64_t slot = 0; slot < BATCH; slot++) {
            check(tantalum_write(volume, home_of(slot), 1, batch + slot * limits->page_bytes),
                  "writing a home");
        }
    }
    check(tantalum_flush(volume), "flushing the homes");
}

static void check_homes(TantalumVolume *volume, uint64_t round, size_t page_bytes)
{
    unsigned char *found = malloc(page_bytes);
    unsigned char *wanted = malloc(page_bytes);
    expect(found && wanted, "there is memory");
    for (uint64_t slot = 0; slot < BATCH; slot++) {
        fill(wanted, home_of(slot), round, page_bytes);
        check(tantalum_read(volume, home_of(slot), 1, found), "reading a home");
        expect(memcmp(found, wanted, page_bytes) == 0, "a home has its newest content");
    }
    free(found);
    free(wanted);
}

static void transaction(TantalumVolume *volume, size_t page_bytes)
{
    const uint64_t pages[2] = {300, 500};
    unsigned char *mine = malloc(page_bytes);
    unsigned char *seen = malloc(page_bytes);
    unsigned char *both = malloc(2 * page_bytes);
    expect(mine && seen && both, "there is memory");
    uint64_t tx;
    check(tantalum_begin(volume, &tx), "begin");
    memset(mine, 'a', page_bytes);
    check(tantalum_write_tx(volume, tx, pages[0], 1, mine), "writing in a transaction");
    check(tantalum_read_tx(volume, tx, pages[0], 1, seen), "reading in a transaction");
    expect(memcmp(mine, seen, page_bytes) == 0, "a transaction sees its own writes");
    check(tantalum_read(volume, pages[0], 1, seen), "reading outside");
    expect(seen[0] == 0, "nobody else sees them before the commit");
    check(tantalum_commit(volume, tx), "commit");
    check(tantalum_read(volume, pages[0], 1, seen), "reading after the commit");
    expect(memcmp(mine, seen, page_bytes) == 0, "everybody sees them after it");

    check(tantalum_begin(volume, &tx), "begin");
    memset(mine, 'b', page_bytes);
    check(tantalum_write_tx(volume, tx, pages[0], 1, mine), "writing in a transaction");
    check(tantalum_abort(volume, tx), "abort");
    check(tantalum_read(volume, pages[0], 1, seen), "reading after the abort");
    expect(seen[0] == 'a', "what is aborted is gone");

    memset(both, 'c', page_bytes);
    memset(both + page_bytes, 'd', page_bytes);
    check(tantalum_write_scattered(volume, pages, both, 2), "writing scattered pages at once");
    check(tantalum_read(volume, pages[1], 1, seen), "reading one of them");
    expect(seen[0] == 'd', "scattered pages are there");
    check(tantalum_trim(volume, pages[1], 1), "trimming");
    check(tantalum_read(volume, pages[1], 1, seen), "reading what was trimmed");
    expect(seen[0] == 0, "what is trimmed reads as zeros");
    free(mine);
    free(seen);
    free(both);
}

int main(int arguments, char **argument)
{
    if (arguments != 2) {
        fprintf(stderr, "usage: double_write VOLUME.toml\n");
        return 2;
    }
    check(tantalum_create(argument[1], 8 << 20, 0), "creating");
    TantalumVolume *volume;
    check(tantalum_open(argument[1], 0, &volume), "opening");
    TantalumLimits limits;
    check(tantalum_limits(volume, &limits), "asking for limits");
    printf("%" PRIu64 " pages of %" PRIu32 " bytes\n", limits.pages, limits.page_bytes);

    unsigned char *batch = malloc((size_t)BATCH * limits.page_bytes);
    expect(batch != NULL, "there is memory");
    uint64_t round = 0;
    for (; round < 20; round++) {
        for (uint64_t slot = 0; slot < BATCH; slot++) {
            fill(batch + slot * limits.page_bytes, home_of(slot), round, limits.page_bytes);
        }
        flush_batch(volume, &limits, batch);
    }
    free(batch);
    printf("%s\n", limits.share_pairs_max >= BATCH ? "shared" : "written twice");
    check_homes(volume, round - 1, limits.page_bytes);
    transaction(volume, limits.page_bytes);

    /* An error is a status and a message. */
    TantalumStatus status = tantalum_trim(volume, limits.pages, 1);
    printf("%s: %s\n", tantalum_status_name(status), tantalum_error_message());

    check(tantalum_close(volume), "closing");
    check(tantalum_open(argument[1], TANTALUM_OPEN_OWN_THREAD, &volume), "opening again");
    check_homes(volume, round - 1, limits.page_bytes);
    check(tantalum_close(volume), "closing again");
    return 0;
}

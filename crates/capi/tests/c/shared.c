/* One of several processes on a volume that is served: WHAT VOLUME [FIRST].
 *   write  commits pairs of pages from page FIRST on
 *   hold   writes page 1 in a transaction, says so, and waits to be killed
 *   check  finds what "write" wrote from page FIRST on, and nothing of "hold" */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "want.h"

#define PAGE 4096
#define COMMITS 100

static unsigned char pages[2 * PAGE];

static void fill(uint64_t first)
{
    memset(pages, 0, sizeof pages);
    memcpy(pages, &first, sizeof first);
    memcpy(pages + PAGE, &first, sizeof first);
}

static void write_pairs(const TantalumVolume *volume, uint64_t first)
{
    for (uint64_t at = first; at < first + 2 * COMMITS; at += 2) {
        uint64_t numbers[2] = {at, at + 1};
        fill(at);
        WANT(OK, tantalum_write_scattered(volume, numbers, pages, 2));
    }
}

static void check(const TantalumVolume *volume, uint64_t first)
{
    static unsigned char found[2 * PAGE];
    for (uint64_t at = first; at < first + 2 * COMMITS; at += 2) {
        fill(at);
        WANT(OK, tantalum_read(volume, at, 2, found));
        failures += memcmp(found, pages, sizeof pages) != 0;
    }
    memset(pages, 0, sizeof pages);
    WANT(OK, tantalum_read(volume, 1, 1, found));
    failures += memcmp(found, pages, PAGE) != 0;
    WANT(OK, tantalum_write(volume, 1, 1, pages));
}

static void hold(const TantalumVolume *volume)
{
    uint64_t tx = 0;
    WANT(OK, tantalum_begin(volume, &tx));
    fill(77);
    WANT(OK, tantalum_write_tx(volume, tx, 1, 1, pages));
    puts(failures ? "failed" : "held");
    fflush(stdout);
    pause();
}

int main(int count, char **arguments)
{
    TantalumVolume *volume = NULL;
    alarm(120);
    if (count < 3)
        return 2;
    uint64_t first = count > 3 ? strtoull(arguments[3], NULL, 10) : 0;
    WANT(OK, tantalum_open(arguments[2], 0, &volume));
    if (failures)
        return 1;
    if (!strcmp(arguments[1], "write"))
        write_pairs(volume, first);
    else if (!strcmp(arguments[1], "hold"))
        hold(volume);
    else
        check(volume, first);
    WANT(OK, tantalum_close(volume));
    return failures != 0;
}

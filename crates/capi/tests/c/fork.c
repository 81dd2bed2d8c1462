/* A forked child has no part in its parent's volume: its calls on the handle are refused, it gets
 * LOCKED until the parent has closed and then an opening of its own, and idle it keeps no lock. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "want.h"

#define PAGE 4096

/* Two pipes: the child says that it is so far, and waits for the parent to go on. */
static int told[2], go[2];

static pid_t fork_child(void)
{
    if (pipe(told) || pipe(go))
        exit(3);
    pid_t pid = fork();
    if (pid < 0)
        exit(3);
    if (pid == 0) {
        alarm(120);
        close(go[1]);
    }
    return pid;
}

static void child_waits(void)
{
    char byte = 1;
    if (write(told[1], &byte, 1) != 1)
        _exit(3);
    if (read(go[0], &byte, 1) != 0)
        _exit(3);
}

static void wait_for_child(void)
{
    char byte;
    if (read(told[0], &byte, 1) != 1)
        failures++;
}

static void let_child_end(pid_t pid)
{
    int status;
    close(go[1]);
    if (waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "the child ended with %#x\n", status);
        failures++;
    }
    close(go[0]);
    close(told[0]);
    close(told[1]);
}

static void child_is_refused_and_opens_its_own(const char *path, uint32_t flags)
{
    unsigned char page[PAGE], back[PAGE];
    TantalumVolume *volume, *own;
    uint64_t tx;
    memset(page, 7, PAGE);
    WANT(OK, tantalum_open(path, flags, &volume));
    WANT(OK, tantalum_write(volume, 3, 1, page));
    WANT(OK, tantalum_begin(volume, &tx));
    WANT(OK, tantalum_write_tx(volume, tx, 4, 1, page));
    pid_t pid = fork_child();
    if (pid == 0) {
        WANT(CLOSED, tantalum_read(volume, 3, 1, back));
        WANT(CLOSED, tantalum_write(volume, 3, 1, back));
        WANT(CLOSED, tantalum_commit(volume, tx));
        WANT(LOCKED, tantalum_open(path, flags, &own));
        WANT(CLOSED, tantalum_close(volume));
        WANT(LOCKED, tantalum_open(path, flags, &own));
        child_waits();
        WANT(OK, tantalum_open(path, flags, &own));
        WANT(OK, tantalum_read(own, 4, 1, back));
        failures += memcmp(page, back, PAGE) != 0;
        WANT(OK, tantalum_write(own, 5, 1, page));
        WANT(OK, tantalum_close(own));
        _exit(failures != 0);
    }
    wait_for_child();
    WANT(OK, tantalum_commit(volume, tx));
    WANT(OK, tantalum_close(volume));
    let_child_end(pid);
    WANT(OK, tantalum_open(path, flags, &volume));
    WANT(OK, tantalum_read(volume, 5, 1, back));
    failures += memcmp(page, back, PAGE) != 0;
    WANT(OK, tantalum_close(volume));
}

static void idle_child_keeps_no_lock(const char *path, uint32_t flags)
{
    TantalumVolume *volume;
    WANT(OK, tantalum_open(path, flags, &volume));
    pid_t pid = fork_child();
    if (pid == 0) {
        child_waits();
        _exit(0);
    }
    wait_for_child();
    WANT(OK, tantalum_close(volume));
    WANT(OK, tantalum_open(path, flags, &volume));
    WANT(OK, tantalum_close(volume));
    let_child_end(pid);
}

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    WANT(OK, tantalum_create(arguments[1], 8 << 20, 0));
    for (uint32_t flags = 0; flags <= TANTALUM_OPEN_OWN_THREAD; flags++) {
        child_is_refused_and_opens_its_own(arguments[1], flags);
        idle_child_keeps_no_lock(arguments[1], flags);
    }
    printf("%d failures\n", failures);
    return failures != 0;
}

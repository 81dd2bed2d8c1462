/* What the programs of the tests count: calls that gave another status than wanted. */
#include <stdio.h>

#include "tantalum.h"

static int failures;

#define WANT(wanted, call)                                                                        \
    do {                                                                                          \
        TantalumStatus status = (call);                                                           \
        if (status != TANTALUM_STATUS_##wanted) {                                                 \
            fprintf(stderr, "line %d: %s gave \"%s\" (%s)\n", __LINE__, #call,                    \
                    tantalum_status_name(status), tantalum_error_message());                      \
            failures++;                                                                           \
        }                                                                                         \
    } while (0)

/* Lets SQLite's speedtest1 run on a volume: loads the extension before it begins, and keeps it from
** deleting the volume's configuration, which it takes for an old database. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

int keep_file(const char *path) {
  (void)path;
  return 0;
}

__attribute__((constructor)) static void load_extension(void) {
  const char *path = getenv("TANTALUM_EXTENSION");
  char *problem = 0;
  sqlite3 *memory = 0;
  if (path == 0) return;
  if (sqlite3_open(":memory:", &memory) != SQLITE_OK
      || sqlite3_enable_load_extension(memory, 1) != SQLITE_OK
      || sqlite3_load_extension(memory, path, 0, &problem) != SQLITE_OK) {
    fprintf(stderr, "%s: %s\n", path, problem ? problem : "not loaded");
    exit(1);
  }
  sqlite3_close(memory);
}

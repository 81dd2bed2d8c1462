/* The C interface of Tantalum. Generated from crates/capi/src; docs/capi.md says how to use it.
 *
 * Every call returns a TantalumStatus; tantalum_error_message() says why it was not
 * TANTALUM_STATUS_OK. A wrong NULL is an error like any other. An open volume may be used by any
 * number of threads at once, but only one call may be its tantalum_close.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * The version of this header, 0.2.0, as three numbers. Until 1.0 a new minor version may change the
 * interface. The loader refuses a shared library of another one, as its name ends in it.
 */
#define TANTALUM_VERSION_MAJOR 0

/**
 * See TANTALUM_VERSION_MAJOR.
 */
#define TANTALUM_VERSION_MINOR 2

/**
 * See TANTALUM_VERSION_MAJOR.
 */
#define TANTALUM_VERSION_PATCH 0

/**
 * For tantalum_create: give up what the volume's file or device holds.
 */
#define TANTALUM_CREATE_OVERWRITE 1

/**
 * For tantalum_open: run the volume on a thread of its own, which cleans also while nobody
 * calls. Without, the calling threads do the work, which is quicker where there is mostly one.
 */
#define TANTALUM_OPEN_OWN_THREAD 1

/**
 * For tantalum_open: to be read only. Nothing is written to the volume or beside it, so it may lie
 * on a read-only or full file system, and many may have it open like that at once, but nobody while
 * another one may write. Every change is READ_ONLY, tantalum_begin too.
 */
#define TANTALUM_OPEN_READ_ONLY 2

/**
 * What a call returns. Values never change their meaning; more may be added.
 */
typedef enum TantalumStatus {
  /**
   * Done.
   */
  TANTALUM_STATUS_OK = 0,
  /**
   * An argument or a configuration makes no sense.
   */
  TANTALUM_STATUS_INVALID_INPUT = 1,
  /**
   * A page outside the volume.
   */
  TANTALUM_STATUS_OUT_OF_RANGE = 2,
  /**
   * No room left; nothing was changed.
   */
  TANTALUM_STATUS_OUT_OF_SPACE = 3,
  /**
   * This volume does not offer that.
   */
  TANTALUM_STATUS_UNSUPPORTED = 4,
  /**
   * Another open transaction holds the page.
   */
  TANTALUM_STATUS_CONFLICT = 5,
  /**
   * The transaction is not open (never begun, committed, aborted).
   */
  TANTALUM_STATUS_UNKNOWN_TRANSACTION = 6,
  /**
   * As many transactions as may be are open.
   */
  TANTALUM_STATUS_TOO_MANY_TRANSACTIONS = 7,
  /**
   * More pages or pairs than the limit.
   */
  TANTALUM_STATUS_TOO_LARGE = 8,
  /**
   * Content does not match its checksum; it is not given out.
   */
  TANTALUM_STATUS_CHECKSUM = 9,
  /**
   * The medium could not read a page back.
   */
  TANTALUM_STATUS_UNCORRECTABLE = 10,
  /**
   * The medium failed to write a page, and no other place did better.
   */
  TANTALUM_STATUS_PROGRAM_FAILED = 11,
  /**
   * The medium can no longer use a zone.
   */
  TANTALUM_STATUS_ZONE_RETIRED = 12,
  /**
   * A structure on the medium contradicts itself.
   */
  TANTALUM_STATUS_CORRUPT = 13,
  /**
   * Not a volume, or one of another version or size.
   */
  TANTALUM_STATUS_FORMAT = 14,
  /**
   * Somebody else has the volume open.
   */
  TANTALUM_STATUS_LOCKED = 15,
  /**
   * After a failed write to its log the volume refuses writes until it is opened again.
   */
  TANTALUM_STATUS_LATCHED = 16,
  /**
   * The operating system reported a failure.
   */
  TANTALUM_STATUS_IO = 17,
  /**
   * Power was cut (simulated devices only).
   */
  TANTALUM_STATUS_POWER_CUT = 18,
  /**
   * The volume's thread has gone, or an earlier call panicked midway.
   */
  TANTALUM_STATUS_CLOSED = 19,
  /**
   * A kind of error that this header has no name for.
   */
  TANTALUM_STATUS_OTHER = 20,
  /**
   * A bug in the library; the volume should be closed.
   */
  TANTALUM_STATUS_PANICKED = 21,
  /**
   * A page that is to be shared holds nothing.
   */
  TANTALUM_STATUS_UNMAPPED = 22,
  /**
   * A change of a volume that was opened to be read only.
   */
  TANTALUM_STATUS_READ_ONLY = 23,
} TantalumStatus;

/**
 * What survives a power cut.
 */
typedef enum TantalumDurability {
  /**
   * What completed; tantalum_flush costs nothing.
   */
  TANTALUM_DURABILITY_ON_ACK = 0,
  /**
   * What completed before the last completed tantalum_flush, and a prefix of what came after,
   * each write whole or not at all.
   */
  TANTALUM_DURABILITY_ON_FLUSH = 1,
  /**
   * What completed before the last completed tantalum_flush; of the rest anything.
   */
  TANTALUM_DURABILITY_VOLATILE = 2,
} TantalumDurability;

/**
 * An open volume. Any number of threads may use it at the same time.
 */
typedef struct TantalumVolume TantalumVolume;

/**
 * What a volume offers.
 */
typedef struct TantalumLimits {
  /**
   * Pages of the volume, numbered from 0.
   */
  uint64_t pages;
  /**
   * Bytes in a page.
   */
  uint32_t page_bytes;
  /**
   * Pages that one tantalum_write may have; it is all or nothing.
   */
  uint32_t atomic_write_pages_max;
  /**
   * Pages that one transaction may write.
   */
  uint32_t transaction_pages_max;
  /**
   * Transactions that may be open at once.
   */
  uint32_t transactions_max;
  /**
   * Pairs that one tantalum_share may have; 0 where the volume has none.
   */
  uint32_t share_pairs_max;
  /**
   * What survives a power cut.
   */
  enum TantalumDurability durability;
} TantalumLimits;

/**
 * Page `to` takes the content that page `from` has.
 */
typedef struct TantalumPair {
  /**
   * The page that is remapped.
   */
  uint64_t to;
  /**
   * The page whose content it takes; keeps it.
   */
  uint64_t from;
} TantalumPair;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library that is running, such as "0.2.0". The text is static.
 */
const char *tantalum_version(void);

/**
 * The message of this thread's last call that did not return TANTALUM_STATUS_OK: where, what and
 * why, in one line of UTF-8 without a line break; empty before the first. The text belongs to the
 * library and stays until the next such call of this thread, or its end.
 */
const char *tantalum_error_message(void);

/**
 * A name for `status`, such as "out of space". The text is static; unknown values have one too.
 */
const char *tantalum_status_name(int status);

/**
 * Makes a new, empty volume.
 *
 * `config_path` names its VOLUME.toml. Where there is none yet, one with every setting at its
 * default is written for a volume of `capacity_bytes`, which is a multiple of 4096. Where there is
 * one it is used as it is, and `capacity_bytes` is 0 or what it says. `flags` is 0 or
 * TANTALUM_CREATE_OVERWRITE.
 *
 * Nothing new is left behind after an error. INVALID_INPUT where the volume exists already.
 *
 * `config_path` is NULL (an error) or a string with a zero at its end.
 */
enum TantalumStatus tantalum_create(const char *config_path,
                                    uint64_t capacity_bytes,
                                    uint32_t flags);

/**
 * Opens the volume of the VOLUME.toml at `config_path`, recovers it where that is needed, and
 * puts a handle into `*volume`. `flags` is 0, TANTALUM_OPEN_OWN_THREAD, TANTALUM_OPEN_READ_ONLY, or
 * both.
 *
 * Where another process serves the volume to local ones (`tantalum serve --socket`), that one does the
 * work, and TANTALUM_OPEN_OWN_THREAD has no effect; `config_path` may also be the server's socket.
 * CLOSED is what every call returns when the server has gone: close the handle and open another.
 *
 * The handle is the caller's, who gives it back with tantalum_close. Otherwise one process has a
 * volume open, once, or many read it; others get LOCKED, and a child after fork() is another one: there
 * the handle's calls return CLOSED, and tantalum_close frees it and leaves the volume alone.
 * `*volume` is NULL after an error.
 *
 * `config_path` is NULL (an error) or a string with a zero at its end; `volume` is NULL (an error)
 * or has room for a pointer.
 */
enum TantalumStatus tantalum_open(const char *config_path,
                                  uint32_t flags,
                                  struct TantalumVolume **volume);

/**
 * Puts what the volume offers into `*limits`.
 *
 * `volume` is NULL (an error) or open; `limits` is NULL (an error) or has room.
 */
enum TantalumStatus tantalum_limits(const struct TantalumVolume *volume,
                                    struct TantalumLimits *limits);

/**
 * Flushes the volume, aborts the transactions that are still open, closes it and frees the handle,
 * whatever is returned: an error says that the flush failed, so that what came after the last
 * completed one may be lost at a power cut. NULL is nothing to close. No other call may be running
 * on the handle, or come after.
 *
 * `volume` is NULL or from tantalum_open and not closed yet.
 */
enum TantalumStatus tantalum_close(struct TantalumVolume *volume);

/**
 * Reads `pages` pages from page `first_page` into `buffer`, which has room for that many times
 * page_bytes and needs no alignment. A page that was never written reads as zeros. After an error
 * the buffer is unchanged; content that does not match its checksum is never given out.
 *
 * `volume` is NULL (an error) or open; `buffer` is NULL (an error) or has the room.
 */
enum TantalumStatus tantalum_read(const struct TantalumVolume *volume,
                                  uint64_t first_page,
                                  uint64_t pages,
                                  void *buffer);

/**
 * Writes `pages` pages from page `first_page` on, all or nothing, at most atomic_write_pages_max
 * of them. `content` is that many times page_bytes, without alignment; it is copied and stays the
 * caller's. What survives a power cut when this has returned is in TantalumLimits.durability.
 * CONFLICT where an open transaction wrote one of the pages.
 *
 * `volume` is NULL (an error) or open; `content` is NULL (an error) or as long.
 */
enum TantalumStatus tantalum_write(const struct TantalumVolume *volume,
                                   uint64_t first_page,
                                   uint64_t pages,
                                   const void *content);

/**
 * Makes everything that completed before durable.
 *
 * `volume` is NULL (an error) or open.
 */
enum TantalumStatus tantalum_flush(const struct TantalumVolume *volume);

/**
 * Gives `pages` pages from `first_page` on up: they read as zeros, and their room is free. CONFLICT
 * where an open transaction wrote one of them.
 *
 * `volume` is NULL (an error) or open.
 */
enum TantalumStatus tantalum_trim(const struct TantalumVolume *volume,
                                  uint64_t first_page,
                                  uint64_t pages);

/**
 * Remaps `count` pairs at once, all or none, at most share_pairs_max of them: each page `to` takes
 * the content of its page `from`, which keeps it, without a second copy being written. UNSUPPORTED
 * where share_pairs_max is 0, UNMAPPED where a page `from` holds nothing, INVALID_INPUT where a page
 * is `to` twice, or both `to` and `from`, CONFLICT where an open transaction wrote a page `to`.
 *
 * `volume` is NULL (an error) or open; `pairs` points to `count` pairs, or is NULL (an error unless
 * `count` is 0).
 */
enum TantalumStatus tantalum_share(const struct TantalumVolume *volume,
                                   const struct TantalumPair *pairs,
                                   size_t count);

/**
 * As tantalum_share with the pairs (to, from), (to + 1, from + 1), ... for `pages` pages. The two
 * ranges may not overlap.
 *
 * `volume` is NULL (an error) or open.
 */
enum TantalumStatus tantalum_share_range(const struct TantalumVolume *volume,
                                         uint64_t to,
                                         uint64_t from,
                                         uint64_t pages);

/**
 * Opens a transaction and puts its number into `*tx`. One that is still open when the volume is
 * closed, or when the process ends, is aborted.
 *
 * `volume` is NULL (an error) or open; `tx` is NULL (an error) or has room for a number.
 */
enum TantalumStatus tantalum_begin(const struct TantalumVolume *volume, uint64_t *tx);

/**
 * Makes all that the transaction wrote visible and durable, all or nothing. After an error the
 * transaction has ended, and nothing of it is there, except after CLOSED, LATCHED and PANICKED: then
 * all of it or nothing is there, as the next opening shows. Read it back before repeating it.
 *
 * `volume` is NULL (an error) or open.
 */
enum TantalumStatus tantalum_commit(const struct TantalumVolume *volume,
                                    uint64_t tx);

/**
 * Drops all that the transaction wrote.
 *
 * `volume` is NULL (an error) or open.
 */
enum TantalumStatus tantalum_abort(const struct TantalumVolume *volume, uint64_t tx);

/**
 * As tantalum_read, but sees what transaction `tx` wrote.
 *
 * `volume` is NULL (an error) or open; `buffer` is NULL (an error) or has the room.
 */
enum TantalumStatus tantalum_read_tx(const struct TantalumVolume *volume,
                                     uint64_t tx,
                                     uint64_t first_page,
                                     uint64_t pages,
                                     void *buffer);

/**
 * As tantalum_write, in transaction `tx`: nobody else sees it before the commit. CONFLICT where
 * another open transaction wrote one of the pages. A transaction that nobody used for long may be
 * aborted where a server has the volume: then it is UNKNOWN_TRANSACTION, and the message says why.
 *
 * `volume` is NULL (an error) or open; `content` is NULL (an error) or as long.
 */
enum TantalumStatus tantalum_write_tx(const struct TantalumVolume *volume,
                                      uint64_t tx,
                                      uint64_t first_page,
                                      uint64_t pages,
                                      const void *content);

/**
 * Writes `count` pages in one transaction of its own, in one round trip: visible and durable when
 * it returns, all or nothing; after CLOSED, LATCHED and PANICKED as tantalum_commit. Page number `page_numbers[i]` takes the page_bytes at
 * `content + i * page_bytes`. Each number stands once; at most transaction_pages_max of them. It takes
 * none of the transactions_max open transactions. CONFLICT where one of these wrote one of the pages.
 *
 * `volume` is NULL (an error) or open; `page_numbers` and `content` are that long, or NULL (an error
 * unless `count` is 0).
 */
enum TantalumStatus tantalum_write_scattered(const struct TantalumVolume *volume,
                                             const uint64_t *page_numbers,
                                             const void *content,
                                             size_t count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects under URIs: the place of data files, manifests and table metadata. Today file://; the
 * interface is that of an object store, so that s3:// can join without its callers noticing.
 *
 * URIs: "file:///p", "file:/p" and "/p" name the same object; the spelling we write is "file:///p"
 * (store_uri_canonical), with runs of slashes as one. A URI without a leading "/" or scheme is
 * relative to the store's root. Text after the scheme is taken literally (no percent-decoding, as
 * Iceberg's readers do); "." and ".." segments are INVALID.
 *
 * What lasts through a power cut, on file://:
 *   store_put, store_put_if_absent, store_writer_finish   the bytes, the name, and the names of all
 *                                                         directories above it, whoever made them
 *   store_writer_write                                    nothing
 *   store_sync_object                                     an object written by others, and the
 * names leading to it from the root store_sync_prefix                                     the names
 * of the directories leading there and of what lies directly in the last one store_delete the
 * absence is not promised to last A failed sync answers IO, and the object's state is unknown for
 * good: abandon it and write anew under another name; calling sync again proves nothing.
 *
 * A store is immutable once open; any thread. A writer belongs to one thread at a time.
 */
#ifndef SLUICE_LAKE_STORE_STORE_H
#define SLUICE_LAKE_STORE_STORE_H

#include "os/os.h"

enum { STORE_URI_BYTES_MAX = 1024 };

struct store;
struct store_writer;

/* UNSUPPORTED for a scheme nobody serves. The root is made when something is written below it. */
enum status store_open(struct env *env, const char *root_url, struct store **out_store,
                       struct error *err) MUST_CHECK;
void store_close(struct store *store); /* accepts NULL; no writers may be left */

const char *store_root(const struct store *store); /* canonical, without a slash at its end */

/* The canonical spelling of `uri` in this store. */
enum status store_uri_canonical(const struct store *store, const char *uri,
                                char out_uri[STORE_URI_BYTES_MAX], struct error *err) MUST_CHECK;
/* "a/b" for URIs; INVALID if it does not fit. */
enum status store_uri_join(const char *base, const char *relative,
                           char out_uri[STORE_URI_BYTES_MAX], struct error *err) MUST_CHECK;

/* Writes the object whole, in place of an older one; readers see the old or the new. */
enum status store_put(struct store *store, const char *uri, const void *data, size_t bytes,
                      struct error *err) MUST_CHECK;
/* EXISTS, changing nothing, if the object is there; of several at once one wins. */
enum status store_put_if_absent(struct store *store, const char *uri, const void *data,
                                size_t bytes, struct error *err) MUST_CHECK;
/* The same without any promise that it lasts: for hints that can be written again. */
enum status store_put_hint(struct store *store, const char *uri, const void *data, size_t bytes,
                           struct error *err) MUST_CHECK;

/* Starts a new object (EXISTS if the name is taken). Its name may be seen, half written, before
 * finish; nobody may refer to it earlier. */
enum status store_create(struct store *store, const char *uri, struct store_writer **out_writer,
                         struct error *err) MUST_CHECK;
struct sink store_writer_sink(struct store_writer *writer);     /* borrows the writer */
uint64_t store_writer_bytes(const struct store_writer *writer); /* so far */
/* Makes it durable, yields its exact length, frees the writer. On failure the writer is freed too,
 * and the object removed if that can be done. */
enum status store_writer_finish(struct store_writer *writer, uint64_t *out_bytes,
                                struct error *err) MUST_CHECK;
void store_writer_abort(struct store_writer *writer); /* removes it; accepts NULL */

/* Appends to `out`: the whole object, LIMIT beyond `bytes_max`; or [offset, offset + bytes),
 * INVALID if the object ends before. NOT_FOUND. */
enum status store_get(struct store *store, const char *uri, uint64_t bytes_max, struct buf *out,
                      struct error *err) MUST_CHECK;
enum status store_get_range(struct store *store, const char *uri, uint64_t offset, size_t bytes,
                            struct buf *out, struct error *err) MUST_CHECK;

struct store_object {
    const char *uri; /* canonical */
    uint64_t bytes;
    int64_t modified_ns; /* Unix time */
};

enum status store_stat(struct store *store, const char *uri, struct store_object *out_object,
                       struct error *err) MUST_CHECK; /* NOT_FOUND; leaves out_object->uri NULL */

/* Called for each object below the prefix, in no order; anything but OK ends the listing with it.
 */
typedef enum status (*store_list_fn)(void *context, const struct store_object *object,
                                     struct error *err);
/* `prefix` is a text prefix of the URI: ".../data/ab" finds ".../data/abc" and ".../data/ab/c". A
 * missing directory lists nothing. Names that vanish meanwhile are left out. */
enum status store_list(struct store *store, const char *prefix, store_list_fn each, void *context,
                       struct error *err) MUST_CHECK;

enum status store_delete(struct store *store, const char *uri,
                         struct error *err) MUST_CHECK; /* a
                                                         * missing object is fine */

/* On file://, takes away an empty directory whose name nobody uses again. Elsewhere, and if it is
 * not empty or not there, nothing happens. */
void store_drop_directory(struct store *store, const char *directory_uri);

/* See the table above; object stores confirm what they answer, there both do nothing. */
enum status store_sync_object(struct store *store, const char *uri, struct error *err) MUST_CHECK;
enum status store_sync_prefix(struct store *store, const char *directory_uri,
                              struct error *err) MUST_CHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kind of store has to supply. Names arrive canonical; store.c has checked them.
 */
#ifndef SLUICE_LAKE_STORE_STORE_INTERNAL_H
#define SLUICE_LAKE_STORE_STORE_INTERNAL_H

#include "lake/store/store.h"

enum store_put_mode { STORE_PUT_REPLACE, STORE_PUT_IF_ABSENT, STORE_PUT_HINT };

struct store_ops {
    const char *scheme; /* "file://": what canonical URIs begin with */
    void (*close)(struct store *store);
    enum status (*put)(struct store *store, const char *uri, enum store_put_mode mode,
                       const void *data, size_t bytes, struct error *err);
    enum status (*create)(struct store *store, const char *uri, struct store_writer **out_writer,
                          struct error *err);
    enum status (*writer_write)(struct store_writer *writer, const void *data, size_t bytes,
                                struct error *err);
    enum status (*writer_finish)(struct store_writer *writer, uint64_t *out_bytes,
                                 struct error *err);
    void (*writer_abort)(struct store_writer *writer);
    enum status (*get)(struct store *store, const char *uri, uint64_t bytes_max, struct buf *out,
                       struct error *err);
    enum status (*get_range)(struct store *store, const char *uri, uint64_t offset, size_t bytes,
                             struct buf *out, struct error *err);
    enum status (*stat)(struct store *store, const char *uri, struct store_object *out_object,
                        struct error *err);
    enum status (*list)(struct store *store, const char *prefix, store_list_fn each, void *context,
                        struct error *err);
    enum status (*remove)(struct store *store, const char *uri, struct error *err);
    void (*drop_directory)(struct store *store, const char *uri);
    enum status (*sync_object)(struct store *store, const char *uri, struct error *err);
    enum status (*sync_prefix)(struct store *store, const char *uri, struct error *err);
};

struct store {
    const struct store_ops *ops;
    char root[STORE_URI_BYTES_MAX]; /* canonical, no slash at its end unless it is all there is */
};

struct store_writer {
    const struct store_ops *ops;
    uint64_t bytes; /* given so far */
};

enum status store_file_open(struct env *env, struct store **out_store,
                            struct error *err) MUST_CHECK;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A log with small segments, a mirror of it in a directory, and what reads that directory as
 * docs/format/mirror.md says.
 */
#ifndef SLUICE_TEST_MIRROR_FIXTURE_H
#define SLUICE_TEST_MIRROR_FIXTURE_H

#include "../wal/wal_fixture.h"
#include "log/mirror/mirror.h"

struct mirrored {
    struct fixture log;
    struct mirror_options options;
    struct mirror *mirror;
    char dir[300], url[320]; /* of the mirror; of the log in it */
};

static inline void mirrored_open(struct mirrored *m)
{
    struct error err;
    assert_ok(mirror_create(env_real(), &m->options, m->log.wal, &m->mirror, &err));
    snprintf(m->url, sizeof m->url, "%s", mirror_url(m->mirror) + strlen("file://"));
}

static inline void mirrored_init(struct mirrored *m, const char *name)
{
    memset(m, 0, sizeof *m);
    fixture_init(&m->log, name);
    snprintf(m->dir, sizeof m->dir, "%s-mirror", m->log.dir);
    m->options = mirror_options_default(m->dir);
    m->options.interval_ms = 20;
    m->options.range_bytes = 20000;
    m->options.retry_ms_min = 1;
    mirrored_open(m);
}

static inline void mirrored_close(struct mirrored *m)
{
    mirror_destroy(m->mirror);
    wal_close(m->log.wal);
    m->mirror = NULL;
    m->log.wal = NULL;
}

static inline void mirrored_reopen(struct mirrored *m)
{
    mirrored_close(m);
    fixture_open(&m->log);
    mirrored_open(m);
}

static inline void remove_everything(const char *dir)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

static inline void mirrored_deinit(struct mirrored *m)
{
    mirrored_close(m);
    fixture_remove_tree(m->log.dir);
    remove_everything(m->dir);
}

/* ---- reading ---- */

struct found {
    struct mirror_header header;
    struct buf object;
};

struct found_list {
    struct found items[512];
    size_t count;
    size_t root_length;
    struct store *store;
};

static inline enum status found_add(void *context, const struct store_object *object,
                                    struct error *err)
{
    struct found_list *list = context;
    struct mirror_header name;
    if (!mirror_name_parse(span_of_text(object->uri + list->root_length + 1), &name))
        return STATUS_OK;
    assert_true(list->count < COUNT_OF(list->items));
    struct found *found = &list->items[list->count++];
    TRY(store_get(list->store, object->uri, 16 << 20, &found->object, err));
    TRY(mirror_object_check(span_of(found->object.data, found->object.length), &found->header,
                            err));
    assert_true(mirror_header_is_of(&found->header, &name));
    return STATUS_OK;
}

/* Segments by (id, from), then states by number. */
static inline int compare_found(const void *a, const void *b)
{
    const struct mirror_header *x = &((const struct found *)a)->header;
    const struct mirror_header *y = &((const struct found *)b)->header;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static inline void found_read(struct found_list *list, const char *url)
{
    struct error err;
    memset(list, 0, sizeof *list);
    assert_ok(store_open(env_real(), url, &list->store, &err));
    list->root_length = strlen(store_root(list->store));
    assert_ok(store_list(list->store, "", found_add, list, &err));
    qsort(list->items, list->count, sizeof list->items[0], compare_found);
}

static inline void found_free(struct found_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        buf_deinit(&list->items[i].object);
    store_close(list->store);
}

static inline size_t found_count(const struct found_list *list, enum mirror_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += list->items[i].header.kind == kind;
    return count;
}

#endif

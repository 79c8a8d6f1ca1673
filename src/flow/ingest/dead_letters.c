/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of rejected items: "<signal>-<Unix milliseconds>-<number>.pb", the next one once a file is
 * full.
 */
#include "flow/ingest/dead_letters.h"

#include <stdio.h>

enum { FILE_BYTES = 8 << 20, SIGNALS = 3 };

static const int64_t retry_ns = 1000000000;

struct dead_letters {
    struct env *env;
    uint64_t bytes_max;
    struct env_mutex *lock;
    /* under lock: */
    uint64_t bytes; /* of all files in the directory */
    uint64_t made;  /* files, so that two of one moment have two names */
    bool has_dir;
    int64_t retry_at_ns; /* after the disk refused; 0: it did not */
    struct {
        struct env_file *file; /* NULL: none yet */
        uint64_t bytes;
    } open[SIGNALS];
    char dir[PATH_BYTES_MAX];
};

static enum status count_bytes(struct dead_letters *letters, struct error *err)
{
    struct arena arena;
    char **names, path[PATH_BYTES_MAX];
    size_t count = 0;
    arena_init(&arena, 0);
    enum status status = files_list(letters->env, letters->dir, &arena, &names, &count, err);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct env_stat stat;
        status = path_join(path, letters->dir, names[i], err);
        if (status == STATUS_OK)
            status = env_path_stat(letters->env, path, &stat, err);
        if (status == STATUS_OK)
            letters->bytes += stat.bytes;
    }
    arena_deinit(&arena);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status dead_letters_create(struct env *env, const char *dir, uint64_t bytes_max,
                                struct dead_letters **out_letters, struct error *err)
{
    struct dead_letters *letters = mem_alloc_zero(1, sizeof *letters);
    enum status status = STATUS_OK;
    if (letters)
        letters->lock = env_mutex_create(env);
    if (!letters || !letters->lock) {
        mem_free(letters);
        return error_set(err, STATUS_NO_MEMORY, "dead letters: out of memory");
    }
    letters->env = env;
    letters->bytes_max = bytes_max;
    if (snprintf(letters->dir, sizeof letters->dir, "%s", dir) >= PATH_BYTES_MAX)
        status = error_set(err, STATUS_INVALID, "%.200s: path too long", dir);
    if (status == STATUS_OK)
        status = count_bytes(letters, err);
    if (status != STATUS_OK) {
        dead_letters_destroy(letters);
        return error_prefix(err, "dead letters");
    }
    *out_letters = letters;
    return STATUS_OK;
}

void dead_letters_destroy(struct dead_letters *letters)
{
    if (!letters)
        return;
    for (unsigned i = 0; i < SIGNALS; i++)
        env_close(letters->open[i].file);
    env_mutex_destroy(letters->lock);
    mem_free(letters);
}

/* Lock held. */
static enum status make_file(struct dead_letters *letters, unsigned signal, const char *name,
                             struct error *err)
{
    char file_name[80], path[PATH_BYTES_MAX];
    env_close(letters->open[signal].file);
    letters->open[signal].file = NULL;
    letters->open[signal].bytes = 0;
    snprintf(file_name, sizeof file_name, "%s-%lld-%llu.pb", name,
             (long long)(env_wall_ns(letters->env) / 1000000), (unsigned long long)letters->made++);
    if (!letters->has_dir)
        TRY(files_make_dirs(letters->env, letters->dir, err));
    letters->has_dir = true;
    TRY(path_join(path, letters->dir, file_name, err));
    return env_open(letters->env, path, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE,
                    &letters->open[signal].file, err);
}

/* Lock held. */
static enum status keep(struct dead_letters *letters, unsigned signal, const char *name,
                        struct span items, struct error *err)
{
    uint64_t *at = &letters->open[signal].bytes;
    if (letters->bytes + items.length > letters->bytes_max)
        return error_set(err, STATUS_LIMIT, "dead letters: %llu bytes",
                         (unsigned long long)letters->bytes_max);
    if (!letters->open[signal].file || (*at && *at + items.length > FILE_BYTES))
        TRY(make_file(letters, signal, name, err));
    TRY(env_write(letters->open[signal].file, *at, items.data, items.length, err));
    *at += items.length; /* what was half written is written over */
    letters->bytes += items.length;
    return STATUS_OK;
}

bool dead_letters_keep(struct dead_letters *letters, unsigned signal, const char *name,
                       struct span items)
{
    struct error ignored;
    CHECK(signal < SIGNALS);
    env_lock(letters->lock);
    int64_t now_ns = env_mono_ns(letters->env);
    bool is_kept = now_ns >= letters->retry_at_ns;
    if (is_kept) {
        enum status status = keep(letters, signal, name, items, &ignored);
        is_kept = status == STATUS_OK;
        letters->retry_at_ns = is_kept || status == STATUS_LIMIT ? 0 : now_ns + retry_ns;
    }
    env_unlock(letters->lock);
    return is_kept;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of rejected items: "<signal>-<Unix milliseconds>.pb", the next one once a file is full.
 */
#include "flow/ingest/dead_letters.h"

#include <stdio.h>

#include "format/wire/wire.h"

enum { FILE_BYTES = 8 << 20, /* within every default limit of a body */ SIGNALS = 3 };

struct dead_letters {
    struct env *env;
    uint64_t bytes_max;
    struct env_mutex *lock;
    /* under lock: */
    uint64_t bytes; /* of all files in the directory */
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
    snprintf(file_name, sizeof file_name, "%s-%lld.pb", name,
             (long long)(env_wall_ns(letters->env) / 1000000));
    TRY(files_make_dirs(letters->env, letters->dir, err));
    TRY(path_join(path, letters->dir, file_name, err));
    return env_open(letters->env, path, ENV_WRITE | ENV_CREATE | ENV_EXCLUSIVE,
                    &letters->open[signal].file, err);
}

bool dead_letters_keep(struct dead_letters *letters, unsigned signal, const char *name,
                       struct span item)
{
    struct buf framed = {0};
    struct error ignored;
    enum status status = STATUS_OK;
    CHECK(signal < SIGNALS);
    wire_put_bytes(&framed, 1, item);
    env_lock(letters->lock);
    bool is_kept = !framed.failed && letters->bytes + framed.length <= letters->bytes_max;
    if (is_kept &&
        (!letters->open[signal].file || letters->open[signal].bytes + framed.length > FILE_BYTES))
        status = make_file(letters, signal, name, &ignored);
    if (is_kept && status == STATUS_OK)
        status = env_write(letters->open[signal].file, letters->open[signal].bytes, framed.data,
                           framed.length, &ignored);
    is_kept &= status == STATUS_OK; /* what was half written is written over */
    if (is_kept) {
        letters->open[signal].bytes += framed.length;
        letters->bytes += framed.length;
    }
    env_unlock(letters->lock);
    buf_deinit(&framed);
    return is_kept;
}

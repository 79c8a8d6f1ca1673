/* SPDX-License-Identifier: Apache-2.0
 *
 * Directories copied and put back, as an operator does it with a backup: the files get new inodes,
 * the directories keep theirs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/publish_world.h"

enum { FILES_MAX = 1024 };

struct saved_file {
    char *name; /* below the root, with its slash */
    uint8_t *data;
    size_t bytes;
};

struct saved_dir {
    struct sim_node *node;
    size_t root_length, count;
    struct saved_file files[FILES_MAX];
};

struct putting {
    struct model *model;
    const struct saved_dir *saved, *there;
    const char *root;
};

static void take_file(void *context, const char *path, const struct env_stat *stat)
{
    struct saved_dir *saved = context;
    const uint8_t *data = NULL;
    uint64_t bytes = 0;
    UNUSED(stat);
    CHECK(saved->count < FILES_MAX && sim_file_bytes(saved->node, path, &data, &bytes));
    struct saved_file *file = &saved->files[saved->count++];
    file->bytes = (size_t)bytes;
    file->data = malloc(file->bytes + 1);
    file->name = strdup(path + saved->root_length);
    CHECK(file->data && file->name);
    if (bytes)
        memcpy(file->data, data, file->bytes);
}

struct saved_dir *saved_dir_take(struct model *model, const char *root)
{
    struct saved_dir *saved = calloc(1, sizeof *saved);
    CHECK(saved);
    saved->node = model->node;
    saved->root_length = strlen(root);
    sim_each_file(model->node, root, take_file, saved);
    return saved;
}

void saved_dir_free(struct saved_dir *saved)
{
    for (size_t i = 0; saved && i < saved->count; i++) {
        free(saved->files[i].name);
        free(saved->files[i].data);
    }
    free(saved);
}

static enum status put_file(const struct putting *putting, const struct saved_file *file,
                            struct error *err)
{
    struct env *env = putting->model->env;
    char path[PATH_BYTES_MAX], parent[PATH_BYTES_MAX];
    snprintf(path, sizeof path, "%s%s", putting->root, file->name);
    path_parent(parent, path);
    TRY(files_make_dirs(env, parent, err));
    TRY(files_create(env, path, file->data, file->bytes, err));
    return env_dir_sync(env, parent, err);
}

static void put_main(void *context)
{
    const struct putting *putting = context;
    struct error err;
    char path[PATH_BYTES_MAX];
    for (size_t i = 0; i < putting->there->count; i++) {
        snprintf(path, sizeof path, "%s%s", putting->root, putting->there->files[i].name);
        if (files_remove(putting->model->env, path, &err) != STATUS_OK)
            fail(putting->model, "the backup cannot be put back: %s", err.message);
    }
    for (size_t i = 0; i < putting->saved->count; i++)
        if (put_file(putting, &putting->saved->files[i], &err) != STATUS_OK)
            fail(putting->model, "the backup cannot be put back: %s", err.message);
}

void saved_dir_put(struct model *model, const struct saved_dir *saved, const char *root)
{
    struct saved_dir *there = saved_dir_take(model, root);
    struct putting putting = {.model = model, .saved = saved, .there = there, .root = root};
    struct sim_faults faults = *sim_node_faults(model->node);
    *sim_node_faults(model->node) = (struct sim_faults){.switches = 1};
    CHECK(sim_run(model->node, put_main, &putting) == SIM_ENDED);
    *sim_node_faults(model->node) = faults;
    saved_dir_free(there);
}

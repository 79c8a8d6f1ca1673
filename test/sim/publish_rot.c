/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk loses what it had: bits of a sealed segment, all of it, or the file. Whatever stood
 * there was promised. Lanes whose rows it may have held must halt (L20), nobody may take those rows
 * for never written, and after the operator's repair everything else is in the tables.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/publish_world.h"

struct listing {
    char paths[64][96];
    size_t count;
};

static void list_segment(void *context, const char *path, const struct env_stat *stat)
{
    struct listing *listing = context;
    UNUSED(stat);
    if (listing->count < COUNT_OF(listing->paths) && strlen(path) < sizeof listing->paths[0])
        snprintf(listing->paths[listing->count++], sizeof listing->paths[0], "%s", path);
}

static void flip_bits(struct model *model, const char *path, uint64_t bytes)
{
    for (uint64_t i = 1 + pick(model, 20); i > 0; i--)
        sim_flip_bit(model->node, path, pick(model, bytes), (unsigned)pick(model, 8));
}

/* All but the first block, or some of it. */
static void wipe(struct model *model, const char *path, const uint8_t *data, uint64_t bytes)
{
    uint8_t *copy = malloc(bytes);
    uint64_t from = pick(model, 3) ? 4096 * pick(model, bytes / 4096 + 1) : 0;
    CHECK(copy);
    memcpy(copy, data, bytes);
    memset(copy + from, 0, bytes - from);
    sim_put_file(model->node, path, copy, bytes);
    free(copy);
}

struct removal {
    struct model *model;
    const char *path;
};

static void remove_main(void *context)
{
    struct removal *removal = context;
    struct error err;
    char dir[PATH_BYTES_MAX];
    path_parent(dir, removal->path);
    if (env_remove(removal->model->env, removal->path, &err) != STATUS_OK ||
        env_dir_sync(removal->model->env, dir, &err) != STATUS_OK)
        fail(removal->model, "a segment cannot be removed: %s", err.message);
}

static void rot_one(struct model *model, const char *path, uint64_t how)
{
    const uint8_t *data;
    uint64_t bytes;
    CHECK(sim_file_bytes(model->node, path, &data, &bytes));
    say(model, "rot: %s, %s", path, how == 0 ? "bits" : how == 1 ? "wiped" : "gone");
    if (how == 0) {
        flip_bits(model, path, bytes);
    } else if (how == 1) {
        wipe(model, path, data, bytes);
    } else {
        struct removal removal = {model, path};
        *sim_node_faults(model->node) = (struct sim_faults){.switches = 1};
        CHECK(sim_run(model->node, remove_main, &removal) == SIM_ENDED);
    }
    totals.rots[how]++;
}

/* One segment, or all but the newest: what the disk loses at the end of a log cannot be told from
 * what never was. */
void rot_do(struct model *model)
{
    char dir[64];
    struct listing listing = {0};
    size_t newest = 0;
    snprintf(dir, sizeof dir, "%s/sealed", model->instances[0].log_dir);
    sim_each_file(model->node, dir, list_segment, &listing);
    if (listing.count < 2)
        return;
    for (size_t i = 1; i < listing.count; i++)
        newest = strcmp(listing.paths[i], listing.paths[newest]) > 0 ? i : newest;
    size_t only = (newest + 1 + pick(model, listing.count - 1)) % listing.count;
    bool is_all = pick(model, 2);
    uint64_t how = pick(model, 3);
    model->is_rotten = true;
    for (size_t i = 0; i < listing.count; i++) {
        if (i != newest && (is_all || i == only))
            rot_one(model, listing.paths[i], how);
    }
}

/* What a damaged range may have held is promised no more, where the lane has said so. */
static void forget_range(struct instance *instance, const struct wal_damage *damage)
{
    struct model *model = instance->model;
    for (size_t number = 1; number < model->entry_count; number++) {
        struct entry *entry = &model->entries[number];
        if (entry->group != damage->group || entry->seq < damage->seq_first ||
            entry->seq > damage->seq_last || !instance->is_stopped[entry->table])
            continue;
        totals.rotten_entries += entry->state == ENTRY_SYNCED && !entry->present;
        entry->state = ENTRY_OPEN;
    }
}

void rot_repair(struct instance *instance)
{
    struct model *model = instance->model;
    struct wal_damage damage;
    struct error err;
    uint64_t count;
    if (wal_verify(instance->wal, &count, &err) != STATUS_OK)
        fail(model, "the log cannot be verified: %s", err.message);
    for (size_t i = 0; wal_damage_at(instance->wal, i, &damage); i++) {
        say(model, "damage: group %u %llu to %llu: %s", damage.group, U(damage.seq_first),
            U(damage.seq_last), damage.where);
        forget_range(instance, &damage);
    }
    if (wal_repair(instance->wal, &count, &err) != STATUS_OK)
        fail(model, "the log cannot be repaired: %s", err.message);
    for (uint32_t t = 0; t < model->tables; t++) {
        char name[32];
        snprintf(name, sizeof name, "ns.%s", model->definitions[t].name);
        if (!instance->is_stopped[t])
            continue;
        if (publisher_clear_halt(instance->publisher, name, PUBLISH_ACCEPT, 0, 0, &err) !=
            STATUS_OK)
            fail(model, "a halt cannot be cleared: %s", err.message);
        instance->is_stopped[t] = false;
        totals.rot_halts++;
    }
    model->is_rotten = false;
}

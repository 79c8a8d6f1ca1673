/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold after each start, whatever ended the run before.
 */
#include "sim/wal_model.h"

static bool is_damaged(struct model *model, uint32_t group, uint64_t seq)
{
    struct wal_damage damage;
    for (size_t i = 0; wal_damage_at(model->wal, i, &damage); i++)
        if (damage.group == group && damage.seq_first <= seq && damage.seq_last >= seq)
            return true;
    return false;
}

/* Reads all of a group; damage is passed over. False: memory ran out (simulated). */
static bool group_read(struct model *model, uint32_t group)
{
    struct error err;
    struct wal_scan *scan;
    struct wal_view view;
    for (uint32_t t = 0; t < TABLES; t++) {
        uint64_t after;
        enum status status;
        do { /* the keeper may reclaim between the question and the scan, which then pins */
            after = wal_reclaimed_through(model->wal, group, model->table_ids[t]);
            status = wal_scan_open(model->wal, group, model->table_ids[t], after, &scan, &err);
        } while (status == STATUS_RECLAIMED);
        if (status == STATUS_NO_MEMORY)
            return false;
        if (status != STATUS_OK)
            fail(model, "scan: %s", err.message);
        while ((status = wal_scan_next(scan, &view, &err)) != STATUS_NOT_FOUND) {
            if (status == STATUS_OK) {
                if (view.seq <= after)
                    fail(model, "scan went from %llu back to %llu", U(after), U(view.seq));
                after = view.seq;
                view_check(model, &view);
                continue;
            }
            if (status == STATUS_NO_MEMORY) {
                wal_scan_close(scan);
                return false;
            }
            if (status != STATUS_CORRUPT || !model->has_rot)
                fail(model, "scan: %s", err.message);
            struct wal_damage damage;
            uint64_t to = UINT64_MAX;
            for (size_t i = 0; wal_damage_at(model->wal, i, &damage); i++)
                if (damage.group == group && damage.seq_last > after && damage.seq_last < to)
                    to = damage.seq_last;
            if (to == UINT64_MAX)
                fail(model, "a scan says corrupt and no range is named");
            after = to;
            if (wal_scan_seek(scan, after, &err) != STATUS_OK)
                fail(model, "seek: %s", err.message);
        }
        wal_scan_close(scan);
    }
    return true;
}

static void item_missing(struct model *model, uint64_t number)
{
    struct item *item = &model->items[number];
    bool was_promised = item->state == ITEM_SYNCED || item->is_durable ||
                        (item->state == ITEM_WRITTEN && !model->is_power_lost);
    if (item->is_lost)
        return;
    if (!was_promised) {
        totals.written_lost += item->state == ITEM_WRITTEN;
        item->state = ITEM_UNKNOWN;
        item->is_gone = true;
        return;
    }
    if (item->seq <= model->tried[item->table][item->group] &&
        item->seq <=
            wal_reclaimed_through(model->wal, item->group, model->table_ids[item->table])) {
        totals.reclaimed++;
        return;
    }
    if (model->has_rot && is_damaged(model, item->group, item->seq)) {
        item->is_lost = true;
        return;
    }
    fail(model, "item %llu (group %u seq %llu table %u, state %d) is lost", U(number), item->group,
         U(item->seq), item->table, (int)item->state);
}

static void items_check(struct model *model)
{
    static uint64_t produced[PRODUCER_IDS + 1][PRODUCED_MAX + 1];
    memset(produced, 0, sizeof produced);
    for (size_t number = 1; number < model->item_count; number++) {
        struct item *item = &model->items[number];
        if (!item->is_present) {
            item_missing(model, number);
            continue;
        }
        uint64_t *holder = &produced[item->producer][item->producer_sequence];
        if (item->producer && *holder && *holder != item->submission)
            fail(model, "(%u, %llu) is stored twice", item->producer, U(item->producer_sequence));
        *holder = item->submission;
        /* The rest of its submission is there too, or was reclaimed, or lost and named. */
        for (size_t k = number; k-- > 1 && model->items[k].submission == item->submission;) {
            struct item *other = &model->items[k];
            uint64_t seq = item->seq - (number - k); /* entries of one follow each other */
            bool is_reclaimed = seq <= model->tried[other->table][other->group] &&
                                seq <= wal_reclaimed_through(model->wal, other->group,
                                                             model->table_ids[other->table]);
            if (other->is_present || other->is_lost || other->is_durable || is_reclaimed)
                continue;
            if (!model->has_rot)
                fail(model, "items %llu and %llu of one submission parted", U(k), U(number));
        }
    }
}

static void acks_check(struct model *model)
{
    for (uint32_t t = 0; t < TABLES; t++) {
        for (uint32_t g = 0; g < model->groups; g++) {
            struct wal_ack ack = {0};
            bool is_there = wal_ack_get(model->wal, model->table_ids[t], g, &ack);
            if (ack.through.seq < model->through[t][g])
                fail(model, "table %u group %u: ack %llu went back to %llu (%d)", t, g,
                     U(model->through[t][g]), U(ack.through.seq), is_there);
            if (ack.through.seq > model->tried[t][g])
                fail(model, "table %u group %u: ack %llu was never given", t, g,
                     U(ack.through.seq));
            model->through[t][g] = ack.through.seq;
        }
    }
}

/* Of one table, or of one group with all tables. */
static uint64_t pending_bytes(struct model *model, uint32_t table, uint32_t group)
{
    struct wal_ack ack = {0};
    wal_ack_get(model->wal, model->table_ids[table], group, &ack);
    return wal_pending(model->wal, group, model->table_ids[table], ack.through.seq).bytes;
}

void backlogs_check(struct model *model)
{
    struct error err;
    while (model->outstanding)
        env_sleep_ms(sim_node_env(model->node), 1);
    if (wal_seal(model->wal, &err) != STATUS_OK) /* what is only written gets its sync */
        return;
    uint64_t groups[GROUPS_MAX] = {0};
    for (uint32_t t = 0; t < TABLES; t++) {
        struct wal_backlog told = wal_table_backlog(model->wal, model->table_ids[t]);
        uint64_t sum = 0;
        for (uint32_t g = 0; g < model->groups; g++) {
            uint64_t bytes = pending_bytes(model, t, g);
            sum += bytes;
            groups[g] += bytes;
        }
        if (told.bytes != sum)
            fail(model, "table %u has %llu bytes unpublished, told are %llu", t, U(sum),
                 U(told.bytes));
        totals.limited += told.refused;
    }
    for (uint32_t g = 0; g < model->groups; g++) {
        struct wal_backlog told = wal_group_backlog(model->wal, g);
        if (told.bytes != groups[g])
            fail(model, "group %u has %llu bytes unpublished, told are %llu", g, U(groups[g]),
                 U(told.bytes));
        totals.limited += told.refused;
    }
}

/* The same of a table from the entries that were read; what is damaged counts until it is let go.
 */
static void backlogs_compare(struct model *model)
{
    uint64_t sums[TABLES] = {0};
    for (size_t number = 1; number < model->item_count; number++) {
        const struct item *item = &model->items[number];
        if (item->is_present && item->seq > model->through[item->table][item->group])
            sums[item->table] += item->bytes;
    }
    for (uint32_t t = 0; t < TABLES; t++) {
        uint64_t told = wal_table_backlog(model->wal, model->table_ids[t]).bytes;
        if (model->has_rot ? told < sums[t] : told != sums[t])
            fail(model, "table %u: %llu bytes are unpublished, told are %llu", t, U(sums[t]),
                 U(told));
        totals.backlogs_counted += sums[t] > 0;
    }
}

bool check_all(struct model *model)
{
    for (size_t number = 1; number < model->item_count; number++)
        model->items[number].is_present = false;
    uint64_t entries;
    struct error err;
    bool is_verified = model->has_rot || model->seed % 4 == 0;
    if (is_verified && wal_verify(model->wal, &entries, &err) != STATUS_OK)
        return false;
    struct wal_damage damage;
    if (!model->has_rot && wal_damage_at(model->wal, 0, &damage))
        fail(model, "damage without rot: %u: %llu to %llu: %s", damage.group, U(damage.seq_first),
             U(damage.seq_last), damage.where);
    for (uint32_t group = 0; group < model->groups; group++)
        if (!group_read(model, group))
            return false;
    items_check(model);
    acks_check(model);
    backlogs_compare(model);
    consumers_check(model);
    totals.verified++;
    if (!model->has_rot)
        return true;
    bool has_damage = wal_damage_at(model->wal, 0, &damage);
    uint64_t voided = 0;
    if (!has_damage)
        return true;
    totals.damaged++;
    for (size_t number = 1; number < model->item_count; number++) {
        struct item *item = &model->items[number];
        if (item->seq && is_damaged(model, item->group, item->seq))
            item->is_lost = true;
    }
    enum status status = wal_repair(model->wal, &voided, &err);
    say(model, "repair: %s, %llu voided", status_name(status), U(voided));
    if (status == STATUS_OK && wal_damage_at(model->wal, 0, &damage))
        fail(model, "damage is left after a repair: %s", damage.where);
    totals.voided += voided;
    return true;
}

static void sum_files(void *context, const char *path, const struct env_stat *stat)
{
    UNUSED(path);
    *(uint64_t *)context += stat->allocated_bytes;
}

void budget_check(struct model *model, const char *dir)
{
    for (int attempt = 0; attempt < 50; attempt++) {
        uint64_t files = 0, reported = wal_usage(model->wal).allocated_bytes;
        sim_each_file(model->node, dir, sum_files, &files);
        if (files == reported)
            return;
        env_sleep_ms(sim_node_env(model->node), 20);
    }
    uint64_t files = 0;
    sim_each_file(model->node, dir, sum_files, &files);
    if (sim_node_faults(model->node)->alloc_fails == 0)
        fail(model, "budget: %llu reported, %llu on disk", U(wal_usage(model->wal).allocated_bytes),
             U(files));
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What `sluice log recover` says: as lines, and as one JSON object.
 */
#include "app/cmd/recover_internal.h"
#include "format/json/json.h"

/* Tables that may have had rows in a range which is lost, as text; "": none. */
static void put_losers(struct wal *wal, const struct wal_damage *damage, struct buf *out)
{
    char name[WAL_TABLE_NAME_MAX + 1];
    for (uint32_t id = 1; id <= wal_table_count(wal); id++) {
        struct wal_ack ack = {0};
        if (!wal_table_name(wal, id, name) || !name[0])
            continue;
        if (wal_ack_get(wal, id, damage->group, &ack) && ack.through.seq >= damage->seq_last)
            continue;
        buf_format(out, "%s%s", out->length ? ", " : "", name);
    }
    buf_put_byte(out, '\0');
}

static bool is_foreign(struct wal *wal, const struct wal_known_position *known)
{
    struct error ignored;
    uint64_t chain;
    return wal_chain_at(wal, known->group, known->position.seq, &chain, &ignored) == STATUS_OK &&
           chain != known->position.chain;
}

/* ---- lines ---- */

static void say_mirror(const struct recovery *recovery, struct wal *wal)
{
    const struct mirror_plan *plan = recovery->plan;
    char id[LOG_ID_TEXT_BYTES], state[MIRROR_NAME_BYTES] = "none, the segments alone";
    uint64_t bytes = 0;
    log_id_to_text(plan->head.log_id, id);
    if (plan->has_state)
        mirror_name_put(&plan->state, state);
    for (size_t i = 0; i < plan->segment_count; i++)
        bytes += plan->segments[i].bytes;
    printf("log         %s, incarnation %llu; from now on %llu\n", id,
           (unsigned long long)recovery->incarnation_before,
           (unsigned long long)recovery->restore.incarnation);
    printf("checkpoint  %s\n", state);
    printf("segments    %zu, %llu bytes, %llu entries\n", plan->segment_count,
           (unsigned long long)bytes, (unsigned long long)wal_recovery_report(wal).entries);
    for (size_t i = 0; i < plan->problem_count; i++)
        printf("damaged     %s\n", plan->problems[i].text);
}

static void say_groups(struct wal *wal)
{
    struct wal_damage damage;
    for (uint32_t g = 0; g < wal_group_count(wal); g++) {
        struct wal_position end;
        if (!wal_recovered_to(wal, g, &end))
            end = (struct wal_position){0};
        printf("group %-5u entries up to %llu; goes on at %llu\n", g, (unsigned long long)end.seq,
               (unsigned long long)wal_synced_end(wal, g).seq + 1);
    }
    for (size_t i = 0; wal_damage_at(wal, i, &damage); i++) {
        struct buf losers = {0};
        put_losers(wal, &damage, &losers);
        bool is_held = losers.length == 1;
        printf("missing     %u/%llu to %u/%llu: %s; %s%s\n", damage.group,
               (unsigned long long)damage.seq_first, damage.group,
               (unsigned long long)damage.seq_last, damage.where,
               is_held ? "every table holds its rows of it" : "rows in it, if any, are lost of ",
               is_held || losers.failed ? "" : (const char *)losers.data);
        buf_deinit(&losers);
    }
}

/* What their tables had of it has left the mirror. */
static void say_unasked(const struct recovery *recovery, struct wal *wal)
{
    char name[WAL_TABLE_NAME_MAX + 1], path[PATH_BYTES_MAX] = "";
    struct error ignored;
    enum status status = stack_catalog_path(&recovery->invocation->settings, path, &ignored);
    UNUSED(status);
    printf("tables      not asked: there is no catalog %s\n", path);
    for (uint32_t id = 1; id <= wal_table_count(wal); id++) {
        for (uint32_t g = 0; g < wal_group_count(wal); g++) {
            struct wal_ack ack;
            if (wal_ack_get(wal, id, g, &ack) && ack.committed.seq && wal_table_name(wal, id, name))
                printf("table       %s held up to %u/%llu: without that table these rows are lost; "
                       "give --publish-catalog-path, or --without-tables\n",
                       name, g, (unsigned long long)ack.committed.seq);
        }
    }
}

static void say_tables(const struct recovery *recovery, struct wal *wal)
{
    char name[WAL_TABLE_NAME_MAX + 1];
    if (!recovery->has_catalog)
        say_unasked(recovery, wal);
    for (size_t i = 0; i < recovery->known_count; i++) {
        const struct wal_known_position *known = &recovery->known[i];
        if (known->position.seq)
            printf("table       %s holds up to %u/%llu%s\n", known->table, known->group,
                   (unsigned long long)known->position.seq,
                   is_foreign(wal, known) ? ", of another history" : "");
    }
    for (uint32_t id = 1; id <= wal_table_count(wal); id++) {
        struct wal_pending all = {0};
        for (uint32_t g = 0; g < wal_group_count(wal); g++) {
            struct wal_ack ack = {0};
            if (!wal_ack_get(wal, id, g, &ack))
                ack = (struct wal_ack){0};
            all.rows += wal_pending(wal, g, id, ack.through.seq).rows;
        }
        if (all.rows && wal_table_name(wal, id, name))
            printf("publishes   %llu rows into %s\n", (unsigned long long)all.rows, name);
    }
}

static void say_consumers(struct wal *wal)
{
    struct wal_consumer consumer;
    for (size_t i = 0; wal_consumer_at(wal, i, &consumer); i++) {
        struct wal_position end;
        uint64_t most = 0;
        for (uint32_t m = 0; m < consumer.member_count; m++)
            most = consumer.members[m].seq > most ? consumer.members[m].seq : most;
        if (wal_recovered_to(wal, consumer.group, &end) && most > end.seq)
            printf("consumer    %s has acknowledged %u/%llu, behind what is there: it goes on with "
                   "what is new\n",
                   consumer.name, consumer.group, (unsigned long long)most);
    }
}

/* ---- JSON ---- */

static void put_number(struct json_writer *json, const char *key, uint64_t value)
{
    json_write_key(json, key);
    json_write_u64(json, value);
}

static void put_text(struct json_writer *json, const char *key, const char *value)
{
    json_write_key(json, key);
    json_write_text(json, value);
}

static void put_groups(struct json_writer *json, struct wal *wal)
{
    json_write_key(json, "groups");
    json_write_array_begin(json);
    for (uint32_t g = 0; g < wal_group_count(wal); g++) {
        struct wal_position end;
        if (!wal_recovered_to(wal, g, &end))
            end = (struct wal_position){0};
        json_write_object_begin(json);
        put_number(json, "group", g);
        put_number(json, "last", end.seq);
        put_number(json, "next", wal_synced_end(wal, g).seq + 1);
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void put_missing(struct json_writer *json, struct wal *wal)
{
    struct wal_damage damage;
    json_write_key(json, "missing");
    json_write_array_begin(json);
    for (size_t i = 0; wal_damage_at(wal, i, &damage); i++) {
        struct buf losers = {0};
        put_losers(wal, &damage, &losers);
        json_write_object_begin(json);
        put_number(json, "group", damage.group);
        put_number(json, "first", damage.seq_first);
        put_number(json, "last", damage.seq_last);
        put_text(json, "where", damage.where);
        put_text(json, "not_in", losers.failed ? "" : (const char *)losers.data);
        json_write_object_end(json);
        buf_deinit(&losers);
    }
    json_write_array_end(json);
}

static void put_rest(struct json_writer *json, const struct recovery *recovery, struct wal *wal)
{
    json_write_key(json, "damaged");
    json_write_array_begin(json);
    for (size_t i = 0; i < recovery->plan->problem_count; i++)
        json_write_text(json, recovery->plan->problems[i].text);
    json_write_array_end(json);
    json_write_key(json, "tables");
    json_write_array_begin(json);
    for (size_t i = 0; i < recovery->known_count; i++) {
        const struct wal_known_position *known = &recovery->known[i];
        if (!known->position.seq)
            continue;
        json_write_object_begin(json);
        put_text(json, "table", known->table);
        put_number(json, "group", known->group);
        put_number(json, "seq", known->position.seq);
        json_write_key(json, "is_of_this_log");
        json_write_bool(json, !is_foreign(wal, known));
        json_write_object_end(json);
    }
    json_write_array_end(json);
}

static void say_json(struct recovery *recovery, struct wal *wal)
{
    struct buf text = {0};
    struct json_writer json;
    char id[LOG_ID_TEXT_BYTES];
    json_writer_init(&json, &text);
    log_id_to_text(wal_log_id(wal), id);
    json_write_object_begin(&json);
    put_text(&json, "log", id);
    put_number(&json, "incarnation", wal_incarnation(wal));
    put_number(&json, "entries", wal_recovery_report(wal).entries);
    put_number(&json, "segments", recovery->plan->segment_count);
    put_groups(&json, wal);
    put_missing(&json, wal);
    put_rest(&json, recovery, wal);
    json_write_key(&json, "is_applied");
    json_write_bool(&json, recovery->is_applied);
    json_write_object_end(&json);
    buf_put_byte(&text, '\n');
    cmd_print(&text);
}

void recovery_say(struct recovery *recovery, struct wal *wal)
{
    if (recovery->as_json) {
        say_json(recovery, wal);
        return;
    }
    say_mirror(recovery, wal);
    say_groups(wal);
    say_tables(recovery, wal);
    say_consumers(wal);
}

void recovery_say_done(struct recovery *recovery, struct wal *wal)
{
    if (recovery->as_json) {
        recovery->is_applied = true;
        say_json(recovery, wal);
        return;
    }
    printf("%s holds this log already, recovered as incarnation %llu; nothing was changed\n",
           recovery->target, (unsigned long long)wal_incarnation(wal));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "flaky_source.h"

#include "flow/source/source_internal.h"

enum { LOOK_GROUPS = 4, LOOK_TABLES = 8 };

struct look_of_table {
    bool has_ack, is_damaged;
    struct wal_ack ack;
    struct wal_pending lag;
    struct wal_damage damage;
};

struct flaky {
    struct source source; /* its wal is NULL: the log is elsewhere */
    struct source *local;
    struct random random;
    uint32_t fails;
    const bool *is_calm;
    uint64_t *silences;
    uint64_t tickets;
    struct look {
        uint64_t ticket, fenced_by;
        struct wal_position end[LOOK_GROUPS];
        struct look_of_table tables[LOOK_TABLES][LOOK_GROUPS];
    } look;
};

struct flaky_scan {
    struct source_scan scan;
    struct flaky *flaky;
    struct source_scan *local;
};

static struct flaky *of(struct source *source)
{
    return CONTAINER_OF(source, struct flaky, source);
}

static enum status silent(struct flaky *flaky, struct error *err)
{
    if (*flaky->is_calm || random_below(&flaky->random, 65536) >= flaky->fails)
        return STATUS_OK;
    ++*flaky->silences;
    return error_set(err, STATUS_TIMEOUT, "nobody answers");
}

/* As GET /v1/log: ends first. Others may look meanwhile: the one that began last counts. */
static void look(struct flaky *flaky)
{
    struct source *local = flaky->local;
    struct look taken = {.ticket = ++flaky->tickets};
    taken.fenced_by = source_fenced_by(local);
    for (uint32_t g = 0; g < flaky->source.group_count; g++)
        taken.end[g] = source_end(local, g);
    for (uint32_t t = 1; t < LOOK_TABLES; t++) {
        for (uint32_t g = 0; g < flaky->source.group_count; g++) {
            struct look_of_table now = {0};
            now.has_ack = source_ack_get(local, t, g, &now.ack);
            now.lag = source_lag(local, t, g);
            now.is_damaged = source_damage(local, t, g, &now.damage);
            taken.tables[t][g] = now;
        }
    }
    if (taken.ticket > flaky->look.ticket)
        flaky->look = taken;
}

/* The thread that looks now and then may just have done so. */
static void look_perhaps(struct flaky *flaky)
{
    if (*flaky->is_calm || random_below(&flaky->random, 3) == 0)
        look(flaky);
}

static void flaky_destroy(struct source *source)
{
    source_destroy(of(source)->local);
    mem_free(of(source));
}

static bool flaky_state(struct source *source, struct source_state *out)
{
    UNUSED(source);
    *out = (struct source_state){.url = "elsewhere"};
    return true;
}

static enum status flaky_refresh(struct source *source, struct error *err)
{
    TRY(silent(of(source), err));
    look(of(source));
    return STATUS_OK;
}

static uint64_t flaky_start(struct source *source)
{
    UNUSED(source);
    return 1; /* the log ends with the process */
}

static uint64_t flaky_term(struct source *source)
{
    return source_term(of(source)->local);
}

static uint64_t flaky_incarnation(struct source *source)
{
    return source_incarnation(of(source)->local);
}

static uint64_t flaky_fenced_by(struct source *source)
{
    return of(source)->look.fenced_by;
}

static enum status flaky_fence(struct source *source, uint64_t incarnation, struct error *err)
{
    TRY(silent(of(source), err));
    return source_fence(of(source)->local, incarnation, err);
}

static bool flaky_recovered_to(struct source *source, uint32_t group, struct wal_position *out)
{
    return source_recovered_to(of(source)->local, group, out);
}

static bool flaky_recovered_without(struct source *source, size_t index, uint32_t *out_group,
                                    uint64_t *out_first, uint64_t *out_last)
{
    return source_recovered_without(of(source)->local, index, out_group, out_first, out_last);
}

static struct wal_position flaky_end(struct source *source, uint32_t group)
{
    return of(source)->look.end[group];
}

static struct wal_position flaky_started(struct source *source, uint32_t group)
{
    return source_started(of(source)->local, group);
}

static uint64_t flaky_reclaimed_below(struct source *source, uint32_t group, uint64_t seq)
{
    return source_reclaimed_below(of(source)->local, group, seq);
}

static enum status flaky_chain_at(struct source *source, uint32_t group, uint64_t seq,
                                  uint64_t *out, struct error *err)
{
    TRY(silent(of(source), err));
    return source_chain_at(of(source)->local, group, seq, out, err);
}

static enum status flaky_starts(struct source *source, uint32_t group, uint64_t after,
                                uint64_t last, struct buf *out, struct error *err)
{
    TRY(silent(of(source), err));
    return source_starts(of(source)->local, group, after, last, out, err);
}

static enum status flaky_schema_get(struct source *source, uint64_t fingerprint, struct buf *out,
                                    struct error *err)
{
    TRY(silent(of(source), err));
    return source_schema_get(of(source)->local, fingerprint, out, err);
}

static enum status flaky_table_open(struct source *source, const char *name, uint32_t *out_table_id,
                                    struct error *err)
{
    return source_table_open(of(source)->local, name, out_table_id, err);
}

static bool flaky_ack_get(struct source *source, uint32_t table_id, uint32_t group,
                          struct wal_ack *out)
{
    const struct look_of_table *seen = &of(source)->look.tables[table_id][group];
    if (seen->has_ack)
        *out = seen->ack;
    return seen->has_ack;
}

static enum status flaky_ack_table(struct source *source, uint32_t table_id,
                                   const struct wal_ack *acks, struct error *err)
{
    TRY(silent(of(source), err));
    TRY(source_ack_table(of(source)->local, table_id, acks, err));
    return flaky_refresh(source, err); /* the answer */
}

static struct wal_pending flaky_lag(struct source *source, uint32_t table_id, uint32_t group)
{
    look_perhaps(of(source));
    return of(source)->look.tables[table_id][group].lag;
}

static bool flaky_damage(struct source *source, uint32_t table_id, uint32_t group,
                         struct wal_damage *out)
{
    const struct look_of_table *seen = &of(source)->look.tables[table_id][group];
    if (seen->is_damaged)
        *out = seen->damage;
    return seen->is_damaged;
}

static enum status flaky_pending(struct source *source, uint32_t table_id, uint32_t group,
                                 uint64_t after, struct wal_pending *out, struct error *err)
{
    TRY(silent(of(source), err));
    return source_pending(of(source)->local, table_id, group, after, out, err);
}

static enum status flaky_damage_above(struct source *source, uint32_t table_id, uint32_t group,
                                      uint64_t after, struct wal_damage *out, bool *out_is_there,
                                      struct error *err)
{
    TRY(silent(of(source), err));
    return source_damage_above(of(source)->local, table_id, group, after, out, out_is_there, err);
}

static bool flaky_is_awaited(struct source *source, uint32_t table_id)
{
    UNUSED(table_id);
    return !*of(source)->is_calm && random_below(&of(source)->random, 8) == 0;
}

static const struct source_ops flaky_ops;

static enum status flaky_scan_open(struct source *source, uint32_t group, uint32_t table_id,
                                   struct wal_position after, struct source_scan **out,
                                   struct error *err)
{
    struct source_scan *local = NULL;
    TRY(silent(of(source), err));
    TRY(source_scan_open(of(source)->local, group, table_id, after, &local, err));
    struct flaky_scan *scan = mem_alloc_zero(1, sizeof *scan);
    if (!scan) {
        source_scan_close(local);
        return error_set(err, STATUS_TIMEOUT, "out of memory");
    }
    *scan = (struct flaky_scan){.scan.ops = &flaky_ops, .flaky = of(source), .local = local};
    *out = &scan->scan;
    return STATUS_OK;
}

static enum status flaky_scan_next(struct source_scan *scan, struct wal_view *out,
                                   struct error *err)
{
    struct flaky_scan *flaky = CONTAINER_OF(scan, struct flaky_scan, scan);
    TRY(silent(flaky->flaky, err));
    return source_scan_next(flaky->local, out, err);
}

static void flaky_scan_close(struct source_scan *scan)
{
    struct flaky_scan *flaky = CONTAINER_OF(scan, struct flaky_scan, scan);
    source_scan_close(flaky->local);
    mem_free(flaky);
}

static const struct source_ops flaky_ops = {
    .destroy = flaky_destroy,
    .state = flaky_state,
    .refresh = flaky_refresh,
    .start = flaky_start,
    .term = flaky_term,
    .incarnation = flaky_incarnation,
    .fenced_by = flaky_fenced_by,
    .fence = flaky_fence,
    .recovered_to = flaky_recovered_to,
    .recovered_without = flaky_recovered_without,
    .end = flaky_end,
    .started = flaky_started,
    .reclaimed_below = flaky_reclaimed_below,
    .chain_at = flaky_chain_at,
    .starts = flaky_starts,
    .schema_get = flaky_schema_get,
    .table_open = flaky_table_open,
    .ack_get = flaky_ack_get,
    .ack_table = flaky_ack_table,
    .lag = flaky_lag,
    .damage = flaky_damage,
    .pending = flaky_pending,
    .damage_above = flaky_damage_above,
    .is_awaited = flaky_is_awaited,
    .scan_open = flaky_scan_open,
    .scan_next = flaky_scan_next,
    .scan_close = flaky_scan_close,
};

enum status flaky_source_create(struct wal *wal, uint64_t seed, uint32_t fails, const bool *is_calm,
                                uint64_t *silences, struct source **out_source, struct error *err)
{
    struct flaky *flaky = mem_alloc_zero(1, sizeof *flaky);
    if (!flaky)
        return error_set(err, STATUS_NO_MEMORY, "source: out of memory");
    enum status status = source_local_create(wal, &flaky->local, err);
    if (status != STATUS_OK) {
        mem_free(flaky);
        return status;
    }
    flaky->source = *flaky->local;
    flaky->source.ops = &flaky_ops;
    flaky->source.wal = NULL;
    flaky->fails = fails;
    flaky->is_calm = is_calm;
    flaky->silences = silences;
    random_init(&flaky->random, seed);
    look_perhaps(flaky); /* else nothing is known before it is asked */
    *out_source = &flaky->source;
    return STATUS_OK;
}

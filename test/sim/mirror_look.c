/* SPDX-License-Identifier: Apache-2.0
 *
 * The look at a mirror alone: every object, what is proven in it, and the log that is made of it.
 */
#include "sim/mirror_model.h"

static const char back_dir[] = "/back";

struct object {
    struct mirror_header header;
    char path[160];
};

struct look {
    struct model *model;
    struct object objects[SEGMENTS_MAX];
    size_t count;
    char root[80];
};

static void look_at(void *context, const char *path, const struct env_stat *stat)
{
    struct look *look = context;
    struct object *object = &look->objects[look->count];
    struct mirror_header name;
    const uint8_t *data;
    uint64_t bytes;
    struct error err;
    size_t root = strlen(MIRROR_DIR) + 1 + 32;
    if (stat->is_directory || strlen(path) < root + 1 ||
        !mirror_name_parse(span_of_text(path + root + 1), &name))
        return;
    snprintf(look->root, sizeof look->root, "%.*s", (int)root, path);
    CHECK(sim_file_bytes(look->model->node, path, &data, &bytes));
    if (mirror_object_check(span_of(data, bytes), &object->header, &err) != STATUS_OK)
        fail(look->model, "%s: %s", path, err.message);
    if (!mirror_header_is_of(&object->header, &name))
        fail(look->model, "%s: says another name", path);
    if (++look->count == SEGMENTS_MAX)
        fail(look->model, "more than %d objects", SEGMENTS_MAX);
    snprintf(object->path, sizeof object->path, "%s", path);
}

static int compare_objects(const void *a, const void *b)
{
    const struct mirror_header *x = &((const struct object *)a)->header;
    const struct mirror_header *y = &((const struct object *)b)->header;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->to < y->to ? -1 : x->to > y->to;
}

/* A segment put together from its ranges, as far as they follow each other. */
struct joined {
    uint64_t id, floor;
    bool is_whole;
    struct buf bytes;
};

/* From the object at *inout_at on; false: no further segment. */
static bool join_next(struct look *look, size_t *inout_at, struct joined *joined)
{
    size_t at = *inout_at;
    if (at == look->count || look->objects[at].header.kind != MIRROR_RANGE)
        return false;
    buf_clear(&joined->bytes);
    joined->id = look->objects[at].header.id;
    joined->floor = 0;
    joined->is_whole = false;
    for (; at < look->count && look->objects[at].header.kind == MIRROR_RANGE &&
           look->objects[at].header.id == joined->id;
         at++) {
        const struct mirror_header *header = &look->objects[at].header;
        const uint8_t *data;
        uint64_t bytes, end = joined->bytes.length;
        if (header->from > end)
            continue; /* behind a gap */
        CHECK(sim_file_bytes(look->model->node, look->objects[at].path, &data, &bytes));
        size_t known = (size_t)(end - header->from), length = (size_t)(header->to - header->from);
        /* Of a compacted segment what no table needs may be zeros in one of them. */
        if (known && !look->model->may_compact &&
            memcmp(joined->bytes.data + header->from, data + MIRROR_HEADER_BYTES,
                   known < length ? known : length) != 0)
            fail(look->model, "%s: other bytes than before", look->objects[at].path);
        if (known < length)
            buf_put(&joined->bytes, data + MIRROR_HEADER_BYTES + known, length - known);
        if (header->floor > joined->floor)
            joined->floor = header->floor;
        joined->is_whole |= (header->flags & MIRROR_IS_END) != 0;
        totals.ranges++;
    }
    *inout_at = at;
    return true;
}

static void see_entry(struct model *model, const uint8_t *record, const uint8_t *payload,
                      size_t payload_bytes)
{
    uint64_t number = payload_bytes >= 8 ? get_le64(payload) : 0;
    if (record[8] != WAL_DATA || number == 0 || number > model->item_count)
        return;
    struct item *item = &model->items[number];
    if (item->seq == 0) /* nobody was told that it is synced */
        return;
    if (item->seq != get_le64(record + 40) || item->group != get_le32(record + 32))
        fail(model, "entry %llu: at another place", U(number));
    bool is_taken = item->seq <= model->tried[item->table][item->group];
    if (model->may_compact && is_taken &&
        get_le32(record + 12) != crc32c(0, payload, payload_bytes))
        return; /* one of two ranges is of the compacted file */
    if (crc32c(0, payload, payload_bytes) != get_le32(record + 12))
        fail(model, "entry %llu: other bytes", U(number));
    item->is_there = true;
}

/* A unit at this place behind the unit `number`: of a compacted segment some are holes. */
static bool is_unit(const uint8_t *data, size_t length, size_t at, uint64_t number)
{
    return at + 72 <= length && get_le32(data + at) == 0x4e554c53 &&
           get_le64(data + at + 8) > number && get_le64(data + at + 24) <= length - at;
}

/* docs/format/segment.md, "Reading a file that was not sealed", by other code. */
static void see_segment(struct model *model, const struct joined *joined)
{
    const uint8_t *data = joined->bytes.data;
    size_t length = joined->bytes.length;
    uint64_t floor = joined->floor, number = 0, holes = 0;
    if (length < 4096)
        return;
    for (int pass = 0; pass < 2; pass++) {
        number = 0;
        for (size_t at = get_le32(data + 12); at + 72 <= length;) {
            if (!is_unit(data, length, at, number)) {
                at += 4096;
                continue;
            }
            holes += get_le64(data + at + 8) > number + 1;
            number = get_le64(data + at + 8);
            if (pass == 0 && get_le64(data + at + 16) > floor)
                floor = get_le64(data + at + 16);
            for (uint32_t i = 0; pass == 1 && number <= floor && i < get_le32(data + at + 32);
                 i++) {
                const uint8_t *row = data + at + 72 + (size_t)i * 24;
                const uint8_t *record = data + at + (size_t)get_le32(row) * 64;
                if (get_le32(row + 20) < 32)
                    see_entry(model, record, record + (get_le32(row + 4) + 63) / 64 * 64,
                              get_le32(row + 8));
            }
            at += get_le64(data + at + 24);
        }
    }
    totals.found_compacted += holes > 0;
}

static bool is_needed(const struct model *model, const struct item *item)
{
    bool is_promised = item->is_remote || (model->is_last && item->seq);
    return is_promised && item->seq > model->tried[item->table][item->group];
}

/* ---- the way back: a log from the newest state and the ranges ---- */

static void put_back(struct look *look)
{
    struct model *model = look->model;
    struct joined joined = {0};
    char path[200];
    const uint8_t *data;
    uint64_t bytes;
    for (size_t at = 0; join_next(look, &at, &joined);) {
        /* Of one that was committed before it was copied whole the rest is in its table: a gap, and
         * not the end of the log. */
        bool is_last = at == look->count || look->objects[at].header.kind != MIRROR_RANGE;
        snprintf(path, sizeof path, "%s/%s/%016llx.seg", back_dir,
                 joined.is_whole || !is_last ? "sealed" : "active", U(joined.id));
        if (joined.bytes.length)
            sim_put_file(model->node, path, joined.bytes.data, joined.bytes.length);
    }
    buf_deinit(&joined.bytes);
    const struct object *state = &look->objects[look->count - 1];
    CHECK(sim_file_bytes(model->node, state->path, &data, &bytes));
    snprintf(path, sizeof path, "%s/state/%016llx.state", back_dir, 0ull);
    uint8_t *copy = malloc(bytes);
    CHECK(copy);
    memcpy(copy, data, bytes);
    sim_put_file(model->node, path, copy + MIRROR_HEADER_BYTES, bytes - MIRROR_HEADER_BYTES);
    free(copy);
}

/* Nobody's number that is known to be stored is new. */
static void check_producers(struct model *model, struct wal *wal)
{
    struct wal_receipt receipts[16];
    uint64_t remote[WORKERS_MAX] = {0}, expected;
    uint32_t count;
    for (uint64_t i = 1; i <= model->item_count; i++) {
        const struct item *item = &model->items[i];
        if (item->is_remote && item->sequence > remote[item->worker])
            remote[item->worker] = item->sequence;
    }
    for (uint32_t w = 0; w < WORKERS_MAX; w++) {
        if (remote[w] == 0)
            continue;
        enum wal_producer_verdict verdict = wal_producer_begin(
            wal, producer_of(w), remote[w], (struct hash128){0}, receipts, &count, &expected);
        if (wal_incarnation(wal) > 1) { /* L30: of a recovered log, once */
            if (verdict != WAL_PRODUCER_UNCERTAIN)
                fail(model, "way back: producer %u is certain: %d", w, (int)verdict);
            verdict = wal_producer_begin(wal, producer_of(w), remote[w], (struct hash128){0},
                                         receipts, &count, &expected);
        }
        if (verdict != WAL_PRODUCER_REPEAT && verdict != WAL_PRODUCER_OLD)
            fail(model, "way back: producer %u: %llu is stored, and not known: %d", w, U(remote[w]),
                 (int)verdict);
        totals.producers++;
    }
}

/* What is said to have come back ends where it does, with the chain that stands there. */
static void check_end(struct model *model, struct wal *wal)
{
    for (uint32_t g = 0; g < model->groups; g++) {
        struct wal_position end;
        struct error err;
        uint64_t chain;
        if (!wal_recovered_to(wal, g, &end) || end.seq == 0)
            continue;
        enum status status = wal_chain_at(wal, g, end.seq, &chain, &err);
        if (end.chain == 0 || (status == STATUS_OK && chain != end.chain))
            fail(model, "way back: group %u ends at %llu with another chain", g, U(end.seq));
    }
}

static void check_back(struct model *model, struct wal *wal)
{
    check_end(model, wal);
    struct error err;
    struct wal_scan *scan;
    struct wal_view view;
    for (uint64_t number = 1; number <= model->item_count; number++) {
        struct item *item = &model->items[number];
        if (!is_needed(model, item))
            continue;
        uint32_t table = wal_table_find(wal, item->table ? "ns.t1" : "ns.t0");
        enum status status = wal_scan_open(wal, item->group, table, item->seq - 1, &scan, &err);
        if (status != STATUS_OK)
            fail(model, "way back: entry %llu at %u/%llu: %s", U(number), item->group, U(item->seq),
                 err.message);
        status = wal_scan_next(scan, &view, &err);
        if (status != STATUS_OK || view.seq != item->seq || get_le64(view.payload.data) != number)
            fail(model, "way back: entry %llu at %u/%llu is not there: %s", U(number), item->group,
                 U(item->seq), status == STATUS_OK ? "another is" : err.message);
        wal_scan_close(scan);
        totals.back++;
    }
    check_producers(model, wal);
}

static struct wal *open_back(struct model *model, const struct wal_restore *restore)
{
    struct wal_options options = model->log_options;
    struct wal *wal = NULL;
    struct error err;
    options.dir = back_dir;
    options.budget_bytes = 1 << 30;
    options.restore = restore;
    if (wal_open(sim_node_env(model->node), &options, &wal, &err) != STATUS_OK)
        fail(model, "way back: %s", err.message);
    return wal;
}

static void back_main(void *context)
{
    struct wal *wal = open_back(context, NULL);
    check_back(context, wal);
    wal_close(wal);
}

/* The same by `log recover`, which also makes what is lost void, and starts once more. */
static void recover_main(void *context)
{
    struct model *model = context;
    struct env *env = sim_node_env(model->node);
    struct store *store = NULL;
    struct mirror_plan *plan = NULL;
    struct wal_damage damage;
    struct error err;
    uint64_t voided;
    if (store_open(env, MIRROR_DIR, &store, &err) != STATUS_OK ||
        mirror_plan_create(store, NULL, &plan, &err) != STATUS_OK ||
        mirror_fetch(env, store, plan, back_dir, &err) != STATUS_OK)
        fail(model, "recover: %s", err.message);
    struct wal_restore restore = {.incarnation = plan->incarnation + 1};
    mirror_plan_prove(plan, &restore);
    struct wal *wal = open_back(model, &restore);
    if (wal_repair(wal, &voided, &err) != STATUS_OK)
        fail(model, "recover: %s", err.message);
    check_back(model, wal);
    wal_close(wal);
    wal = open_back(model, NULL);
    if (wal_damage_at(wal, 0, &damage))
        fail(model, "recover: damage is left: %s", damage.where);
    check_back(model, wal);
    wal_close(wal);
    mirror_plan_destroy(plan);
    store_close(store);
}

void look(struct model *model)
{
    static struct look look;
    struct joined joined = {0};
    memset(&look, 0, sizeof look);
    look.model = model;
    sim_each_file(model->node, MIRROR_DIR, look_at, &look);
    qsort(look.objects, look.count, sizeof look.objects[0], compare_objects);
    for (uint64_t i = 1; i <= model->item_count; i++)
        model->items[i].is_there = false;
    for (size_t at = 0; join_next(&look, &at, &joined);)
        see_segment(model, &joined);
    buf_deinit(&joined.bytes);
    for (uint64_t i = 1; i <= model->item_count; i++) {
        const struct item *item = &model->items[i];
        if (is_needed(model, item) && !item->is_there)
            fail(model, "entry %llu at %u/%llu is not in the mirror", U(i), item->group,
                 U(item->seq));
    }
    totals.looked++;
    if (look.count == 0 || look.objects[look.count - 1].header.kind != MIRROR_STATE)
        return;
    struct sim_disk_copy *disk = sim_disk_save(model->node);
    struct sim_faults faults = *sim_node_faults(model->node);
    *sim_node_faults(model->node) = (struct sim_faults){.switches = 16384};
    put_back(&look);
    if (sim_run(model->node, back_main, model) != SIM_ENDED)
        fail(model, "way back: %s", sim_exit_reason(model->node));
    sim_disk_load(model->node, disk);
    disk = sim_disk_save(model->node);
    if (sim_run(model->node, recover_main, model) != SIM_ENDED)
        fail(model, "recover: %s", sim_exit_reason(model->node));
    *sim_node_faults(model->node) = faults;
    sim_disk_load(model->node, disk);
}

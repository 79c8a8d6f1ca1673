/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in memory of the synced prefix: for each segment the entries of each group (runs) and a
 * chain of each table's DATA entries through its run; for each group its runs in order of seq. A
 * segment owns its runs, so that reclaiming it in any order takes them out in one piece. Beside it:
 * tables and schemas. Everything here is guarded by the engine's lock, and entries are added only
 * once they are synced (L23).
 */
#include "log/wal/wal_internal.h"

bool grow(void **array, size_t *capacity, size_t count, size_t element)
{
    if (count < *capacity)
        return true;
    size_t more = *capacity ? *capacity * 2 : 8, bytes;
    if (!SIZE_MUL(more, element, &bytes))
        return false;
    void *memory = mem_resize(*array, bytes);
    if (!memory)
        return false;
    *array = memory;
    *capacity = more;
    return true;
}

#define GROW(array, capacity, count) grow((void **)&(array), &(capacity), count, sizeof *(array))

/* ---- segments ---- */

struct segment *segment_create(uint64_t id)
{
    struct segment *segment = mem_alloc_zero(1, sizeof *segment);
    if (segment)
        segment->identity.id = id;
    return segment;
}

void segment_forget(struct segment *segment)
{
    for (size_t i = 0; i < segment->run_count; i++) {
        mem_free(segment->runs[i]->entries);
        mem_free(segment->runs[i]->steps);
        mem_free(segment->runs[i]);
    }
    mem_free(segment->runs);
    mem_free(segment->tables);
    mem_free(segment->schemas);
    mem_free(segment->voids);
    segment_ends_drop(segment);
    segment->runs = NULL;
    segment->tables = NULL;
    segment->schemas = NULL;
    segment->voids = NULL;
    segment->run_count = segment->run_capacity = 0;
    segment->table_count = segment->table_capacity = 0;
    segment->schema_count = segment->schema_capacity = 0;
    segment->void_count = segment->void_capacity = 0;
    segment->entry_count = 0;
    segment->has_state = segment->is_cut = segment->is_compacted = false;
}

void segment_destroy(struct segment *segment)
{
    if (!segment)
        return;
    segment_forget(segment);
    mem_free(segment->chains);
    mem_free(segment);
}

bool segment_chains_set(struct segment *segment, const struct group_row *rows, uint32_t count)
{
    struct header_chain *chains = mem_alloc_zero(count, sizeof *chains);
    if (!chains)
        return false;
    for (uint32_t i = 0; i < count; i++)
        chains[i] = (struct header_chain){
            .group = rows[i].group, .last_seq = rows[i].last_seq, .chain = rows[i].chain};
    mem_free(segment->chains);
    segment->chains = chains;
    segment->chain_count = count;
    return true;
}

const struct header_chain *segment_chain_find(const struct segment *segment, uint32_t group)
{
    uint32_t low = 0, high = segment->chain_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (segment->chains[middle].group < group)
            low = middle + 1;
        else
            high = middle;
    }
    return low < segment->chain_count && segment->chains[low].group == group ? &segment->chains[low]
                                                                             : NULL;
}

void segment_ends_drop(struct segment *segment)
{
    mem_free(segment->ends);
    segment->ends = NULL;
    segment->end_count = 0;
}

static void trim(void **array, size_t *capacity, size_t count, size_t element)
{
    void *smaller = count > 0 && count < *capacity ? mem_resize(*array, count * element) : NULL;
    if (!smaller)
        return;
    *array = smaller;
    *capacity = count;
}

void segment_trim(struct segment *segment)
{
    trim((void **)&segment->runs, &segment->run_capacity, segment->run_count,
         sizeof *segment->runs);
    trim((void **)&segment->tables, &segment->table_capacity, segment->table_count,
         sizeof *segment->tables);
    for (size_t i = 0; i < segment->run_count; i++) {
        struct run *run = segment->runs[i];
        size_t capacity = run->capacity;
        trim((void **)&run->entries, &capacity, run->count + run->pending, sizeof *run->entries);
        run->capacity = (uint32_t)capacity;
    }
}

bool index_segment_add(struct wal *wal, struct segment *segment)
{
    if (!GROW(wal->segments, wal->segment_capacity, wal->segment_count))
        return false;
    size_t at = wal->segment_count++;
    while (at > 0 && wal->segments[at - 1]->identity.id > segment->identity.id) {
        wal->segments[at] = wal->segments[at - 1];
        at--;
    }
    wal->segments[at] = segment;
    wal->allocated_bytes += segment->allocated_bytes;
    return true;
}

struct segment *index_segment_find(struct wal *wal, uint64_t id)
{
    size_t low = 0, high = wal->segment_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (wal->segments[middle]->identity.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < wal->segment_count && wal->segments[low]->identity.id == id ? wal->segments[low]
                                                                             : NULL;
}

static void group_run_detach(struct group *group, const struct run *run)
{
    for (size_t i = 0; i < group->run_count; i++) {
        if (group->runs[i] != run)
            continue;
        memmove(&group->runs[i], &group->runs[i + 1],
                (group->run_count - i - 1) * sizeof(struct run *));
        group->run_count--;
        return;
    }
}

void index_segment_drop(struct wal *wal, struct segment *segment)
{
    for (size_t i = 0; i < segment->run_count; i++)
        group_run_detach(&wal->groups[segment->runs[i]->group], segment->runs[i]);
    for (size_t i = 0; i < wal->segment_count; i++) {
        if (wal->segments[i] != segment)
            continue;
        memmove(&wal->segments[i], &wal->segments[i + 1],
                (wal->segment_count - i - 1) * sizeof(struct segment *));
        wal->segment_count--;
        wal->allocated_bytes -= segment->allocated_bytes;
        break;
    }
    segment_destroy(segment);
}

void index_segment_reduce(struct wal *wal, struct segment *segment, struct segment *left)
{
    struct segment before = *segment;
    for (size_t i = 0; i < segment->run_count; i++) {
        struct run *run = segment->runs[i], *rest = segment_run_find(left, run->group);
        struct group *group = &wal->groups[run->group];
        bool has_rest = rest && rest->count > 0;
        for (size_t k = 0; has_rest && k < group->run_count; k++)
            if (group->runs[k] == run) /* between the same neighbours */
                group->runs[k] = rest;
        if (!has_rest)
            group_run_detach(group, run);
    }
    for (size_t i = 0; i < left->run_count; i++)
        left->runs[i]->segment = segment;
    segment->runs = left->runs;
    segment->run_count = left->run_count;
    segment->run_capacity = left->run_capacity;
    segment->tables = left->tables;
    segment->table_count = left->table_count;
    segment->table_capacity = left->table_capacity;
    segment->entry_count = left->entry_count;
    segment->is_compacted = true;
    left->runs = before.runs;
    left->run_count = before.run_count;
    left->tables = before.tables;
}

/* ---- runs and tables of a segment ---- */

static size_t run_place(const struct segment *segment, uint32_t group)
{
    size_t low = 0, high = segment->run_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (segment->runs[middle]->group < group)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct run *segment_run_find(const struct segment *segment, uint32_t group)
{
    size_t at = run_place(segment, group);
    return at < segment->run_count && segment->runs[at]->group == group ? segment->runs[at] : NULL;
}

struct run *segment_run_get(struct segment *segment, uint32_t group)
{
    size_t at = run_place(segment, group);
    if (at < segment->run_count && segment->runs[at]->group == group)
        return segment->runs[at];
    if (!GROW(segment->runs, segment->run_capacity, segment->run_count))
        return NULL;
    struct run *run = mem_alloc_zero(1, sizeof *run);
    if (!run)
        return NULL;
    run->segment = segment;
    run->group = group;
    memmove(&segment->runs[at + 1], &segment->runs[at],
            (segment->run_count - at) * sizeof(struct run *));
    segment->runs[at] = run;
    segment->run_count++;
    return run;
}

static size_t table_place(const struct segment *segment, uint32_t group, uint32_t table_id)
{
    uint64_t key = (uint64_t)group << 32 | table_id;
    size_t low = 0, high = segment->table_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct segment_table *table = &segment->tables[middle];
        if (((uint64_t)table->group << 32 | table->table_id) < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct segment_table *segment_table_find(const struct segment *segment, uint32_t group,
                                         uint32_t table_id)
{
    size_t at = table_place(segment, group, table_id);
    if (at == segment->table_count)
        return NULL;
    struct segment_table *table = &segment->tables[at];
    return table->group == group && table->table_id == table_id ? table : NULL;
}

struct segment_table *segment_table_get(struct segment *segment, uint32_t group, uint32_t table_id)
{
    size_t at = table_place(segment, group, table_id);
    struct segment_table *tables = segment->tables;
    if (at < segment->table_count && tables[at].group == group && tables[at].table_id == table_id)
        return &tables[at];
    if (!GROW(segment->tables, segment->table_capacity, segment->table_count))
        return NULL;
    memmove(&segment->tables[at + 1], &segment->tables[at],
            (segment->table_count - at) * sizeof(struct segment_table));
    segment->tables[at] = (struct segment_table){
        .group = group, .table_id = table_id, .time_min_us = INT64_MAX, .time_max_us = INT64_MIN};
    segment->table_count++;
    return &segment->tables[at];
}

/* ---- adding ---- */

static bool stands_alone(const struct record *record)
{
    return record->seq == 0 || (record->flags & RECORD_REPAIR);
}

bool index_prepare(struct wal *wal, struct segment *segment, const struct record *record)
{
    if (stands_alone(record))
        return GROW(segment->voids, segment->void_capacity, segment->void_count);
    struct run *run = segment_run_get(segment, record->group);
    struct group *group = &wal->groups[record->group];
    if (!run || !GROW(group->runs, group->run_capacity, group->run_count + 1))
        return false;
    uint64_t end =
        run->first_seq + run->count; /* a hole inside is recovery's: nothing pends then */
    uint64_t hole = run->count && !run->pending && record->seq > end ? record->seq - end : 0;
    if (hole > UINT32_MAX / 4)
        return false;
    uint32_t wanted = run->count + run->pending + (uint32_t)hole + 1;
    if (wanted > run->capacity) {
        uint32_t capacity = wanted < 8 ? 8 : wanted + wanted / 2;
        struct index_entry *entries =
            mem_resize(run->entries, (size_t)capacity * sizeof(struct index_entry));
        if (!entries)
            return false;
        run->entries = entries;
        run->capacity = capacity;
    }
    if (record->type == WAL_DATA && !segment_table_get(segment, record->group, record->table_id))
        return false;
    run->pending++;
    return true;
}

void index_unprepare(struct segment *segment)
{
    for (size_t i = 0; i < segment->run_count; i++)
        segment->runs[i]->pending = 0;
}

bool group_run_attach(struct group *group, struct run *run)
{
    if (!GROW(group->runs, group->run_capacity, group->run_count))
        return false;
    size_t at = group->run_count++;
    while (at > 0 && group->runs[at - 1]->first_seq > run->first_seq) {
        group->runs[at] = group->runs[at - 1];
        at--;
    }
    group->runs[at] = run;
    return true;
}

void segment_table_count(struct segment_table *table, struct run *run, uint64_t seq, uint32_t rows,
                         uint64_t payload_bytes)
{
    if (table->entries++ == 0) {
        table->first = run->count;
        table->first_seq = seq;
    } else {
        run->entries[table->last].next = run->count;
    }
    table->last = run->count;
    table->last_seq = seq;
    table->rows += rows;
    table->bytes += payload_bytes;
}

static void table_count_entry(struct segment_table *table, struct run *run,
                              const struct record *record)
{
    segment_table_count(table, run, record->seq, record->rows, record->payload_bytes);
    if (record->time_min_us < table->time_min_us)
        table->time_min_us = record->time_min_us;
    if (record->time_max_us > table->time_max_us)
        table->time_max_us = record->time_max_us;
}

void index_add(struct wal *wal, struct segment *segment, const struct record *record,
               uint64_t offset, int64_t wall_ns)
{
    if (record->type == WAL_VOID || record->type == WAL_TABLE)
        segment->has_state = true;
    segment->entry_count++;
    if (stands_alone(record)) {
        segment->voids[segment->void_count++] = (struct void_range){.group = record->group,
                                                                    .first = record->seq,
                                                                    .last = record->range_last,
                                                                    .chain = record->chain,
                                                                    .term = record->term};
        return;
    }
    struct run *run = segment_run_find(segment, record->group);
    CHECK(run && run->pending > 0 && run->count < run->capacity);
    if (run->count == 0) {
        run->first_seq = record->seq;
        CHECK(group_run_attach(&wal->groups[record->group], run));
    }
    while (run->first_seq + run->count < record->seq) {
        CHECK(run->count + 1 < run->capacity);
        run->entries[run->count] =
            (struct index_entry){.at = run->entries[run->count - 1].at, .type = ENTRY_LOST};
        run->count++;
    }
    CHECK(run->first_seq + run->count == record->seq);
    int64_t age = (wall_ns - segment->created_wall_ns) / 1000000;
    run->entries[run->count] = (struct index_entry){
        .at = (uint32_t)(offset / WAL_ALIGN),
        .header_bytes = record->header_bytes,
        .payload_bytes = (uint32_t)record->payload_bytes,
        .table_id = record->table_id,
        .rows = record->rows,
        .age_ms = age < 0            ? 0
                  : age > UINT32_MAX ? UINT32_MAX
                                     : (uint32_t)age,
        .type = record->type,
        .has_producers = record->contribution_count > 0,
    };
    if (record->contribution_count > 0)
        segment->has_state = true;
    if (record->type == WAL_DATA) {
        struct segment_table *table = segment_table_find(segment, record->group, record->table_id);
        CHECK(table);
        table_count_entry(table, run, record);
    }
    run->count++;
    run->pending--;
}

/* What is left of the run's tables is counted anew. */
static void run_cut(struct run *run, uint32_t count)
{
    struct segment *segment = run->segment;
    segment->entry_count -= run->count - count;
    for (size_t i = 0; i < segment->table_count; i++) {
        struct segment_table *table = &segment->tables[i];
        if (table->group == run->group)
            *table = (struct segment_table){.group = table->group,
                                            .table_id = table->table_id,
                                            .time_min_us = table->time_min_us,
                                            .time_max_us = table->time_max_us};
    }
    for (run->count = 0; run->count < count; run->count++) {
        const struct index_entry *entry = &run->entries[run->count];
        if (entry->type == WAL_DATA)
            segment_table_count(segment_table_find(segment, run->group, entry->table_id), run,
                                run_seq(run, run->count), entry->rows, entry->payload_bytes);
    }
}

void index_cut(struct wal *wal, uint32_t group, uint64_t after)
{
    struct group *of = &wal->groups[group];
    while (of->run_count > 0) {
        struct run *run = of->runs[of->run_count - 1];
        if (run_end(run) - 1 <= after)
            return;
        run_cut(run, run_above(run, after));
        if (run->count > 0)
            return;
        of->run_count--; /* an empty one has no place among the others */
    }
}

/* ---- finding ---- */

uint32_t run_above(const struct run *run, uint64_t after)
{
    if (after < run->first_seq)
        return 0;
    uint64_t step = after - run->first_seq;
    if (!run->steps)
        return step < run->count ? (uint32_t)step + 1 : run->count;
    uint32_t low = 0, high = run->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (run->steps[middle] <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t runs_above(const struct group *group, uint64_t after)
{
    size_t low = 0, high = group->run_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct run *run = group->runs[middle];
        if (run_end(run) - 1 <= after)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool index_find(struct wal *wal, uint32_t group, uint64_t seq, struct run **out_run,
                const struct index_entry **out_entry)
{
    const struct group *of = &wal->groups[group];
    if (seq == 0)
        return false;
    size_t at = runs_above(of, seq - 1);
    if (at == of->run_count || of->runs[at]->first_seq > seq)
        return false;
    uint32_t index = run_above(of->runs[at], seq - 1);
    const struct index_entry *entry = &of->runs[at]->entries[index];
    if (run_seq(of->runs[at], index) != seq || entry->type == ENTRY_LOST)
        return false;
    *out_run = of->runs[at];
    *out_entry = entry;
    return true;
}

/* Index in the run of the table's first entry above `after`. */
static bool table_entry_above(const struct run *run, uint32_t table_id, uint64_t after,
                              uint32_t *out_index)
{
    const struct segment_table *table = segment_table_find(run->segment, run->group, table_id);
    if (!table || table->entries == 0 || table->last_seq <= after)
        return false;
    uint32_t index = table->first;
    if (run_seq(run, index) <= after) {
        /* Mostly the reader stands on an entry of this table and the link is right there. */
        uint32_t here = run_above(run, after) - 1;
        if (run->entries[here].type == WAL_DATA && run->entries[here].table_id == table_id)
            index = run->entries[here].next;
    }
    while (run_seq(run, index) <= after)
        index = run->entries[index].next;
    *out_index = index;
    return true;
}

bool index_next(struct wal *wal, uint32_t group, uint32_t table_id, uint64_t after,
                struct run **out_run, const struct index_entry **out_entry, uint64_t *out_seq)
{
    const struct group *of = &wal->groups[group];
    for (size_t at = runs_above(of, after); at < of->run_count; at++) {
        struct run *run = of->runs[at];
        uint32_t index = run_above(run, after);
        if (run->segment->is_going)
            continue;
        if (table_id && !table_entry_above(run, table_id, after, &index))
            continue;
        while (index < run->count && run->entries[index].type == ENTRY_LOST)
            index++;
        if (index == run->count)
            continue;
        if (run_seq(run, index) > of->committed_seq)
            return false;
        *out_run = run;
        *out_entry = &run->entries[index];
        *out_seq = run_seq(run, index);
        return true;
    }
    return false;
}

/* The table's entries in the run from `index` on, up to `last_seq`. */
static void pending_add(struct wal_pending *pending, const struct run *run,
                        const struct segment_table *table, uint32_t index, uint64_t last_seq)
{
    if (index == table->first && table->last_seq <= last_seq) {
        pending->entries += table->entries;
        pending->rows += table->rows;
        pending->bytes += table->bytes;
        pending->last_seq = table->last_seq;
        return;
    }
    for (; run_seq(run, index) <= last_seq; index = run->entries[index].next) {
        pending->entries++;
        pending->rows += run->entries[index].rows;
        pending->bytes += run->entries[index].payload_bytes;
        pending->last_seq = run_seq(run, index);
        if (index == table->last)
            return;
    }
}

struct wal_pending index_pending(const struct wal *wal, uint32_t group, uint32_t table_id,
                                 uint64_t after)
{
    struct wal_pending pending = {0};
    const struct group *of = &wal->groups[group];
    for (size_t at = runs_above(of, after); at < of->run_count; at++) {
        const struct run *run = of->runs[at];
        const struct segment_table *table = segment_table_find(run->segment, group, table_id);
        uint32_t index;
        if (!table || !table_entry_above(run, table_id, after, &index))
            continue;
        if (run_seq(run, index) > of->committed_seq)
            break;
        if (pending.last_seq == 0)
            pending.oldest_wall_ns =
                run->segment->created_wall_ns + (int64_t)run->entries[index].age_ms * 1000000;
        pending_add(&pending, run, table, index, of->committed_seq);
    }
    return pending;
}

uint64_t segment_bytes_above(const struct segment *segment, const struct segment_table *table,
                             uint64_t after)
{
    struct wal_pending pending = {0};
    const struct run *run = segment_run_find(segment, table->group);
    uint32_t index;
    if (run && table_entry_above(run, table->table_id, after, &index))
        pending_add(&pending, run, table, index, UINT64_MAX);
    return pending.bytes;
}

/* ---- tables and schemas ---- */

/* A table whose name is lost cannot be found by it. */
static void table_slot_put(uint32_t *slots, size_t count, const struct table *table, uint32_t id)
{
    if (!table->name[0])
        return;
    size_t at = hash64(table->name, strlen(table->name)) & (count - 1);
    while (slots[at])
        at = (at + 1) & (count - 1);
    slots[at] = id;
}

static bool table_slots_grow(struct wal *wal)
{
    if ((wal->table_count + 1) * 2 <= wal->table_slot_count)
        return true;
    size_t count = wal->table_slot_count ? wal->table_slot_count : 64;
    while (count < (wal->table_count + 1) * 2)
        count *= 2;
    uint32_t *slots = mem_alloc_zero(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < wal->table_count; i++)
        table_slot_put(slots, count, wal->tables[i], (uint32_t)i + 1);
    mem_free(wal->table_slots);
    wal->table_slots = slots;
    wal->table_slot_count = count;
    return true;
}

bool table_add(struct wal *wal, struct table *table)
{
    if (!table_slots_grow(wal) || !GROW(wal->tables, wal->table_capacity, wal->table_count))
        return false;
    wal->tables[wal->table_count++] = table;
    table_slot_put(wal->table_slots, wal->table_slot_count, table, (uint32_t)wal->table_count);
    return true;
}

static struct table *table_create(struct span name)
{
    struct table *table = mem_alloc_zero(1, sizeof *table);
    char *text = mem_alloc(name.length + 1);
    if (!table || !text) {
        mem_free(table);
        mem_free(text);
        return NULL;
    }
    if (name.length)
        memcpy(text, name.data, name.length);
    text[name.length] = '\0';
    table->name = text;
    return table;
}

static void table_destroy(struct table *table)
{
    mem_free(table->name);
    mem_free(table->acks);
    mem_free(table);
}

bool table_put(struct wal *wal, uint32_t table_id, struct span name)
{
    while (wal->table_count < table_id) {
        bool is_it = wal->table_count + 1 == table_id;
        struct table *table = table_create(is_it ? name : (struct span){0});
        if (table && table_add(wal, table))
            continue;
        if (table)
            table_destroy(table);
        return false;
    }
    struct table *known = wal->tables[table_id - 1];
    if (known->name[0] != '\0' || name.length == 0)
        return true;
    struct table *named = table_create(name);
    if (!named)
        return false;
    char *unnamed = known->name;
    known->name = named->name;
    named->name = unnamed;
    table_destroy(named);
    table_slot_put(wal->table_slots, wal->table_slot_count, known, table_id);
    return true;
}

uint32_t table_find(const struct wal *wal, const char *name, size_t length)
{
    if (!wal->table_slot_count || length == 0)
        return 0;
    size_t at = hash64(name, length) & (wal->table_slot_count - 1);
    for (; wal->table_slots[at]; at = (at + 1) & (wal->table_slot_count - 1)) {
        const char *other = wal->tables[wal->table_slots[at] - 1]->name;
        if (strlen(other) == length && memcmp(other, name, length) == 0)
            return wal->table_slots[at];
    }
    return 0;
}

const struct schema *schema_find(const struct wal *wal, uint64_t fingerprint)
{
    if (!wal->schema_slots || fingerprint == 0)
        return NULL;
    size_t at = (size_t)fingerprint & (wal->schema_slots - 1);
    for (; wal->schemas[at].fingerprint; at = (at + 1) & (wal->schema_slots - 1))
        if (wal->schemas[at].fingerprint == fingerprint)
            return &wal->schemas[at];
    return NULL;
}

static bool schema_slots_grow(struct wal *wal)
{
    if ((wal->schema_count + 1) * 2 <= wal->schema_slots)
        return true;
    size_t count = wal->schema_slots ? wal->schema_slots * 2 : 32;
    struct schema *slots = mem_alloc_zero(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < wal->schema_slots; i++) {
        if (!wal->schemas[i].fingerprint)
            continue;
        size_t at = (size_t)wal->schemas[i].fingerprint & (count - 1);
        while (slots[at].fingerprint)
            at = (at + 1) & (count - 1);
        slots[at] = wal->schemas[i];
    }
    mem_free(wal->schemas);
    wal->schemas = slots;
    wal->schema_slots = count;
    return true;
}

bool schema_put(struct wal *wal, uint64_t fingerprint, struct span message)
{
    if (schema_find(wal, fingerprint))
        return true;
    if (!schema_slots_grow(wal))
        return false;
    uint8_t *copy = mem_copy(message.data, message.length);
    if (!copy)
        return false;
    size_t at = (size_t)fingerprint & (wal->schema_slots - 1);
    while (wal->schemas[at].fingerprint)
        at = (at + 1) & (wal->schema_slots - 1);
    wal->schemas[at] =
        (struct schema){.fingerprint = fingerprint, .message = copy, .length = message.length};
    wal->schema_count++;
    return true;
}

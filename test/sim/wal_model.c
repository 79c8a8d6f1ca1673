/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries, what was promised of them, and what may therefore be seen of them.
 */
#include <stdarg.h>

#include "sim/wal_model.h"

struct totals totals;

_Noreturn void fail(const struct model *model, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("# seed %llu: ", (unsigned long long)model->seed);
    vprintf(format, args);
    printf("\n# replay: sim_wal --seed %llu\n", (unsigned long long)model->seed);
    fflush(stdout);
    va_end(args);
    exit(1);
}

void say(const struct model *model, const char *format, ...)
{
    va_list args;
    if (!model->is_verbose)
        return;
    va_start(args, format);
    printf("# ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

uint64_t pick(struct model *model, uint64_t bound)
{
    return random_below(sim_random(model->sim), bound);
}

/* ---- items ---- */

uint64_t u64s_get(const struct u64s *list, uint64_t at)
{
    return at < list->count ? list->values[at] : 0;
}

void u64s_set(struct u64s *list, uint64_t at, uint64_t value)
{
    if (at >= list->capacity) {
        size_t capacity = (size_t)at * 2 + 64;
        list->values = realloc(list->values, capacity * sizeof *list->values);
        CHECK(list->values);
        memset(list->values + list->capacity, 0,
               (capacity - list->capacity) * sizeof *list->values);
        list->capacity = capacity;
    }
    if (at >= list->count)
        list->count = (size_t)at + 1;
    list->values[at] = value;
}

uint64_t item_add(struct model *model, struct item item)
{
    if (model->item_count == model->item_capacity) {
        model->item_capacity = model->item_capacity ? model->item_capacity * 2 : 256;
        model->items = realloc(model->items, model->item_capacity * sizeof item);
        CHECK(model->items);
    }
    model->items[model->item_count] = item;
    return model->item_count++;
}

void payload_fill(uint64_t number, uint8_t *to, uint32_t bytes)
{
    uint64_t word = number * 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(word >> 56);
        word = word * 6364136223846793005u + 1442695040888963407u;
    }
    put_le64(to, number);
}

bool payload_holds(uint64_t number, struct span payload)
{
    uint64_t word = number * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < payload.length; i++) {
        if (i >= 8 && payload.data[i] != (uint8_t)(word >> 56))
            return false;
        word = word * 6364136223846793005u + 1442695040888963407u;
    }
    return true;
}

struct hash128 body_hash(uint32_t producer, uint64_t sequence)
{
    return (struct hash128){.low = producer * 1000003u + sequence, .high = ~sequence};
}

void item_placed(struct model *model, uint64_t number, uint64_t seq, uint64_t term, uint64_t chain,
                 bool is_durable)
{
    struct item *item = &model->items[number];
    if (item->seq && item->is_durable &&
        (item->seq != seq || item->term != term || item->chain != chain))
        fail(model, "item %llu moved from seq %llu to %llu", U(number), U(item->seq), U(seq));
    uint64_t written = u64s_get(&model->written_at[item->group], seq);
    if (written && written != number && model->items[written].term == term)
        fail(model, "(term %llu, seq %llu) was given to items %llu and %llu", U(term), U(seq),
             U(written), U(number));
    uint64_t synced = u64s_get(&model->synced_at[item->group], seq);
    if (synced && synced != number)
        fail(model, "synced seq %llu of item %llu was given to item %llu", U(seq), U(synced),
             U(number));
    item->seq = seq;
    item->term = term;
    item->chain = chain;
    item->is_durable |= is_durable;
    u64s_set(is_durable ? &model->synced_at[item->group] : &model->written_at[item->group], seq,
             number);
}

void view_check(struct model *model, const struct wal_view *view)
{
    uint64_t number = view->payload.length >= 8 ? get_le64(view->payload.data) : 0;
    if (number == 0 || number >= model->item_count)
        fail(model, "group %u seq %llu holds nothing that was written", view->group, U(view->seq));
    struct item *item = &model->items[number];
    if (!payload_holds(number, view->payload) || item->bytes != view->payload.length ||
        item->group != view->group || model->table_ids[item->table] != view->table_id ||
        view->rows != 1 + (uint32_t)(number % 5) || view->contribution_count != 1)
        fail(model, "item %llu came back changed", U(number));
    if (item->state == ITEM_REFUSED)
        fail(model, "item %llu was refused and is there", U(number));
    if (item->is_gone)
        fail(model, "item %llu was gone and came back", U(number));
    item_placed(model, number, view->seq, view->term, view->chain, true);
    item->is_present = true;
    totals.scanned++;
}

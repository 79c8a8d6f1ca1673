/* SPDX-License-Identifier: Apache-2.0
 *
 * log.table_limits: what single tables may have on the log unpublished, "otel.spans=8GiB,
 * otel.logs=2GiB", in place of log.table_bytes.
 */
#include <stdio.h>

#include "app/server/server_internal.h"

static struct span trimmed(struct span text)
{
    while (text.length && text.data[0] == ' ')
        text = span_of(text.data + 1, text.length - 1);
    while (text.length && text.data[text.length - 1] == ' ')
        text.length--;
    return text;
}

/* Up to `separator`, which is taken too; what is left stays in *inout_text. */
static struct span take_until(struct span *inout_text, char separator)
{
    const uint8_t *found = memchr(inout_text->data, separator, inout_text->length);
    size_t length = found ? (size_t)(found - inout_text->data) : inout_text->length;
    struct span taken = span_of(inout_text->data, length);
    size_t used = found ? length + 1 : length;
    *inout_text = span_of(inout_text->data + used, inout_text->length - used);
    return trimmed(taken);
}

static bool is_name_of(const struct publish_table *table, struct span name)
{
    char full[WAL_TABLE_NAME_MAX + 1];
    snprintf(full, sizeof full, "%s.%s", table->ns, table->name);
    return span_equal(span_of_text(full), name);
}

static const struct publish_table *find_table(struct span name)
{
    size_t count;
    const struct publish_table *tables = ingest_tables(&count);
    for (size_t i = 0; i < count; i++)
        if (is_name_of(&tables[i], name))
            return &tables[i];
    return NULL;
}

/* Takes one "name=size". */
static enum status take_limit(struct span *inout_text, const struct publish_table **out_table,
                              uint64_t *out_bytes, struct error *err)
{
    struct span item = take_until(inout_text, ','), value = item;
    struct span name = take_until(&value, '=');
    value = trimmed(value);
    *out_table = find_table(name);
    if (!*out_table)
        return error_set(err, STATUS_USAGE, "log.table_limits: there is no table %.*s",
                         (int)size_min(name.length, 60), (const char *)name.data);
    if (!parse_bytes((const char *)value.data, value.length, out_bytes))
        return error_set(err, STATUS_USAGE,
                         "log.table_limits: %.*s: not NAME=SIZE, such as otel.logs=2GiB",
                         (int)size_min(item.length, 60), (const char *)item.data);
    return STATUS_OK;
}

enum status limits_check(const struct settings *settings, struct error *err)
{
    struct span text = span_of_text(settings->log_table_limits);
    size_t count;
    const struct publish_table *tables = ingest_tables(&count);
    uint64_t bytes, seen = 0; /* bits */
    while (text.length) {
        const struct publish_table *table;
        TRY(take_limit(&text, &table, &bytes, err));
        if (seen & (uint64_t)1 << (table - tables))
            return error_set(err, STATUS_USAGE, "log.table_limits: %s.%s twice", table->ns,
                             table->name);
        seen |= (uint64_t)1 << (table - tables);
    }
    return STATUS_OK;
}

void limits_apply(const struct settings *settings, struct wal *wal)
{
    struct span text = span_of_text(settings->log_table_limits);
    const struct publish_table *table;
    struct error ignored;
    uint64_t bytes;
    while (text.length && take_limit(&text, &table, &bytes, &ignored) == STATUS_OK) {
        char name[WAL_TABLE_NAME_MAX + 1];
        snprintf(name, sizeof name, "%s.%s", table->ns, table->name);
        wal_table_limit(wal, wal_table_find(wal, name), bytes);
    }
}

static uint64_t lower(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

uint64_t limits_least(const struct settings *settings)
{
    uint64_t least = lower(settings->log_table_bytes, settings->log_group_bytes), bytes;
    struct span text = span_of_text(settings->log_table_limits);
    const struct publish_table *table;
    struct error ignored;
    while (text.length && take_limit(&text, &table, &bytes, &ignored) == STATUS_OK)
        least = lower(least, bytes);
    return least;
}

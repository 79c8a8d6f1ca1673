/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/positions/positions.h"

const struct arrow_field position_fields[POSITION_FIELDS] = {
    {.name = "_sluice_log", .type = ARROW_UTF8, .is_dictionary = true},
    {.name = "_sluice_group", .type = ARROW_INT32},
    {.name = "_sluice_seq", .type = ARROW_INT64},
    {.name = "_sluice_index", .type = ARROW_INT32},
};

bool positions_schema(const struct arrow_schema *payload, struct arena *arena,
                      struct arrow_schema *out_schema)
{
    uint32_t count = payload->field_count + POSITION_FIELDS;
    struct arrow_field *fields = arena_alloc_zero(arena, count, sizeof *fields);
    if (!fields)
        return false;
    if (payload->field_count)
        memcpy(fields, payload->fields, payload->field_count * sizeof *fields);
    memcpy(fields + payload->field_count, position_fields, sizeof position_fields);
    *out_schema = (struct arrow_schema){.fields = fields, .field_count = count};
    return true;
}

/* One value; all indices are zero. */
static bool log_dictionary(const char *log_text, struct arena *arena, struct arrow_array *array)
{
    int32_t *offsets = arena_alloc_zero(arena, 2, sizeof *offsets);
    struct arrow_array *dictionary = arena_alloc_zero(arena, 1, sizeof *dictionary);
    if (!offsets || !dictionary)
        return false;
    offsets[1] = LOG_ID_TEXT_BYTES - 1;
    *dictionary = (struct arrow_array){.length = 1, .offsets = offsets, .values = log_text};
    array->dictionary = dictionary;
    return true;
}

bool positions_column(int which, const char log_text[LOG_ID_TEXT_BYTES],
                      const struct position *rows, size_t count, struct arena *arena,
                      struct arrow_array *out_array)
{
    size_t width = position_fields[which].type == ARROW_INT64 ? sizeof(int64_t) : sizeof(int32_t);
    void *values = arena_alloc_zero(arena, count + 1, width);
    *out_array = (struct arrow_array){.length = (int64_t)count, .values = values};
    if (!values)
        return false;
    if (which == POSITION_LOG)
        return log_dictionary(log_text, arena, out_array);
    for (size_t i = 0; i < count; i++) {
        if (which == POSITION_SEQ)
            ((int64_t *)values)[i] = (int64_t)rows[i].seq;
        else
            ((int32_t *)values)[i] =
                (int32_t)(which == POSITION_GROUP ? rows[i].group : rows[i].index);
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "arrow_sample.h"

static struct arrow_field attribute_children[2] = {
    {.name = "key", .type = ARROW_UTF8, .is_dictionary = true, .field_id = 11},
    {.name = "value", .type = ARROW_UTF8, .is_nullable = true, .field_id = 12},
};
static struct arrow_field event_children[2] = {
    {.name = "time", .type = ARROW_TIMESTAMP_US, .is_instant = true, .field_id = 15},
    {.name = "attributes",
     .type = ARROW_MAP,
     .is_nullable = true,
     .children = attribute_children,
     .child_count = 2,
     .field_id = 16},
};
static struct arrow_field event_element[1] = {
    {.name = "element",
     .type = ARROW_STRUCT,
     .children = event_children,
     .child_count = 2,
     .field_id = 14},
};
struct arrow_field fields[FIELD_COUNT] = {
    {.name = "n", .type = ARROW_INT64, .field_id = 1},
    {.name = "text", .type = ARROW_UTF8, .is_nullable = true, .field_id = 2},
    {.name = "flag", .type = ARROW_BOOL, .is_nullable = true, .field_id = 3},
    {.name = "id", .type = ARROW_FIXED, .byte_width = 3, .is_nullable = true, .field_id = 4},
    {.name = "resource",
     .type = ARROW_MAP,
     .is_nullable = true,
     .is_dictionary = true,
     .children = attribute_children,
     .child_count = 2,
     .field_id = 5},
    {.name = "service",
     .type = ARROW_UTF8,
     .is_nullable = true,
     .is_dictionary = true,
     .field_id = 6},
    {.name = "events",
     .type = ARROW_LIST,
     .is_nullable = true,
     .children = event_element,
     .child_count = 1,
     .field_id = 7},
};
const struct arrow_schema schema = {.fields = fields, .field_count = FIELD_COUNT};

void append_attributes(struct arrow_builder *map, int64_t count, int64_t seed)
{
    char text[64];
    for (int64_t i = 0; i < count; i++) {
        int length = snprintf(text, sizeof text, "key%d", (int)i);
        arrow_append_memo(&map->children[0], text, (size_t)length);
        length = snprintf(text, sizeof text, "value%d", (int)(seed % 5));
        if ((seed + i) % 4)
            arrow_append_bytes(&map->children[1], text, (size_t)length);
        else
            arrow_append_null(&map->children[1]);
    }
    arrow_close_list(map);
}

void append_row(struct arrow_builder *b, int64_t i)
{
    char text[32];
    size_t length = (size_t)snprintf(text, sizeof text, "row %d", (int)i);
    arrow_append_i64(&b[N], i);
    if (i % 3 == 1) {
        arrow_append_null(&b[TEXT]);
        arrow_append_null(&b[FLAG]);
        arrow_append_null(&b[ID]);
        arrow_append_null(&b[EVENTS]);
    } else {
        arrow_append_bytes(&b[TEXT], text, length);
        arrow_append_bool(&b[FLAG], i % 2);
        arrow_append_bytes(&b[ID], "abc", 3);
        struct arrow_builder *event = &b[EVENTS].children[0];
        for (int64_t e = 0; e < i % 4; e++) {
            arrow_append_i64(&event->children[0], i * 1000 + e);
            if (e == 2)
                arrow_append_null(&event->children[1]);
            else
                append_attributes(&event->children[1], e, i);
            arrow_close_struct(event);
        }
        arrow_close_list(&b[EVENTS]);
    }
    if (i % 5 == 0) {
        append_attributes(b[RESOURCE].dictionary, i % 3, i);
        length = (size_t)snprintf(text, sizeof text, "service %d", (int)i);
        arrow_append_bytes(b[SERVICE].dictionary, text, length);
    }
    arrow_append_index(&b[RESOURCE], (int32_t)(b[RESOURCE].dictionary->length - 1));
}

void sample_view(struct sample *sample)
{
    struct error err;
    arrow_batch_deinit(&sample->batch);
    sample->batch = (struct arrow_batch){.schema = &schema, .length = sample->builders[N].length};
    sample->batch.columns =
        arena_alloc_zero(&sample->batch.arena, FIELD_COUNT, sizeof *sample->batch.columns);
    struct arrow_array *columns = sample->batch.columns;
    for (int i = 0; i < FIELD_COUNT; i++)
        assert_ok(
            arrow_builder_view(&sample->builders[i], &sample->batch.arena, &columns[i], &err));
    columns[SERVICE].values = columns[RESOURCE].values;
    columns[SERVICE].length = columns[RESOURCE].length;
    for (int i = 0; i < FIELD_COUNT; i++)
        assert_ok(arrow_array_validate(&fields[i], &columns[i], &err));
}

void sample_init(struct sample *sample, int64_t rows)
{
    struct error err;
    *sample = (struct sample){0};
    for (int i = 0; i < FIELD_COUNT; i++)
        assert_ok(arrow_builder_init(&sample->builders[i], &fields[i], &err));
    for (int64_t i = 0; i < rows; i++)
        append_row(sample->builders, i);
    sample_view(sample);
}

void sample_deinit(struct sample *sample)
{
    for (int i = 0; i < FIELD_COUNT; i++)
        arrow_builder_deinit(&sample->builders[i]);
    arrow_batch_deinit(&sample->batch);
}

/* ---- one slot as text, for comparing arrays whatever their layout ---- */

void put_slot(struct buf *out, const struct arrow_field *field, const struct arrow_array *array,
              int64_t i)
{
    if (!arrow_is_valid(array, i)) {
        buf_put_text(out, "null");
        return;
    }
    if (field->is_dictionary) {
        struct arrow_field values = *field;
        values.is_dictionary = false;
        put_slot(out, &values, array->dictionary, ((const int32_t *)array->values)[i]);
        return;
    }
    switch (field->type) {
    case ARROW_INT64:
    case ARROW_TIMESTAMP_US:
        buf_format(out, "%lld", (long long)((const int64_t *)array->values)[i]);
        break;
    case ARROW_BOOL:
        buf_put_text(out, arrow_bit(array->values, i) ? "true" : "false");
        break;
    case ARROW_FIXED:
        buf_put(out, (const char *)array->values + i * field->byte_width,
                (size_t)field->byte_width);
        break;
    case ARROW_UTF8:
        buf_format(out, "'%.*s'", array->offsets[i + 1] - array->offsets[i],
                   (const char *)array->values + array->offsets[i]);
        break;
    default: {
        int64_t first = field->type == ARROW_STRUCT ? i : array->offsets[i];
        int64_t end = field->type == ARROW_STRUCT ? i + 1 : array->offsets[i + 1];
        buf_put_text(out, "[");
        for (int64_t slot = first; slot < end; slot++) {
            for (uint32_t child = 0; child < field->child_count; child++) {
                put_slot(out, &field->children[child], &array->children[child], slot);
                buf_put_text(out, ",");
            }
        }
        buf_put_text(out, "]");
    }
    }
}

void put_row(struct buf *out, const struct arrow_batch *batch, int64_t row)
{
    for (uint32_t i = 0; i < FIELD_COUNT; i++) {
        put_slot(out, &fields[i], &batch->columns[i], row);
        buf_put_text(out, ";");
    }
    buf_put_byte(out, 0);
}

void assert_rows_equal(const struct arrow_batch *a, int64_t row_a, const struct arrow_batch *b,
                       int64_t row_b)
{
    struct buf text_a = {0}, text_b = {0};
    put_row(&text_a, a, row_a);
    put_row(&text_b, b, row_b);
    assert_string_equal(text_a.data, text_b.data);
    buf_deinit(&text_a);
    buf_deinit(&text_b);
}

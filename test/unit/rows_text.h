/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches as text, for tests of readers: "a int64, b {x bool}" and rows like "1, {true}; null,
 * null".
 */
#ifndef SLUICE_TEST_ROWS_TEXT_H
#define SLUICE_TEST_ROWS_TEXT_H

#include "format/arrow/arrow.h"
#include "unit.h"

static inline void put_fields(struct buf *out, const struct arrow_field *fields, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct arrow_field *field = &fields[i];
        assert_true(field->is_nullable);
        buf_format(out, "%s%s ", i ? ", " : "", field->name);
        arrow_type_describe(field, out);
        if (!field->child_count)
            continue;
        buf_put_text(out, "{");
        put_fields(out, field->children, field->child_count);
        buf_put_text(out, "}");
    }
}

static inline void put_slot(struct buf *out, const struct arrow_field *field,
                            const struct arrow_array *array, int64_t i)
{
    char number[DOUBLE_TEXT_MAX];
    if (field->type == ARROW_NULL || !arrow_is_valid(array, i)) {
        buf_put_text(out, "null");
        return;
    }
    switch (field->type) {
    case ARROW_BOOL:
        buf_put_text(out, arrow_bit(array->values, i) ? "true" : "false");
        break;
    case ARROW_INT32:
    case ARROW_DATE32:
        buf_format(out, "%d", (int)((const int32_t *)array->values)[i]);
        break;
    case ARROW_INT64:
    case ARROW_TIMESTAMP_US:
        buf_format(out, "%lld", (long long)((const int64_t *)array->values)[i]);
        break;
    case ARROW_DOUBLE:
        buf_put(out, number, double_to_text(number, ((const double *)array->values)[i]));
        break;
    case ARROW_FIXED: /* uint64 alone */
        assert_int_equal(field->origin->kind, ARROW_ORIGIN_UINT);
        buf_format(out, "%llu",
                   (unsigned long long)get_le64((const uint8_t *)array->values + i * 8));
        break;
    case ARROW_UTF8:
        buf_format(out, "'%.*s'", array->offsets[i + 1] - array->offsets[i],
                   (const char *)array->values + array->offsets[i]);
        break;
    case ARROW_LIST:
        buf_put_text(out, "[");
        for (int32_t at = array->offsets[i]; at < array->offsets[i + 1]; at++) {
            buf_put_text(out, at > array->offsets[i] ? ", " : "");
            put_slot(out, &field->children[0], &array->children[0], at);
        }
        buf_put_text(out, "]");
        break;
    case ARROW_STRUCT:
        buf_put_text(out, "{");
        for (uint32_t j = 0; j < field->child_count; j++) {
            buf_put_text(out, j ? ", " : "");
            put_slot(out, &field->children[j], &array->children[j], i);
        }
        buf_put_text(out, "}");
        break;
    default:
        fail_msg("a type that these readers do not make");
    }
}

/* Validates, and appends the rows, each with "; " behind it. `out` NULL: only validates. */
static inline void put_batch(struct buf *out, struct arrow_batch *batch)
{
    struct error err;
    const struct arrow_schema *schema = batch->schema;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        assert_int_equal(batch->columns[i].length, batch->length);
        assert_ok(arrow_array_validate(&schema->fields[i], &batch->columns[i], &err));
    }
    for (int64_t row = 0; out && row < batch->length; row++) {
        for (uint32_t i = 0; i < schema->field_count; i++) {
            buf_put_text(out, i ? ", " : "");
            put_slot(out, &schema->fields[i], &batch->columns[i], row);
        }
        buf_put_text(out, "; ");
    }
}

#endif

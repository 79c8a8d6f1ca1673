/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that grow at their end, as dictionaries do.
 */
#include "format/arrow/arrow_internal.h"

/* Arrays are bounded by their 32-bit offsets alone. */
static void lift_bounds(struct arrow_builder *builder)
{
    builder->validity.bytes_max = builder->offsets.bytes_max = builder->values.bytes_max = 0;
    for (uint32_t i = 0; i < builder->child_count; i++)
        lift_bounds(&builder->children[i]);
}

static enum status append(struct growing_values *growing, const struct arrow_field *field,
                          const struct arrow_array *more, size_t bytes_max, struct error *err)
{
    if (!growing->is_begun) {
        growing->field = *field;
        TRY(arrow_builder_init(&growing->builder, &growing->field, err));
        lift_bounds(&growing->builder);
        growing->is_begun = true;
    }
    TRY(builder_append_slots(&growing->builder, more, 0, more->length, err));
    if (arrow_builder_failed(&growing->builder))
        return error_set(err, STATUS_NO_MEMORY, "arrow: no memory for a dictionary");
    if (bytes_max && arrow_builder_bytes(&growing->builder) > bytes_max)
        return error_set(err, STATUS_LIMIT,
                         "arrow: column %.100s: a dictionary of more than %zu bytes", field->name,
                         bytes_max);
    arena_clear(&growing->arena);
    return arrow_builder_view(&growing->builder, &growing->arena, &growing->values, err);
}

enum status growing_values_append(struct growing_values *growing, const struct arrow_field *field,
                                  const struct arrow_array *more, size_t bytes_max,
                                  struct error *err)
{
    enum status status = append(growing, field, more, bytes_max, err);
    if (status != STATUS_OK)
        growing_values_deinit(growing);
    return status;
}

void growing_values_deinit(struct growing_values *growing)
{
    arrow_builder_deinit(&growing->builder);
    arena_deinit(&growing->arena);
    *growing = (struct growing_values){.is_begun = false};
}

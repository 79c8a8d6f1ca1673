/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON documents: what is accepted must be written, read back, and written again to the same bytes.
 */
#include "format/json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error err;
    struct arena arena;
    struct json_value *value, *again;
    struct buf text = {0}, twice = {0};
    arena_init(&arena, 64 << 20);
    if (json_parse(data, bytes, &arena, &value, &err) == STATUS_OK) {
        CHECK(json_serialize(value, &text, &err) == STATUS_OK);
        CHECK(json_parse(text.data, text.length, &arena, &again, &err) == STATUS_OK);
        CHECK(json_serialize(again, &twice, &err) == STATUS_OK);
        CHECK(span_equal(span_of(text.data, text.length), span_of(twice.data, twice.length)));
    }
    buf_deinit(&text);
    buf_deinit(&twice);
    arena_deinit(&arena);
    return 0;
}

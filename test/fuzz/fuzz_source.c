/* SPDX-License-Identifier: Apache-2.0
 *
 * What a publisher reads from another server's log port: looks, and frames of entries. The first
 * byte says which.
 */
#include "flow/frames/frames.h"
#include "flow/source/remote_internal.h"

static void read_look(struct span bytes)
{
    struct look *look;
    struct error err;
    if (look_parse(bytes, 1, &look, &err) != STATUS_OK)
        return;
    CHECK(look->group_count > 0 && look->group_count <= SOURCE_GROUPS_MAX);
    for (uint32_t t = 0; t < look->table_count; t++)
        CHECK(look->tables[t].id > 0 && look_table_of(look, look->tables[t].name));
    look_destroy(look);
}

static void read_frames(struct span bytes)
{
    struct wal_view view;
    struct error err;
    const struct log_id log = {{0}};
    const uint8_t *end = bytes.data + bytes.length;
    while (frame_next(&bytes, log, &view, &err) == STATUS_OK)
        CHECK(view.payload.data + view.payload.length <= end && view.seq > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    struct span rest = span_of(data + 1, bytes - 1);
    if (data[0] & 1)
        read_look(rest);
    else
        read_frames(rest);
    return 0;
}

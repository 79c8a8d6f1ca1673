/* SPDX-License-Identifier: Apache-2.0
 *
 * What a mirror may hold: an object, a name or a head, by the first byte. What is accepted must be
 * written again to the same.
 */
#include "log/mirror/mirror.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_object(struct span object)
{
    struct mirror_header header;
    struct error err;
    uint8_t again[MIRROR_HEADER_BYTES];
    if (mirror_header_decode(object, &header, &err) != STATUS_OK)
        return;
    mirror_header_encode(again, &header);
    CHECK(memcmp(again, object.data, sizeof again) == 0);
    enum status status = mirror_object_check(object, &header, &err);
    UNUSED(status);
}

static void check_name(struct span text)
{
    struct mirror_header name;
    char again[MIRROR_NAME_BYTES];
    if (!mirror_name_parse(text, &name))
        return;
    mirror_name_put(&name, again);
    CHECK(span_equal(text, span_of_text(again)));
}

static void check_head(struct span text)
{
    struct mirror_head head, again;
    struct error err;
    struct buf out = {0};
    if (mirror_head_decode(text, &head, &err) != STATUS_OK)
        return;
    mirror_head_encode(&out, &head);
    CHECK(mirror_head_decode(span_of(out.data, out.length), &again, &err) == STATUS_OK);
    CHECK(log_id_equal(head.log_id, again.log_id) && head.incarnation == again.incarnation &&
          head.group_count == again.group_count && head.made_ms == again.made_ms);
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    struct span rest = span_of(data + 1, bytes - 1);
    if (data[0] % 3 == 0)
        check_object(rest);
    else if (data[0] % 3 == 1)
        check_name(rest);
    else
        check_head(rest);
    return 0;
}

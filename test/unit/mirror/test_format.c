/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and bytes of docs/format/mirror.md.
 */
#include "../unit.h"
#include "log/mirror/mirror.h"
#include "mirror_tests.h"

static const struct mirror_header range = {
    .kind = MIRROR_RANGE,
    .flags = MIRROR_IS_END,
    .log_id = {.bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
    .id = 57,
    .from = 4096,
    .to = 4106,
    .incarnation = 2,
    .floor = UINT64_MAX,
    .made_ns = 1700000000000000000,
};
static const struct mirror_header state = {
    .kind = MIRROR_STATE, .id = 9, .to = 10, .incarnation = 1, .floor = 56};

static void object_put(struct mirror_header header, uint8_t out[MIRROR_HEADER_BYTES + 10])
{
    memcpy(out + MIRROR_HEADER_BYTES, "0123456789", 10);
    header.body_crc = crc32c(0, out + MIRROR_HEADER_BYTES, 10);
    mirror_header_encode(out, &header);
}

/* The bytes as other code made them (test/fuzz/corpus/mirror/range). */
static const char golden[] = "534c554943454d52000000006000000001000000010000000102030405060708"
                             "090a0b0c0d0e0f10390000000000000000100000000000000a10000000000000"
                             "0200000000000000ffffffffffffffff00002a36fe9c97179e060c2879d4c342";

void test_object(void **context)
{
    (void)context;
    struct error err;
    struct mirror_header header, name;
    uint8_t bytes[MIRROR_HEADER_BYTES + 10];
    char text[MIRROR_NAME_BYTES];
    object_put(range, bytes);
    char hex[2 * MIRROR_HEADER_BYTES + 1] = {0};
    hex_encode(hex, bytes, MIRROR_HEADER_BYTES);
    assert_string_equal(hex, golden);
    assert_ok(mirror_object_check(span_of(bytes, sizeof bytes), &header, &err));
    assert_true(header.floor == UINT64_MAX && header.made_ns == range.made_ns);
    assert_int_equal(header.flags, MIRROR_IS_END);
    assert_true(log_id_equal(header.log_id, range.log_id));
    mirror_name_put(&range, text);
    assert_string_equal(text, "segments/00000000000000000057/0000000000004096-0000000000004106.2");
    assert_true(mirror_name_parse(span_of_text(text), &name));
    assert_true(mirror_header_is_of(&header, &name));
    name.incarnation = 1;
    assert_false(mirror_header_is_of(&header, &name));
    for (size_t i = 0; i < sizeof bytes * 8; i++) { /* each bit counts */
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        assert_status(STATUS_CORRUPT,
                      mirror_object_check(span_of(bytes, sizeof bytes), &header, &err));
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_status(STATUS_CORRUPT, mirror_object_check(span_of(bytes, i), &header, &err));
    put_le32(bytes + 8, 1);
    put_le32(bytes + 92, crc32c(0, bytes, 92));
    assert_status(STATUS_UNSUPPORTED,
                  mirror_object_check(span_of(bytes, sizeof bytes), &header, &err));
}

void test_names(void **context)
{
    (void)context;
    struct mirror_header name;
    char text[MIRROR_NAME_BYTES];
    mirror_name_put(&state, text);
    assert_string_equal(text, "state/00000000000000000009.1");
    assert_true(mirror_name_parse(span_of_text(text), &name));
    assert_true(mirror_header_is_of(&state, &name));
    static const char *const others[] = {
        "",
        "head",
        "state/9.1",
        "state/00000000000000000009",
        "state/00000000000000000009.",
        "state/00000000000000000009.01",
        "state/00000000000000000009.1.0123456789abcdef.tmp",
        "segments/00000000000000000057",
        "segments/00000000000000000057/0000000000004096-0000000000004096.1",
        "segments/00000000000000000057/0000000000004096-0000000000004095.1",
        "segments/00000000000000000057/+000000000004096-0000000000005095.1",
        "segments/00000000000000000057/0000000000004096-0000000000005095",
        "segments/99999999999999999999/0000000000004096-0000000000005095.1",
        "segments/00000000000000000057/0000000000004096-0000000000005095.1/x",
    };
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_false(mirror_name_parse(span_of_text(others[i]), &name));
}

void test_head(void **context)
{
    (void)context;
    struct error err;
    struct buf text = {0};
    struct mirror_head head = {
        .log_id = range.log_id, .incarnation = 3, .group_count = 2, .made_ms = 1700000000000};
    head.writer = 0xfedcba9876543210;
    struct mirror_head read = {0};
    mirror_head_encode(&text, &head);
    buf_put_byte(&text, '\0');
    assert_string_equal((char *)text.data,
                        "{\"format\":\"sluice mirror\",\"version\":0,"
                        "\"log_id\":\"0102030405060708090a0b0c0d0e0f10\",\"incarnation\":3,"
                        "\"groups\":2,\"writer\":\"fedcba9876543210\","
                        "\"made_ms\":1700000000000}\n");
    assert_ok(mirror_head_decode(span_of(text.data, text.length - 1), &read, &err));
    assert_true(log_id_equal(read.log_id, head.log_id));
    assert_true(read.writer == head.writer);
    assert_true(read.incarnation == 3 && read.group_count == 2 && read.made_ms == head.made_ms);
    static const char *const bad[] = {
        "",
        "{}",
        "[1]",
        "{\"format\":\"other\",\"version\":0}",
        "{\"format\":\"sluice mirror\",\"version\":0}",
        "{\"format\":\"sluice mirror\",\"version\":0,\"log_id\":\"01\",\"incarnation\":3,"
        "\"groups\":2,\"made_ms\":1}",
        "{\"format\":\"sluice mirror\",\"version\":0,"
        "\"log_id\":\"0102030405060708090a0b0c0d0e0f10\",\"incarnation\":0,"
        "\"groups\":2,\"made_ms\":1}",
        "{\"format\":\"sluice mirror\",\"version\":0,"
        "\"log_id\":\"0102030405060708090a0b0c0d0e0f10\",\"incarnation\":1,"
        "\"groups\":2,\"writer\":\"12\",\"made_ms\":1}",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_status(STATUS_CORRUPT, mirror_head_decode(span_of_text(bad[i]), &read, &err));
    assert_status(STATUS_UNSUPPORTED,
                  mirror_head_decode(span_of_text("{\"format\":\"sluice mirror\",\"version\":1}"),
                                     &read, &err));
    buf_deinit(&text);
}

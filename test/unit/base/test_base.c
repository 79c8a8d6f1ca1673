/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit.h"
#include "os/os.h"

static void test_hash_vectors(void **state)
{
    (void)state;
    /* RFC 3720 B.4: 32 bytes of zeros; gzip's "123456789"; XXH64 of the empty string. */
    uint8_t zeros[32] = {0};
    assert_int_equal(crc32c(0, zeros, sizeof zeros), 0x8a9136aa);
    assert_int_equal(crc32_gzip(0, "123456789", 9), 0xcbf43926);
    assert_true(hash_xxh64("", 0) == 0xef46db3751d8e999u);
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), crc32c(0, "123456789", 9));
    struct sha256 sha;
    uint8_t digest[SHA256_BYTES];
    char text[65] = "";
    assert_true(sha256_init(&sha));
    sha256_update(&sha, "abc", 3);
    sha256_final(&sha, digest);
    hex_encode(text, digest, sizeof digest);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void test_hash128_sum_is_a_group(void **state)
{
    (void)state;
    struct hash128 a = hash128("a", 1), b = hash128("b", 1);
    assert_true(hash128_equal(hash128_subtract(hash128_add(a, b), b), a));
    struct hash128 max = {UINT64_MAX, UINT64_MAX}, one = {1, 0};
    assert_true(hash128_equal(hash128_add(max, one), (struct hash128){0, 0}));
}

static void test_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_valid;
    } cases[] = {
        {"", true},
        {"plain", true},
        {"\xc3\xa9", true},
        {"\xe2\x82\xac and 12345678 \xf0\x9f\x98\x80", true},
        {"\xc3\x28", false},
        {"\xc0\x80", false},         /* overlong NUL */
        {"\xed\xa0\x80", false},     /* surrogate */
        {"\xf4\x90\x80\x80", false}, /* above U+10FFFF */
        {"\xe2\x82", false},         /* cut off */
        {"12345678\xff", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(utf8_is_valid(cases[i].text, strlen(cases[i].text)), cases[i].is_valid);
        assert_int_equal(text_is_valid(cases[i].text, strlen(cases[i].text)), cases[i].is_valid);
    }
    /* A bad byte anywhere in text of any length up to 140, and one that is not bad. */
    for (size_t length = 1; length <= 140; length++) {
        for (size_t at = 0; at < length; at++) {
            char text[140];
            memset(text, 'a', sizeof text);
            assert_true(text_is_valid(text, length) && utf8_is_valid(text, length));
            text[at] = (char)0xff;
            assert_false(text_is_valid(text, length) || utf8_is_valid(text, length));
            text[at] = (char)0xc3; /* of two bytes */
            text[at + 1 < length ? at + 1 : at] = (char)(at + 1 < length ? 0xa4 : 0xc3);
            assert_true(utf8_is_valid(text, length) == (at + 1 < length));
        }
    }
}

static void test_numbers(void **state)
{
    (void)state;
    int64_t value;
    uint64_t bytes;
    char text[DOUBLE_TEXT_MAX];
    assert_true(parse_i64("-9223372036854775808", 20, &value) && value == INT64_MIN);
    assert_false(parse_i64("9223372036854775808", 19, &value));
    assert_false(parse_i64("", 0, &value));
    assert_false(parse_u64("1x", 2, &bytes));
    assert_true(parse_bytes("64MiB", 5, &bytes) && bytes == 64u << 20);
    assert_true(parse_duration_ms("1.5s", 4, &bytes) && bytes == 1500);
    assert_true(parse_duration_ms("250 ms", 6, &bytes) && bytes == 250);
    assert_true(parse_duration_ms("0", 1, &bytes) && bytes == 0);
    assert_false(parse_duration_ms("60", 2, &bytes)); /* of what? */
    assert_false(parse_duration_ms("1.5", 3, &bytes));
    assert_false(parse_duration_ms("s", 1, &bytes));
    assert_false(parse_bytes("64 parsecs", 10, &bytes));
    static const struct {
        double value;
        const char *text;
    } doubles[] = {
        {0.1, "0.1"},
        {-0.0, "-0"},
        {1.0, "1"},
        {1e300, "1e+300"},
        {1.0 / 3.0, "0.3333333333333333"},
        {123456789012345680.0, "123456789012345680"},
    };
    for (size_t i = 0; i < COUNT_OF(doubles); i++) {
        double_to_text(text, doubles[i].value);
        assert_true(strtod(text, NULL) == doubles[i].value);
        if (i < 4)
            assert_string_equal(text, doubles[i].text);
    }
    /* Random bits: every double reads back, and no shorter form of it does. */
    struct random random;
    random_init(&random, 7);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = random_next(&random);
        double number;
        char shorter[DOUBLE_TEXT_MAX];
        if (i % 3 == 0)
            bits = bits >> 12 | (1000 + bits % 60) << 52;
        memcpy(&number, &bits, sizeof number);
        if (number != number)
            continue;
        double_to_text(text, number);
        assert_true(strtod(text, NULL) == number);
        int count = 0;
        for (const char *c = text; *c && *c != 'e'; c++)
            count += *c >= '1' && *c <= '9' ? 1 : *c == '0' && count > 0;
        if (i % 20 == 0 && count > 1 && count <= 17 && strchr(text, '.')) {
            snprintf(shorter, sizeof shorter, "%.*e", count - 2, number);
            assert_false(strtod(shorter, NULL) == number);
        }
    }
    static const char *const kept[] = {"0",
                                       "-0.000",
                                       "9007199254740992",
                                       "1e22",
                                       "5e-324",
                                       "9007199254740993e9",
                                       "9223372036854775808",
                                       "9223372036854776000",
                                       "0.10000000000000001",
                                       "00.250",
                                       "12345678901234567e-300",
                                       "-1.7976931348623157E+308"};
    static const char *const lost[] = {"9007199254740993",
                                       "9007199254740993.0",
                                       "18446744073709551615",
                                       "3.14159265358979323846",
                                       "1e-400",
                                       "1.2345678901234e-320",
                                       "-12345678901234567890",
                                       "0.1234567890123456789"};
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        if (!double_keeps_digits(span_of_text(kept[i]), strtod(kept[i], NULL)))
            fail_msg("%s is kept", kept[i]);
    for (size_t i = 0; i < COUNT_OF(lost); i++)
        if (double_keeps_digits(span_of_text(lost[i]), strtod(lost[i], NULL)))
            fail_msg("%s is lost", lost[i]);
    char digits[I64_TEXT_MAX + 1] = {0};
    digits[i64_to_text(digits, INT64_MIN)] = '\0';
    assert_string_equal(digits, "-9223372036854775808");
    digits[u64_to_text(digits, UINT64_MAX)] = '\0';
    assert_string_equal(digits, "18446744073709551615");
    for (uint64_t ten = 1; ten < UINT64_MAX / 10; ten *= 10) { /* where a digit is added */
        char other[U64_TEXT_MAX + 1];
        for (uint64_t near = ten - 1; near <= ten; near++) {
            digits[u64_to_text(digits, near)] = '\0';
            snprintf(other, sizeof other, "%llu", (unsigned long long)near);
            assert_string_equal(digits, other);
        }
    }
}

static void test_hex_numbers(void **state)
{
    (void)state;
    uint64_t value = 1;
    assert_true(hex_u64("00ff00000000000A", 16, &value));
    assert_true(value == 0xff00000000000aULL);
    assert_false(hex_u64("0ff0000000000000A", 17, &value));
    assert_false(hex_u64("", 0, &value));
    assert_false(hex_u64("00ff00000000000g", 16, &value));
    assert_true(value == 0xff00000000000aULL);
}

static void test_hex_at_every_length(void **state)
{
    (void)state;
    uint8_t bytes[64], back[64] = {11};
    char text[2 * sizeof bytes + 1] = "";
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t length = 0; length <= sizeof bytes; length++) {
        hex_encode(text, bytes, length);
        text[2 * length] = '\0';
        assert_int_equal(strspn(text, "0123456789abcdef"), 2 * length);
        assert_true(hex_decode(back, length, text, 2 * length));
        assert_memory_equal(back, bytes, length ? length : 1);
        back[0] = bytes[0];
    }
    bytes[0] = 0x09;
    bytes[1] = 0xaf;
    hex_encode(text, bytes, 2);
    assert_memory_equal(text, "09af", 4);
}

static void check_integer(int64_t number)
{
    char digits[I64_TEXT_MAX + 1] = "", expected[24];
    digits[i64_to_text(digits, number)] = '\0';
    snprintf(expected, sizeof expected, "%lld", (long long)number);
    assert_string_equal(digits, expected);
}

static void test_integers_as_text(void **state)
{
    (void)state;
    for (int64_t i = 0; i < 10000; i++) { /* every four digits, in every place */
        check_integer(i);
        check_integer(i * 10000 + i);
        check_integer(-(i * 1000000000000 + 9999 - i));
    }
    for (int64_t power = 1; power <= INT64_MAX / 10; power *= 10) {
        check_integer(power - 1);
        check_integer(-power);
        check_integer(power * 9 + 1);
    }
    check_integer(INT64_MAX);
    check_integer(INT64_MIN);
}

static void check_base64_decode(void)
{
    static const char *const wrong[] = {
        "A", "AA", "AAA", "A===", "====", "AA=A", "A=AA", "AA A", "AAAA="};
    uint8_t bytes[300], out[300];
    char text[404];
    size_t length;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + 1);
    for (size_t count = 0; count <= sizeof bytes; count++) {
        assert_true(base64_decode(out, text, base64_encode(text, bytes, count), &length));
        assert_int_equal(length, count);
        assert_memory_equal(out, bytes, count);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(base64_decode(out, wrong[i], strlen(wrong[i]), &length));
}

static void test_base64_and_distance(void **state)
{
    (void)state;
    char out[16] = {0};
    out[base64_encode(out, "foob", 4)] = '\0';
    assert_string_equal(out, "Zm9vYg==");
    check_base64_decode();
    assert_int_equal(text_distance("publsh", "publish", 3), 1);
    assert_int_equal(text_distance("abc", "xyz", 2), 3);
    struct text_nearest nearest = text_nearest_to("publsh");
    text_nearest_offer(&nearest, "tables");
    text_nearest_offer(&nearest, "publish");
    text_nearest_offer(&nearest, "pub");
    assert_string_equal(nearest.name, "publish");
}

static void test_cursor_never_reads_past_its_end(void **state)
{
    (void)state;
    uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    struct cursor cursor = cursor_of(bytes, sizeof bytes);
    assert_true(cursor_get_varint(&cursor) == UINT64_MAX && !cursor.failed);
    bytes[9] = 2; /* bit 64 */
    cursor = cursor_of(bytes, sizeof bytes);
    cursor_get_varint(&cursor);
    assert_true(cursor.failed);
    cursor = cursor_of(bytes, 3);
    assert_int_equal(cursor_get_le32(&cursor), 0);
    assert_true(cursor.failed);
}

static void test_buf_reports_its_limit_once(void **state)
{
    (void)state;
    struct error err;
    struct buf buf;
    buf_init(&buf, 10);
    buf_put(&buf, "12345678", 8);
    buf_put(&buf, "9012", 4);
    assert_int_equal(buf.length, 8);
    assert_status(STATUS_LIMIT, buf_status(&buf, "test", &err));
    buf_deinit(&buf);
    buf_init(&buf, 0);
    alloc_fail_after(0);
    buf_put_byte(&buf, 1);
    assert_status(STATUS_NO_MEMORY, buf_status(&buf, "test", &err));
    buf_deinit(&buf);
}

static void test_arena_bound(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 10000);
    assert_non_null(arena_alloc(&arena, 100));
    assert_null(arena_alloc(&arena, 100000));
    assert_null(arena_alloc(&arena, SIZE_MAX - 3));
    assert_string_equal(arena_format(&arena, "%d-%s", 7, "x"), "7-x");
    arena_clear(&arena);
    assert_non_null(arena_alloc(&arena, 4000));
    arena_deinit(&arena);
}

/* A sanitizer sees whether it is freed once. */
static void test_arena_adopts(void **state)
{
    (void)state;
    struct arena arena;
    void *first = mem_alloc(6000), *second = mem_alloc(6000);
    arena_init(&arena, 10000);
    assert_true(arena_adopt(&arena, first, 6000));
    assert_false(arena_adopt(&arena, second, 6000)); /* over the bound */
    arena_clear(&arena);
    assert_true(arena_adopt(&arena, second, 5000));
    assert_null(arena_alloc(&arena, 6000));
    arena_deinit(&arena);
}

static void note_release(void *context)
{
    int **at = context; /* lies in the arena */
    *(*at)++ = 7;
}

static void test_arena_defers(void **state)
{
    (void)state;
    struct arena arena;
    int noted[3] = {0}, *at = noted;
    arena_init(&arena, 0);
    int **place = arena_alloc(&arena, sizeof *place);
    *place = at;
    assert_true(arena_defer(&arena, note_release, place));
    assert_true(arena_defer(&arena, note_release, place));
    assert_int_equal(noted[0], 0);
    arena_deinit(&arena);
    assert_int_equal(noted[1], 7);
    assert_int_equal(noted[2], 0);
    arena_deinit(&arena);
}

static void test_error_messages_keep_their_beginning(void **state)
{
    (void)state;
    struct error err;
    char longer[600];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    error_set(&err, STATUS_CORRUPT, "%s", longer);
    assert_int_equal(error_prefix(&err, "segment %d", 7), STATUS_CORRUPT);
    assert_memory_equal(err.message, "segment 7: xxx", 14);
}

static void test_error_messages_are_one_line(void **state)
{
    (void)state;
    struct error err;
    error_set(&err, STATUS_CORRUPT, "%s", "two\nlines\r\n\x7f");
    assert_string_equal(err.message, "two lines   ");
    error_prefix(&err, "a\nb");
    assert_string_equal(err.message, "a b: two lines   ");
    error_set_errno(&err, 2, "c\td");
    assert_memory_equal(err.message, "c d: ", 5);
}

static void test_dates(void **state)
{
    (void)state;
    static const struct {
        int64_t days;
        struct civil_date date;
    } cases[] = {
        {0, {1970, 1, 1}},         {-1, {1969, 12, 31}},   {11016, {2000, 2, 29}},
        {-719468, {0, 3, 1}},      {-719469, {0, 2, 29}},  {2932896, {9999, 12, 31}},
        {-865626, {-401, 12, 31}}, {19782, {2024, 2, 29}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct civil_date date = civil_from_days(cases[i].days);
        assert_int_equal(date.year, cases[i].date.year);
        assert_int_equal(date.month, cases[i].date.month);
        assert_int_equal(date.day, cases[i].date.day);
        assert_true(civil_is_valid(date));
        assert_int_equal(civil_to_days(date), cases[i].days);
    }
    for (int64_t days = -800000; days < 800000; days += 17)
        assert_int_equal(civil_to_days(civil_from_days(days)), days);
    assert_false(civil_is_valid((struct civil_date){1900, 2, 29}));
    assert_true(civil_is_valid((struct civil_date){2000, 2, 29}));
    assert_false(civil_is_valid((struct civil_date){2000, 13, 1}));
    assert_false(civil_is_valid((struct civil_date){2000, 0, 1}));
    assert_false(civil_is_valid((struct civil_date){2000, 4, 31}));
    assert_false(civil_is_valid((struct civil_date){2000, 4, 0}));
}

/* Whether the next line, or with it the one behind it, is `expected`; NULL: there is none. */
static bool line_is(struct line_reader *lines, bool extends, const char *expected)
{
    struct error err;
    struct span line;
    enum status status =
        extends ? line_reader_extend(lines, &line, &err) : line_reader_next(lines, &line, &err);
    return expected ? status == STATUS_OK && span_equal(line, span_of_text(expected))
                    : status == STATUS_NOT_FOUND;
}

static void test_lines(void **state)
{
    (void)state;
    struct error err;
    struct span line, text = span_of_text("\xef\xbb\xbfone\r\n\nthree\rx\r\nfour\n\r\nsix");
    struct line_reader lines;
    for (size_t block_bytes = 1; block_bytes < 40; block_bytes++) {
        line_reader_init(&lines, byte_source_of_span(&text), block_bytes, 100);
        for (int round = 0; round < 2; round++) {
            assert_true(line_is(&lines, false, "one"));
            assert_true(line_is(&lines, false, ""));
            assert_true(line_is(&lines, false, "three\rx"));
            assert_true(line_is(&lines, true, "three\rx\r\nfour"));
            assert_true(line_is(&lines, true, "three\rx\r\nfour\n"));
            assert_true(line_is(&lines, false, "six"));
            assert_int_equal(lines.number, 6);
            assert_true(line_is(&lines, true, NULL));
            assert_true(line_is(&lines, false, NULL));
            line_reader_rewind(&lines);
        }
        line_reader_deinit(&lines);
    }
    line_reader_init(&lines, byte_source_of_span(&text), 2, 8);
    assert_true(line_is(&lines, false, "one"));
    assert_true(line_is(&lines, true, "one\r\n"));
    assert_status(STATUS_LIMIT, line_reader_extend(&lines, &line, &err));
    assert_string_equal(err.message, "line 3: more than 8 bytes");
    line_reader_deinit(&lines);
}

static void test_files_replace_and_lock(void **state)
{
    (void)state;
    struct error err;
    struct env *env = env_real();
    char dir[] = "/tmp/sluice-unit-XXXXXX", path[PATH_BYTES_MAX], deep[PATH_BYTES_MAX];
    assert_non_null(mkdtemp(dir));
    assert_ok(path_join(path, dir, "file", &err));
    assert_ok(path_join(deep, dir, "a/b/c", &err));
    assert_ok(files_make_dirs(env, deep, &err));
    assert_ok(files_make_dirs(env, deep, &err));
    assert_ok(files_replace(env, path, "one", 3, &err));
    assert_ok(files_replace(env, path, "three", 5, &err));
    struct buf buf;
    buf_init(&buf, 0);
    assert_ok(files_read(env, path, 100, &buf, &err));
    assert_int_equal(buf.length, 5);
    assert_status(STATUS_LIMIT, files_read(env, path, 4, &buf, &err));
    assert_status(STATUS_EXISTS, files_create(env, path, "x", 1, &err));
    struct env_file *first, *second;
    assert_ok(env_open(env, path, ENV_READ | ENV_WRITE, &first, &err));
    assert_ok(env_open(env, path, ENV_READ | ENV_WRITE, &second, &err));
    assert_ok(env_lock_file(first, &err));
    assert_status(STATUS_BUSY, env_lock_file(second, &err));
    env_close(first);
    env_close(second);
    assert_ok(files_remove(env, path, &err));
    assert_ok(files_remove(env, path, &err));
    buf_deinit(&buf);
    char command[PATH_BYTES_MAX + 16];
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

/* What a pipe gives has offsets then; not more of it than is wanted. */
static void test_pipes_are_spooled(void **state)
{
    (void)state;
    char dir[] = "/tmp/sluice_pipe_XXXXXX", path[PATH_BYTES_MAX], command[3 * PATH_BYTES_MAX],
         got[4];
    struct env *env = env_real();
    struct env_file *file;
    struct env_stat stat;
    struct error err;
    size_t bytes;
    assert_non_null(mkdtemp(dir));
    assert_ok(path_join(path, dir, "pipe", &err));
    for (uint64_t bytes_max = 99999; bytes_max <= 100000; bytes_max++) {
        snprintf(command, sizeof command,
                 "rm -f %s; mkfifo %s && (head -c 99997 /dev/zero; printf end) > %s 2> %s.err &",
                 path, path, path, path);
        assert_int_equal(system(command), 0);
        while (env_path_stat(env, path, &stat, &err) != STATUS_OK || !stat.is_pipe)
            env_sleep_ms(env, 1);
        assert_ok(env_open(env, path, ENV_READ, &file, &err));
        if (bytes_max < 100000) {
            assert_status(STATUS_LIMIT, os_file_spool(file, bytes_max, &err));
        } else {
            assert_ok(os_file_spool(file, bytes_max, &err));
            assert_ok(env_file_stat(file, &stat, &err));
            assert_true(!stat.is_pipe && stat.bytes == 100000);
            assert_ok(env_read(file, 99997, got, sizeof got, &bytes, &err));
            assert_true(bytes == 3 && memcmp(got, "end", 3) == 0);
        }
        env_close(file);
        assert_ok(env_remove(env, path, &err));
    }
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_vectors),
        cmocka_unit_test(test_hash128_sum_is_a_group),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_hex_numbers),
        cmocka_unit_test(test_hex_at_every_length),
        cmocka_unit_test(test_integers_as_text),
        cmocka_unit_test(test_base64_and_distance),
        cmocka_unit_test(test_cursor_never_reads_past_its_end),
        cmocka_unit_test(test_buf_reports_its_limit_once),
        cmocka_unit_test(test_arena_bound),
        cmocka_unit_test(test_arena_adopts),
        cmocka_unit_test(test_arena_defers),
        cmocka_unit_test(test_error_messages_keep_their_beginning),
        cmocka_unit_test(test_error_messages_are_one_line),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_files_replace_and_lock),
        cmocka_unit_test(test_pipes_are_spooled),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

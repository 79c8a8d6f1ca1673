/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request for rows says. Everything is bytes from somebody: nothing here trusts it.
 */
#include <stdio.h>

#include "flow/feed/feed_internal.h"

static const uint64_t bytes_default = 4 << 20, bytes_most = 32 << 20;
static const uint64_t rows_default = 65536, rows_most = 1 << 20;

static bool number(struct span text, uint64_t *out_number)
{
    return text.length > 0 && text.length < 21 &&
           parse_u64((const char *)text.data, text.length, out_number);
}

/* Cuts `text` at the first `mark`: what is in front of it, and in `text` what is behind. False:
 * there is none. */
static bool cut(struct span *text, char mark, struct span *out_front)
{
    const uint8_t *at = text->length ? memchr(text->data, mark, text->length) : NULL;
    if (!at)
        return false;
    size_t length = (size_t)(at - text->data);
    *out_front = span_of(text->data, length);
    *text = span_of(at + 1, text->length - length - 1);
    return true;
}

bool cursor_parse(struct span text, struct cursor_text *out)
{
    struct cursor_text cursor = {0};
    struct span log, group, term, seq;
    if (cut(&text, '/', &log)) {
        uint8_t bytes[16];
        if (log.length != LOG_ID_TEXT_BYTES - 1 ||
            !hex_decode(bytes, sizeof bytes, (const char *)log.data, log.length) ||
            !cut(&text, '/', &group) || !cut(&text, '/', &term) || !number(group, &cursor.group) ||
            !number(term, &cursor.term))
            return false;
        memcpy(cursor.log, log.data, log.length);
    }
    cursor.has_index = cut(&text, '.', &seq);
    if (!cursor.has_index)
        seq = text;
    else if (!number(text, &cursor.index) || cursor.index > UINT32_MAX)
        return false;
    if (!number(seq, &cursor.seq) || cursor.seq >= INT64_MAX || (cursor.has_index && !cursor.seq))
        return false;
    *out = cursor;
    return true;
}

bool member_parse(struct span text, uint32_t *out_member, uint32_t *out_count)
{
    struct span front;
    uint64_t member, count;
    if (!cut(&text, '/', &front) || !number(front, &member) || !number(text, &count) ||
        count == 0 || count > WAL_MEMBERS_MAX || member >= count)
        return false;
    *out_member = (uint32_t)member;
    *out_count = (uint32_t)count;
    return true;
}

bool consumer_name_parse(struct span text, char out_name[WAL_CONSUMER_NAME_MAX + 1])
{
    if (text.length == 0 || text.length > WAL_CONSUMER_NAME_MAX)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        uint8_t byte = text.data[i];
        bool is_letter = (byte | 32) >= 'a' && (byte | 32) <= 'z';
        if (!is_letter && !(byte >= '0' && byte <= '9') && byte != '.' && byte != '_' &&
            byte != '-')
            return false;
    }
    memcpy(out_name, text.data, text.length);
    out_name[text.length] = '\0';
    return true;
}

/* ---- the query ---- */

/* Ends with NULL. */
static const char *const row_names[] = {"table",    "after", "max_bytes", "max_rows",    "wait_ms",
                                        "consumer", "owner", "member",    "compression", NULL};
static const char *const entry_names[] = {"table", "after",     "seq", "chain",
                                          "last",  "max_bytes", NULL};

static bool is_known(struct span name, const char *const *names)
{
    for (; *names; names++)
        if (span_equal(name, span_of_text(*names)))
            return true;
    return false;
}

static enum status check_names(struct span query, const char *const *names, struct error *err)
{
    while (query.length) {
        struct span pair, name;
        if (!cut(&query, '&', &pair)) {
            pair = query;
            query.length = 0;
        }
        struct span rest = pair;
        if (!cut(&rest, '=', &name))
            name = pair;
        if (!is_known(name, names))
            return error_set(err, STATUS_INVALID, "unknown parameter %.*s",
                             (int)size_min(name.length, 60), (const char *)name.data);
    }
    return STATUS_OK;
}

static enum status query_number(struct span query, const char *name, uint64_t most,
                                uint64_t *inout_value, struct error *err)
{
    struct span text = http_query_get(query, name);
    if (!text.data)
        return STATUS_OK;
    if (!number(text, inout_value) || *inout_value == 0 || *inout_value > most)
        return error_set(err, STATUS_INVALID, "%s is a number from 1 to %llu", name,
                         (unsigned long long)most);
    return STATUS_OK;
}

static enum status query_text(struct span query, const char *name, char *out, size_t bytes,
                              bool *out_is_there, struct error *err)
{
    *out_is_there = http_query_get(query, name).data;
    out[0] = '\0';
    if (*out_is_there && !http_query_text(query, name, out, bytes))
        return error_set(err, STATUS_INVALID, "%s is empty, or longer than %zu bytes", name,
                         bytes - 1);
    return STATUS_OK;
}

static enum status query_compression(struct span query, struct row_ask *ask, struct error *err)
{
    struct span text = http_query_get(query, "compression");
    if (span_equal(text, span_of_text("lz4")))
        ask->compression = ARROW_LZ4_FRAME;
    else if (span_equal(text, span_of_text("zstd")))
        ask->compression = ARROW_ZSTD;
    else if (text.data && !span_equal(text, span_of_text("none")))
        return error_set(err, STATUS_INVALID, "compression is none, lz4 or zstd");
    return STATUS_OK;
}

/* /v1/log/<group>/<what> */
static enum status path_group(struct span path, const char *what, uint32_t *out_group,
                              struct error *err)
{
    size_t start = strlen("/v1/log/");
    struct span rest = span_of(path.data + start, path.length - start), front;
    uint64_t group;
    if (!cut(&rest, '/', &front) || (what && !span_equal(rest, span_of_text(what))))
        return error_set(err, STATUS_NOT_FOUND, "rows are at /v1/log/GROUP/rows");
    if (!number(front, &group) || group > UINT32_MAX)
        return error_set(err, STATUS_INVALID, "a group is a number");
    *out_group = (uint32_t)group;
    return STATUS_OK;
}

enum status row_ask_parse(const struct http_head *head, struct row_ask *out_ask, struct error *err)
{
    struct row_ask ask = {.bytes_max = bytes_default, .rows_max = rows_default, .member_count = 1};
    struct span query = head->query;
    char after[POSITION_TEXT_BYTES + 16], member[8];
    uint64_t wait_ms = 0;
    bool has_table, has_owner, has_member;
    TRY(path_group(head->path, "rows", &ask.group, err));
    TRY(check_names(query, row_names, err));
    TRY(query_number(query, "max_bytes", bytes_most, &ask.bytes_max, err));
    TRY(query_number(query, "max_rows", rows_most, &ask.rows_max, err));
    if (http_query_get(query, "wait_ms").data &&
        !number(http_query_get(query, "wait_ms"), &wait_ms))
        return error_set(err, STATUS_INVALID, "wait_ms is a number");
    ask.wait_ms = wait_ms < FEED_WAIT_MS_MAX ? wait_ms : FEED_WAIT_MS_MAX;
    TRY(query_compression(query, &ask, err));
    TRY(query_text(query, "table", ask.table, sizeof ask.table, &has_table, err));
    TRY(query_text(query, "consumer", ask.consumer, sizeof ask.consumer, &ask.has_consumer, err));
    TRY(query_text(query, "owner", ask.owner, sizeof ask.owner, &has_owner, err));
    TRY(query_text(query, "after", after, sizeof after, &ask.has_after, err));
    if (ask.has_after && !cursor_parse(span_of_text(after), &ask.after))
        return error_set(err, STATUS_INVALID, "after is a cursor, SEQ or SEQ.INDEX");
    if (ask.after.log[0] && ask.after.group != ask.group)
        return error_set(err, STATUS_INVALID, "the cursor is of group %llu",
                         (unsigned long long)ask.after.group);
    TRY(query_text(query, "member", member, sizeof member, &has_member, err));
    if (has_member && !member_parse(span_of_text(member), &ask.member, &ask.member_count))
        return error_set(err, STATUS_INVALID, "member is I/N, I below N, N up to %d",
                         WAL_MEMBERS_MAX);
    if (ask.has_consumer && !consumer_name_parse(span_of_text(ask.consumer), ask.consumer))
        return error_set(err, STATUS_INVALID, "a consumer's name is up to %d of A-Z a-z 0-9 . _ -",
                         WAL_CONSUMER_NAME_MAX);
    if (!has_table && !ask.has_consumer)
        return error_set(err, STATUS_INVALID, "table or consumer is needed");
    *out_ask = ask;
    return STATUS_OK;
}

/* A number that may be 0. */
static enum status query_place(struct span query, const char *name, uint64_t *inout_value,
                               struct error *err)
{
    struct span text = http_query_get(query, name);
    if (text.data && (!number(text, inout_value) || *inout_value >= INT64_MAX))
        return error_set(err, STATUS_INVALID, "%s is a number", name);
    return STATUS_OK;
}

static enum status query_chain(struct span query, uint64_t *out_chain, struct error *err)
{
    struct span text = http_query_get(query, "chain");
    if (!text.data || hex_u64((const char *)text.data, text.length, out_chain))
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "chain is 16 hex digits");
}

enum status entry_ask_parse(const struct http_head *head, struct entry_ask *out_ask,
                            struct error *err)
{
    struct entry_ask ask = {.bytes_max = bytes_default, .last = INT64_MAX};
    bool has_table;
    TRY(path_group(head->path, NULL, &ask.group, err));
    TRY(check_names(head->query, entry_names, err));
    TRY(query_number(head->query, "max_bytes", bytes_most, &ask.bytes_max, err));
    TRY(query_text(head->query, "table", ask.table, sizeof ask.table, &has_table, err));
    TRY(query_place(head->query, "after", &ask.after.seq, err));
    TRY(query_place(head->query, "seq", &ask.after.seq, err));
    TRY(query_place(head->query, "last", &ask.last, err));
    TRY(query_chain(head->query, &ask.after.chain, err));
    *out_ask = ask;
    return STATUS_OK;
}

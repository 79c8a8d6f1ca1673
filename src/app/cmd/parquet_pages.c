/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice parquet pages: one line a page, in the order of the file's row groups and columns.
 */
#include <inttypes.h>

#include "app/cmd/parquet_internal.h"

struct pages {
    const struct parquet_file *file;
    size_t group;
    uint32_t leaf;
    bool as_json;
    struct row_printer printer;
};

static const char *kind_of(int32_t type)
{
    static const char *const names[] = {"data", "index", "dictionary", "data v2"};
    return type >= 0 && (size_t)type < COUNT_OF(names) ? names[type] : "?";
}

static const char *checksum_of(const struct parquet_page_facts *page)
{
    return !page->has_checksum ? "absent" : page->is_checksum_right ? "ok" : "wrong";
}

static void write_page(struct json_writer *json, const struct pages *pages,
                       const struct parquet_page_facts *page)
{
    const struct parquet_leaf *leaf = &pages->file->leaves[pages->leaf];
    const struct parquet_chunk *chunk = &pages->file->groups[pages->group].chunks[pages->leaf];
    json_write_object_begin(json);
    parquet_write_number(json, "row_group", (int64_t)pages->group);
    parquet_write_text(json, "column", leaf->path);
    parquet_write_text(json, "kind", kind_of(page->type));
    parquet_write_text(json, "encoding",
                       page->encoding < 0 ? "" : parquet_encoding_name(page->encoding));
    parquet_write_text(json, "codec", parquet_codec_name(chunk->codec));
    parquet_write_number(json, "offset", (int64_t)page->offset);
    parquet_write_number(json, "header_bytes", page->header_bytes);
    parquet_write_number(json, "bytes", page->stored_bytes);
    parquet_write_number(json, "plain_bytes", page->plain_bytes);
    parquet_write_number(json, "values", page->values);
    parquet_write_number(json, "first_row", page->first_row);
    parquet_write_number(json, "rows", page->row_count);
    parquet_write_number(json, "nulls", page->null_count);
    if (page->has_bounds) {
        json_write_key(json, "min");
        parquet_write_plain(json, leaf, page->min);
        json_write_key(json, "max");
        parquet_write_plain(json, leaf, page->max);
    }
    parquet_write_text(json, "crc", checksum_of(page));
    json_write_object_end(json);
}

static void put_page(struct buf *out, const struct pages *pages,
                     const struct parquet_page_facts *page)
{
    const struct parquet_leaf *leaf = &pages->file->leaves[pages->leaf];
    const struct parquet_chunk *chunk = &pages->file->groups[pages->group].chunks[pages->leaf];
    buf_format(
        out, "%zu %s %s %s %s at %" PRIu64 ": %" PRId64 " bytes, %d not compressed, %" PRId64 " %s",
        pages->group, leaf->path, kind_of(page->type),
        page->encoding < 0 ? "-" : parquet_encoding_name(page->encoding),
        parquet_codec_name(chunk->codec), page->offset,
        (int64_t)page->header_bytes + page->stored_bytes, (int)page->plain_bytes, page->values,
        page->type == PARQUET_PAGE_DICTIONARY ? "entries" : "values");
    if (page->first_row >= 0)
        buf_format(out, ", from row %" PRId64, page->first_row);
    if (page->null_count >= 0)
        buf_format(out, ", %" PRId64 " nulls", page->null_count);
    if (page->has_bounds) {
        buf_put_text(out, ", ");
        parquet_put_plain(out, leaf, page->min);
        buf_put_text(out, " to ");
        parquet_put_plain(out, leaf, page->max);
    }
    buf_format(out, ", crc %s", checksum_of(page));
}

static enum status print_page(void *context, const struct parquet_page_facts *page,
                              struct error *err)
{
    struct pages *pages = context;
    row_begin(&pages->printer);
    if (pages->as_json)
        write_page(&pages->printer.json, pages, page);
    else
        put_page(&pages->printer.out, pages, page);
    return row_end(&pages->printer, err);
}

enum status parquet_print_pages(const struct parquet_file *file, const char *columns, bool as_json,
                                struct error *err)
{
    struct pages pages = {.file = file, .as_json = as_json};
    struct arena arena;
    bool *is_chosen = NULL;
    arena_init(&arena, 0);
    enum status status = parquet_choose(file, columns, &arena, &is_chosen, err);
    for (pages.group = 0; status == STATUS_OK && pages.group < file->group_count; pages.group++)
        for (pages.leaf = 0; status == STATUS_OK && pages.leaf < file->leaf_count; pages.leaf++)
            if (is_chosen[pages.leaf])
                status = parquet_file_pages(file, pages.group, pages.leaf, print_page, &pages, err);
    arena_deinit(&arena);
    return rows_finish(&pages.printer, status, err);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * avro_read FILE: the records of an Avro container file, one a line; what nests is counted.
 */
#include <inttypes.h>
#include <stdio.h>

#include "format/avro/avro.h"
#include "os/os.h"

static void print_value(const struct avro_value *value)
{
    enum avro_kind kind = value->type->kind;
    if (kind == AVRO_BOOLEAN || kind == AVRO_INT || kind == AVRO_LONG)
        printf("%" PRId64, value->integer);
    else if (kind == AVRO_FLOAT || kind == AVRO_DOUBLE)
        printf("%g", value->real);
    else if (kind == AVRO_STRING)
        printf("%.*s", (int)value->bytes.length, (const char *)value->bytes.data);
    else /* of null there is none */
        printf("(%u)", value->count);
}

static enum status print(const char *path, struct error *err)
{
    struct buf bytes = {0};
    struct arena arena = {0};
    struct avro_reader *reader = NULL;
    struct avro_limits limits = avro_limits_default();
    const struct avro_value *record;
    enum status status;
    TRY_OR_DONE(status, files_read(env_real(), path, UINT32_MAX, &bytes, err));
    TRY_OR_DONE(status,
                avro_reader_create(span_of(bytes.data, bytes.length), &limits, &reader, err));
    while ((status = avro_reader_next(reader, &arena, &record, err)) == STATUS_OK) {
        for (uint32_t i = 0; i < record->count; i++) {
            printf("%s%s=", i ? " " : "", record->type->fields[i].name);
            print_value(&record->items[i]);
        }
        printf("\n");
        arena_clear(&arena); /* the record goes with it */
    }
    if (status == STATUS_NOT_FOUND) /* the end */
        status = STATUS_OK;
done:
    avro_reader_destroy(reader);
    arena_deinit(&arena);
    buf_deinit(&bytes);
    return status;
}

int main(int argc, char **argv)
{
    struct error err = {.message = "usage: avro_read FILE"};
    if (argc == 2 && print(argv[1], &err) == STATUS_OK)
        return 0;
    return fprintf(stderr, "%s\n", err.message), 1;
}

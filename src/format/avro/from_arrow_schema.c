/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow fields as an Avro schema.
 */
#include "format/avro/arrow_internal.h"
#include "format/json/json.h"

struct schema_writer {
    struct json_writer json;
    uint32_t names; /* given to records and fixed types so far: a name may be defined but once */
    struct error *err;
};

static enum status put_type(struct schema_writer *writer, const struct arrow_field *field);

static void put_text(struct json_writer *json, const char *key, const char *text)
{
    json_write_key(json, key);
    json_write_text(json, text);
}

static void put_number(struct json_writer *json, const char *key, int64_t number)
{
    json_write_key(json, key);
    json_write_i64(json, number);
}

static void put_id(struct json_writer *json, const char *key, const struct arrow_field *field)
{
    if (field->field_id)
        put_number(json, key, field->field_id);
}

/* ---- names ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* A name that Avro takes: letters, digits and underscores stay, another byte becomes _xHH, and a
 * digit in front gets an underscore. */
static void put_avro_name(const char *name, struct buf *out)
{
    for (const char *at = name; *at; at++) {
        bool is_digit = *at >= '0' && *at <= '9';
        if (is_digit && at == name)
            buf_put_byte(out, '_');
        if (is_letter(*at) || is_digit)
            buf_put_byte(out, (uint8_t)*at);
        else
            buf_format(out, "_x%02X", (unsigned)(uint8_t)*at);
    }
    if (!*name)
        buf_put_byte(out, '_');
    buf_put_byte(out, '\0');
}

/* ---- types ---- */

static void put_logical(struct json_writer *json, const char *type, const char *logical)
{
    json_write_object_begin(json);
    put_text(json, "type", type);
    put_text(json, "logicalType", logical);
    json_write_object_end(json);
}

static void put_timestamp(struct json_writer *json, const struct arrow_field *field,
                          enum arrow_unit unit)
{
    static const char *const names[][2] = {
        [ARROW_SECONDS] = {"local-timestamp-millis", "timestamp-millis"},
        [ARROW_MILLIS] = {"local-timestamp-millis", "timestamp-millis"},
        [ARROW_MICROS] = {"local-timestamp-micros", "timestamp-micros"},
        [ARROW_NANOS] = {"local-timestamp-nanos", "timestamp-nanos"}};
    json_write_object_begin(json);
    put_text(json, "type", "long");
    put_text(json, "logicalType", names[unit][field->is_instant]);
    json_write_key(json, "adjust-to-utc"); /* Iceberg's word for it */
    json_write_bool(json, field->is_instant);
    json_write_object_end(json);
}

static void put_decimal(struct json_writer *json, int32_t precision, int32_t scale)
{
    json_write_object_begin(json);
    put_text(json, "type", "bytes");
    put_text(json, "logicalType", "decimal");
    put_number(json, "precision", precision);
    put_number(json, "scale", scale);
    json_write_object_end(json);
}

static void put_fixed(struct schema_writer *writer, const struct arrow_field *field)
{
    char name[32];
    struct json_writer *json = &writer->json;
    bool is_uuid = field->origin && field->origin->extension &&
                   strcmp(field->origin->extension, "arrow.uuid") == 0;
    snprintf(name, sizeof name, "fixed%u", ++writer->names);
    json_write_object_begin(json);
    put_text(json, "type", "fixed");
    put_text(json, "name", name);
    put_number(json, "size", field->byte_width);
    if (is_uuid && field->byte_width == sizeof(struct uuid))
        put_text(json, "logicalType", "uuid");
    json_write_object_end(json);
}

static enum status put_original(struct schema_writer *writer, const struct arrow_field *field)
{
    enum { UINT64_DIGITS = 20 };
    const struct arrow_origin *origin = field->origin;
    struct json_writer *json = &writer->json;
    switch (origin->kind) {
    case ARROW_ORIGIN_INT:
        json_write_text(json, "int");
        return STATUS_OK;
    case ARROW_ORIGIN_UINT:
        if (field->byte_width == sizeof(uint64_t))
            put_decimal(json, UINT64_DIGITS, 0);
        else
            json_write_text(json, field->byte_width == sizeof(uint32_t) ? "long" : "int");
        return STATUS_OK;
    case ARROW_ORIGIN_HALF:
        json_write_text(json, "float");
        return STATUS_OK;
    case ARROW_ORIGIN_DECIMAL:
        if (origin->scale < 0)
            break;
        put_decimal(json, origin->precision, origin->scale);
        return STATUS_OK;
    case ARROW_ORIGIN_DATE_MS:
        put_logical(json, "int", "date");
        return STATUS_OK;
    case ARROW_ORIGIN_TIME:
        if (origin->unit == ARROW_NANOS)
            json_write_text(json, "long");
        else
            put_logical(json, origin->unit == ARROW_MICROS ? "long" : "int",
                        origin->unit == ARROW_MICROS ? "time-micros" : "time-millis");
        return STATUS_OK;
    case ARROW_ORIGIN_TIMESTAMP:
        put_timestamp(json, field, origin->unit);
        return STATUS_OK;
    case ARROW_ORIGIN_DURATION:
        json_write_text(json, "long");
        return STATUS_OK;
    case ARROW_ORIGIN_MONTHS:
    case ARROW_ORIGIN_DAY_TIME:
    case ARROW_ORIGIN_MONTH_DAY_NANO:
        break;
    default:
        put_fixed(writer, field);
        return STATUS_OK;
    }
    return error_set(writer->err, STATUS_UNSUPPORTED,
                     "Avro: column %.100s: a type that Avro has no values for", field->name);
}

/* ---- nesting ---- */

static enum status put_field(struct schema_writer *writer, const struct arrow_field *field,
                             const char *name)
{
    struct json_writer *json = &writer->json;
    struct buf avro_name = {0};
    put_avro_name(name, &avro_name);
    if (avro_name.failed)
        return error_set(writer->err, STATUS_NO_MEMORY, "Avro: no memory for a name");
    json_write_object_begin(json);
    put_text(json, "name", (const char *)avro_name.data);
    if (strcmp((const char *)avro_name.data, name) != 0)
        put_text(json, "iceberg-field-name", name);
    buf_deinit(&avro_name);
    json_write_key(json, "type");
    TRY(put_type(writer, field));
    if (field->is_nullable || field->type == ARROW_NULL) {
        json_write_key(json, "default");
        json_write_null(json);
    }
    put_id(json, "field-id", field);
    json_write_object_end(json);
    return STATUS_OK;
}

static enum status put_record(struct schema_writer *writer, const struct arrow_field *fields,
                              uint32_t count, const char *const *names)
{
    char name[32];
    struct json_writer *json = &writer->json;
    if (!names)
        TRY(arrow_fields_check_names(fields, count, writer->err));
    snprintf(name, sizeof name, "record%u", ++writer->names);
    json_write_object_begin(json);
    put_text(json, "type", "record");
    put_text(json, "name", name);
    json_write_key(json, "fields");
    json_write_array_begin(json);
    for (uint32_t i = 0; i < count; i++) {
        TRY(put_field(writer, &fields[i], names ? names[i] : fields[i].name));
    }
    json_write_array_end(json);
    json_write_object_end(json);
    return STATUS_OK;
}

static enum status put_list(struct schema_writer *writer, const struct arrow_field *field)
{
    struct json_writer *json = &writer->json;
    json_write_object_begin(json);
    put_text(json, "type", "array");
    json_write_key(json, "items");
    TRY(put_type(writer, &field->children[0]));
    put_id(json, "element-id", &field->children[0]);
    json_write_object_end(json);
    return STATUS_OK;
}

/* Avro's own maps have text as keys; others are arrays of pairs, as Iceberg has them. */
static enum status put_map(struct schema_writer *writer, const struct arrow_field *field)
{
    static const char *const names[] = {"key", "value"};
    struct json_writer *json = &writer->json;
    bool is_plain = field->children[0].type == ARROW_UTF8;
    json_write_object_begin(json);
    put_text(json, "type", is_plain ? "map" : "array");
    if (!is_plain)
        put_text(json, "logicalType", "map");
    json_write_key(json, is_plain ? "values" : "items");
    TRY(is_plain ? put_type(writer, &field->children[1])
                 : put_record(writer, field->children, 2, names));
    if (is_plain) {
        put_id(json, "key-id", &field->children[0]);
        put_id(json, "value-id", &field->children[1]);
    }
    json_write_object_end(json);
    return STATUS_OK;
}

static enum status put_some(struct schema_writer *writer, const struct arrow_field *field)
{
    static const char *const plain[ARROW_TYPE_COUNT] = {
        [ARROW_NULL] = "null",   [ARROW_BOOL] = "boolean", [ARROW_INT32] = "int",
        [ARROW_INT64] = "long",  [ARROW_FLOAT] = "float",  [ARROW_DOUBLE] = "double",
        [ARROW_UTF8] = "string", [ARROW_BINARY] = "bytes",
    };
    struct json_writer *json = &writer->json;
    if ((unsigned)field->type < ARROW_TYPE_COUNT && plain[field->type]) {
        json_write_text(json, plain[field->type]);
        return STATUS_OK;
    }
    switch (field->type) {
    case ARROW_DATE32:
        put_logical(json, "int", "date");
        return STATUS_OK;
    case ARROW_TIMESTAMP_US:
        put_timestamp(json, field, ARROW_MICROS);
        return STATUS_OK;
    case ARROW_FIXED:
        if (field->origin)
            return put_original(writer, field);
        put_fixed(writer, field);
        return STATUS_OK;
    case ARROW_LIST:
        return put_list(writer, field);
    case ARROW_MAP:
        return put_map(writer, field);
    default:
        return put_record(writer, field->children, field->child_count, NULL);
    }
}

static enum status put_type(struct schema_writer *writer, const struct arrow_field *field)
{
    struct json_writer *json = &writer->json;
    bool is_union = field->is_nullable && field->type != ARROW_NULL;
    if (!is_union)
        return put_some(writer, field);
    json_write_array_begin(json);
    json_write_text(json, "null");
    TRY(put_some(writer, field));
    json_write_array_end(json);
    return STATUS_OK;
}

enum status avro_schema_of(const struct arrow_schema *schema, struct buf *out, struct error *err)
{
    struct schema_writer writer = {.err = err};
    TRY(arrow_schema_check_depth(schema, err));
    json_writer_init(&writer.json, out);
    TRY(put_record(&writer, schema->fields, schema->field_count, NULL));
    return buf_status(out, "an Avro schema", err);
}

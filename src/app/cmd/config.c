/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice config check | show | reference
 */
#include "app/cmd/cmd_internal.h"
#include "format/json/json.h"

static bool is_number(const struct setting_info *info)
{
    return info->kind == SETTING_NUMBER || info->kind == SETTING_BYTES;
}

static void put_quoted(struct buf *out, const struct buf *value)
{
    buf_put_byte(out, '"');
    for (size_t i = 0; i < value->length; i++) {
        if (value->data[i] == '"' || value->data[i] == '\\')
            buf_put_byte(out, '\\');
        buf_put_byte(out, value->data[i]);
    }
    buf_put_byte(out, '"');
}

static void show(const struct settings *settings)
{
    struct buf text = {0}, value = {0};
    const char *section = "";
    for (size_t i = 0; i < settings_count(); i++) {
        const struct setting_info *info = settings_info(i);
        if (strcmp(section, info->section) != 0) {
            section = info->section;
            buf_format(&text, "\n[%s]\n", section);
        }
        buf_format(&text, "%s = ", info->key);
        buf_clear(&value);
        settings_get_text(settings, i, &value);
        if (is_number(info))
            buf_put(&text, value.data, value.length);
        else
            put_quoted(&text, &value);
        buf_put_byte(&text, '\n');
    }
    buf_deinit(&value);
    cmd_print(&text);
}

/* {"otlp.http_port": 4318, ...} */
static void show_json(const struct settings *settings)
{
    struct buf text = {0}, value = {0};
    struct json_writer json;
    json_writer_init(&json, &text);
    json_write_object_begin(&json);
    for (size_t i = 0; i < settings_count(); i++) {
        const struct setting_info *info = settings_info(i);
        buf_clear(&value);
        settings_get_text(settings, i, &value);
        json_write_key(&json, info->name);
        if (is_number(info))
            json_write_raw(&json, value.data, value.length);
        else
            json_write_string(&json, value.data, value.length);
    }
    json_write_object_end(&json);
    buf_put_byte(&text, '\n');
    buf_deinit(&value);
    cmd_print(&text);
}

/* Loading has checked the rest; which warehouses there can be, the store knows. */
static int check(struct invocation *invocation)
{
    struct error err;
    struct store *store = NULL;
    char uri[PATH_BYTES_MAX];
    if (stack_warehouse_uri(&invocation->settings, uri, &err) != STATUS_OK ||
        store_open(invocation->env, uri, &store, &err) != STATUS_OK) {
        error_prefix(&err, "publish.warehouse");
        return cmd_fail(&err);
    }
    store_close(store);
    printf("settings are good\n");
    return 0;
}

int cmd_config(struct invocation *invocation)
{
    const char *what = invocation->argc > 0 ? invocation->argv[0] : "";
    struct buf text = {0};
    bool as_json = cmd_take_flag(invocation, "--json");
    if (!cmd_no_more_words(invocation, 1))
        return 2;
    if (strcmp(what, "check") == 0) {
        return check(invocation);
    } else if (strcmp(what, "show") == 0) {
        (as_json ? show_json : show)(&invocation->settings);
    } else if (strcmp(what, "reference") == 0) {
        settings_print_reference(&text);
        cmd_print(&text);
    } else {
        return cmd_usage("config check, config show or config reference");
    }
    return 0;
}

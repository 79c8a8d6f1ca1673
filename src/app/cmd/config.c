/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice config check | show | reference
 */
#include "app/cmd/cmd_internal.h"

static void show(const struct settings *settings)
{
    struct buf text = {0};
    const char *section = "";
    for (size_t i = 0; i < settings_count(); i++) {
        const struct setting_info *info = settings_info(i);
        bool is_text = info->kind != SETTING_NUMBER && info->kind != SETTING_BYTES;
        if (strcmp(section, info->section) != 0) {
            section = info->section;
            buf_format(&text, "\n[%s]\n", section);
        }
        buf_format(&text, "%s = %s", info->key, is_text ? "\"" : "");
        settings_get_text(settings, i, &text);
        buf_put_text(&text, is_text ? "\"\n" : "\n");
    }
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
    if (!cmd_no_more_words(invocation, 1))
        return 2;
    if (strcmp(what, "check") == 0) {
        return check(invocation);
    } else if (strcmp(what, "show") == 0) {
        show(&invocation->settings);
    } else if (strcmp(what, "reference") == 0) {
        settings_print_reference(&text);
        cmd_print(&text);
    } else {
        return cmd_usage("config check, config show or config reference");
    }
    return 0;
}

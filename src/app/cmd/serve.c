/* SPDX-License-Identifier: Apache-2.0
 *
 * sluice serve: runs until SIGTERM or SIGINT.
 */
#include "app/cmd/cmd_internal.h"

static void wait_for_signal(struct os_poller *poller)
{
    struct os_event events[4];
    while (!os_signal_pending())
        os_poller_wait(poller, 1000, events, COUNT_OF(events));
}

int cmd_serve(struct invocation *invocation)
{
    struct error err;
    struct server *server = NULL;
    struct os_poller *poller = NULL;
    if (!cmd_no_more_words(invocation, 0))
        return 2;
    if (os_poller_create(&poller, &err) != STATUS_OK ||
        os_signals_watch(poller, &err) != STATUS_OK ||
        server_start(invocation->env, &invocation->settings, &server, &err) != STATUS_OK) {
        os_poller_destroy(poller);
        cmd_explain_busy(invocation, &err);
        return cmd_fail(&err);
    }
    if (invocation->settings.source[0])
        log_line(LOG_INFO, "publishing the log at %s, API on %s port %u, data in %s",
                 invocation->settings.source, invocation->settings.listen_address,
                 server_api_port(server), invocation->settings.data_dir);
    else
        log_line(LOG_INFO, "OTLP/HTTP on %s port %u, API on port %u, log on port %u, data in %s",
                 invocation->settings.listen_address, server_otlp_port(server),
                 server_api_port(server), server_log_port(server), invocation->settings.data_dir);
    if (settings_is_elsewhere(&invocation->settings))
        log_line(LOG_INFO, "another server publishes this log: whoever reaches the log port can "
                           "let go of rows");
    wait_for_signal(poller);
    log_line(LOG_INFO, "stopping: answering what has begun, publishing what is there");
    server_stop(server);
    os_poller_destroy(poller);
    log_line(LOG_INFO, "stopped");
    return 0;
}

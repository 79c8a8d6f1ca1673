/* SPDX-License-Identifier: Apache-2.0
 *
 * Kafka's side of B5: rows of one size to one partition, acks=all, through librdkafka. IN_FLIGHT
 * rows are under way at a time; a row counts when the broker has acknowledged it.
 *
 *   bench_kafka PORT IN_FLIGHT ROW_BYTES SECONDS LINGER_MS
 */
#include <librdkafka/rdkafka.h>

#include "latency.h"

struct slot {
    double began;
    struct slot *next;
};

static struct slot *idle;
static struct latency latency;

static _Noreturn void die(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static void delivered(rd_kafka_t *kafka, const rd_kafka_message_t *message, void *context)
{
    struct slot *slot = message->_private;
    UNUSED(kafka);
    UNUSED(context);
    if (message->err)
        die(rd_kafka_err2str(message->err));
    latency_add(&latency, slot->began);
    slot->next = idle;
    idle = slot;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        die(why);
}

static rd_kafka_t *open_producer(const char *port, const char *linger_ms)
{
    char server[32], why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    snprintf(server, sizeof server, "127.0.0.1:%s", port);
    set(conf, "bootstrap.servers", server);
    set(conf, "acks", "all");
    set(conf, "linger.ms", linger_ms);
    set(conf, "message.max.bytes", "8388608");
    set(conf, "batch.size", "8388608");
    set(conf, "queue.buffering.max.messages", "1000000");
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_t *kafka = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (!kafka)
        die(why);
    return kafka;
}

int main(int argc, char **argv)
{
    if (argc != 6)
        die("usage: bench_kafka PORT IN_FLIGHT ROW_BYTES SECONDS LINGER_MS");
    size_t in_flight = strtoul(argv[2], NULL, 10), bytes = strtoul(argv[3], NULL, 10);
    rd_kafka_t *kafka = open_producer(argv[1], argv[5]);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(kafka, "rows", NULL);
    struct slot *slots = mem_alloc_zero(in_flight, sizeof *slots);
    uint8_t *row = mem_alloc(bytes);
    struct random random;
    if (!slots || !row)
        die("out of memory");
    random_init(&random, 1);
    for (size_t i = 0; i < bytes; i++)
        row[i] = (uint8_t)(' ' + random_next(&random) % 64);
    for (size_t i = 0; i < in_flight; i++) {
        slots[i].next = idle;
        idle = &slots[i];
    }
    latency_begin(&latency, strtod(argv[4], NULL));
    while (seconds_now() < latency.end) {
        while (idle) {
            struct slot *slot = idle;
            idle = slot->next;
            slot->began = seconds_now();
            if (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, row, bytes, NULL, 0, slot) != 0)
                die(rd_kafka_err2str(rd_kafka_last_error()));
        }
        rd_kafka_poll(kafka, 100);
    }
    latency_print(&latency, 1);
    return 0;
}

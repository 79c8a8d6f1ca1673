/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call that the log makes on files, each failed in every way that a disk fails, or lied to,
 * once and for good. A log that a killed process left is started, written to, sealed, acknowledged,
 * reclaimed and closed meanwhile; then the power goes, and a start on a good disk tells what is
 * left. What is acknowledged must be there, or named, or the disk lied about the very end.
 *
 * Prints TAP; `--table` prints the table that src/log/wal/README.md has, `--check README` compares.
 */
#include "sim/wal_trials.h"

enum {
    FIRST_RUN = 40,
    ACKNOWLEDGED = 30, /* of those, by their table: may be reclaimed */
    STUCK = 2,         /* rows of a table that takes nothing, in the first segment */
    SECOND_RUN = 50,
    ALL = FIRST_RUN + SECOND_RUN, /* and behind these those of the stuck one */
    ENTRY_BYTES = 3000,
    SITES_MAX = 64,
    PLACES_MAX = 16, /* of one site that a fault is tried at */
    WORDS_MAX = 48,
    FIRST_SEED = 300,
};

/* ---- calls by what they are for ---- */

static const char *const call_words[] = {
    [SIM_OPEN] = "open",     [SIM_READ] = "read",     [SIM_WRITE] = "write",
    [SIM_SYNC] = "sync",     [SIM_ALLOCATE] = "grow", [SIM_RENAME] = "rename",
    [SIM_REMOVE] = "remove", [SIM_LIST] = "list",     [SIM_DIR_SYNC] = "sync of directory",
};

struct site {
    enum sim_call call;
    char name[WORDS_MAX];
    uint64_t count; /* of calls, in a run without faults */
    uint64_t ever;  /* in all of those */
};

static struct site sites[SITES_MAX];
static size_t site_count;

/* The directory below the log's; "log": its own; "parent": what it lies in. */
static void class_of(const char *path, char out[16])
{
    static const char *const directories[] = {"active", "sealed", "committed", "spare", "state"};
    size_t length = strlen(trial_dir);
    snprintf(out, 16, "%s", strlen(path) < length ? "parent" : "log");
    for (size_t i = 0; strlen(path) > length && i < COUNT_OF(directories); i++)
        if (strncmp(path + length + 1, directories[i], strlen(directories[i])) == 0)
            snprintf(out, 16, "%s", directories[i]);
}

static struct site *site_named(const char *name)
{
    for (size_t i = 0; i < site_count; i++)
        if (strcmp(sites[i].name, name) == 0)
            return &sites[i];
    EXPECT(site_count < SITES_MAX);
    snprintf(sites[site_count].name, WORDS_MAX, "%s", name);
    return &sites[site_count++];
}

static struct site *site_of(enum sim_call call, const char *path, const char *to)
{
    char from[16], behind[16], name[WORDS_MAX];
    class_of(path, from);
    class_of(to ? to : path, behind);
    snprintf(name, sizeof name, "%s %s%s%s", call_words[call], from, to ? " to " : "",
             to ? behind : "");
    struct site *site = site_named(name);
    site->call = call;
    return site;
}

/* ---- what goes wrong ---- */

struct fault {
    const char *name;
    enum sim_verdict verdict;
    uint32_t calls; /* bits of the calls that it may befall */
    bool for_good, goes_elsewhere;
};

#define CALL(call) (1u << (call))

static const struct fault faults[] = {
    {"EIO", SIM_FAILS,
     CALL(SIM_OPEN) | CALL(SIM_READ) | CALL(SIM_WRITE) | CALL(SIM_SYNC) | CALL(SIM_RENAME) |
         CALL(SIM_REMOVE) | CALL(SIM_LIST) | CALL(SIM_DIR_SYNC),
     false, false},
    {"EIO from then on", SIM_FAILS,
     CALL(SIM_OPEN) | CALL(SIM_READ) | CALL(SIM_WRITE) | CALL(SIM_RENAME) | CALL(SIM_REMOVE), true,
     false},
    {"ENOSPC", SIM_FULL, CALL(SIM_WRITE) | CALL(SIM_ALLOCATE), false, false},
    {"ENOSPC from then on", SIM_FULL, CALL(SIM_WRITE) | CALL(SIM_ALLOCATE), true, false},
    {"lost", SIM_IGNORED, CALL(SIM_WRITE) | CALL(SIM_SYNC) | CALL(SIM_DIR_SYNC), false, false},
    {"lost from then on", SIM_IGNORED, CALL(SIM_SYNC) | CALL(SIM_DIR_SYNC), true, false},
    {"misdirected within the file", SIM_ASTRAY, CALL(SIM_WRITE), false, false},
    {"misdirected into a sealed segment", SIM_ASTRAY, CALL(SIM_WRITE), false, true},
};

/* ---- one world ---- */

enum outcome {
    WENT_ON = 1 << 0,
    REFUSED = 1 << 1,
    ENDED_74 = 1 << 2,
    NO_START = 1 << 3,
    ALL_THERE = 1 << 4,
    NAMED = 1 << 5,
    CUT = 1 << 6,
    NO_START_AFTER = 1 << 7,
};

struct world {
    const struct site *site;
    const struct fault *fault;
    uint64_t place, seen; /* the call of the site that the fault befalls, from 1; 0: none does */
    struct sim_node *node;
    struct wal_options options;
    bool is_acknowledged[ALL + STUCK + 1];
    bool opened, refused;
    uint64_t compacted;
    char last_words[160];
};

static enum sim_verdict judge(void *context, enum sim_call call, const char *path, const char *to)
{
    struct world *world = context;
    struct site *site = site_of(call, path, to);
    if (!world->place) {
        site->count++;
        site->ever++;
        return SIM_FINE;
    }
    if (site != world->site)
        return SIM_FINE;
    world->seen++;
    bool is_hit =
        world->fault->for_good ? world->seen >= world->place : world->seen == world->place;
    return is_hit ? world->fault->verdict : SIM_FINE;
}

static struct wal_options small_options(void)
{
    struct wal_options options = wal_options_default(trial_dir);
    options.segment_bytes = SEGMENT;
    options.budget_bytes = 64 * SEGMENT;
    options.keep_committed_ms = 0;
    options.keep_committed_percent = 1;
    options.compacted_from_percent = 1;
    options.compacted_below_percent = 60;
    return options;
}

static void append_some(struct world *world, struct wal *wal, uint32_t table, uint64_t from,
                        uint64_t count)
{
    uint64_t seq;
    for (uint64_t number = from; number < from + count; number++) {
        enum status status = append(wal, table, number, ENTRY_BYTES, WAL_SYNCED, &seq);
        world->is_acknowledged[number] = status == STATUS_OK;
        world->refused |= status != STATUS_OK;
        if (status != STATUS_OK)
            env_sleep_ms(sim_node_env(world->node), 300);
    }
}

static void world_main(void *context)
{
    struct world *world = context;
    struct wal *wal;
    uint32_t table;
    struct wal_ack ack = {0};
    if (wal_open(sim_node_env(world->node), &world->options, &wal, &last_error) != STATUS_OK) {
        snprintf(world->last_words, sizeof world->last_words, "%s", last_error.message);
        return;
    }
    world->opened = true;
    if (wal_table_open(wal, "otel.logs", &table, &last_error) == STATUS_OK) {
        append_some(world, wal, table, FIRST_RUN + 1, SECOND_RUN / 2);
        struct wal_scan *scan;
        struct wal_view view;
        uint64_t passed = 0;
        if (wal_scan_open(wal, 0, table, 0, &scan, &last_error) == STATUS_OK) {
            while (passed < ACKNOWLEDGED && wal_scan_next(scan, &view, &last_error) == STATUS_OK) {
                passed++;
                ack.through = ack.committed = (struct wal_position){view.seq, view.chain};
            }
            wal_scan_close(scan);
        }
        if (passed == ACKNOWLEDGED && wal_ack_table(wal, table, &ack, &last_error) != STATUS_OK)
            world->refused = true;
        env_sleep_ms(sim_node_env(world->node), 4000);
        append_some(world, wal, table, FIRST_RUN + 1 + SECOND_RUN / 2, SECOND_RUN / 2);
    }
    world->compacted = wal_usage(wal).segments_compacted;
    wal_close(wal);
}

/* What a start on a good disk finds, after the power was cut. */
struct look {
    struct sim_node *node;
    bool opened, has_damage, is_found[ALL + STUCK + 1];
    uint64_t last_found;
    char last_words[160];
};

static void look_at(struct look *look, const struct wal_view *view)
{
    uint64_t number = get_le64(view->payload.data);
    EXPECT(number >= 1 && number <= ALL + STUCK && !look->is_found[number]);
    EXPECT(view->payload.length == ENTRY_BYTES && is_payload(number, view->payload));
    look->is_found[number] = true;
    if (number <= ALL)
        look->last_found = number;
}

static void look_through(struct look *look, struct wal *wal, const char *name)
{
    struct wal_scan *scan;
    struct wal_view view;
    struct wal_damage damage;
    uint32_t table;
    EXPECT(wal_table_open(wal, name, &table, &last_error) == STATUS_OK);
    uint64_t at = wal_reclaimed_through(wal, 0, table);
    EXPECT(wal_scan_open(wal, 0, table, at, &scan, &last_error) == STATUS_OK);
    for (;;) {
        enum status status = wal_scan_next(scan, &view, &last_error);
        if (status == STATUS_OK) {
            look_at(look, &view);
            at = view.seq;
        } else if (status == STATUS_CORRUPT) {
            look->has_damage = true;
            EXPECT(wal_damage_above(wal, 0, table, at, &damage));
            at = damage.seq_last;
            EXPECT(wal_scan_seek(scan, at, &last_error) == STATUS_OK);
        } else {
            EXPECT(status == STATUS_NOT_FOUND);
            break;
        }
    }
    wal_scan_close(scan);
}

static void look_main(void *context)
{
    struct look *look = context;
    struct wal_options options = small_options();
    struct wal_damage damage;
    struct wal *wal;
    if (wal_open(sim_node_env(look->node), &options, &wal, &last_error) != STATUS_OK) {
        snprintf(look->last_words, sizeof look->last_words, "%s", last_error.message);
        return;
    }
    look->opened = true;
    look_through(look, wal, "otel.logs");
    look_through(look, wal, "otel.stuck");
    look->has_damage |= wal_damage_at(wal, 0, &damage);
    wal_close(wal);
}

static unsigned look_after(struct world *world)
{
    struct look look = {.node = world->node};
    uint64_t missing = 0, last_missing = 0;
    EXPECT(sim_run(world->node, look_main, &look) == SIM_ENDED);
    if (!look.opened) {
        memcpy(world->last_words, look.last_words, sizeof look.last_words);
        return NO_START_AFTER;
    }
    for (uint64_t number = ACKNOWLEDGED + 1; number <= ALL + STUCK; number++) {
        if (!world->is_acknowledged[number] || look.is_found[number])
            continue;
        missing++;
        last_missing = number;
    }
    if (!missing)
        return ALL_THERE;
    if (look.has_damage)
        return NAMED;
    EXPECT(world->fault->verdict == SIM_IGNORED || world->fault->verdict == SIM_ASTRAY);
    EXPECT(last_missing > look.last_found && last_missing <= ALL);
    return CUT;
}

static unsigned run_world(struct world *world, const struct files *files, uint64_t seed)
{
    struct sim *sim = sim_create(seed);
    char victim[128];
    world->node = files_put(sim, files);
    world->options = small_options();
    snprintf(victim, sizeof victim, "%s",
             files_find((struct files *)(uintptr_t)files, "/sealed/", 0)->path);
    for (uint64_t number = 1; number <= ALL + STUCK; number++)
        world->is_acknowledged[number] = number <= FIRST_RUN || number > ALL;
    sim_node_direct(world->node, trial_is_direct);
    sim_node_judge(world->node, judge, world,
                   world->fault && world->fault->goes_elsewhere ? victim : NULL);
    enum sim_end end = sim_run(world->node, world_main, world);
    sim_node_judge(world->node, NULL, NULL, NULL);
    EXPECT(end == SIM_ENDED || (end == SIM_EXITED && sim_exit_code(world->node) == 74));
    unsigned outcome = end == SIM_EXITED ? ENDED_74
                       : !world->opened  ? NO_START
                       : world->refused  ? REFUSED
                                         : WENT_ON;
    sim_power_cut(world->node);
    outcome |= look_after(world);
    sim_destroy(sim);
    return outcome;
}

/* ---- all of them ---- */

static struct files files;
static uint64_t worlds;

static void act_first(struct run *run, struct wal *wal, uint32_t table)
{
    uint32_t stuck;
    uint64_t seq;
    EXPECT(wal_table_open(wal, "otel.stuck", &stuck, &last_error) == STATUS_OK);
    for (uint64_t i = 1; i <= STUCK; i++)
        EXPECT(append(wal, stuck, ALL + i, ENTRY_BYTES, WAL_SYNCED, &seq) == STATUS_OK);
    act_append(run, wal, table);
}

static void make_log(void)
{
    struct sim *sim = sim_create(1);
    struct run run = {.node = sim_node_create(sim, 64 << 20),
                      .act = act_first,
                      .options = small_options(),
                      .first = 1,
                      .count = FIRST_RUN,
                      .bytes = ENTRY_BYTES,
                      .durability = WAL_SYNCED,
                      .leaves_open = true};
    go(&run);
    EXPECT(run.end == SIM_KILLED && run.acknowledged == FIRST_RUN);
    files_take(&files, run.node);
    sim_destroy(sim);
    for (size_t i = 0; i < site_count; i++)
        sites[i].count = 0;
    struct world dry = {0};
    unsigned outcome = run_world(&dry, &files, 2);
    EXPECT(outcome == (WENT_ON | ALL_THERE) && dry.compacted > 0);
}

/* At some of the site's calls, the first and the last among them. */
static unsigned try_fault(const struct site *site, const struct fault *fault)
{
    unsigned outcomes = 0;
    uint64_t places = site->count < PLACES_MAX ? site->count : PLACES_MAX;
    for (uint64_t i = 0; i < places; i++) {
        uint64_t place = places == 1 ? 1 : 1 + i * (site->count - 1) / (places - 1);
        struct world world = {.site = site, .fault = fault, .place = place};
        unsigned outcome = run_world(&world, &files, FIRST_SEED + place);
        worlds++;
        if (getenv("VERBOSE"))
            printf("# %s, %s, %llu of %llu: %x %s\n", site->name, fault->name,
                   (unsigned long long)place, (unsigned long long)site->count, outcome,
                   world.last_words);
        outcomes |= world.seen < place ? 0 : outcome; /* where it befell anything */
    }
    return outcomes;
}

static void put_words(struct buf *out, unsigned outcomes)
{
    static const char *const words[] = {"on",        "refuses", "74",  "no start",
                                        "all there", "named",   "cut", "no start then"};
    const char *comma = "";
    for (unsigned bit = 0; bit < COUNT_OF(words); bit++) {
        if (!(outcomes & (1u << bit)) || (1u << bit) == ALL_THERE)
            continue;
        buf_format(out, "%s%s", comma, words[bit]);
        comma = ", ";
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct site *)a)->name, ((const struct site *)b)->name);
}

/* Both ways to write, where the site is there in both. */
static void make_table(struct buf *out)
{
    static unsigned outcomes[SITES_MAX][COUNT_OF(faults)];
    for (int is_direct = 0; is_direct < 2; is_direct++) {
        trial_is_direct = is_direct;
        make_log();
        for (size_t s = 0; s < site_count; s++)
            for (size_t f = 0; f < COUNT_OF(faults); f++)
                if (faults[f].calls & CALL(sites[s].call))
                    outcomes[s][f] |= try_fault(&sites[s], &faults[f]);
        files_free(&files);
    }
    static struct site sorted[SITES_MAX];
    memcpy(sorted, sites, sizeof sorted);
    qsort(sorted, site_count, sizeof *sorted, by_name);
    buf_put_text(out, "| call |");
    for (size_t f = 0; f < COUNT_OF(faults); f++)
        buf_format(out, " %s |", faults[f].name);
    buf_put_text(out, "\n|---|");
    for (size_t f = 0; f < COUNT_OF(faults); f++)
        buf_put_text(out, "---|");
    for (size_t i = 0; i < site_count; i++) {
        size_t s = (size_t)(site_named(sorted[i].name) - sites);
        if (!sorted[i].ever) /* met on the way of a fault alone */
            continue;
        buf_format(out, "\n| %s |", sorted[i].name);
        for (size_t f = 0; f < COUNT_OF(faults); f++) {
            buf_put_text(out, " ");
            put_words(out, outcomes[s][f]);
            buf_put_text(out, outcomes[s][f] ? " |" : "|");
        }
    }
    buf_put_text(out, "\n");
}

/* Whether the file has the text as it is. */
static bool file_has(const char *path, const char *text)
{
    FILE *file = fopen(path, "r");
    static char all[256 << 10];
    size_t bytes = file ? fread(all, 1, sizeof all - 1, file) : 0;
    if (file)
        fclose(file);
    all[bytes] = '\0';
    return bytes && strstr(all, text);
}

int main(int argc, char **argv)
{
    struct buf table = {0};
    trial = "what a disk does to the log";
    make_table(&table);
    buf_put_byte(&table, '\0');
    const char *text = (const char *)table.data;
    if (argc == 2 && strcmp(argv[1], "--table") == 0) {
        fputs(text, stdout);
    } else if (argc == 3 && strcmp(argv[1], "--check") == 0) {
        bool is_same = file_has(argv[2], text);
        printf("1..2\nok 1 - %s: %zu sites, %llu worlds\n%s 2 - its README says what became of "
               "them (--table prints it)\n",
               trial, site_count, (unsigned long long)worlds, is_same ? "ok" : "not ok");
        buf_deinit(&table);
        return !is_same;
    } else {
        fprintf(stderr, "usage: sim_wal_faults --table | --check README\n");
        return 2;
    }
    buf_deinit(&table);
    return 0;
}

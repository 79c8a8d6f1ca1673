/* SPDX-License-Identifier: Apache-2.0
 *
 * A filter from its text: words, conditions, what joins them.
 */
#include "format/parquet/filter_internal.h"

/* Each term that joins others joins two at least. */
enum { CONDITIONS_MAX = 256, TERMS_MAX = 2 * CONDITIONS_MAX, VALUES_MAX = 4096 };

struct parser {
    const struct parquet_file *file;
    const uint8_t *start;
    uint8_t *copy; /* as long as the text: what a word says lies where the word does */
    struct cursor in;
    struct token token; /* the next one */
    struct arena *arena;
    struct parquet_condition *conditions;
    size_t count;
    struct parquet_term *terms;
    size_t term_count;
    unsigned depth; /* of brackets */
    struct error *err;
};

static enum status fault(const struct parser *parser, size_t at, const char *what)
{
    return error_set(parser->err, STATUS_INVALID, "filter, byte %zu: %s", at, what);
}

static enum status out_of_room(const struct parser *parser)
{
    return error_set(parser->err, STATUS_NO_MEMORY, "filter: no memory");
}

/* ---- words ---- */

static bool is_bare(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '_' || byte == '.' || byte == '-' ||
           byte == '+' || byte >= 0x80;
}

bool token_is(const struct token *token, const char *word)
{
    size_t length = strlen(word);
    if (token->kind == TOKEN_SYMBOL)
        return span_equal(token->text, span_of(word, length));
    if (token->kind != TOKEN_WORD || token->text.length != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((token->text.data[i] | 0x20) != word[i])
            return false;
    return true;
}

/* What stands between two quotes, where a doubled one is one; appended to `out`. */
static enum status take_quoted(struct parser *parser, uint8_t *out, size_t *inout_length)
{
    struct cursor *in = &parser->in;
    size_t at = (size_t)(in->at - parser->start);
    uint8_t quote = cursor_get_byte(in);
    while (cursor_left(in)) {
        uint8_t byte = cursor_get_byte(in);
        if (byte == quote && !(cursor_left(in) && *in->at == quote))
            return STATUS_OK;
        if (byte == quote)
            cursor_take(in, 1);
        out[(*inout_length)++] = byte;
    }
    return fault(parser, at, "a quote that is not closed");
}

/* Bare words and parts in double quotes, with no blank between them. */
static enum status take_word(struct parser *parser, uint8_t *out)
{
    struct cursor *in = &parser->in;
    size_t length = 0;
    parser->token.kind = TOKEN_WORD;
    while (cursor_left(in) && (is_bare(*in->at) || *in->at == '"')) {
        if (*in->at == '"') {
            parser->token.kind = TOKEN_NAME;
            TRY(take_quoted(parser, out, &length));
        } else {
            out[length++] = cursor_get_byte(in);
        }
    }
    parser->token.text = span_of(out, length);
    return STATUS_OK;
}

static enum status take_bytes(struct parser *parser, uint8_t *out)
{
    size_t length = 0;
    cursor_take(&parser->in, 1);
    TRY(take_quoted(parser, out, &length));
    if (length % 2 || !hex_decode(out, length / 2, (const char *)out, length))
        return fault(parser, parser->token.at, "x'...' takes an even number of hex digits");
    parser->token.kind = TOKEN_BYTES;
    parser->token.text = span_of(out, length / 2);
    return STATUS_OK;
}

static enum status take_symbol(struct parser *parser)
{
    static const char *const symbols[] = {"<=", ">=", "!=", "<>", "=", "<", ">", "(", ")", ","};
    for (size_t i = 0; i < COUNT_OF(symbols); i++) {
        size_t length = strlen(symbols[i]);
        if (cursor_left(&parser->in) < length || memcmp(parser->in.at, symbols[i], length) != 0)
            continue;
        parser->token.kind = TOKEN_SYMBOL;
        parser->token.text = span_of(cursor_take(&parser->in, length), length);
        return STATUS_OK;
    }
    return fault(parser, parser->token.at, "neither a name, a value nor an operator");
}

static enum status advance(struct parser *parser)
{
    struct cursor *in = &parser->in;
    size_t length = 0;
    while (cursor_left(in) && (*in->at == ' ' || *in->at == '\t' || *in->at == '\n'))
        in->at++;
    parser->token = (struct token){.at = (size_t)(in->at - parser->start)};
    if (!cursor_left(in))
        return STATUS_OK;
    bool is_hex = (*in->at | 0x20) == 'x' && cursor_left(in) > 1 && in->at[1] == '\'';
    if (*in->at != '\'' && *in->at != '"' && !is_bare(*in->at))
        return take_symbol(parser);
    uint8_t *out = parser->copy + parser->token.at;
    if (is_hex)
        return take_bytes(parser, out);
    if (*in->at != '\'')
        return take_word(parser, out);
    TRY(take_quoted(parser, out, &length));
    parser->token.kind = TOKEN_TEXT;
    parser->token.text = span_of(out, length);
    return STATUS_OK;
}

/* Steps over the token if it is this one. */
static enum status accept(struct parser *parser, const char *word, bool *out_is_it)
{
    *out_is_it = token_is(&parser->token, word);
    return *out_is_it ? advance(parser) : STATUS_OK;
}

static enum status expect(struct parser *parser, const char *word)
{
    bool is_it;
    size_t at = parser->token.at;
    TRY(accept(parser, word, &is_it));
    if (!is_it)
        return error_set(parser->err, STATUS_INVALID, "filter, byte %zu: %s is missing", at, word);
    return STATUS_OK;
}

/* ---- conditions ---- */

static enum status parse_value(struct parser *parser, uint32_t leaf,
                               struct parquet_value *out_value)
{
    const struct parquet_leaf *column = &parser->file->leaves[leaf];
    const char *why = NULL;
    if (token_is(&parser->token, "null"))
        return fault(parser, parser->token.at, "nothing equals null: write is null");
    if (!literal_read(column, &parser->token, parser->arena, out_value, &why))
        return error_set(parser->err, STATUS_INVALID, "filter, byte %zu: column %.100s wants %s",
                         parser->token.at, column->path, why);
    return advance(parser);
}

static enum status parse_list(struct parser *parser, struct parquet_condition *condition)
{
    struct parquet_value *values = NULL;
    size_t room = 0;
    bool has_more = true;
    TRY(expect(parser, "("));
    while (has_more) {
        if (condition->value_count == VALUES_MAX)
            return fault(parser, parser->token.at, "more values than a list may have");
        if (condition->value_count == room) {
            size_t larger = room ? room * 2 : 8;
            struct parquet_value *more = arena_alloc(parser->arena, larger * sizeof *more);
            if (!more)
                return out_of_room(parser);
            if (room)
                memcpy(more, values, room * sizeof *more);
            values = more;
            room = larger;
        }
        TRY(parse_value(parser, condition->leaf, &values[condition->value_count++]));
        TRY(accept(parser, ",", &has_more));
    }
    condition->values = values;
    return expect(parser, ")");
}

static enum status parse_is(struct parser *parser, struct parquet_condition *condition)
{
    bool is_not;
    TRY(accept(parser, "not", &is_not));
    condition->op = is_not ? PARQUET_IS_NOT_NULL : PARQUET_IS_NULL;
    return expect(parser, "null");
}

static enum status parse_comparison(struct parser *parser, struct parquet_condition *condition)
{
    static const struct {
        const char *text;
        enum parquet_operator op;
    } operators[] = {
        {"=", PARQUET_EQUAL},          {"!=", PARQUET_NOT_EQUAL},  {"<>", PARQUET_NOT_EQUAL},
        {"<", PARQUET_LESS},           {"<=", PARQUET_LESS_EQUAL}, {">", PARQUET_GREATER},
        {">=", PARQUET_GREATER_EQUAL},
    };
    for (size_t i = 0; i < COUNT_OF(operators); i++) {
        if (!token_is(&parser->token, operators[i].text))
            continue;
        struct parquet_value *value = arena_alloc(parser->arena, sizeof *value);
        if (!value)
            return out_of_room(parser);
        TRY(advance(parser));
        TRY(parse_value(parser, condition->leaf, value));
        condition->op = operators[i].op;
        condition->values = value;
        condition->value_count = 1;
        return STATUS_OK;
    }
    return fault(parser, parser->token.at, "an operator is missing: =, !=, <, <=, >, >=, is, in");
}

static enum status parse_condition(struct parser *parser)
{
    struct parquet_condition condition = {.leaf = 0};
    struct token name = parser->token;
    bool is_it;
    if (name.kind != TOKEN_WORD && name.kind != TOKEN_NAME)
        return fault(parser, name.at, "the name of a column is missing");
    if (parquet_filter_leaf(parser->file, name.text, &condition.leaf, parser->err) != STATUS_OK)
        return error_prefix(parser->err, "filter, byte %zu", name.at);
    TRY(advance(parser));
    TRY(accept(parser, "is", &is_it));
    if (is_it) {
        TRY(parse_is(parser, &condition));
    } else {
        TRY(accept(parser, "in", &is_it));
        if (is_it) {
            condition.op = PARQUET_IN;
            TRY(parse_list(parser, &condition));
        } else {
            TRY(parse_comparison(parser, &condition));
        }
    }
    if (parser->count == CONDITIONS_MAX)
        return fault(parser, name.at, "more conditions than a filter may have");
    parser->terms[parser->term_count++] =
        (struct parquet_term){PARQUET_TERM_CONDITION, (uint32_t)parser->count};
    parser->conditions[parser->count++] = condition;
    return STATUS_OK;
}

/* ---- what joins them ---- */

static enum status parse_or(struct parser *parser);

static enum status parse_factor(struct parser *parser)
{
    bool is_it;
    size_t at = parser->token.at;
    TRY(accept(parser, "(", &is_it));
    if (!is_it)
        return parse_condition(parser);
    if (++parser->depth >= FILTER_DEPTH_MAX / 2) /* a bracket may hold an OR with an AND in it */
        return fault(parser, at, "brackets too deep");
    TRY(parse_or(parser));
    parser->depth--;
    return expect(parser, ")");
}

/* One or more of what `parse` parses, with `word` between them; where there are more, a term that
 * joins them goes before them. */
static enum status parse_joined(struct parser *parser, enum status (*parse)(struct parser *),
                                const char *word, enum parquet_term_kind kind)
{
    size_t first = parser->term_count;
    uint32_t joined = 0;
    bool has_more = true;
    while (has_more) {
        TRY(parse(parser));
        joined++;
        TRY(accept(parser, word, &has_more));
    }
    if (joined == 1)
        return STATUS_OK;
    memmove(&parser->terms[first + 1], &parser->terms[first],
            (parser->term_count - first) * sizeof *parser->terms);
    parser->terms[first] = (struct parquet_term){kind, joined};
    parser->term_count++;
    return STATUS_OK;
}

static enum status parse_and(struct parser *parser)
{
    return parse_joined(parser, parse_factor, "and", PARQUET_TERM_AND);
}

static enum status parse_or(struct parser *parser)
{
    return parse_joined(parser, parse_and, "or", PARQUET_TERM_OR);
}

enum status parquet_filter_parse(const char *text, const struct parquet_file *file,
                                 struct arena *arena, struct parquet_filter *out_filter,
                                 struct error *err)
{
    struct parser parser = {.file = file,
                            .start = (const uint8_t *)text,
                            .in = cursor_of(text, strlen(text)),
                            .arena = arena,
                            .err = err};
    parser.conditions = arena_alloc(arena, CONDITIONS_MAX * sizeof *parser.conditions);
    parser.terms = arena_alloc(arena, TERMS_MAX * sizeof *parser.terms);
    parser.copy = arena_alloc(arena, strlen(text) + 1);
    if (!parser.conditions || !parser.terms || !parser.copy)
        return out_of_room(&parser);
    TRY(advance(&parser));
    TRY(parse_or(&parser));
    if (parser.token.kind != TOKEN_END)
        return fault(&parser, parser.token.at, "\"and\", \"or\" or the end is missing");
    *out_filter = (struct parquet_filter){.conditions = parser.conditions,
                                          .count = parser.count,
                                          .terms = parser.terms,
                                          .term_count = parser.term_count};
    return STATUS_OK;
}

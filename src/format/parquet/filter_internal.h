/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters as text: filter_parse.c has words and conditions, filter_literal.c what a literal means
 * in a column.
 */
#ifndef SLUICE_FORMAT_PARQUET_FILTER_INTERNAL_H
#define SLUICE_FORMAT_PARQUET_FILTER_INTERNAL_H

#include "format/parquet/prune_internal.h"

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,   /* bare: a name, a keyword, a number */
    TOKEN_NAME,   /* with a part in double quotes */
    TOKEN_TEXT,   /* in single quotes */
    TOKEN_BYTES,  /* x'...', decoded */
    TOKEN_SYMBOL, /* an operator, a bracket, a comma */
};

struct token {
    enum token_kind kind;
    struct span text; /* without quotes */
    size_t at;        /* byte of the filter */
};

bool token_is(const struct token *token, const char *word); /* a keyword, of either case */

/* What the token is in a column of this leaf; `out_why`, where it is none: a text for the user.
 * Bytes are owned by `arena` or are the token's. */
bool literal_read(const struct parquet_leaf *leaf, const struct token *token, struct arena *arena,
                  struct parquet_value *out_value, const char **out_why);

#endif

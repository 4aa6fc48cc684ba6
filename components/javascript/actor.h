/* What the life of an actor in JavaScript and its imports know of each other. */

#ifndef STROWGER_ACTOR_H
#define STROWGER_ACTOR_H

#include <stddef.h>
#include <stdint.h>

#include "quickjs.h"

/* Octets for the host: those of a text, or of what holds octets. */
struct octets {
    const uint8_t *at;
    size_t length;
    /* The text to free, if it is one. */
    const char *text;
};

/* Gives the octets of a text, a Uint8Array or an ArrayBuffer; else throws. */
int octets_of(JSContext *ctx, JSValueConst value, struct octets *octets);
void free_octets(JSContext *ctx, struct octets *octets);

/* Throws a Refusal: what was not done, and why, if the host said so. */
JSValue refuse(JSContext *ctx, const char *what, const char *reason);

/* The modules `strowger:...` that the source imports; NULL for any other name. */
JSModuleDef *import_of(JSContext *ctx, const char *name);

/* The time in microseconds since 1970, if the clock is imported; else 0. */
double wall_of_host(void);

/* Whether it runs on a host, rather than where it is built. */
extern int lives;

#endif

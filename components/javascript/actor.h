/* Declarations shared by the actor and the imports of a component in JavaScript. */

#ifndef STROWGER_ACTOR_H
#define STROWGER_ACTOR_H

#include <stddef.h>
#include <stdint.h>

#include "quickjs.h"

/* Bytes for the host: those of a string, a Uint8Array or an ArrayBuffer. */
struct bytes {
    const uint8_t *at;
    size_t length;
    /* The string to free, if the bytes are those of a string. */
    const char *text;
};

/* Gets the bytes of a string, a Uint8Array or an ArrayBuffer. Throws and returns -1 for others. */
int bytes_of(JSContext *ctx, JSValueConst value, struct bytes *bytes);
void free_bytes(JSContext *ctx, struct bytes *bytes);

/* Throws a Refusal with the failed operation and the reason, which may be NULL. */
JSValue refuse(JSContext *ctx, const char *what, const char *reason);

/* Returns the module `strowger:...` of this name; NULL for any other name. */
JSModuleDef *import_of(JSContext *ctx, const char *name);

/* Returns the microseconds since 1970 if the clock is imported, otherwise 0. */
double wall_of_host(void);

/* 1 on a host, 0 while the component is built. */
extern int lives;

#endif

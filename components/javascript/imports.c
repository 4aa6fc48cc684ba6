/* The imports of an actor in JavaScript: a module `strowger:NAME` for each interface of
 * `wit/component.wit`. Only those that the source imports are compiled. */

#include <stdlib.h>
#include <string.h>

#include "actor.h"

#define FROM(interface, name)                                                                      \
    __attribute__((import_module("strowger:component/" interface "@0.1.0"), import_name(name)))
#define UNUSED __attribute__((unused))

/* The memory to which the host writes results; aligned for all of them. */
static uint64_t back[4];
#define BYTE(at) (((const uint8_t *)back)[at])
#define WORD(at) (((const uint32_t *)back)[(at) / 4])

static const char *const reasons[] = {"denied", "unknown", "full",   "closed", "rate",
                                      "limit",  "late",    "failed", "ring"};

/* Throws a Refusal with the reason that the host returned. */
UNUSED static JSValue not_done(JSContext *ctx, const char *what, uint8_t reason) {
    const char *word = reason < sizeof reasons / sizeof *reasons ? reasons[reason] : "unknown";
    char text[64];
    size_t length = strlen(what);
    memcpy(text, what, length);
    memcpy(text + length, ": ", 2);
    strcpy(text + length + 2, word);
    return refuse(ctx, text, word);
}

/* Returns a list<u8> of the host; takes it. */
UNUSED static JSValue array_back(JSContext *ctx, size_t at) {
    uint8_t *bytes = (uint8_t *)WORD(at);
    size_t length = WORD(at + 4);
    JSValue array = JS_NewUint8ArrayCopy(ctx, bytes, length);
    if (length)
        free(bytes);
    return array;
}

UNUSED static JSValue text_back(JSContext *ctx, const char *bytes, size_t length) {
    JSValue text = JS_NewStringLen(ctx, bytes, length);
    if (length)
        free((void *)bytes);
    return text;
}

/* list<string> */
UNUSED static JSValue list_back(JSContext *ctx, size_t at) {
    struct entry {
        const char *bytes;
        size_t length;
    } *entries = (struct entry *)WORD(at);
    size_t count = WORD(at + 4);
    JSValue list = JS_NewArray(ctx);
    for (size_t i = 0; i < count; i++)
        JS_SetPropertyUint32(ctx, list, i, text_back(ctx, entries[i].bytes, entries[i].length));
    if (count)
        free(entries);
    return list;
}

/* A function of a module, with its arguments. */
#define FUNCTION(name)                                                                             \
    static JSValue name(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
#define BEGIN (void)this, (void)argc
#define TEXT(name, index)                                                                          \
    size_t name##_length;                                                                          \
    const char *name = JS_ToCStringLen(ctx, &name##_length, argv[index]);                          \
    if (!name)                                                                                     \
        return JS_EXCEPTION
#define BYTES(name, index)                                                                        \
    struct bytes name;                                                                            \
    if (bytes_of(ctx, argv[index], &name) < 0)                                                    \
        return JS_EXCEPTION
#define HANDLE(name, index)                                                                        \
    uint64_t name;                                                                                 \
    if (JS_ToBigUint64(ctx, &name, argv[index]) < 0)                                               \
        return JS_EXCEPTION
/* A number of bytes, entries or milliseconds, up to a maximum. */
#define UP_TO(name, index, most)                                                                   \
    int64_t name;                                                                                  \
    if (JS_ToInt64Ext(ctx, &name, argv[index]) < 0)                                                \
        return JS_EXCEPTION;                                                                       \
    if (name < 0 || name > (most))                                                                 \
        return JS_ThrowRangeError(ctx, "%s: %lld", #name, (long long)name)
#define NUMBER(name, index) UP_TO(name, index, INT64_MAX)
#define COUNT(name, index) UP_TO(name, index, UINT32_MAX)

#ifdef WITH_messaging
FROM("messaging", "resolve") extern void host_resolve(const char *, size_t, void *);
FROM("messaging", "release") extern void host_release(uint64_t, void *);
FROM("messaging", "send") extern void host_send(uint64_t, const uint8_t *, size_t, void *);
FROM("messaging", "ask") extern void host_ask(uint64_t, const uint8_t *, size_t, void *);
FROM("messaging", "topic") extern void host_topic(const char *, size_t, void *);
FROM("messaging", "publish") extern void host_publish(uint64_t, const uint8_t *, size_t, void *);
FROM("messaging", "subscribe") extern void host_subscribe(const char *, size_t, void *);
FROM("messaging", "after") extern void host_after(uint64_t, const uint8_t *, size_t, void *);

/* A handle or a token. */
static JSValue number_back(JSContext *ctx, const char *what) {
    return BYTE(0) ? not_done(ctx, what, BYTE(8)) : JS_NewBigUint64(ctx, back[1]);
}

#define NAMED(function)                                                                            \
    FUNCTION(function) {                                                                           \
        BEGIN;                                                                                     \
        TEXT(name, 0);                                                                             \
        host_##function(name, name_length, back);                                                  \
        JS_FreeCString(ctx, name);                                                                 \
        return number_back(ctx, #function);                                                        \
    }
NAMED(resolve)
NAMED(topic)
NAMED(subscribe)

FUNCTION(release) {
    BEGIN;
    HANDLE(handle, 0);
    host_release(handle, back);
    return BYTE(0) ? not_done(ctx, "release", BYTE(1)) : JS_UNDEFINED;
}

FUNCTION(send) {
    BEGIN;
    HANDLE(target, 0);
    BYTES(payload, 1);
    host_send(target, payload.at, payload.length, back);
    free_bytes(ctx, &payload);
    return BYTE(0) ? not_done(ctx, "send", BYTE(1)) : JS_UNDEFINED;
}

FUNCTION(ask) {
    BEGIN;
    HANDLE(target, 0);
    BYTES(payload, 1);
    host_ask(target, payload.at, payload.length, back);
    free_bytes(ctx, &payload);
    return number_back(ctx, "ask");
}

FUNCTION(publish) {
    BEGIN;
    HANDLE(topic, 0);
    BYTES(payload, 1);
    host_publish(topic, payload.at, payload.length, back);
    free_bytes(ctx, &payload);
    return BYTE(0) ? not_done(ctx, "publish", BYTE(4)) : JS_NewUint32(ctx, WORD(4));
}

FUNCTION(after) {
    BEGIN;
    NUMBER(milliseconds, 0);
    BYTES(payload, 1);
    host_after((uint64_t)milliseconds, payload.at, payload.length, back);
    free_bytes(ctx, &payload);
    return number_back(ctx, "after");
}

static const JSCFunctionListEntry messaging[] = {
    JS_CFUNC_DEF("resolve", 1, resolve),     JS_CFUNC_DEF("release", 1, release),
    JS_CFUNC_DEF("send", 2, send),           JS_CFUNC_DEF("ask", 2, ask),
    JS_CFUNC_DEF("topic", 1, topic),         JS_CFUNC_DEF("publish", 2, publish),
    JS_CFUNC_DEF("subscribe", 1, subscribe), JS_CFUNC_DEF("after", 2, after),
};
#endif

#ifdef WITH_rpc
FROM("rpc", "request") extern void host_request(uint64_t, const uint8_t *, size_t, void *);

FUNCTION(request) {
    BEGIN;
    HANDLE(target, 0);
    BYTES(payload, 1);
    host_request(target, payload.at, payload.length, back);
    free_bytes(ctx, &payload);
    return BYTE(0) ? not_done(ctx, "request", BYTE(4)) : array_back(ctx, 4);
}

static const JSCFunctionListEntry rpc[] = {JS_CFUNC_DEF("request", 2, request)};
#endif

#ifdef WITH_streams
FROM("streams", "open") extern void host_open(uint64_t, const uint8_t *, size_t, void *);
FROM("streams", "close") extern void host_close(uint64_t, void *);
FROM("streams", "send") extern void host_send_item(uint64_t, const uint8_t *, size_t, void *);
FROM("streams", "finish") extern void host_finish(uint64_t, void *);

FUNCTION(open_stream) {
    BEGIN;
    HANDLE(target, 0);
    BYTES(payload, 1);
    host_open(target, payload.at, payload.length, back);
    free_bytes(ctx, &payload);
    return BYTE(0) ? not_done(ctx, "open", BYTE(8)) : JS_NewBigUint64(ctx, back[1]);
}

FUNCTION(close_stream) {
    BEGIN;
    HANDLE(token, 0);
    host_close(token, back);
    return BYTE(0) ? not_done(ctx, "close", BYTE(1)) : JS_UNDEFINED;
}

FUNCTION(send_item) {
    BEGIN;
    HANDLE(token, 0);
    BYTES(payload, 1);
    host_send_item(token, payload.at, payload.length, back);
    free_bytes(ctx, &payload);
    return BYTE(0) ? not_done(ctx, "send", BYTE(1)) : JS_UNDEFINED;
}

FUNCTION(finish) {
    BEGIN;
    HANDLE(token, 0);
    host_finish(token, back);
    return BYTE(0) ? not_done(ctx, "finish", BYTE(1)) : JS_UNDEFINED;
}

static const JSCFunctionListEntry streams[] = {
    JS_CFUNC_DEF("open", 2, open_stream),
    JS_CFUNC_DEF("close", 1, close_stream),
    JS_CFUNC_DEF("send", 2, send_item),
    JS_CFUNC_DEF("finish", 1, finish),
};
#endif

#ifdef WITH_kv
FROM("kv", "get") extern void host_kv_get(const char *, size_t, void *);
FROM("kv", "set") extern void host_kv_set(const char *, size_t, const uint8_t *, size_t, void *);
FROM("kv", "swap")
extern void host_kv_swap(const char *, size_t, uint32_t, const uint8_t *, size_t, uint32_t,
                         const uint8_t *, size_t, void *);
FROM("kv", "remove") extern void host_kv_remove(const char *, size_t, void *);
FROM("kv", "keys")
extern void host_kv_keys(const char *, size_t, const char *, size_t, uint32_t, void *);

FUNCTION(kv_get) {
    BEGIN;
    TEXT(key, 0);
    host_kv_get(key, key_length, back);
    JS_FreeCString(ctx, key);
    if (BYTE(0))
        return not_done(ctx, "get", BYTE(4));
    return BYTE(4) ? array_back(ctx, 8) : JS_UNDEFINED;
}

FUNCTION(kv_set) {
    BEGIN;
    BYTES(value, 1);
    TEXT(key, 0);
    host_kv_set(key, key_length, value.at, value.length, back);
    JS_FreeCString(ctx, key);
    free_bytes(ctx, &value);
    return BYTE(0) ? not_done(ctx, "set", BYTE(1)) : JS_UNDEFINED;
}

/* swap(key, expected, value); undefined is no value. */
FUNCTION(kv_swap) {
    BEGIN;
    struct bytes expected = {0}, value = {0};
    int was = !JS_IsUndefined(argv[1]), will = !JS_IsUndefined(argv[2]);
    if (was && bytes_of(ctx, argv[1], &expected) < 0)
        return JS_EXCEPTION;
    if (will && bytes_of(ctx, argv[2], &value) < 0)
        return JS_EXCEPTION;
    TEXT(key, 0);
    host_kv_swap(key, key_length, was, expected.at, expected.length, will, value.at, value.length,
                 back);
    JS_FreeCString(ctx, key);
    free_bytes(ctx, &expected);
    free_bytes(ctx, &value);
    return BYTE(0) ? not_done(ctx, "swap", BYTE(1)) : JS_NewBool(ctx, BYTE(1));
}

FUNCTION(kv_remove) {
    BEGIN;
    TEXT(key, 0);
    host_kv_remove(key, key_length, back);
    JS_FreeCString(ctx, key);
    return BYTE(0) ? not_done(ctx, "remove", BYTE(1)) : JS_NewBool(ctx, BYTE(1));
}

FUNCTION(kv_keys) {
    BEGIN;
    COUNT(most, 2);
    TEXT(prefix, 0);
    TEXT(after, 1);
    host_kv_keys(prefix, prefix_length, after, after_length, (uint32_t)most, back);
    JS_FreeCString(ctx, prefix);
    JS_FreeCString(ctx, after);
    return BYTE(0) ? not_done(ctx, "keys", BYTE(4)) : list_back(ctx, 4);
}

static const JSCFunctionListEntry kv[] = {
    JS_CFUNC_DEF("get", 1, kv_get),       JS_CFUNC_DEF("set", 2, kv_set),
    JS_CFUNC_DEF("swap", 3, kv_swap),     JS_CFUNC_DEF("remove", 1, kv_remove),
    JS_CFUNC_DEF("keys", 3, kv_keys),
};
#endif

#ifdef WITH_files
FROM("files", "read")
extern void host_read(const char *, size_t, const char *, size_t, uint64_t, uint32_t, void *);
FROM("files", "size") extern void host_size(const char *, size_t, const char *, size_t, void *);
FROM("files", "write")
extern void host_write(const char *, size_t, const char *, size_t, uint64_t, const uint8_t *,
                       size_t, void *);
FROM("files", "resize")
extern void host_resize(const char *, size_t, const char *, size_t, uint64_t, void *);
FROM("files", "remove")
extern void host_remove(const char *, size_t, const char *, size_t, void *);
FROM("files", "names")
extern void host_names(const char *, size_t, const char *, size_t, const char *, size_t, uint32_t,
                       void *);

/* The first two arguments of each: the root and the path. */
#define PLACE                                                                                      \
    TEXT(root, 0);                                                                                 \
    TEXT(path, 1)
#define FREE_PLACE (JS_FreeCString(ctx, root), JS_FreeCString(ctx, path))

FUNCTION(read_file) {
    BEGIN;
    NUMBER(offset, 2);
    COUNT(count, 3);
    PLACE;
    host_read(root, root_length, path, path_length, (uint64_t)offset, (uint32_t)count, back);
    FREE_PLACE;
    return BYTE(0) ? not_done(ctx, "read", BYTE(4)) : array_back(ctx, 4);
}

FUNCTION(size_of_file) {
    BEGIN;
    PLACE;
    host_size(root, root_length, path, path_length, back);
    FREE_PLACE;
    return BYTE(0) ? not_done(ctx, "size", BYTE(8)) : JS_NewInt64(ctx, (int64_t)back[1]);
}

FUNCTION(write_file) {
    BEGIN;
    NUMBER(offset, 2);
    BYTES(bytes, 3);
    PLACE;
    host_write(root, root_length, path, path_length, (uint64_t)offset, bytes.at, bytes.length,
               back);
    FREE_PLACE;
    free_bytes(ctx, &bytes);
    return BYTE(0) ? not_done(ctx, "write", BYTE(1)) : JS_UNDEFINED;
}

FUNCTION(resize_file) {
    BEGIN;
    NUMBER(size, 2);
    PLACE;
    host_resize(root, root_length, path, path_length, (uint64_t)size, back);
    FREE_PLACE;
    return BYTE(0) ? not_done(ctx, "resize", BYTE(1)) : JS_UNDEFINED;
}

FUNCTION(remove_file) {
    BEGIN;
    PLACE;
    host_remove(root, root_length, path, path_length, back);
    FREE_PLACE;
    return BYTE(0) ? not_done(ctx, "remove", BYTE(1)) : JS_UNDEFINED;
}

FUNCTION(names_of_files) {
    BEGIN;
    COUNT(most, 3);
    PLACE;
    TEXT(after, 2);
    host_names(root, root_length, path, path_length, after, after_length, (uint32_t)most, back);
    FREE_PLACE;
    JS_FreeCString(ctx, after);
    return BYTE(0) ? not_done(ctx, "names", BYTE(4)) : list_back(ctx, 4);
}

static const JSCFunctionListEntry files[] = {
    JS_CFUNC_DEF("read", 4, read_file),     JS_CFUNC_DEF("size", 2, size_of_file),
    JS_CFUNC_DEF("write", 4, write_file),   JS_CFUNC_DEF("resize", 3, resize_file),
    JS_CFUNC_DEF("remove", 2, remove_file), JS_CFUNC_DEF("names", 4, names_of_files),
};
#endif

#ifdef WITH_log
FROM("log", "write") extern void host_log(uint32_t, const char *, size_t);

static JSValue line(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv, int level) {
    BEGIN;
    TEXT(text, 0);
    host_log((uint32_t)level, text, text_length);
    JS_FreeCString(ctx, text);
    return JS_UNDEFINED;
}

static const JSCFunctionListEntry log_lines[] = {
    JS_CFUNC_MAGIC_DEF("error", 1, line, 0),
    JS_CFUNC_MAGIC_DEF("warn", 1, line, 1),
    JS_CFUNC_MAGIC_DEF("info", 1, line, 2),
    JS_CFUNC_MAGIC_DEF("debug", 1, line, 3),
};
#endif

#ifdef WITH_clock
FROM("clock", "now") extern uint64_t host_now(void);
FROM("clock", "wall") extern uint64_t host_wall(void);

FUNCTION(now) {
    BEGIN, (void)argv;
    return JS_NewBigUint64(ctx, host_now());
}

FUNCTION(wall) {
    BEGIN, (void)argv;
    return JS_NewBigUint64(ctx, host_wall());
}

static const JSCFunctionListEntry clock_functions[] = {
    JS_CFUNC_DEF("now", 0, now),
    JS_CFUNC_DEF("wall", 0, wall),
};

double wall_of_host(void) {
    return (double)(host_wall() / 1000);
}
#else
double wall_of_host(void) {
    return 0.0;
}
#endif

#ifdef WITH_random
FROM("random", "bytes") extern void host_random(uint32_t, void *);

FUNCTION(bytes) {
    BEGIN;
    COUNT(count, 0);
    host_random((uint32_t)count, back);
    return array_back(ctx, 0);
}

static const JSCFunctionListEntry random_functions[] = {JS_CFUNC_DEF("bytes", 1, bytes)};
#endif

#ifdef WITH_config
FROM("config", "get") extern void host_config(const char *, size_t, void *);

FUNCTION(setting) {
    BEGIN;
    TEXT(key, 0);
    host_config(key, key_length, back);
    JS_FreeCString(ctx, key);
    return BYTE(0) ? text_back(ctx, (const char *)WORD(4), WORD(8)) : JS_UNDEFINED;
}

static const JSCFunctionListEntry config[] = {JS_CFUNC_DEF("get", 1, setting)};
#endif

/* The modules that there are. */
static const struct {
    const char *name;
    const JSCFunctionListEntry *functions;
    int count;
} modules[] = {
#define MODULE(name, list) {"strowger:" name, list, sizeof list / sizeof *list}
#ifdef WITH_messaging
    MODULE("messaging", messaging),
#endif
#ifdef WITH_rpc
    MODULE("rpc", rpc),
#endif
#ifdef WITH_streams
    MODULE("streams", streams),
#endif
#ifdef WITH_kv
    MODULE("kv", kv),
#endif
#ifdef WITH_files
    MODULE("files", files),
#endif
#ifdef WITH_log
    MODULE("log", log_lines),
#endif
#ifdef WITH_clock
    MODULE("clock", clock_functions),
#endif
#ifdef WITH_random
    MODULE("random", random_functions),
#endif
#ifdef WITH_config
    MODULE("config", config),
#endif
    {NULL, NULL, 0},
};

static int found(const char *name) {
    int at = 0;
    while (modules[at].name && strcmp(modules[at].name, name) != 0)
        at++;
    return modules[at].name ? at : -1;
}

/* Fills a module in. */
static int fill(JSContext *ctx, JSModuleDef *module) {
    JSAtom atom = JS_GetModuleName(ctx, module);
    const char *name = JS_AtomToCString(ctx, atom);
    JS_FreeAtom(ctx, atom);
    int at = name ? found(name) : -1;
    JS_FreeCString(ctx, name);
    return at < 0 ? -1
                  : JS_SetModuleExportList(ctx, module, modules[at].functions, modules[at].count);
}

JSModuleDef *import_of(JSContext *ctx, const char *name) {
    int at = found(name);
    JSModuleDef *module = at < 0 ? NULL : JS_NewCModule(ctx, name, fill);
    if (module)
        JS_AddModuleExportList(ctx, module, modules[at].functions, modules[at].count);
    return module;
}

/* An actor in JavaScript: QuickJS behind the contract of `wit/component.wit`.
 *
 * The source is evaluated when the component is built: `prepare` runs once, and the resulting
 * memory becomes part of the component. An incarnation starts with an evaluated module.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "actor.h"

#define EXPORT(name) __attribute__((export_name(name)))
#define ACTOR "strowger:component/actor@0.1.0#"
#define STATEFUL "strowger:component/stateful@0.1.0#"

/* Stack size for JavaScript, in linear memory. The native stack, of which a call uses about three
 * times as much, is larger, so that deep recursion is a JavaScript error and not a trap. */
#define STACK (96u << 10)

__attribute__((import_module("strowger:component/fault@0.1.0"), import_name("fail"))) extern void
host_fail(const char *text, size_t length);

extern const char source_name[], source[];
extern const unsigned long source_length;

/* result<list<u8>, string> and result<_, string>, as the component model lays them out. */
static struct result {
    uint32_t failed;
    const void *bytes;
    size_t length;
} result;

/* list<u8> */
static struct list {
    const void *bytes;
    size_t length;
} list;

static JSRuntime *runtime;
static JSContext *context;
/* The exports of the module, the class `Refusal`, and the prototype of messages. */
static JSValue exports, refusal, message_class;
/* The memory that the host reads until the call is over. */
static void *held;
/* Number of rejected promises without a handler, and the reason of the latest one. */
static int unhandled;
static JSValue why;

int lives;
bool strowger_stack_passed;

int strowger_enqueue_job(JSContext *ctx, JSJobFunc *job, int argc, JSValueConst *argv);

int JS_EnqueueJob(JSContext *ctx, JSJobFunc *job, int argc, JSValueConst *argv) {
    return strowger_enqueue_job(ctx, job, argc, argv);
}

double __rquickjs_host_now_us(void) {
    return lives ? wall_of_host() : 0.0;
}

EXPORT("cabi_realloc")
void *cabi_realloc(void *old, size_t was, size_t align, size_t size) {
    (void)was;
    if (size == 0)
        return (void *)align;
    void *fresh = realloc(old, size);
    if (!fresh)
        __builtin_trap();
    return fresh;
}

/* Ends the incarnation with a message. */
_Noreturn static void fail(const char *text, size_t length) {
    host_fail(text, length);
    __builtin_trap();
}

/* Ends the incarnation with a thrown value: its text, and the first line of its stack. */
_Noreturn static void give_up(JSValue error) {
    size_t length = 0, place = 0;
    const char *text = JS_ToCStringLen(context, &length, error);
    JSValue stack = JS_IsError(error) ? JS_GetPropertyStr(context, error, "stack") : JS_UNDEFINED;
    const char *first = JS_IsString(stack) ? JS_ToCString(context, stack) : NULL;
    while (first && *first == ' ')
        first++;
    while (first && first[place] && first[place] != '\n')
        place++;
    if (!text)
        fail("threw what has no text", 22);
    char *all = malloc(length + place + 2);
    if (!all || place == 0)
        fail(text, length);
    memcpy(all, text, length);
    all[length] = ' ';
    memcpy(all + length + 1, first, place);
    fail(all, length + 1 + place);
}

/* Takes the pending exception. */
static JSValue error(void) {
    return JS_GetException(context);
}

static void looked_at(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool handled,
                      void *opaque) {
    (void)promise, (void)opaque;
    if (handled) {
        unhandled--;
        return;
    }
    unhandled++;
    JS_FreeValue(ctx, why);
    why = JS_DupValue(ctx, reason);
}

/* Runs the pending jobs. */
static void pump(void) {
    JSContext *of;
    while (JS_IsJobPending(runtime))
        /* A job fails only with an uncatchable error. */
        if (JS_ExecutePendingJob(runtime, &of) < 0)
            give_up(error());
}

/* Returns the outcome of a call, with its promise settled; takes the value. A promise that is still
 * pending after all jobs can never settle. */
static JSValue settled(JSValue value) {
    if (JS_IsException(value))
        return value;
    pump();
    switch (JS_PromiseState(context, value)) {
    case JS_PROMISE_NOT_A_PROMISE:
        break;
    case JS_PROMISE_PENDING:
        fail("its promise waits for what never comes", 38);
    case JS_PROMISE_REJECTED: {
        JSValue reason = JS_PromiseResult(context, value);
        JS_FreeValue(context, value);
        unhandled--;
        value = JS_Throw(context, reason);
        break;
    }
    case JS_PROMISE_FULFILLED: {
        JSValue kept = JS_PromiseResult(context, value);
        JS_FreeValue(context, value);
        value = kept;
        break;
    }
    }
    if (unhandled > 0)
        give_up(JS_DupValue(context, why));
    unhandled = 0;
    return value;
}

int bytes_of(JSContext *ctx, JSValueConst value, struct bytes *bytes) {
    *bytes = (struct bytes){0};
    if (JS_IsString(value)) {
        bytes->text = JS_ToCStringLen(ctx, &bytes->length, value);
        bytes->at = (const uint8_t *)bytes->text;
        return bytes->text ? 0 : -1;
    }
    if (JS_IsArrayBuffer(value))
        bytes->at = JS_GetArrayBuffer(ctx, &bytes->length, value);
    else if (JS_GetTypedArrayType(value) == JS_TYPED_ARRAY_UINT8)
        bytes->at = JS_GetUint8Array(ctx, &bytes->length, value);
    else
        JS_ThrowTypeError(ctx, "neither a text nor octets");
    return bytes->at || !JS_HasException(ctx) ? 0 : -1;
}

void free_bytes(JSContext *ctx, struct bytes *bytes) {
    if (bytes->text)
        JS_FreeCString(ctx, bytes->text);
}

JSValue refuse(JSContext *ctx, const char *what, const char *reason) {
    JSValue words[2] = {JS_NewString(ctx, what), reason ? JS_NewString(ctx, reason) : JS_UNDEFINED};
    JSValue thrown = JS_CallConstructor(ctx, refusal, 2, (JSValueConst *)words);
    JS_FreeValue(ctx, words[0]);
    JS_FreeValue(ctx, words[1]);
    return JS_IsException(thrown) ? thrown : JS_Throw(ctx, thrown);
}

/* Copies bytes to memory that the host may read until the call is over. */
static void hold(const void **at, size_t *length, const void *from, size_t count) {
    free(held);
    held = malloc(count ? count : 1);
    if (!held)
        __builtin_trap();
    memcpy(held, from, count);
    *at = held;
    *length = count;
}

/* Holds a returned value: a string, bytes, nothing, or any other value as JSON. Takes it. */
static bool hold_value(const void **at, size_t *length, JSValue value) {
    struct bytes bytes = {0};
    if (JS_IsObject(value) && !JS_IsArrayBuffer(value) &&
        JS_GetTypedArrayType(value) != JS_TYPED_ARRAY_UINT8) {
        JSValue json = JS_JSONStringify(context, value, JS_UNDEFINED, JS_UNDEFINED);
        JS_FreeValue(context, value);
        value = json;
    } else if (JS_IsNumber(value) || JS_IsBool(value) || JS_IsBigInt(value)) {
        JSValue text = JS_ToString(context, value);
        JS_FreeValue(context, value);
        value = text;
    }
    if (JS_IsException(value))
        return false;
    bool nothing = JS_IsUndefined(value) || JS_IsNull(value);
    if (!nothing && bytes_of(context, value, &bytes) < 0) {
        JS_FreeValue(context, value);
        return false;
    }
    hold(at, length, bytes.at, bytes.length);
    free_bytes(context, &bytes);
    JS_FreeValue(context, value);
    return true;
}

/* Returns a thrown Refusal as a result for the caller; any other thrown value is a fault. */
static struct result *refused(void) {
    JSValue thrown = error();
    if (JS_IsInstanceOf(context, thrown, refusal) <= 0)
        give_up(thrown);
    JSValue message = JS_GetPropertyStr(context, thrown, "message");
    size_t length = 0;
    const char *text = JS_ToCStringLen(context, &length, message);
    if (!text)
        give_up(error());
    result.failed = 1;
    hold(&result.bytes, &result.length, text, length);
    JS_FreeCString(context, text);
    JS_FreeValue(context, message);
    JS_FreeValue(context, thrown);
    return &result;
}

/* Returns the outcome of a call as a result for the host; takes it. */
static struct result *answered(JSValue value) {
    value = settled(value);
    result.failed = 0;
    if (JS_IsException(value) || !hold_value(&result.bytes, &result.length, value))
        return refused();
    return &result;
}

/* Calls an export if the module has it; takes the argument. */
static JSValue call(const char *name, int argc, JSValue argument) {
    JS_UpdateStackTop(runtime);
    lives = 1;
    JSValue callee = JS_GetPropertyStr(context, exports, name);
    JSValue value = JS_UNDEFINED;
    if (!JS_IsUndefined(callee))
        value = JS_Call(context, callee, JS_UNDEFINED, argc, (JSValueConst *)&argument);
    JS_FreeValue(context, callee);
    JS_FreeValue(context, argument);
    return value;
}

static void set(JSValueConst object, const char *name, JSValue value) {
    if (JS_IsException(value) ||
        JS_DefinePropertyValueStr(context, object, name, value, JS_PROP_C_W_E) < 0)
        give_up(error());
}

/* Returns bytes of the host as a Uint8Array; takes them. */
static JSValue array_of(uint8_t *bytes, size_t length) {
    JSValue array = JS_NewUint8ArrayCopy(context, bytes, length);
    if (length)
        free(bytes);
    return array;
}

EXPORT(ACTOR "init")
struct result *init(uint32_t reason, uint32_t attempt, uint32_t version, uint32_t some,
                    uint8_t *state, size_t length) {
    static const char *const reasons[] = {"fresh", "restart", "upgrade"};
    JSValue start = JS_NewObject(context);
    set(start, "reason", JS_NewString(context, reasons[reason]));
    set(start, "attempt", JS_NewUint32(context, attempt));
    if (some) {
        set(start, "version", JS_NewUint32(context, version));
        set(start, "state", array_of(state, length));
    }
    return answered(call("init", 1, start));
}

EXPORT(ACTOR "handle")
struct result *handle(uint32_t kind, uint64_t token, uint8_t *payload, size_t length) {
    static const char *const kinds[] = {"message", "request", "answer",
                                        "failure", "event",   "timer"};
    JSValue message = JS_NewObjectProto(context, message_class);
    set(message, "kind", JS_NewString(context, kinds[kind]));
    set(message, "token", JS_NewBigUint64(context, token));
    set(message, "payload", array_of(payload, length));
    return answered(call("handle", 1, message));
}

EXPORT(ACTOR "stop")
void stop(void) {
    JSValue value = settled(call("stop", 0, JS_UNDEFINED));
    if (JS_IsException(value))
        give_up(error());
}

EXPORT(ACTOR "health")
struct result *health(void) {
    return answered(call("health", 0, JS_UNDEFINED));
}

EXPORT(STATEFUL "snapshot")
struct list *snapshot(void) {
    JSValue value = settled(call("snapshot", 0, JS_UNDEFINED));
    if (JS_IsException(value) || !hold_value(&list.bytes, &list.length, value))
        give_up(error());
    return &list;
}

EXPORT(STATEFUL "version")
uint32_t version(void) {
    JSValue value = JS_GetPropertyStr(context, exports, "version");
    uint32_t number = 1;
    if (!JS_IsUndefined(value) && JS_ToUint32(context, &number, value) < 0)
        give_up(error());
    JS_FreeValue(context, value);
    return number;
}

static void release(void) {
    free(held);
    held = NULL;
}

EXPORT("cabi_post_" ACTOR "init") void initialised(struct result *given) {
    (void)given;
    release();
}

EXPORT("cabi_post_" ACTOR "handle") void handled(struct result *given) {
    (void)given;
    release();
}

EXPORT("cabi_post_" ACTOR "health") void looked(struct result *given) {
    (void)given;
    release();
}

EXPORT("cabi_post_" STATEFUL "snapshot") void taken(struct list *given) {
    (void)given;
    release();
}

/* decode(bytes): their text in UTF-8. */
static JSValue decode(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    (void)this;
    struct bytes bytes;
    if (bytes_of(ctx, argc ? argv[0] : JS_UNDEFINED, &bytes) < 0)
        return JS_EXCEPTION;
    JSValue text = JS_NewStringLen(ctx, (const char *)bytes.at, bytes.length);
    free_bytes(ctx, &bytes);
    return text;
}

/* encode(text): its bytes in UTF-8. */
static JSValue encode(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    (void)this;
    struct bytes bytes;
    if (bytes_of(ctx, argc ? argv[0] : JS_UNDEFINED, &bytes) < 0)
        return JS_EXCEPTION;
    JSValue array = JS_NewUint8ArrayCopy(ctx, bytes.at, bytes.length);
    free_bytes(ctx, &bytes);
    return array;
}

static JSModuleDef *loaded(JSContext *ctx, const char *name, void *opaque) {
    (void)opaque;
    JSModuleDef *module = import_of(ctx, name);
    if (!module && !JS_HasException(ctx))
        JS_ThrowReferenceError(ctx, "there is no module %s", name);
    return module;
}

/* Globals that every source finds. */
static const char BEGIN[] =
    "globalThis.Refusal = class Refusal extends Error {\n"
    "    constructor(message, reason) { super(message); this.reason = reason; }\n"
    "    get name() { return 'Refusal'; }\n"
    "};\n"
    "({ get text() { return decode(this.payload); } })\n";

/* Evaluates the source, at build time. */
EXPORT("prepare") void prepare(void) {
    runtime = JS_NewRuntime();
    context = runtime ? JS_NewContext(runtime) : NULL;
    if (!context)
        __builtin_trap();
    why = JS_UNDEFINED;
    JS_SetMaxStackSize(runtime, STACK);
    JS_SetModuleLoaderFunc(runtime, NULL, loaded, NULL);
    JS_SetHostPromiseRejectionTracker(runtime, looked_at, NULL);
    JSValue global = JS_GetGlobalObject(context);
    set(global, "decode", JS_NewCFunction(context, decode, "decode", 1));
    set(global, "encode", JS_NewCFunction(context, encode, "encode", 1));
    message_class = JS_Eval(context, BEGIN, sizeof BEGIN - 1, "<begin>", JS_EVAL_TYPE_GLOBAL);
    if (JS_IsException(message_class))
        give_up(error());
    refusal = JS_GetPropertyStr(context, global, "Refusal");
    JS_FreeValue(context, global);
    int flags = JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY;
    JSValue module = JS_Eval(context, source, source_length, source_name, flags);
    if (JS_IsException(module))
        give_up(error());
    JSModuleDef *definition = JS_VALUE_GET_PTR(module);
    JSValue evaluated = settled(JS_EvalFunction(context, module));
    if (JS_IsException(evaluated))
        give_up(error());
    JS_FreeValue(context, evaluated);
    exports = JS_GetModuleNamespace(context, definition);
    JSValue handler = JS_GetPropertyStr(context, exports, "handle");
    if (!JS_IsFunction(context, handler))
        fail("exports no function `handle`", 28);
    JS_FreeValue(context, handler);
    JS_RunGC(runtime);
}

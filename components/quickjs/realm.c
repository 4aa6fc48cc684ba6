/* A realm of JavaScript: QuickJS behind the contract of `wit/script.wit`.
 *
 * The realm is prepared when the component is built: `prepare` runs once, and the resulting memory
 * becomes part of the component. A new realm is a new instance, which needs no initialization.
 *
 * The script is not trusted, nor is this file once a script runs in it: the host enforces all limits
 * (memory, time, output, available functions).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hooks.h"
#include "quickjs.h"

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name)                                                                               \
    __attribute__((import_module("strowger:script/host@0.1.0"), import_name(name)))
#define REALM "strowger:script/realm@0.1.0#"

/* tuple<bool, list<u8>>, as the component model lays it out. */
struct reply {
    uint8_t well;
    char *bytes;
    size_t length;
};

IMPORT("print") extern void host_print(uint32_t level, const char *text, size_t length);
IMPORT("call")
extern uint32_t host_call(uint32_t function, uint32_t token, const char *json, size_t length);
IMPORT("invoke")
extern void host_invoke(uint32_t function, const char *json, size_t length, struct reply *reply);
IMPORT("crowded") extern void host_crowded(void);
IMPORT("now") extern double host_now(void);
IMPORT("random") extern uint64_t host_random(void);

/* The outcome of a step: tuple<u32, list<u8>>. */
enum state { VALUE, THROWN, WAITING, STACK };

static struct answer {
    uint32_t state;
    const char *bytes;
    size_t length;
} answer;

/* The function of QuickJS that queues a job; see engine.sh. */
int strowger_enqueue_job(JSContext *ctx, JSJobFunc *job, int argc, JSValueConst *argv);

static JSRuntime *runtime;
static JSContext *context;
/* The string that the answer points to, until the host has read it. */
static const char *held;
/* The result of the run; a promise until it is settled. */
static JSValue outcome;
/* True if `outcome` is that of a script, whose value is wrapped in an object. */
static bool wrapped;
static uint32_t run;

/* A call of a host function in progress. */
struct pending {
    uint32_t token;
    JSValue settle[2];
};

static struct pending *pending;
static size_t pending_count, pending_room;
static uint32_t next_token;

static uint32_t jobs, jobs_most;
bool strowger_stack_passed;

static bool clock_granted, random_granted;
static uint64_t random_state;

/* Returns the time in microseconds, or 0 if the clock was not granted. */
double __rquickjs_host_now_us(void) {
    return clock_granted ? host_now() * 1000.0 : 0.0;
}

EXPORT("cabi_realloc")
void *cabi_realloc(void *old, size_t was, size_t align, size_t size) {
    (void)was, (void)align;
    if (size == 0)
        return (void *)align;
    void *fresh = realloc(old, size);
    if (!fresh)
        __builtin_trap();
    return fresh;
}

/* Counts promise jobs where they are queued. QuickJS does not check every result of this function,
 * so the host ends a run that queues too many. */
int JS_EnqueueJob(JSContext *ctx, JSJobFunc *job, int argc, JSValueConst *argv) {
    if (jobs >= jobs_most) {
        host_crowded();
        __builtin_trap();
    }
    int done = strowger_enqueue_job(ctx, job, argc, argv);
    if (done == 0)
        jobs++;
    return done;
}

static void release(void) {
    if (held) {
        JS_FreeCString(context, held);
        held = NULL;
    }
}

static struct answer *ended(enum state state) {
    release();
    answer = (struct answer){.state = state, .bytes = NULL, .length = 0};
    return &answer;
}

/* Ends a step with a string; takes it. */
static struct answer *ended_with(enum state state, JSValue text) {
    ended(state);
    held = JS_ToCStringLen(context, &answer.length, text);
    JS_FreeValue(context, text);
    answer.bytes = held;
    if (!held) {
        JS_FreeValue(context, JS_GetException(context));
        answer.length = 0;
    }
    return &answer;
}

/* Returns a property of an error as a string; empty if a getter throws. */
static JSValue text_of(JSValueConst object, const char *name) {
    JSValue value = JS_GetPropertyStr(context, object, name);
    JSValue text = JS_IsException(value) || JS_IsUndefined(value) ? JS_EXCEPTION
                                                                  : JS_ToString(context, value);
    if (!JS_IsException(value))
        JS_FreeValue(context, value);
    if (JS_IsException(text)) {
        JS_FreeValue(context, JS_GetException(context));
        return JS_NewString(context, "");
    }
    return text;
}

/* Ends a step with a thrown value; takes it. */
static struct answer *thrown(JSValue error) {
    if (strowger_stack_passed) {
        strowger_stack_passed = false;
        JSValue message = JS_IsError(error) ? text_of(error, "message") : JS_UNDEFINED;
        const char *text = JS_IsString(message) ? JS_ToCString(context, message) : NULL;
        bool deep = text && strcmp(text, "Maximum call stack size exceeded") == 0;
        if (text)
            JS_FreeCString(context, text);
        JS_FreeValue(context, message);
        if (deep) {
            JS_FreeValue(context, error);
            return ended(STACK);
        }
    }
    /* Without a prototype, so that a script cannot change the report through it. */
    JSValue report = JS_NewObjectProto(context, JS_NULL);
    bool is_error = JS_IsError(error);
    JSValue name, message, stack;
    if (is_error) {
        name = text_of(error, "name");
        message = text_of(error, "message");
        stack = text_of(error, "stack");
    } else {
        name = JS_NewString(context, "");
        message = JS_ToString(context, error);
        if (JS_IsException(message)) {
            JS_FreeValue(context, JS_GetException(context));
            message = JS_NewString(context, "a value that is no text");
        }
        stack = JS_NewString(context, "");
    }
    JS_SetPropertyStr(context, report, "name", name);
    JS_SetPropertyStr(context, report, "message", message);
    JS_SetPropertyStr(context, report, "stack", stack);
    JS_FreeValue(context, error);
    JSValue json = JS_JSONStringify(context, report, JS_UNDEFINED, JS_UNDEFINED);
    JS_FreeValue(context, report);
    if (JS_IsException(json)) {
        JS_FreeValue(context, JS_GetException(context));
        return ended(THROWN);
    }
    return ended_with(THROWN, json);
}

/* Ends a step with a value; takes it. */
static struct answer *returned(JSValue value) {
    JSValue json = JS_JSONStringify(context, value, JS_UNDEFINED, JS_UNDEFINED);
    JS_FreeValue(context, value);
    if (JS_IsException(json))
        return thrown(JS_GetException(context));
    if (JS_IsUndefined(json))
        return ended(VALUE);
    return ended_with(VALUE, json);
}

/* Runs all pending jobs, so that none is left to the next run. */
static bool pump(void) {
    JSContext *of;
    while (JS_IsJobPending(runtime)) {
        jobs--;
        /* A job fails only with an uncatchable error. */
        if (JS_ExecutePendingJob(runtime, &of) < 0)
            return false;
    }
    return true;
}

/* Continues a run until it ends or waits for the host. */
static struct answer *proceed(void) {
    for (;;) {
        if (!pump())
            return thrown(JS_GetException(context));
        switch (JS_PromiseState(context, outcome)) {
        case JS_PROMISE_PENDING:
            return ended(WAITING);
        case JS_PROMISE_REJECTED: {
            JSValue error = JS_PromiseResult(context, outcome);
            JS_FreeValue(context, outcome);
            outcome = JS_UNDEFINED;
            return thrown(error);
        }
        case JS_PROMISE_FULFILLED: {
            JSValue value = JS_PromiseResult(context, outcome);
            JS_FreeValue(context, outcome);
            outcome = value;
            if (wrapped) {
                wrapped = false;
                outcome = JS_GetPropertyStr(context, value, "value");
                JS_FreeValue(context, value);
                if (JS_IsException(outcome)) {
                    outcome = JS_UNDEFINED;
                    return thrown(JS_GetException(context));
                }
            }
            break;
        }
        case JS_PROMISE_NOT_A_PROMISE: {
            JSValue value = outcome;
            outcome = JS_UNDEFINED;
            struct answer *end = returned(value);
            /* A `toJSON` may have queued jobs. */
            if (!pump()) {
                release();
                return thrown(JS_GetException(context));
            }
            return end;
        }
        }
    }
}

/* Continues with the value of an evaluation or a call; takes it. */
static struct answer *follow(JSValue value, bool of_script) {
    if (JS_IsException(value)) {
        JSValue error = JS_GetException(context);
        if (!pump()) {
            JS_FreeValue(context, error);
            error = JS_GetException(context);
        }
        return thrown(error);
    }
    JS_FreeValue(context, outcome);
    outcome = value;
    wrapped = of_script;
    return proceed();
}

static void forget_pending(void) {
    for (size_t i = 0; i < pending_count; i++) {
        JS_FreeValue(context, pending[i].settle[0]);
        JS_FreeValue(context, pending[i].settle[1]);
    }
    pending_count = 0;
}

/* Returns the arguments for a host function, as JSON. */
static JSValue arguments_of(int argc, JSValueConst *argv) {
    JSValue list = JS_NewArray(context);
    if (JS_IsException(list))
        return list;
    for (int i = 0; i < argc; i++)
        if (JS_SetPropertyUint32(context, list, i, JS_DupValue(context, argv[i])) < 0) {
            JS_FreeValue(context, list);
            return JS_EXCEPTION;
        }
    JSValue json = JS_JSONStringify(context, list, JS_UNDEFINED, JS_UNDEFINED);
    JS_FreeValue(context, list);
    return json;
}

/* Creates an error from the error message of a host function. */
static JSValue host_error(const char *text, size_t length) {
    JSValue error = JS_NewError(context);
    JS_DefinePropertyValueStr(context, error, "message", JS_NewStringLen(context, text, length),
                              JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
    return error;
}

static JSValue host_value(const char *json, size_t length) {
    if (length == 0)
        return JS_UNDEFINED;
    /* The parser needs a terminating zero. */
    char *copy = js_malloc(context, length + 1);
    if (!copy)
        return JS_EXCEPTION;
    memcpy(copy, json, length);
    copy[length] = 0;
    JSValue value = JS_ParseJSON(context, copy, length, "<host>");
    js_free(context, copy);
    return value;
}

/* Calls a host function; data is the number of the run that was given the function. */
static JSValue function(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv, int magic,
                        JSValueConst *data) {
    (void)this;
    uint32_t of = 0;
    JS_ToUint32(ctx, &of, data[0]);
    if (of != run)
        return JS_ThrowTypeError(ctx, "the run that this function was given to is over");
    JSValue json = arguments_of(argc, argv);
    if (JS_IsException(json))
        return json;
    size_t length;
    const char *text = JS_ToCStringLen(ctx, &length, json);
    JS_FreeValue(ctx, json);
    if (!text)
        return JS_EXCEPTION;
    if (magic & 1) {
        struct reply reply = {0};
        host_invoke((uint32_t)magic >> 1, text, length, &reply);
        JS_FreeCString(ctx, text);
        JSValue value = reply.well ? host_value(reply.bytes, reply.length)
                                  : JS_Throw(ctx, host_error(reply.bytes, reply.length));
        if (reply.length > 0)
            free(reply.bytes);
        return value;
    }
    JSValue settle[2];
    JSValue promise = JS_NewPromiseCapability(ctx, settle);
    if (JS_IsException(promise)) {
        JS_FreeCString(ctx, text);
        return promise;
    }
    uint32_t token = next_token++;
    bool room = pending_count < pending_room;
    if (!room) {
        size_t more = pending_room ? pending_room * 2 : 8;
        struct pending *grown = js_realloc(ctx, pending, more * sizeof *pending);
        if (grown) {
            pending = grown;
            pending_room = more;
            room = true;
        } else {
            JS_FreeValue(ctx, JS_GetException(ctx));
        }
    }
    if (room && host_call((uint32_t)magic >> 1, token, text, length) == 0) {
        pending[pending_count++] =
            (struct pending){.token = token, .settle = {settle[0], settle[1]}};
    } else {
        static const char refusal[] = "too many calls are under way";
        JSValue error = host_error(refusal, sizeof refusal - 1);
        JSValue done = JS_Call(ctx, settle[1], JS_UNDEFINED, 1, (JSValueConst *)&error);
        JS_FreeValue(ctx, done);
        JS_FreeValue(ctx, error);
        JS_FreeValue(ctx, settle[0]);
        JS_FreeValue(ctx, settle[1]);
    }
    JS_FreeCString(ctx, text);
    return promise;
}

static JSValue print(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv, int level) {
    (void)this;
    JSValue line = JS_NewString(ctx, "");
    for (int i = 0; i < argc && !JS_IsException(line); i++) {
        JSValue part;
        if (JS_IsError(argv[i])) {
            JSValue head = JS_ToString(ctx, argv[i]);
            JSValue stack = text_of(argv[i], "stack");
            part = JS_UNDEFINED;
            const char *one = JS_ToCString(ctx, head), *two = JS_ToCString(ctx, stack);
            if (one && two) {
                size_t a = strlen(one), b = strlen(two);
                while (b > 0 && two[b - 1] == '\n')
                    b--;
                char *both = js_malloc(ctx, a + b + 2);
                if (both) {
                    memcpy(both, one, a);
                    both[a] = '\n';
                    memcpy(both + a + 1, two, b);
                    part = JS_NewStringLen(ctx, both, a + 1 + b);
                    js_free(ctx, both);
                } else {
                    part = JS_EXCEPTION;
                }
            }
            JS_FreeCString(ctx, one);
            JS_FreeCString(ctx, two);
            JS_FreeValue(ctx, head);
            JS_FreeValue(ctx, stack);
        } else if (JS_IsObject(argv[i]) && !JS_IsFunction(ctx, argv[i])) {
            part = JS_JSONStringify(ctx, argv[i], JS_UNDEFINED, JS_UNDEFINED);
            if (JS_IsException(part)) {
                JS_FreeValue(ctx, JS_GetException(ctx));
                part = JS_ToString(ctx, argv[i]);
            }
        } else if (JS_IsSymbol(argv[i])) {
            part = JS_NewString(ctx, "Symbol()");
        } else {
            part = JS_ToString(ctx, argv[i]);
        }
        if (JS_IsException(part)) {
            JS_FreeValue(ctx, line);
            return part;
        }
        /* Joined in C, because a script can replace the methods of strings. */
        JSValue pieces[3] = {line, JS_NewString(ctx, i ? " " : ""), part};
        size_t length[3];
        const char *text[3];
        size_t all = 0;
        bool whole = true;
        for (int n = 0; n < 3; n++) {
            text[n] = JS_ToCStringLen(ctx, &length[n], pieces[n]);
            whole = whole && text[n];
            all += text[n] ? length[n] : 0;
        }
        char *joined = whole ? js_malloc(ctx, all + 1) : NULL;
        line = JS_EXCEPTION;
        if (joined) {
            size_t at = 0;
            for (int n = 0; n < 3; n++) {
                memcpy(joined + at, text[n], length[n]);
                at += length[n];
            }
            line = JS_NewStringLen(ctx, joined, all);
            js_free(ctx, joined);
        }
        for (int n = 0; n < 3; n++) {
            if (text[n])
                JS_FreeCString(ctx, text[n]);
            JS_FreeValue(ctx, pieces[n]);
        }
    }
    if (JS_IsException(line))
        return line;
    size_t length;
    const char *text = JS_ToCStringLen(ctx, &length, line);
    JS_FreeValue(ctx, line);
    if (!text)
        return JS_EXCEPTION;
    host_print((uint32_t)level, text, length);
    JS_FreeCString(ctx, text);
    return JS_UNDEFINED;
}

/* Random numbers: the same in each realm, or unpredictable if randomness was granted. */
static JSValue random_number(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    (void)this, (void)argc, (void)argv;
    uint64_t bits;
    if (random_granted) {
        bits = host_random();
    } else {
        random_state += 0x9e3779b97f4a7c15u;
        bits = random_state;
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
        bits ^= bits >> 31;
    }
    return JS_NewFloat64(ctx, (double)(bits >> 11) * 0x1p-53);
}

static void define(JSValueConst object, const char *name, JSValue value) {
    JS_DefinePropertyValueStr(context, object, name, value,
                              JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
}

/* Prepares the initial state of all realms, at build time. */
EXPORT("prepare") void prepare(void) {
    static const char *const levels[] = {"debug", "log", "info", "warn", "error"};
    jobs_most = UINT32_MAX;
    runtime = JS_NewRuntime();
    context = runtime ? JS_NewContext(runtime) : NULL;
    if (!context)
        __builtin_trap();
    outcome = JS_UNDEFINED;
    JSValue global = JS_GetGlobalObject(context);
    JSValue console = JS_NewObject(context);
    for (int level = 0; level < 5; level++) {
        JSValue method =
            JS_NewCFunctionMagic(context, print, levels[level], 0, JS_CFUNC_generic_magic, level);
        define(console, levels[level], method);
    }
    define(global, "console", console);
    JSValue math = JS_GetPropertyStr(context, global, "Math");
    define(math, "random", JS_NewCFunction(context, random_number, "random", 0));
    JS_FreeValue(context, math);
    JS_FreeValue(context, global);
    JS_RunGC(runtime);
}

/* Reads a number of four bytes. */
static uint32_t number(const uint8_t **at) {
    uint32_t value;
    memcpy(&value, *at, sizeof value);
    *at += sizeof value;
    return value;
}

/* Begins a run. `functions` is a count, then for each function: 1 if it waits, otherwise 0; the
 * length of its name; the name. Numbers have four bytes. */
EXPORT(REALM "begin")
void begin(uint32_t stack, uint32_t most, uint32_t granted, uint8_t *functions, size_t length) {
    run++;
    JS_SetMaxStackSize(runtime, stack);
    JS_UpdateStackTop(runtime);
    jobs_most = most;
    strowger_stack_passed = false;
    clock_granted = granted & 1;
    random_granted = granted & 2;
    forget_pending();
    release();
    JS_FreeValue(context, outcome);
    outcome = JS_UNDEFINED;
    wrapped = false;
    JSValue global = JS_GetGlobalObject(context);
    JSValue all = JS_NewObject(context);
    const uint8_t *at = functions;
    uint32_t count = length ? number(&at) : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t waits = number(&at), size = number(&at);
        JSValue of = JS_NewUint32(context, run);
        JSValue made = JS_NewCFunctionData(context, function, 0, (int)(i << 1 | (waits & 1)), 1,
                                           (JSValueConst *)&of);
        JSAtom name = JS_NewAtomLen(context, (const char *)at, size);
        JS_DefinePropertyValue(context, all, name, made, JS_PROP_ENUMERABLE);
        JS_FreeAtom(context, name);
        at += size;
    }
    JS_PreventExtensions(context, all);
    define(global, "fns", all);
    JS_FreeValue(context, global);
    if (functions && length)
        free(functions);
}

/* Runs a script. */
EXPORT(REALM "evaluate")
struct answer *evaluate(char *name, size_t name_length, char *code, size_t length) {
    JS_UpdateStackTop(runtime);
    /* Both need a terminating zero. */
    name = name_length ? cabi_realloc(name, name_length, 1, name_length + 1) : calloc(1, 1);
    code = length ? cabi_realloc(code, length, 1, length + 1) : calloc(1, 1);
    if (!name || !code)
        __builtin_trap();
    name[name_length] = 0;
    code[length] = 0;
    int flags = JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_ASYNC;
    JSValue value = JS_Eval(context, code, length, name, flags);
    free(name);
    free(code);
    return follow(value, true);
}

/* Calls a function that the script defined. `arguments` is a list in JSON. */
EXPORT(REALM "call")
struct answer *call(char *name, size_t name_length, char *json, size_t length) {
    JS_UpdateStackTop(runtime);
    JSValue global = JS_GetGlobalObject(context);
    JSAtom atom = JS_NewAtomLen(context, name, name_length);
    JSValue callee = JS_GetProperty(context, global, atom);
    JS_FreeAtom(context, atom);
    if (name_length)
        free(name);
    JSValue list = JS_IsException(callee) ? JS_EXCEPTION : host_value(json, length);
    if (length)
        free(json);
    JSValue value = JS_EXCEPTION;
    JSValueConst argv[4];
    int argc = 0;
    if (!JS_IsException(list)) {
        int64_t count = 0;
        if (JS_GetLength(context, list, &count) == 0) {
            for (; argc < count && argc < 4; argc++)
                argv[argc] = JS_GetPropertyUint32(context, list, argc);
            value = JS_Call(context, callee, JS_UNDEFINED, argc, argv);
        }
        for (int i = 0; i < argc; i++)
            JS_FreeValue(context, argv[i]);
        JS_FreeValue(context, list);
    }
    if (!JS_IsException(callee))
        JS_FreeValue(context, callee);
    JS_FreeValue(context, global);
    return follow(value, false);
}

/* Sets a global variable to a value in JSON. */
EXPORT(REALM "set")
struct answer *set(char *name, size_t name_length, char *json, size_t length) {
    JS_UpdateStackTop(runtime);
    JSValue value = host_value(json, length);
    if (length)
        free(json);
    if (JS_IsException(value))
        return thrown(JS_GetException(context));
    JSValue global = JS_GetGlobalObject(context);
    JSAtom atom = JS_NewAtomLen(context, name, name_length);
    int done = JS_SetProperty(context, global, atom, value);
    JS_FreeAtom(context, atom);
    JS_FreeValue(context, global);
    if (name_length)
        free(name);
    return done < 0 ? thrown(JS_GetException(context)) : ended(VALUE);
}

/* Settles a call of a host function, and continues the run. */
EXPORT(REALM "settle")
struct answer *settle(uint32_t token, uint32_t well, char *bytes, size_t length) {
    JS_UpdateStackTop(runtime);
    for (size_t i = 0; i < pending_count; i++) {
        if (pending[i].token != token)
            continue;
        struct pending call = pending[i];
        pending[i] = pending[--pending_count];
        JSValue value = well ? host_value(bytes, length) : host_error(bytes, length);
        int which = well ? 0 : 1;
        if (JS_IsException(value)) {
            value = JS_GetException(context);
            which = 1;
        }
        JSValue done =
            JS_Call(context, call.settle[which], JS_UNDEFINED, 1, (JSValueConst *)&value);
        if (JS_IsException(done))
            JS_FreeValue(context, JS_GetException(context));
        JS_FreeValue(context, done);
        JS_FreeValue(context, value);
        JS_FreeValue(context, call.settle[0]);
        JS_FreeValue(context, call.settle[1]);
        break;
    }
    if (length)
        free(bytes);
    return proceed();
}

EXPORT("cabi_post_" REALM "evaluate")
void evaluated(struct answer *given) {
    (void)given;
    release();
}

EXPORT("cabi_post_" REALM "call")
void called(struct answer *given) {
    (void)given;
    release();
}

EXPORT("cabi_post_" REALM "set")
void was_set(struct answer *given) {
    (void)given;
    release();
}

EXPORT("cabi_post_" REALM "settle")
void settled(struct answer *given) {
    (void)given;
    release();
}

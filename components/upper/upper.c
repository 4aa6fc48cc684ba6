/* Answers with the payload in capitals. Implements the whole contract without a library.
 *
 * build.sh upper.core.wasm
 * strowger component build upper.core.wasm --out upper.wasm
 */

#include <stddef.h>
#include <stdint.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define ACTOR "strowger:component/actor@0.1.0#"

/* result<list<u8>, string> and result<_, string>, as the component model lays them out. */
struct result {
    uint32_t failed;
    uint8_t *bytes;
    size_t length;
};

static struct result result;

static struct result *answer(uint8_t *bytes, size_t length) {
    result.failed = 0;
    result.bytes = bytes;
    result.length = length;
    return &result;
}

/* A bump allocator for the host's data, which is needed only until the call is over: then all of it
 * is freed at once. */
extern uint8_t __heap_base;
static uintptr_t top;

static uintptr_t take(size_t align, size_t size) {
    if (top == 0)
        top = (uintptr_t)&__heap_base;
    uintptr_t start = (top + align - 1) & ~(uintptr_t)(align - 1);
    if (size > UINT32_MAX - start)
        __builtin_trap();
    top = start + size;
    while (top > (uintptr_t)__builtin_wasm_memory_size(0) * 65536)
        if (__builtin_wasm_memory_grow(0, 1) == (size_t)-1)
            __builtin_trap();
    return start;
}

EXPORT("cabi_realloc")
void *cabi_realloc(void *old, size_t was, size_t align, size_t size) {
    uint8_t *fresh = (uint8_t *)take(align, size);
    for (size_t i = 0; i < was && i < size; i++)
        fresh[i] = ((uint8_t *)old)[i];
    return fresh;
}

EXPORT(ACTOR "init")
struct result *init(uint32_t reason, uint32_t attempt, uint32_t version, uint32_t some,
                    uint8_t *state, size_t length) {
    (void)reason, (void)attempt, (void)version, (void)some, (void)state, (void)length;
    return answer(0, 0);
}

EXPORT(ACTOR "handle")
struct result *handle(uint32_t kind, uint64_t token, uint8_t *payload, size_t length) {
    (void)kind, (void)token;
    for (size_t i = 0; i < length; i++)
        if (payload[i] >= 'a' && payload[i] <= 'z')
            payload[i] -= 'a' - 'A';
    return answer(payload, length);
}

EXPORT("cabi_post_" ACTOR "handle")
void handled(struct result *given) {
    (void)given;
    top = 0;
}

EXPORT(ACTOR "stop")
void stop(void) {}

EXPORT(ACTOR "health")
struct result *health(void) {
    return answer(0, 0);
}

/* Declarations for the build, which patches two functions of QuickJS; see engine.sh. */

#ifndef STROWGER_HOOKS_H
#define STROWGER_HOOKS_H

#include <stdbool.h>

/* True after a stack overflow in JavaScript. */
extern bool strowger_stack_passed;

#endif

/* What the build puts into QuickJS: two of its functions tell the realm what they do. */

#ifndef STROWGER_HOOKS_H
#define STROWGER_HOOKS_H

#include <stdbool.h>

/* Whether something called itself too deeply. */
extern bool strowger_stack_passed;

#endif

// The exported symbols. MPI_X jumps through papaya_mpi_slots, PMPI_X through papaya_pmpi_slots; no register and no
// stack slot that carries an argument is touched, so one trampoline serves every signature. Before resolution a slot
// leads to papaya_resolve (preload.cpp), which fills all slots in. Afterwards MPI_X goes straight to the wrapper,
// and PMPI_X looks at its caller: a Fortran binding library goes to the wrapper, everybody else to MPI itself.
// The two callers that matter for speed, papaya's own flavour library and MPI, are told apart here. Functions that only wait, or are
// only timed, lead straight to MPI under either name unless the flavour asks for them.

#if defined(__x86_64__)

    .text
#define SAVE_ARGUMENTS \
    push %rbp; mov %rsp, %rbp; and $-16, %rsp; sub $192, %rsp; \
    mov %rdi, 0(%rsp); mov %rsi, 8(%rsp); mov %rdx, 16(%rsp); mov %rcx, 24(%rsp); \
    mov %r8, 32(%rsp); mov %r9, 40(%rsp); mov %rax, 48(%rsp); \
    movaps %xmm0, 64(%rsp); movaps %xmm1, 80(%rsp); movaps %xmm2, 96(%rsp); movaps %xmm3, 112(%rsp); \
    movaps %xmm4, 128(%rsp); movaps %xmm5, 144(%rsp); movaps %xmm6, 160(%rsp); movaps %xmm7, 176(%rsp)
#define RESTORE_ARGUMENTS \
    mov 0(%rsp), %rdi; mov 8(%rsp), %rsi; mov 16(%rsp), %rdx; mov 24(%rsp), %rcx; \
    mov 32(%rsp), %r8; mov 40(%rsp), %r9; mov 48(%rsp), %rax; \
    movaps 64(%rsp), %xmm0; movaps 80(%rsp), %xmm1; movaps 96(%rsp), %xmm2; movaps 112(%rsp), %xmm3; \
    movaps 128(%rsp), %xmm4; movaps 144(%rsp), %xmm5; movaps 160(%rsp), %xmm6; movaps 176(%rsp), %xmm7; \
    leave

    // r11: the symbol's number. Calls FUNCTION(number, return address) and jumps where it says.
#define ASK(function) \
    SAVE_ARGUMENTS; \
    mov %r11, %rdi; mov 8(%rbp), %rsi; \
    call function; \
    mov %rax, %r11; \
    RESTORE_ARGUMENTS; \
    jmp *%r11

    .type ask_mpi, @function
ask_mpi:
    .cfi_startproc
    ASK(papaya_resolve_mpi)
    .cfi_endproc
    .size ask_mpi, .-ask_mpi
    .type ask_pmpi, @function
ask_pmpi:
    .cfi_startproc
    ASK(papaya_resolve_pmpi)
    .cfi_endproc
    .size ask_pmpi, .-ask_pmpi

    .type sort_pmpi, @function
sort_pmpi:
    .cfi_startproc
    mov (%rsp), %r10
    sub papaya_flavour_range(%rip), %r10
    cmp papaya_flavour_range+8(%rip), %r10
    jb 1f
    mov (%rsp), %r10
    sub papaya_native_range(%rip), %r10
    cmp papaya_native_range+8(%rip), %r10
    jae ask_pmpi
1:  lea papaya_native_functions(%rip), %r10
    jmp *(%r10,%r11,8)
    .cfi_endproc
    .size sort_pmpi, .-sort_pmpi

    .type straight_pmpi, @function
straight_pmpi:
    .cfi_startproc
    lea papaya_native_functions(%rip), %r10
    jmp *(%r10,%r11,8)
    .cfi_endproc
    .size straight_pmpi, .-straight_pmpi

    .macro trampoline name, number, pmpi_entry
    .text
    .p2align 4
    .globl MPI_\name
    .type MPI_\name, @function
MPI_\name:
    .cfi_startproc
    endbr64
    jmp *papaya_mpi_slots+8*\number(%rip)
    .cfi_endproc
    .size MPI_\name, .-MPI_\name
    .globl PMPI_\name
    .type PMPI_\name, @function
PMPI_\name:
    .cfi_startproc
    endbr64
    mov $\number, %r11d
    jmp *\pmpi_entry(%rip)
    .cfi_endproc
    .size PMPI_\name, .-PMPI_\name
1:  mov $\number, %r11d
    jmp ask_mpi
    .section .data.rel.local, "aw"
    .quad 1b
    .endm

#define POINTER .quad

#elif defined(__aarch64__)

    .text
#define SAVE_ARGUMENTS \
    stp x29, x30, [sp, #-224]!; mov x29, sp; \
    stp x0, x1, [sp, #16]; stp x2, x3, [sp, #32]; stp x4, x5, [sp, #48]; stp x6, x7, [sp, #64]; \
    str x8, [sp, #80]; \
    stp q0, q1, [sp, #96]; stp q2, q3, [sp, #128]; stp q4, q5, [sp, #160]; stp q6, q7, [sp, #192]
#define RESTORE_ARGUMENTS \
    ldp x0, x1, [sp, #16]; ldp x2, x3, [sp, #32]; ldp x4, x5, [sp, #48]; ldp x6, x7, [sp, #64]; \
    ldr x8, [sp, #80]; \
    ldp q0, q1, [sp, #96]; ldp q2, q3, [sp, #128]; ldp q4, q5, [sp, #160]; ldp q6, q7, [sp, #192]; \
    ldp x29, x30, [sp], #224

    // x16: the symbol's number. Calls FUNCTION(number, return address) and jumps where it says.
#define ASK(function) \
    SAVE_ARGUMENTS; \
    mov x0, x16; ldr x1, [x29, #8]; \
    bl function; \
    mov x16, x0; \
    RESTORE_ARGUMENTS; \
    br x16

    .type ask_mpi, %function
ask_mpi:
    ASK(papaya_resolve_mpi)
    .size ask_mpi, .-ask_mpi
    .type ask_pmpi, %function
ask_pmpi:
    ASK(papaya_resolve_pmpi)
    .size ask_pmpi, .-ask_pmpi

    .macro load register, symbol, offset
    adrp \register, \symbol
    add \register, \register, :lo12:\symbol
    ldr \register, [\register, #\offset]
    .endm

    .type sort_pmpi, %function
sort_pmpi:
    load x17, papaya_flavour_range, 0
    sub x17, x30, x17
    load x15, papaya_flavour_range, 8
    cmp x17, x15
    b.lo 1f
    load x17, papaya_native_range, 0
    sub x17, x30, x17
    load x15, papaya_native_range, 8
    cmp x17, x15
    b.hs ask_pmpi
1:  adrp x17, papaya_native_functions
    add x17, x17, :lo12:papaya_native_functions
    ldr x16, [x17, x16, lsl #3]
    br x16
    .size sort_pmpi, .-sort_pmpi

    .type straight_pmpi, %function
straight_pmpi:
    adrp x17, papaya_native_functions
    add x17, x17, :lo12:papaya_native_functions
    ldr x16, [x17, x16, lsl #3]
    br x16
    .size straight_pmpi, .-straight_pmpi

    .macro trampoline name, number, pmpi_entry
    .text
    .p2align 4
    .globl MPI_\name
    .type MPI_\name, %function
MPI_\name:
    hint #34
    adrp x17, papaya_mpi_slots + 8*\number
    add x17, x17, :lo12:papaya_mpi_slots + 8*\number
    ldr x17, [x17]
    br x17
    .size MPI_\name, .-MPI_\name
    .globl PMPI_\name
    .type PMPI_\name, %function
PMPI_\name:
    hint #34
    mov x16, #\number
    adrp x17, \pmpi_entry
    add x17, x17, :lo12:\pmpi_entry
    ldr x17, [x17]
    br x17
    .size PMPI_\name, .-PMPI_\name
1:  mov x16, #\number
    b ask_mpi
    .section .data.rel.local, "aw"
    .xword 1b
    .endm

#define POINTER .xword

#else
#error "papaya has trampolines for x86-64 and AArch64 only"
#endif

    // The same functions as an older MPI calls them.
    .macro renamed name
    .globl MPIX_\name
    .set MPIX_\name, MPI_\name
    .globl PMPIX_\name
    .set PMPIX_\name, PMPI_\name
    .endm

    .hidden papaya_mpi_slots
    .hidden papaya_pmpi_entry
    .hidden papaya_pmpi_waiting_entry
    .hidden papaya_straight_pmpi
    .hidden papaya_sort_pmpi
    .hidden papaya_flavour_range
    .hidden papaya_native_range
    .hidden papaya_native_functions
    .hidden papaya_resolve_mpi
    .hidden papaya_resolve_pmpi
    .globl papaya_mpi_slots
    .globl papaya_pmpi_entry
    .globl papaya_pmpi_waiting_entry
    .globl papaya_straight_pmpi
    .globl papaya_sort_pmpi

    .section .data.rel.local, "aw"
    .p2align 3
papaya_pmpi_entry:  // where PMPI_X goes: asks until the MPI is known, then sorts by caller
    POINTER ask_pmpi
papaya_pmpi_waiting_entry:  // the same for PAPAYA_WAITING and PAPAYA_TIMED, which go straight to MPI unless the flavour asks for them
    POINTER ask_pmpi
papaya_sort_pmpi:
    POINTER sort_pmpi
papaya_straight_pmpi:
    POINTER straight_pmpi
papaya_mpi_slots:
#define PAPAYA_SYMBOL(name) trampoline name, __COUNTER__, papaya_pmpi_entry ;
#define PAPAYA_BOTH(name, kind) trampoline name, __COUNTER__, papaya_pmpi_entry ;
#define PAPAYA_WAITING(name, kind) trampoline name, __COUNTER__, papaya_pmpi_waiting_entry ;
#define PAPAYA_TIMED(name, kind) trampoline name, __COUNTER__, papaya_pmpi_waiting_entry ;
#define PAPAYA_RENAMED(name) PAPAYA_SYMBOL(name) renamed name ;
#include "interpose/symbols.def"

    .section .note.GNU-stack, "", %progbits
